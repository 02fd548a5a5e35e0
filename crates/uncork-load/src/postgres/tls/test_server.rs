//! The server's side of TLS, for tests.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use uncork_model::Connection;

/// A self-signed certificate and its key.
#[derive(Debug)]
pub(crate) struct TestCertificate {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

/// Make a certificate for these names by the `openssl` command.
pub(crate) fn certificate(names: &[&str]) -> TestCertificate {
    let folder = tempfile::tempdir().expect("has a folder");
    let (certificate, key) = (folder.path().join("crt"), folder.path().join("key"));
    let names: Vec<String> = names.iter().map(|name| format!("DNS:{name}")).collect();
    let done = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "3"])
        .args([
            "-subj",
            "/CN=test",
            "-addext",
            "basicConstraints=CA:FALSE",
            "-addext",
        ])
        .arg(format!("subjectAltName={}", names.join(",")))
        .args([OsStr::new("-keyout"), key.as_os_str()])
        .args([OsStr::new("-out"), certificate.as_os_str()])
        .output()
        .expect("the openssl command is installed");
    assert!(done.status.success(), "{done:?}");
    let certificate_pem = fs::read_to_string(certificate).expect("is written");
    let key_pem = fs::read_to_string(key).expect("is written");
    TestCertificate {
        certificate: CertificateDer::from_pem_slice(certificate_pem.as_bytes()).expect("is PEM"),
        key: PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).expect("is PEM"),
        certificate_pem,
        key_pem,
    }
}

pub(crate) fn server_config(made: &TestCertificate) -> Arc<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("has versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.certificate.clone()], made.key.clone_key())
        .expect("has a certificate");
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Arc::new(config)
}

/// A connection to `localhost` with more fields, as JSON.
pub(crate) fn connection(more: &str) -> Connection {
    let text = format!(
        r#"{{"host": "localhost", "port": 5432, "user": "u", "database": "d",
        "connect_timeout_ns": 10000000000, {more}}}"#
    );
    serde_json::from_str(&text).expect("is valid")
}
