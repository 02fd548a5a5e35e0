//! The plan of an HTTP load: where to connect, which version, and what each request is.

use std::collections::BTreeMap;
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
    /// The `Host` of requests: the host, and the port unless it is the scheme's default.
    pub authority: String,
    /// How the connection is encrypted; `null` is unencrypted.
    #[serde(default)]
    pub tls: Option<HttpTls>,
    /// Which version of the protocol.
    pub version: HttpVersion,
    /// How long a connection may take to open.
    pub connect_timeout_ns: u64,
    /// How long a request may take, from when it is sent; `null` is unlimited.
    #[serde(default)]
    pub request_timeout_ns: Option<u64>,
    /// The variables in paths, headers and bodies, written `{name}`.
    #[serde(default)]
    pub variables: Vec<Variable>,
    /// Requests that each client sends once, in order, before its first operation.
    #[serde(default)]
    pub login: Vec<LoginStep>,
    /// Whether each client keeps the cookies that answers set, and sends them.
    #[serde(default)]
    pub cookies: bool,
    /// Values of `${NAME}`. They are secret: no message contains them.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A request that each client sends before its first operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginStep {
    /// Its name in results and messages.
    pub name: String,
    /// The request.
    pub request: RequestPlan,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpTls {
    /// Whether the server's certificate must be valid for the host.
    pub verify: bool,
    /// A PEM file with the certificates of trusted authorities; `null` trusts the operating
    /// system's.
    #[serde(default)]
    pub roots: Option<PathBuf>,
}

/// The version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2: with prior knowledge, or required by ALPN if the connection is encrypted.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3 over QUIC, which is always encrypted.
    #[serde(rename = "3")]
    Http3,
    /// HTTP/2 if ALPN selects it, otherwise HTTP/1.1.
    #[serde(rename = "negotiated")]
    Negotiated,
}

/// A variable, written `{name}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// The name between the braces.
    pub name: String,
    /// Where the values come from.
    pub values: Values,
    /// In turn, by the operation's number; otherwise drawn at random with equal probability.
    #[serde(default)]
    pub in_turn: bool,
    /// Each client keeps one value, chosen by the client's number.
    #[serde(default)]
    pub per_client: bool,
    /// Variables with the same group take the same place in their lists: the columns of a row.
    #[serde(default)]
    pub group: Option<u64>,
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
    /// The number of values.
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

/// A request that an operation sends, and the checks of its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestPlan {
    /// The method, such as `GET`.
    pub method: String,
    /// The path with the query, beginning with a slash.
    pub path: String,
    /// The headers, in order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body as text; `null` is none.
    #[serde(default)]
    pub body: Option<String>,
    /// The body in base64 if it is not text. It is sent unchanged, without variables.
    #[serde(default)]
    pub body_base64: Option<String>,
    /// How values are escaped in the body.
    #[serde(default)]
    pub body_kind: BodyKind,
    /// Values of the answer that later requests of the same client use.
    #[serde(default)]
    pub captures: Vec<Capture>,
    /// The checks of its answer.
    #[serde(default)]
    pub checks: Checks,
}

/// How values are escaped in a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// Not at all.
    #[default]
    Text,
    /// JSON: inside of quotes, as the content of a string; elsewhere not at all.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
}

/// A value that an answer gives to later requests of the same client.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// The name between the braces.
    pub name: String,
    /// Where the value is.
    pub from: CaptureSource,
    /// The value until an answer has one; without it, requests that use the name fail until then.
    #[serde(default)]
    pub default: Option<String>,
}

/// Where in an answer a value is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CaptureSource {
    /// In the JSON body at a pointer (RFC 6901).
    Json(String),
    /// The value of a header.
    Header(String),
    /// The first group of a regular expression in the body, or else the whole match.
    Regex(String),
}

/// Checks of an answer; absent checks are not made.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    /// The status is one of these; by default from 200 to 399.
    #[serde(default)]
    pub statuses: Vec<u16>,
    /// These headers are present, with these values if given.
    #[serde(default)]
    pub headers: Vec<(String, Option<String>)>,
    /// The size of the body in bytes.
    #[serde(default)]
    pub size: Option<u64>,
    /// The body's SHA-256, in hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The JSON value at a pointer (RFC 6901) in the body equals this JSON value.
    #[serde(default)]
    pub json: Vec<(String, serde_json::Value)>,
    /// The JSON body has a value at these pointers.
    #[serde(default)]
    pub exists: Vec<String>,
    /// The body contains these texts.
    #[serde(default)]
    pub contains: Vec<String>,
}

impl HttpPlan {
    /// Whether requests are sent over UDP.
    #[must_use]
    pub fn uses_udp(&self) -> bool {
        self.version == HttpVersion::Http3
    }

    /// Return what is wrong with the plan, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let checks = [
            (self.host.is_empty(), "http.host must not be empty"),
            (self.port == 0, "http.port must be positive"),
            (
                self.connect_timeout_ns == 0 || self.request_timeout_ns == Some(0),
                "http timeouts must be positive",
            ),
            (
                self.version == HttpVersion::Http3 && self.tls.is_none(),
                "HTTP/3 needs http.tls",
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
