//! Certificates as a client judges them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError as Judged, Error, RootCertStore};

use super::*;

const DAY: Duration = Duration::from_hours(24);
const NAME: &str = "webhook.system.svc";

fn noon() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn names() -> Vec<String> {
    vec![NAME.to_owned(), "10.213.0.1".to_owned()]
}

/// What a client that trusts `authorities` thinks of a leaf at a time.
fn judge(authorities: &[&Authority], leaf: &Leaf, name: &str, at: Timestamp) -> Result<(), Error> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.certificate().clone()).unwrap();
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let at = UnixTime::since_unix_epoch(Duration::from_secs(at.as_second().try_into().unwrap()));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.verify_server_cert(&leaf.chain[0], &[], &name, &[], at).map(drop)
}

#[test]
fn a_leaf_is_good_for_its_names_in_its_time_and_for_nothing_else() {
    let authority = Authority::generate("test", noon(), 365 * DAY).unwrap();
    let leaf = authority.issue(&names(), noon(), 7 * DAY).unwrap();
    assert_eq!(leaf.not_after(), noon() + 7 * DAY);
    let good = |name: &str, at| judge(&[&authority], &leaf, name, at);
    for name in [NAME, "10.213.0.1"] {
        for at in [noon(), noon() - Duration::from_mins(59), noon() + 7 * DAY] {
            assert_eq!(good(name, at), Ok(()), "{name} at {at}");
        }
    }
    assert!(matches!(good("other.svc", noon()), Err(Error::InvalidCertificate(Judged::NotValidForNameContext { .. }))));
    let late = good(NAME, noon() + 7 * DAY + Duration::from_secs(1));
    assert!(matches!(late, Err(Error::InvalidCertificate(Judged::ExpiredContext { .. }))), "{late:?}");
    let early = good(NAME, noon() - Duration::from_mins(61));
    assert!(matches!(early, Err(Error::InvalidCertificate(Judged::NotValidYetContext { .. }))), "{early:?}");
}

#[test]
fn a_leaf_does_not_outlive_its_authority() {
    let authority = Authority::generate("test", noon(), 2 * DAY).unwrap();
    assert_eq!(authority.not_after(), noon() + 2 * DAY);
    assert_eq!(authority.issue(&names(), noon(), 7 * DAY).unwrap().not_after(), noon() + 2 * DAY);
}

#[test]
fn a_stored_authority_signs_like_the_one_that_was_stored() {
    let stored = Authority::generate("test", noon(), 365 * DAY).unwrap();
    let read = Authority::from_pem(stored.certificate_pem(), &stored.key_pem()).unwrap();
    assert_eq!((read.not_after(), read.certificate_pem()), (stored.not_after(), stored.certificate_pem()));
    let leaf = read.issue(&names(), noon(), DAY).unwrap();
    assert_eq!(judge(&[&stored], &leaf, NAME, noon()), Ok(()));
}

/// A rotation with overlap, twice: what both replicas serve is trusted all the way.
#[test]
fn authorities_of_one_name_are_told_apart_by_their_keys() {
    let [first, second, third] = [0, 1, 2].map(|_| Authority::generate("test", noon(), 365 * DAY).unwrap());
    for (old, new) in [(&first, &second), (&second, &third)] {
        let leaves = [old, new].map(|authority| authority.issue(&names(), noon(), DAY).unwrap());
        for leaf in &leaves {
            assert_eq!(judge(&[old, new], leaf, NAME, noon()), Ok(()));
            assert_eq!(judge(&[new, old], leaf, NAME, noon()), Ok(()));
        }
        assert!(judge(&[old], &leaves[1], NAME, noon()).is_err(), "the new one is trusted only when it was added");
    }
}

#[test]
fn what_cannot_be_used_is_refused() {
    let [one, other] = [0, 1].map(|_| Authority::generate("test", noon(), DAY).unwrap());
    let text = |error: Result<(), CertificateError>| error.unwrap_err().to_string();
    let read = |certificate: &str, key: &str| Authority::from_pem(certificate, key).map(drop);
    assert_eq!(text(read("", &one.key_pem())), "cannot read the authority's certificate: give it as PEM");
    assert_eq!(text(read(one.certificate_pem(), "no key")), "cannot sign with the authority's key");
    let leaf = Leaf::from_pem(one.certificate_pem(), &other.key_pem()).unwrap();
    let served = ServingCertificate::new(leaf).map(drop);
    assert_eq!(text(served), "cannot serve with the certificate and its key");
    assert_eq!(
        text(Leaf::from_pem("", &one.key_pem()).map(drop)),
        "cannot read the certificate: its content is no X.509"
    );
}

#[test]
fn a_wrong_leaf_does_not_replace_a_good_one() {
    let authority = Authority::generate("test", noon(), 365 * DAY).unwrap();
    let serving = ServingCertificate::new(authority.issue(&names(), noon(), DAY).unwrap()).unwrap();
    assert_eq!(serving.not_after(), noon() + DAY);
    let other = Authority::generate("test", noon(), 365 * DAY).unwrap();
    let wrong = Leaf::from_pem(authority.certificate_pem(), &other.key_pem()).unwrap();
    assert!(serving.replace(wrong).is_err());
    assert_eq!(serving.not_after(), noon() + DAY);
    serving.replace(authority.issue(&names(), noon(), 2 * DAY).unwrap()).unwrap();
    assert_eq!(serving.not_after(), noon() + 2 * DAY);
}
