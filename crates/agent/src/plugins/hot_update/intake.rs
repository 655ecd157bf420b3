//! From a body to a file: bounded, hashed on the way, in constant memory.

use std::fs::File;
use std::io::{self, Read, Write};

use aws_lc_rs::digest::{Context, SHA256};
use minisign_verify::StreamVerifier;

use super::failure::Failure;
use super::signature;

const BUFFER: usize = 64 * 1024;

/// What a file must be.
pub(super) struct Demand<'a> {
    /// Digest, as lower-case digits.
    pub(super) sha256: &'a str,
    pub(super) most_bytes: u64,
    pub(super) signature: Option<StreamVerifier<'a>>,
}

/// Writes a body into a file, and says whether it is what was demanded.
pub(super) fn take_in(body: &mut impl Read, file: &mut File, demand: Demand<'_>) -> Result<u64, Failure> {
    let Demand { sha256, most_bytes, signature } = demand;
    let mut sums = Sums { digest: Context::new(&SHA256), signature };
    let mut buffer = vec![0; BUFFER];
    let mut total: u64 = 0;
    loop {
        let count = match body.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(|error| Failure::unreachable(format!("the download broke off: {error}")))?,
        };
        if count == 0 {
            break;
        }
        total += count as u64;
        if total > most_bytes {
            return Err(too_large(most_bytes));
        }
        sums.add(&buffer[..count]);
        file.write_all(&buffer[..count]).map_err(|error| Failure::disk(format!("cannot write the file: {error}")))?;
    }
    sums.check(sha256)?;
    Ok(total)
}

/// Whether a file is still what was demanded.
pub(super) fn holds(file: &mut File, demand: Demand<'_>) -> io::Result<bool> {
    let mut sums = Sums { digest: Context::new(&SHA256), signature: demand.signature };
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(sums.check(demand.sha256).is_ok()),
            count => sums.add(&buffer[..count]),
        }
    }
}

/// The refusal of a file above the bound.
pub(super) fn too_large(most_bytes: u64) -> Failure {
    Failure::unfit(format!("the file has more than {most_bytes} bytes: raise maxBytes if that is meant"))
}

struct Sums<'a> {
    digest: Context,
    signature: Option<StreamVerifier<'a>>,
}

impl Sums<'_> {
    fn add(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        if let Some(signature) = &mut self.signature {
            signature.update(bytes);
        }
    }

    fn check(self, sha256: &str) -> Result<(), Failure> {
        let found = hex(self.digest.finish().as_ref());
        if found != sha256 {
            return Err(Failure::unfit(format!("the file has sha256 {found}, and {sha256} was asked for")));
        }
        match self.signature {
            Some(mut verifier) => verifier.finalize().map_err(|error| signature::refusal(&error)),
            None => Ok(()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
