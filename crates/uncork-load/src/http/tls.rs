//! TLS for HTTPS: trusted roots, ALPN, and messages for failures.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DEFAULT_VERSIONS, DigitallySignedStruct,
    RootCertStore, SignatureScheme,
};
use uncork_model::{HttpPlan, HttpTls, HttpVersion};

use super::fault::{Fault, Kind};
use super::quic;
use crate::ConnectError;
use crate::socket::TlsStream;
use crate::tls::{NameCheck, Roots, Verifier};

/// The ALPN name of HTTP/2.
pub(crate) const H2: &[u8] = b"h2";
const H3: &[u8] = b"h3";
const HTTP_1_1: &[u8] = b"http/1.1";

/// The TLS configuration of a load.
#[derive(Debug)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    host: String,
    refused: Refused,
}

/// Why the last certificate was refused.
type Refused = Arc<Mutex<Option<rustls::Error>>>;

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
        let refused = Refused::default();
        let verifier = Arc::new(Remembering {
            verifier: Verifier::new(roots, name, &provider),
            refused: Arc::clone(&refused),
        });
        let versions = match http.version {
            // QUIC has no earlier version.
            HttpVersion::Http3 => &[&TLS13],
            _ => DEFAULT_VERSIONS,
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| setup(format!("TLS cannot be used: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        let protocols: &[&[u8]] = match http.version {
            HttpVersion::Http1 => &[HTTP_1_1],
            HttpVersion::Http2 => &[H2],
            HttpVersion::Http3 => &[H3],
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
            refused,
        })
    }

    /// The configuration of HTTP/3's connections.
    pub(crate) fn quic(&self) -> Result<quic::Config, ConnectError> {
        quic::Config::new(&self.config)
            .map_err(|problem| ConnectError::TlsSetup(format!("QUIC cannot be used: {problem}")))
    }

    /// Wrap a socket. Nothing is sent yet.
    pub(crate) fn wrap<S: io::Read + io::Write>(&self, socket: S) -> io::Result<TlsStream<S>> {
        TlsStream::new(&self.config, self.name.clone(), socket).map_err(io::Error::other)
    }

    /// Describe why the handshake failed, and what to do.
    pub(crate) fn fault(&self, error: &io::Error) -> Fault {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        self.failed(&match inner {
            Some(error) => self.problem(error),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the server closed the connection during the TLS handshake".to_owned()
            }
            None => error.to_string(),
        })
    }

    /// Describe why the handshake of a QUIC connection failed with this alert, and what to do.
    pub(crate) fn quic_fault(&self, alert: u64, reason: &str) -> Fault {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let alert = AlertDescription::from(u8::try_from(alert).unwrap_or(u8::MAX));
        self.failed(&match refused.take() {
            Some(error) => self.problem(&error),
            None if reason.is_empty() => self.problem(&rustls::Error::AlertReceived(alert)),
            None => reason.to_owned(),
        })
    }

    fn failed(&self, problem: &str) -> Fault {
        let host = &self.host;
        Fault::new(Kind::Tls, format!("TLS with {host} failed: {problem}"))
    }

    fn problem(&self, error: &rustls::Error) -> String {
        let host = &self.host;
        match error {
            rustls::Error::InvalidCertificate(problem) => match problem {
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
            rustls::Error::InvalidMessage(_) => {
                format!(
                    "the server's answer is not TLS ({error}); should the address begin with http://?"
                )
            }
            rustls::Error::NoApplicationProtocol => {
                "the server does not support the requested version of HTTP".to_owned()
            }
            rustls::Error::AlertReceived(alert) => {
                format!("the server aborted the TLS handshake ({alert:?})")
            }
            error => error.to_string(),
        }
    }
}

/// Verifies certificates, and remembers why it refused one: QUIC reports no more than a text.
#[derive(Debug)]
struct Remembering {
    verifier: Verifier,
    refused: Refused,
}

impl ServerCertVerifier for Remembering {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        verified.inspect_err(|error| {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            *refused = Some(error.clone());
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
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
