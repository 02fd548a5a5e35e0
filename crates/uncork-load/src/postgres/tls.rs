//! TLS by libpq's rules: trusted certificates, the checks of each `sslmode`, and messages for
//! failures.

#[cfg(test)]
pub(crate) mod test_server;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use uncork_model::{Connection, SslMode, SslNegotiation};

use crate::ConnectError;
use crate::socket::TlsStream;
use crate::tls::certificate::{date, end_point, public_key};
use crate::tls::{NameCheck, Roots, Verifier, WrongName};

/// The ALPN name of PostgreSQL's protocol.
const PROTOCOL: &[u8] = b"postgresql";
/// The value of `sslrootcert` that selects the operating system's roots.
const SYSTEM: &str = "system";

/// A connection's TLS options, read and checked once for all connections.
#[derive(Debug)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    host: String,
    /// The source of the trusted roots, for messages.
    roots: Option<String>,
    own: Option<String>,
    direct: bool,
}

impl Tls {
    /// Read the files that the options name.
    pub(crate) fn new(connection: &Connection) -> Result<Self, ConnectError> {
        let mode = connection.sslmode;
        let direct = connection.sslnegotiation == SslNegotiation::Direct;
        if direct && !mode.demands_encryption() {
            return setup(format!(
                "sslnegotiation direct cannot be used with sslmode {mode}; set sslmode to require \
                 or stronger"
            ));
        }
        let provider = Arc::new(ring::default_provider());
        let roots = roots(connection)?;
        let own = own_certificate(connection, &provider)?;
        let name = if mode == SslMode::VerifyFull {
            NameCheck::Libpq(connection.host.clone())
        } else {
            NameCheck::None
        };
        let verifier = Arc::new(Verifier::new(roots, name, &provider));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectError::TlsSetup(format!("TLS cannot be used: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match own {
            Some(own) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        // A host that is not a valid server name is not sent (SNI).
        let name = ServerName::try_from(connection.host.clone());
        config.enable_sni = connection.sslsni && name.is_ok();
        let name = name
            .unwrap_or_else(|_| ServerName::IpAddress(std::net::IpAddr::from([0, 0, 0, 0]).into()));
        Ok(Self {
            config: Arc::new(config),
            name,
            host: connection.host.clone(),
            roots: connection.sslrootcert.as_deref().map(roots_name),
            own: connection.sslcert.as_deref().map(shown),
            direct,
        })
    }

    /// Wrap a socket. Nothing is sent yet.
    pub(crate) fn wrap<S: io::Read + io::Write>(&self, socket: S) -> io::Result<TlsStream<S>> {
        TlsStream::new(&self.config, self.name.clone(), socket).map_err(io::Error::other)
    }

    /// Whether the handshake begins without an `SSLRequest`.
    pub(crate) fn direct(&self) -> bool {
        self.direct
    }

    /// Check what is known only after the handshake.
    pub(crate) fn check<S: io::Read + io::Write>(
        &self,
        stream: &TlsStream<S>,
    ) -> Result<(), &'static str> {
        if self.direct && stream.alpn() != Some(PROTOCOL) {
            return Err(
                "it did not agree to speak PostgreSQL's protocol; set sslnegotiation to postgres",
            );
        }
        Ok(())
    }

    /// Describe the problem, and what to do.
    pub(crate) fn problem(&self, error: &io::Error) -> String {
        let inner = error.get_ref().and_then(|it| it.downcast_ref());
        let Some(error) = inner else {
            return if error.kind() == io::ErrorKind::UnexpectedEof {
                "it closed the connection during the TLS handshake; see the server's log".to_owned()
            } else {
                error.to_string()
            };
        };
        match error {
            rustls::Error::InvalidCertificate(problem) => self.bad_certificate(problem),
            rustls::Error::AlertReceived(alert) => self.alert(*alert),
            rustls::Error::PeerIncompatible(_) => {
                format!("it shares no TLS version or cipher with uncork ({error}); allow TLS 1.2")
            }
            rustls::Error::InvalidMessage(_) => {
                format!("its answer is not TLS ({error}); is the port right?")
            }
            _ => error.to_string(),
        }
    }

    fn bad_certificate(&self, problem: &CertificateError) -> String {
        let roots = self.roots.as_deref().unwrap_or("sslrootcert");
        match problem {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
                "its certificate is not signed by {roots}; set sslrootcert to the file of the \
                right authority"
            ),
            CertificateError::Other(other) => {
                if let Some(WrongName(names)) = other.0.downcast_ref() {
                    return format!(
                        "its certificate is for {names}, not for \"{}\"; connect by that name, or \
                         set sslmode to verify-ca",
                        self.host
                    );
                }
                format!("its certificate is not accepted ({other})")
            }
            CertificateError::ExpiredContext { not_after, .. } => {
                format!("its certificate expired on {}; renew it", date(*not_after))
            }
            CertificateError::NotValidYetContext { not_before, .. } => format!(
                "its certificate is not valid before {}; correct it, or this machine's clock",
                date(*not_before)
            ),
            CertificateError::InvalidPurposeContext { .. } => {
                "its certificate is not for servers; give it one that is".to_owned()
            }
            _ => format!("its certificate is not accepted ({problem:?})"),
        }
    }

    fn alert(&self, alert: AlertDescription) -> String {
        use AlertDescription as Alert;
        match (alert, &self.own) {
            (Alert::CertificateRequired | Alert::HandshakeFailure, None) => {
                "it requires a client certificate; set sslcert and sslkey".to_owned()
            }
            (
                Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateExpired
                | Alert::CertificateRevoked
                | Alert::CertificateUnknown
                | Alert::CertificateRequired
                | Alert::DecryptError
                | Alert::AccessDenied,
                Some(own),
            ) => format!(
                "it does not accept the client certificate {own} ({alert:?}); use one that is \
                signed by an authority in its ssl_ca_file"
            ),
            (Alert::ProtocolVersion, _) => {
                "it supports neither TLS 1.2 nor TLS 1.3; enable one of them".to_owned()
            }
            _ => format!("it aborted the TLS handshake ({alert:?}); see the server's log"),
        }
    }
}

/// Return the data that binds a password exchange to a server's certificate, if there is such data.
pub(crate) fn binding_data(certificate: &[u8]) -> Option<Vec<u8>> {
    end_point(certificate)
}

fn roots(connection: &Connection) -> Result<Option<Roots>, ConnectError> {
    let mode = connection.sslmode;
    let Some(place) = connection.sslrootcert.as_deref() else {
        if mode.demands_verification() {
            return setup(format!(
                "sslmode {mode} requires sslrootcert (a file, or system)"
            ));
        }
        return Ok(None);
    };
    let mut store = RootCertStore::empty();
    if place == SYSTEM {
        if mode != SslMode::VerifyFull {
            return setup(format!(
                "sslrootcert system cannot be used with sslmode {mode}, because anyone can \
                obtain such a certificate for a name of their own; set sslmode to verify-full"
            ));
        }
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            return setup(
                "sslrootcert is system, but the operating system's certificates are not found; \
                 install them (ca-certificates), or name a file"
                    .to_owned(),
            );
        }
        let listed = Some(Vec::new());
        return Ok(Some(Roots { store, listed }));
    }
    let listed = certificates("sslrootcert", Path::new(place))?;
    store.add_parsable_certificates(listed.iter().cloned());
    let listed = Some(listed);
    Ok(Some(Roots { store, listed }))
}

fn roots_name(place: &str) -> String {
    if place == SYSTEM {
        "an authority that the operating system trusts".to_owned()
    } else {
        format!("those in \"{place}\"")
    }
}

/// Read the client's certificate and key, if given.
fn own_certificate(
    connection: &Connection,
    provider: &CryptoProvider,
) -> Result<Option<CertifiedKey>, ConnectError> {
    let Some(path) = &connection.sslcert else {
        return Ok(None);
    };
    let chain = certificates("sslcert", path)?;
    let Some(key_path) = &connection.sslkey else {
        let path = shown(path);
        return setup(format!(
            "sslcert {path} needs its key; set sslkey to the file of the key"
        ));
    };
    check_permissions(key_path)?;
    let key =
        PrivateKeyDer::from_pem_file(key_path).map_err(|error| key_problem(key_path, &error))?;
    let key = provider.key_provider.load_private_key(key);
    let key = key.map_err(|error| {
        let path = shown(key_path);
        ConnectError::TlsSetup(format!("sslkey {path} cannot be used ({error})"))
    })?;
    let own = CertifiedKey::new(chain, key);
    let certified = own.cert.first().and_then(|it| public_key(it).ok());
    let ours = own.key.public_key();
    if certified.zip(ours).is_some_and(|(one, other)| one != other) {
        return setup(format!(
            "sslkey {} is not the key of sslcert {}; name a certificate and its own key",
            shown(key_path),
            shown(path)
        ));
    }
    Ok(Some(own))
}

/// Reject a key that others can read, by libpq's rule.
fn check_permissions(path: &Path) -> Result<(), ConnectError> {
    let shown = shown(path);
    let facts = fs::metadata(path).map_err(|error| unreadable("sslkey", path, &error))?;
    if !facts.is_file() {
        return setup(format!("sslkey {shown} is not a file"));
    }
    let forbidden = if facts.uid() == 0 { 0o037 } else { 0o077 };
    if facts.mode() & forbidden != 0 {
        return setup(format!(
            "sslkey {shown} can be read by others; give it permissions 0600 (0640 if root owns it)"
        ));
    }
    Ok(())
}

fn key_problem(path: &Path, error: &pem::Error) -> ConnectError {
    let encrypted = fs::read(path).is_ok_and(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        text.contains("ENCRYPTED")
    });
    let shown = shown(path);
    ConnectError::TlsSetup(if encrypted {
        format!(
            "sslkey {shown} is encrypted, and passphrases are not supported; store it without \
             (openssl pkey -in … -out …)"
        )
    } else {
        format!("sslkey {shown} holds no key ({error}); it must be PEM")
    })
}

fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let bytes = fs::read(path).map_err(|error| unreadable(option, path, &error))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => setup(format!(
            "{option} {} contains no certificate; it must be PEM",
            shown(path)
        )),
    }
}

fn unreadable(option: &str, path: &Path, error: &io::Error) -> ConnectError {
    ConnectError::TlsSetup(format!("{option} {} cannot be read: {error}", shown(path)))
}

fn setup<T>(message: String) -> Result<T, ConnectError> {
    Err(ConnectError::TlsSetup(message))
}

fn shown(path: &Path) -> String {
    format!("\"{}\"", path.display())
}
