//! What an HTTP load is asked to do: where to, in which version, and what each request is.

use std::path::PathBuf;

use serde::Deserialize;

/// Where to send requests, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpPlan {
    /// The host to connect to: a name or an address.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// What requests call the server: the host, and the port where it is not the scheme's own.
    pub authority: String,
    /// How the connection is encrypted; `null` is not at all.
    #[serde(default)]
    pub tls: Option<HttpTls>,
    /// Which version of the protocol.
    pub version: HttpVersion,
    /// How long a connection may take to open.
    pub connect_timeout_ns: u64,
    /// How long a request may take, from when it is sent; `null` is without bound.
    #[serde(default)]
    pub request_timeout_ns: Option<u64>,
    /// What `{name}` stands for in paths, headers and bodies.
    #[serde(default)]
    pub variables: Vec<Variable>,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpTls {
    /// Whether the server's certificate must be valid for the host.
    pub verify: bool,
    /// A file with the certificates of authorities in PEM; `null` trusts the operating system's.
    #[serde(default)]
    pub roots: Option<PathBuf>,
}

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2: with prior knowledge, or demanded by ALPN where there is encryption.
    #[serde(rename = "2")]
    Http2,
    /// By ALPN HTTP/2, else HTTP/1.1; without encryption HTTP/1.1.
    #[serde(rename = "negotiated")]
    Negotiated,
}

/// What `{name}` stands for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// What stands between the braces.
    pub name: String,
    /// Where the values come from.
    pub values: Values,
    /// In turn, by the operation's number; else drawn at random, each as likely.
    #[serde(default)]
    pub in_turn: bool,
}

/// Where the values of a variable come from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Values {
    /// Whole numbers, both ends included.
    Range(u64, u64),
    /// These texts.
    Listed(Vec<String>),
}

impl Values {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Range(first, last) => last.saturating_sub(*first).saturating_add(1),
            Self::Listed(values) => values.len() as u64,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Range(first, last) => first > last,
            Self::Listed(values) => values.is_empty(),
        }
    }
}

/// A request that an operation sends, and what its answer must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestPlan {
    /// The method, such as `GET`.
    pub method: String,
    /// The path with the query, from the slash on.
    pub path: String,
    /// The headers, in order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body as text; `null` is none.
    #[serde(default)]
    pub body: Option<String>,
    /// The body in base64 where it is no text. It is sent as it is: braces mean nothing in it.
    #[serde(default)]
    pub body_base64: Option<String>,
    /// What the answer must be.
    #[serde(default)]
    pub checks: Checks,
}

/// What an answer must be; whatever is not asked for is not looked at.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    /// The status is one of these; none given, it is from 200 to 399.
    #[serde(default)]
    pub statuses: Vec<u16>,
    /// These headers are there; with a value, it is that one.
    #[serde(default)]
    pub headers: Vec<(String, Option<String>)>,
    /// The body has so many bytes.
    #[serde(default)]
    pub size: Option<u64>,
    /// The body's SHA-256, in hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
    /// In the body, which is JSON, the value at a pointer (RFC 6901) is that one, as JSON.
    #[serde(default)]
    pub json: Vec<(String, serde_json::Value)>,
}

impl HttpPlan {
    /// What is wrong with it, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let checks = [
            (self.host.is_empty(), "http.host must not be empty"),
            (self.port == 0, "http.port must be positive"),
            (
                self.connect_timeout_ns == 0 || self.request_timeout_ns == Some(0),
                "http timeouts must be positive",
            ),
            (
                self.variables.iter().any(|one| one.values.is_empty()),
                "an http variable must have a value",
            ),
        ];
        checks
            .into_iter()
            .find_map(|(wrong, problem)| wrong.then_some(problem))
    }
}
