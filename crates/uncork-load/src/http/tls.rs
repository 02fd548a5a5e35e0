//! TLS for HTTPS: trusted roots, ALPN, and messages for failures.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use uncork_model::{HttpPlan, HttpTls, HttpVersion};

use super::fault::{Fault, Kind};
use crate::ConnectError;
use crate::socket::TlsStream;
use crate::tls::{NameCheck, Roots, Verifier};

/// The ALPN name of HTTP/2.
pub(crate) const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// The TLS configuration of a load.
#[derive(Debug)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    host: String,
}

impl Tls {
    /// Read the trusted certificates.
    pub(crate) fn new(plan: &HttpTls, http: &HttpPlan) -> Result<Self, ConnectError> {
        let setup = |problem: String| ConnectError::TlsSetup(problem);
        let provider = Arc::new(ring::default_provider());
        let (roots, name) = if plan.verify {
            let (store, listed) = (roots(plan.roots.as_deref())?, None);
            (Some(Roots { store, listed }), NameCheck::Web)
        } else {
            (None, NameCheck::None)
        };
        let verifier = Arc::new(Verifier::new(roots, name, &provider));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| setup(format!("TLS cannot be used: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        let protocols: &[&[u8]] = match http.version {
            HttpVersion::Http1 => &[HTTP_1_1],
            HttpVersion::Http2 => &[H2],
            HttpVersion::Negotiated => &[H2, HTTP_1_1],
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(http.host.clone()).map_err(|_| {
            setup(format!(
                "\"{}\" is not a valid host name for TLS; correct it",
                http.host
            ))
        })?;
        Ok(Self {
            config: Arc::new(config),
            name,
            host: http.host.clone(),
        })
    }

    /// Wrap a socket. Nothing is sent yet.
    pub(crate) fn wrap<S: io::Read + io::Write>(&self, socket: S) -> io::Result<TlsStream<S>> {
        TlsStream::new(&self.config, self.name.clone(), socket).map_err(io::Error::other)
    }

    /// Describe why the handshake failed, and what to do.
    pub(crate) fn fault(&self, error: &io::Error) -> Fault {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        let host = &self.host;
        let problem = match inner {
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the server closed the connection during the TLS handshake".to_owned()
            }
            None => error.to_string(),
            Some(rustls::Error::InvalidCertificate(problem)) => match problem {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    "the server's certificate has expired; renew it, or pass -k to load \
                     nevertheless"
                        .to_owned()
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "the server's certificate is not valid yet; correct it, or this machine's clock"
                        .to_owned()
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => format!(
                    "the server's certificate is not for \"{host}\"; use its name, or pass -k"
                ),
                CertificateError::UnknownIssuer => {
                    "the server's certificate is signed by an authority that is not trusted; \
                    pass the authority's file (--cacert), or pass -k"
                        .to_owned()
                }
                _ => format!("the server's certificate is not accepted ({problem:?})"),
            },
            Some(rustls::Error::InvalidMessage(_)) => {
                format!(
                    "the server's answer is not TLS ({error}); should the address begin with http://?"
                )
            }
            Some(rustls::Error::NoApplicationProtocol) => {
                "the server does not support the requested version of HTTP".to_owned()
            }
            Some(rustls::Error::AlertReceived(alert)) => {
                format!("the server aborted the TLS handshake ({alert:?})")
            }
            Some(error) => error.to_string(),
        };
        Fault::new(Kind::Tls, format!("TLS with {host} failed: {problem}"))
    }
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, ConnectError> {
    let setup = |problem: String| ConnectError::TlsSetup(problem);
    let mut store = RootCertStore::empty();
    let Some(path) = file else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(setup(
                "the operating system's certificates are not found; install them \
                 (ca-certificates), name a file (--cacert), or pass -k"
                    .to_owned(),
            ));
        }
        return Ok(store);
    };
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| setup(format!("--cacert {shown}: {error}")))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    store.add_parsable_certificates(certificates.unwrap_or_default());
    if store.is_empty() {
        return Err(setup(format!(
            "--cacert {shown} contains no certificate; it must be PEM"
        )));
    }
    Ok(store)
}
