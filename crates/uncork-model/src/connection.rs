//! Where to connect, as whom, and with which encryption: libpq's connection options.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// Where to connect, and as whom. The options and their meaning are libpq's. Names are resolved in
/// Python, so that neither environment nor service file nor password file is read here.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// The folder of a Unix socket (starts with `/`, or with `@` in the abstract namespace), a
    /// host name or an address.
    pub host: String,
    /// The address to connect to in place of `host`, which then only names the server.
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// The TCP port, or the number in the Unix socket's name.
    pub port: u16,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, if the server asks for one.
    #[serde(default)]
    pub password: Option<Password>,
    /// Settings for the session, as in the connection option `options`.
    #[serde(default)]
    pub options: String,
    /// The application name.
    #[serde(default = "application_name")]
    pub application_name: String,
    /// The longest time that one connection may take, authentication included, in nanoseconds; 0 is
    /// unlimited.
    pub connect_timeout_ns: u64,
    /// Whether encryption and verification are required.
    #[serde(default)]
    pub sslmode: SslMode,
    /// How encryption begins.
    #[serde(default)]
    pub sslnegotiation: SslNegotiation,
    /// The file of the certificates that may sign the server's, or `system` for the operating
    /// system's. If given, the server's certificate is checked in every mode.
    #[serde(default)]
    pub sslrootcert: Option<String>,
    /// The file of the client's certificate.
    #[serde(default)]
    pub sslcert: Option<PathBuf>,
    /// The file of its key.
    #[serde(default)]
    pub sslkey: Option<PathBuf>,
    /// Whether the host name is sent unencrypted to the server (SNI).
    #[serde(default = "yes")]
    pub sslsni: bool,
    /// Whether the password exchange is bound to the encrypted connection.
    #[serde(default)]
    pub channel_binding: ChannelBinding,
}

impl Connection {
    /// Whether the host is a Unix socket.
    #[must_use]
    pub fn on_socket(&self) -> bool {
        self.hostaddr.is_none() && self.host.starts_with(['/', '@'])
    }
}

fn application_name() -> String {
    "uncork".to_owned()
}

fn yes() -> bool {
    true
}

/// A password that does not appear in messages.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Wrap a password.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The bytes to authenticate with.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

/// Whether encryption and verification are required, in libpq's terms. A Unix socket is never
/// encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never encrypt.
    Disable,
    /// Encrypt only if the server refuses unencrypted connections.
    Allow,
    /// Encrypt if the server supports it.
    #[default]
    Prefer,
    /// Encrypt or fail.
    Require,
    /// Encrypt and check the certificate's issuer, or fail.
    VerifyCa,
    /// Encrypt and check the certificate's issuer and name, or fail.
    VerifyFull,
}

impl SslMode {
    /// Whether a connection without encryption must be refused.
    #[must_use]
    pub fn demands_encryption(self) -> bool {
        matches!(self, Self::Require | Self::VerifyCa | Self::VerifyFull)
    }

    /// Whether the server's certificate must be checked.
    #[must_use]
    pub fn demands_verification(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyFull)
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        })
    }
}

/// How encryption begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SslNegotiation {
    /// The client first asks whether the server supports TLS.
    #[default]
    Postgres,
    /// The handshake begins at once; requires a server of version 17 or newer.
    Direct,
}

/// Whether the password exchange is bound to the encrypted connection, which excludes a man in the
/// middle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server supports it.
    #[default]
    Prefer,
    /// Always, or fail.
    Require,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(changes: &str) -> Result<Connection, serde_json::Error> {
        serde_json::from_str(&format!(
            r#"{{"host": "h", "port": 5432, "user": "u", "database": "d",
            "connect_timeout_ns": 1{changes}}}"#
        ))
    }

    #[test]
    fn what_is_left_out_is_as_libpq_has_it() {
        let connection = parse("").expect("valid");
        assert_eq!(connection.application_name, "uncork");
        assert_eq!(connection.sslmode, SslMode::Prefer);
        assert_eq!(connection.channel_binding, ChannelBinding::Prefer);
        assert_eq!(connection.sslnegotiation, SslNegotiation::Postgres);
        assert!(connection.sslsni);
        assert!(!connection.on_socket());
    }

    #[test]
    fn modes_are_read_and_shown_in_the_same_words() {
        for (word, encrypts, verifies) in [
            ("disable", false, false),
            ("allow", false, false),
            ("prefer", false, false),
            ("require", true, false),
            ("verify-ca", true, true),
            ("verify-full", true, true),
        ] {
            let connection = parse(&format!(r#", "sslmode": "{word}""#)).expect(word);
            assert_eq!(connection.sslmode.to_string(), word);
            assert_eq!(connection.sslmode.demands_encryption(), encrypts);
            assert_eq!(connection.sslmode.demands_verification(), verifies);
        }
        parse(r#", "sslmode": "verify_full""#).expect_err("not a mode");
        parse(r#", "ssl_mode": "prefer""#).expect_err("not a field");
    }

    #[test]
    fn a_password_does_not_show_itself() {
        let connection = parse(r#", "password": "open sesame""#).expect("valid");
        assert!(!format!("{connection:?}").contains("sesame"));
        let password = connection.password.expect("has one");
        assert_eq!(password.reveal(), b"open sesame");
    }
}
