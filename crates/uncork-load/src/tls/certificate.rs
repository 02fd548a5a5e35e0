//! Reads a server's certificate: its names, its dates, and the hash that binds a password exchange
//! to it. The rules are libpq's. The library verifies chains, with two exceptions that it rejects
//! and libpq accepts: see [`vouched_for`].

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::asn1::{ContextSpecific, ObjectIdentifier};
use x509_cert::der::{self, DateTime, Decode, Encode, Reader, SliceReader, TagNumber};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};
use x509_cert::spki::AlgorithmIdentifierOwned;

/// The names that a certificate is for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    dns: Vec<String>,
    addresses: Vec<IpAddr>,
    /// The first common name of the subject.
    common: Option<String>,
}

impl Names {
    /// Read the names of a certificate.
    pub(crate) fn read(certificate: &[u8]) -> der::Result<Self> {
        let certificate = Certificate::from_der(certificate)?;
        let certificate = certificate.tbs_certificate();
        let mut names = Self::default();
        if let Some((_, SubjectAltName(others))) = certificate.get_extension()? {
            for name in others {
                match name {
                    GeneralName::DnsName(name) => names.dns.push(name.as_str().to_owned()),
                    GeneralName::IpAddress(bytes) => names.addresses.extend(ip(bytes.as_bytes())),
                    _ => {}
                }
            }
        }
        let common = certificate.subject().common_name().ok().flatten();
        names.common = common.map(String::from);
        Ok(names)
    }

    /// Whether the certificate is valid for a host. The common name counts only if there is no
    /// other name of the host's kind; a wildcard stands for the whole leftmost label.
    pub(crate) fn fit(&self, host: &str) -> bool {
        let address: Option<IpAddr> = host.parse().ok();
        let of_its_kind = match address {
            Some(_) => !self.addresses.is_empty(),
            None => !self.dns.is_empty(),
        };
        self.dns.iter().any(|name| name_fits(name, host))
            || address.is_some_and(|address| self.addresses.contains(&address))
            || !of_its_kind
                && self
                    .common
                    .as_ref()
                    .is_some_and(|name| name_fits(name, host))
    }
}

impl fmt::Display for Names {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.dns.iter().map(|name| format!("\"{name}\"")).collect();
        names.extend(self.addresses.iter().map(IpAddr::to_string));
        if names.is_empty() {
            names.extend(self.common.iter().map(|name| format!("\"{name}\"")));
        }
        if names.is_empty() {
            return formatter.write_str("no name at all");
        }
        formatter.write_str(&names.join(", "))
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

fn name_fits(name: &str, host: &str) -> bool {
    // Some readers stop at a zero byte, and would accept the part before it.
    if name.contains('\0') {
        return false;
    }
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let (Some(rest), Some((label, others))) = (name.strip_prefix("*."), host.split_once('.'))
    else {
        return false;
    };
    !label.is_empty() && !rest.is_empty() && rest.eq_ignore_ascii_case(others)
}

/// Return the binding data `tls-server-end-point` (RFC 5929): the certificate's hash by its
/// signature's algorithm, but SHA-256 instead of MD5 or SHA-1. `None` if the algorithm has no hash
/// of its own.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    Some(match signature_hash(parsed.signature_algorithm())? {
        Hash::Sha224 => Sha224::digest(certificate).to_vec(),
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

fn signature_hash(algorithm: &AlgorithmIdentifierOwned) -> Option<Hash> {
    const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
    if algorithm.oid == RSA_PSS {
        // The parameters name the hash first; the default is SHA-1.
        let Some(parameters) = &algorithm.parameters else {
            return Some(Hash::Sha256);
        };
        let mut reader = SliceReader::new(parameters.value()).ok()?;
        let hash: Option<ContextSpecific<AlgorithmIdentifierOwned>> =
            ContextSpecific::decode_explicit(&mut reader, TagNumber(0)).ok()?;
        return hash.map_or(Some(Hash::Sha256), |hash| hash_by_name(hash.value.oid));
    }
    hash_by_name(algorithm.oid)
}

/// Map a signature's algorithm, or a hash's, to the hash.
fn hash_by_name(oid: ObjectIdentifier) -> Option<Hash> {
    match oid.to_string().as_str() {
        // SHA-2: with RSA, ECDSA, DSA, and alone.
        "1.2.840.113549.1.1.14"
        | "1.2.840.10045.4.3.1"
        | "2.16.840.1.101.3.4.3.1"
        | "2.16.840.1.101.3.4.2.4" => Some(Hash::Sha224),
        // MD5 and SHA-1, with RSA, DSA, ECDSA and alone, are replaced by SHA-256: RFC 5929.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.10040.4.3"
        | "1.2.840.10045.4.1"
        | "1.2.840.113549.2.5"
        | "1.3.14.3.2.26"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.3.2"
        | "2.16.840.1.101.3.4.3.2"
        | "2.16.840.1.101.3.4.2.1" => Some(Hash::Sha256),
        "1.2.840.113549.1.1.12"
        | "1.2.840.10045.4.3.3"
        | "2.16.840.1.101.3.4.3.3"
        | "2.16.840.1.101.3.4.2.2" => Some(Hash::Sha384),
        "1.2.840.113549.1.1.13"
        | "1.2.840.10045.4.3.4"
        | "2.16.840.1.101.3.4.3.4"
        | "2.16.840.1.101.3.4.2.3" => Some(Hash::Sha512),
        _ => None,
    }
}

/// Read the public key of a certificate of any version.
pub(crate) fn public_key(certificate: &[u8]) -> der::Result<SubjectPublicKeyInfoDer<'static>> {
    let certificate = Certificate::from_der(certificate)?;
    let key = certificate.tbs_certificate().subject_public_key_info();
    Ok(SubjectPublicKeyInfoDer::from(key.to_der()?))
}

/// Why a certificate is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It expired at this time.
    Expired(UnixTime),
    /// It becomes valid at this time.
    NotYet(UnixTime),
    /// No root has signed it.
    Unknown,
}

/// Check a certificate that the library rejects but libpq accepts: one that is itself among the
/// roots, such as a self-signed one; or one of version 1, signed by a root that may sign, as
/// `openssl x509 -req` makes them by default.
pub(crate) fn vouched_for(
    certificate: &CertificateDer<'_>,
    roots: &[CertificateDer<'_>],
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Result<(), Doubt> {
    let parsed = Certificate::from_der(certificate).map_err(|_| Doubt::Unknown)?;
    let known = roots.contains(certificate)
        || parsed.tbs_certificate().version() == Version::V1
            && roots.iter().any(|root| {
                signed_by(certificate, &parsed, root, algorithms).is_some_and(|signed| signed)
            });
    if !known {
        return Err(Doubt::Unknown);
    }
    let validity = parsed.tbs_certificate().validity();
    let seconds = Duration::from_secs(now.as_secs());
    let (begin, end) = (
        validity.not_before.to_unix_duration(),
        validity.not_after.to_unix_duration(),
    );
    if seconds > end {
        Err(Doubt::Expired(UnixTime::since_unix_epoch(end)))
    } else if seconds < begin {
        Err(Doubt::NotYet(UnixTime::since_unix_epoch(begin)))
    } else {
        Ok(())
    }
}

fn signed_by(
    certificate: &[u8],
    parsed: &Certificate,
    root: &[u8],
    algorithms: &WebPkiSupportedAlgorithms,
) -> Option<bool> {
    let root = Certificate::from_der(root).ok()?;
    if root.tbs_certificate().subject() != parsed.tbs_certificate().issuer() || !may_sign(&root) {
        return Some(false);
    }
    let key = root.tbs_certificate().subject_public_key_info();
    let key_algorithm = key.algorithm.to_der().ok()?;
    let signature_algorithm = parsed.signature_algorithm().to_der().ok()?;
    // The library compares algorithms without the header of their sequence.
    let (key_algorithm, signature_algorithm) =
        (content(&key_algorithm)?, content(&signature_algorithm)?);
    let mut reader = SliceReader::new(content(certificate)?).ok()?;
    let message = reader.tlv_bytes().ok()?;
    let signature = parsed.signature().as_bytes()?;
    let key = key.subject_public_key.as_bytes()?;
    Some(algorithms.all.iter().any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key_algorithm
            && algorithm.signature_alg_id().as_ref() == signature_algorithm
            && algorithm.verify_signature(key, message, signature).is_ok()
    }))
}

/// Whether a certificate is an authority's: its basic constraints say so, or it is self-signed and
/// of version 1, which has no such extension.
fn may_sign(root: &Certificate) -> bool {
    let root = root.tbs_certificate();
    if root.version() == Version::V1 {
        return root.subject() == root.issuer();
    }
    let constraints = root.get_extension::<BasicConstraints>();
    constraints.is_ok_and(|found| found.is_some_and(|(_, constraints)| constraints.ca))
}

/// Return the value of an encoded sequence.
fn content(sequence: &[u8]) -> Option<&[u8]> {
    let mut reader = SliceReader::new(sequence).ok()?;
    let header = der::Header::decode(&mut reader).ok()?;
    reader.read_slice(header.length()).ok()
}

/// Format a time for messages.
pub(crate) fn date(time: UnixTime) -> String {
    DateTime::from_unix_duration(Duration::from_secs(time.as_secs()))
        .map_or_else(|_| "an unknown time".to_owned(), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dns: &[&str], addresses: &[&str], common: Option<&str>) -> Names {
        Names {
            dns: dns.iter().map(|&name| name.to_owned()).collect(),
            addresses: addresses.iter().map(|it| it.parse().expect(it)).collect(),
            common: common.map(str::to_owned),
        }
    }

    #[test]
    fn names_fit_by_libpqs_rules() {
        for (dns, common, host, expected) in [
            (vec!["db.example"], None, "db.example", true),
            (vec!["DB.Example"], None, "db.exAMPLE", true),
            (vec!["db.example"], None, "example", false),
            (vec!["*.example"], None, "db.example", true),
            (vec!["*.example"], None, "a.db.example", false),
            (vec!["*.example"], None, ".example", false),
            (vec!["*.example"], None, "example", false),
            (vec!["d*.example"], None, "db.example", false),
            (vec!["*"], None, "db", false),
            (vec!["other"], Some("db.example"), "db.example", false),
            (vec![], Some("db.example"), "db.example", true),
            (vec![], Some("*.example"), "db.example", true),
            (vec![], None, "db.example", false),
            (vec!["db\0.evil"], None, "db", false),
        ] {
            let names = names(&dns, &[], common);
            assert_eq!(names.fit(host), expected, "{names} for {host}");
        }
    }

    #[test]
    fn addresses_are_names_too() {
        let certificate = names(&["db"], &["127.0.0.1", "::1"], Some("127.0.0.2"));
        assert!(certificate.fit("127.0.0.1"));
        assert!(certificate.fit("0:0::1"));
        assert!(!certificate.fit("127.0.0.2"));
        // Without an address among the names the common name counts, and it may look like one.
        assert!(names(&["db"], &[], Some("127.0.0.2")).fit("127.0.0.2"));
        assert!(names(&["127.0.0.1"], &[], None).fit("127.0.0.1"));
        assert_eq!(certificate.to_string(), "\"db\", 127.0.0.1, ::1");
        assert_eq!(names(&[], &[], Some("c")).to_string(), "\"c\"");
        assert_eq!(names(&[], &[], None).to_string(), "no name at all");
    }

    #[test]
    fn weak_hashes_are_replaced() {
        let hash = |oid| hash_by_name(ObjectIdentifier::new_unwrap(oid));
        assert_eq!(hash("1.2.840.113549.1.1.5"), Some(Hash::Sha256));
        assert_eq!(hash("1.2.840.113549.1.1.12"), Some(Hash::Sha384));
        assert_eq!(hash("1.2.840.10045.4.3.4"), Some(Hash::Sha512));
        assert_eq!(hash("1.3.101.112"), None);
    }

    #[test]
    fn nonsense_is_no_certificate() {
        assert_eq!(end_point(b"nonsense"), None);
        Names::read(b"nonsense").expect_err("is no certificate");
    }
}
