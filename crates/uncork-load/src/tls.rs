//! Verifies servers' certificates, for all drivers.

pub(crate) mod certificate;

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use certificate::{Doubt, Names, public_key, vouched_for};

/// Trusted roots.
#[derive(Debug)]
pub(crate) struct Roots {
    pub(crate) store: RootCertStore,
    /// libpq's rule: these certificates are trusted even where the library refuses them (see
    /// [`vouched_for`]). `None` applies the library's rule alone.
    pub(crate) listed: Option<Vec<CertificateDer<'static>>>,
}

/// Whether and how the host is compared with the names in the certificate.
#[derive(Debug)]
pub(crate) enum NameCheck {
    /// Any name is accepted.
    None,
    /// By the rules of the web (RFC 6125): subject alternative names only.
    Web,
    /// By libpq's rules, for this host: see [`Names::fit`].
    Libpq(String),
}

/// A certificate for other names.
#[derive(Debug, thiserror::Error)]
#[error("it is for {0}")]
pub(crate) struct WrongName(pub(crate) Names);

/// Verifies a server's certificate as far as the options ask.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// `None` trusts any server.
    roots: Option<Roots>,
    name: NameCheck,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(crate) fn new(roots: Option<Roots>, name: NameCheck, provider: &CryptoProvider) -> Self {
        Self {
            roots,
            name,
            algorithms: provider.signature_verification_algorithms,
        }
    }

    fn check_chain(
        &self,
        roots: &Roots,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let checked = ParsedCertificate::try_from(certificate).and_then(|parsed| {
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &roots.store,
                others,
                now,
                algorithms,
            )
        });
        let Err(error) = checked else {
            return Ok(());
        };
        let refused_unseen = matches!(
            error,
            rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer
                    | CertificateError::BadEncoding
                    | CertificateError::Other(_)
            )
        );
        let Some(listed) = roots.listed.as_ref().filter(|_| refused_unseen) else {
            return Err(error);
        };
        vouched_for(certificate, listed, &self.algorithms, now).map_err(|doubt| {
            rustls::Error::InvalidCertificate(match doubt {
                Doubt::Unknown => CertificateError::UnknownIssuer,
                Doubt::Expired(not_after) => CertificateError::ExpiredContext {
                    time: now,
                    not_after,
                },
                Doubt::NotYet(not_before) => CertificateError::NotValidYetContext {
                    time: now,
                    not_before,
                },
            })
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            self.check_chain(roots, end_entity, intermediates, now)?;
        }
        match &self.name {
            NameCheck::None => {}
            NameCheck::Web => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            NameCheck::Libpq(host) => {
                let names = Names::read(end_entity).map_err(|_| CertificateError::BadEncoding)?;
                if !names.fit(host) {
                    let other = rustls::OtherError(Arc::new(WrongName(names)));
                    return Err(CertificateError::Other(other).into());
                }
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if ParsedCertificate::try_from(certificate).is_ok() {
            return verify_tls13_signature(message, certificate, signature, &self.algorithms);
        }
        // A certificate of version 1: the library does not read it, but its key is usable.
        let key = public_key(certificate).map_err(|_| CertificateError::BadEncoding)?;
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
