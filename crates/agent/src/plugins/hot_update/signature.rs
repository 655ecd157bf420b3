//! Signatures by minisign: who made a file, besides who asked for it.

use minisign_verify::{Error, PublicKey, Signature};

use super::failure::Failure;

/// More than any signature.
pub(super) const MOST_BYTES: u64 = 4096;
/// What the URL of a signature has at its end.
pub(super) const SUFFIX: &str = ".minisig";

/// A signature that a file is to have.
pub(super) struct Signed {
    key: PublicKey,
    signature: Signature,
}

impl Signed {
    pub(super) fn new(public_key: &str, signature: &str) -> Result<Self, Failure> {
        let key = PublicKey::from_base64(public_key.trim())
            .map_err(|_| Failure::refused("publicKey is no key of minisign: write the last line of its .pub file"))?;
        let signature = Signature::decode(signature)
            .map_err(|_| Failure::unfit("the .minisig file is no signature of minisign"))?;
        Ok(Self { key, signature })
    }

    /// Begins to check; the file is shown to it in parts.
    pub(super) fn check(&self) -> Result<minisign_verify::StreamVerifier<'_>, Failure> {
        self.key.verify_stream(&self.signature).map_err(|error| refusal(&error))
    }
}

/// Why a signature is not the one.
pub(super) fn refusal(error: &Error) -> Failure {
    match error {
        Error::UnexpectedKeyId => Failure::unfit("the file is signed with another key than publicKey"),
        Error::UnsupportedLegacyMode => Failure::unfit("the signature is of an old kind: sign with minisign -H"),
        _ => Failure::unfit("the signature does not belong to the file"),
    }
}
