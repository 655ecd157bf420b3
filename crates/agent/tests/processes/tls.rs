//! What makes a server of a test an API server for the agent: a key, and the folder that tells the agent to trust it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// Settings for TLS on 127.0.0.1; the authority, a token and the namespace are written into the folder.
pub(crate) fn server_config(token_dir: &Path) -> Arc<ServerConfig> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a key for the test");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("the key is one");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key))
        .expect("key and certificate belong together");
    for (name, text) in [("ca.crt", cert.pem().as_str()), ("token", "first\n"), ("namespace", "jobs\n")] {
        fs::write(token_dir.join(name), text).expect("the folder is ours");
    }
    Arc::new(config)
}
