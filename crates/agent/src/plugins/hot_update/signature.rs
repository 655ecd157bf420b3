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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of the file `test`, by the author of minisign.
    pub(in super::super) const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    pub(in super::super) const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
        RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
        trusted comment: timestamp:1556193335\tfile:test\n\
        y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==\n";
    const OLD_KIND: &str = "untrusted comment: signature from minisign secret key\n\
        RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=\n\
        trusted comment: timestamp:1555779966\tfile:test\n\
        QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==\n";

    fn check(key: &str, signature: &str, content: &[u8]) -> Result<(), String> {
        let signed = Signed::new(key, signature).map_err(|failure| failure.message)?;
        let mut verifier = signed.check().map_err(|failure| failure.message)?;
        verifier.update(content);
        verifier.finalize().map_err(|error| refusal(&error).message)
    }

    #[test]
    fn a_signature_belongs_to_one_file_and_one_key() {
        assert_eq!(check(KEY, SIGNATURE, b"test"), Ok(()));
        assert_eq!(check(KEY, SIGNATURE, b"Test"), Err("the signature does not belong to the file".to_owned()));
        assert_eq!(
            check(KEY, OLD_KIND, b"test"),
            Err("the signature is of an old kind: sign with minisign -H".to_owned())
        );
        let other = "RWQf6LRCGA9i63mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        let of_other_key = Err("the file is signed with another key than publicKey".to_owned());
        assert_eq!(check(other, SIGNATURE, b"test"), of_other_key);
        assert!(check("x", SIGNATURE, b"test").unwrap_err().starts_with("publicKey is no key of minisign"));
        assert_eq!(check(KEY, "x", b"test"), Err("the .minisig file is no signature of minisign".to_owned()));
    }
}
