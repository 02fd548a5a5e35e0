//! Encoding the requests of a plan before anything is sent. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use uncork_model::{BodyKind, HttpPlan, RequestPlan, Values, Variable};

use super::{Field, Request, Value};
use crate::http::check::Expectations;
use crate::http::template::{Escape, Names, Source, Template};

/// The user agent.
pub(super) const AGENT: &str = concat!("uncork/", env!("CARGO_PKG_VERSION"));
/// Headers that mark the end of a message or control the connection: only uncork sets them.
const OURS: [&str; 6] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// A header that is the same in all operations.
pub(super) type Lasting = (Vec<u8>, Vec<u8>);

/// What the requests of a load share.
#[derive(Clone, Copy)]
pub(super) struct Encoding<'a> {
    pub(super) http: &'a HttpPlan,
    pub(super) names: Names<'a>,
    /// The connection ends after each request.
    pub(super) closes: bool,
    /// Captured values that headers contain.
    pub(super) in_headers: &'a [usize],
}

/// The names of all captured values, and their defaults.
pub(super) fn captured<'a>(
    plans: impl Iterator<Item = &'a RequestPlan>,
) -> (Vec<String>, Vec<Option<Vec<u8>>>) {
    let mut names: Vec<String> = Vec::new();
    let mut defaults: Vec<Option<Vec<u8>>> = Vec::new();
    for capture in plans.flat_map(|plan| &plan.captures) {
        let default = capture.default.clone().map(String::into_bytes);
        if let Some(place) = names.iter().position(|name| *name == capture.name) {
            defaults[place] = defaults[place].take().or(default);
        } else {
            names.push(capture.name.clone());
            defaults.push(default);
        }
    }
    (names, defaults)
}

/// The numbers of captured values that headers contain.
pub(super) fn in_headers<'a>(
    plans: impl Iterator<Item = &'a RequestPlan>,
    names: Names<'_>,
) -> Vec<usize> {
    let values = plans.flat_map(|plan| &plan.headers);
    let values = values.filter_map(|(_, value)| Template::read(value, names, Escape::None).ok());
    let sources = values.flat_map(|value| value.sources().collect::<Vec<_>>());
    let captured = sources.filter_map(|source| match source {
        Source::Captured(place) => Some(place),
        Source::Drawn(_) => None,
    });
    captured.collect()
}

/// Encode a request.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn compile(
    name: &str,
    plan: &RequestPlan,
    encoding: Encoding<'_>,
    lasting: &mut Vec<Lasting>,
) -> Result<Request, String> {
    let Encoding { http, names, .. } = encoding;
    if plan.method.is_empty() || !plan.method.bytes().all(is_token) {
        return Err(format!("\"{}\" is not a method", plan.method));
    }
    if !plan.path.starts_with(['/', '*', '{']) {
        return Err(format!(
            "the path \"{}\" does not begin with a slash",
            plan.path
        ));
    }
    let path = path(&plan.path, names).map_err(unknown("the path"))?;
    let headers = headers(plan, http)?;
    let body = body(plan, names, unknown("the body"))?;
    let (body, has_body) = (body.clone().unwrap_or_default(), body.is_some());
    let in_header = |place| encoding.in_headers.contains(&place);
    let expected = Expectations::compile(&plan.checks, &plan.captures, names, in_header)?;
    let mut head = begin(plan, path, &headers, encoding, lasting)?;
    add_headers(&mut head, headers, encoding, lasting)?;
    let Encoded { mut one, mut two } = head;
    match body.fixed() {
        _ if !has_body => one.push(b"\r\n"),
        Some(bytes) => {
            one.push(format!("Content-Length: {}\r\n\r\n", bytes.len()).as_bytes());
            one.push(bytes);
            field(
                &mut two,
                lasting,
                "content-length",
                Template::plain(bytes.len().to_string().as_bytes()),
            );
        }
        None => two.push(Field {
            name: b"content-length".to_vec(),
            value: Value::Length,
        }),
    }
    let fields = two.iter().filter_map(|field| match &field.value {
        Value::Passing(template) => Some(template),
        _ => None,
    });
    let sources = fields.chain([&body]).flat_map(Template::sources);
    let needs = sources.filter_map(|source| match source {
        Source::Captured(place) => Some(place),
        Source::Drawn(_) => None,
    });
    Ok(Request {
        head_only: plan.method == "HEAD",
        expected,
        needs: needs.collect(),
        name: name.to_owned(),
        one,
        two,
        body,
        has_body,
    })
}

/// A request's head: of HTTP/1.1, and the headers of HTTP/2.
struct Encoded {
    one: Template,
    two: Vec<Field>,
}

fn unknown(place: &str) -> impl Fn(String) -> String {
    let place = place.to_owned();
    move |name| {
        format!(
            "{{{name}}} in {place} is not a variable; declare it (--var {name}=…), or write {{{{"
        )
    }
}

/// Encode the request line.
fn begin(
    plan: &RequestPlan,
    path: Template,
    headers: &[(String, String)],
    encoding: Encoding<'_>,
    lasting: &mut Vec<Lasting>,
) -> Result<Encoded, String> {
    let Encoding { http, names, .. } = encoding;
    let mut one = Template::plain(format!("{} ", plan.method).as_bytes());
    one.append(&path);
    one.push(b" HTTP/1.1\r\n");
    let mut two = Vec::new();
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let authority = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = authority.map_or(http.authority.as_str(), |(_, value)| value);
    let authority = Template::read(authority, names, Escape::None).map_err(unknown("the host"))?;
    field(
        &mut two,
        lasting,
        ":method",
        Template::plain(plan.method.as_bytes()),
    );
    field(
        &mut two,
        lasting,
        ":scheme",
        Template::plain(scheme.as_bytes()),
    );
    field(&mut two, lasting, ":authority", authority);
    field(&mut two, lasting, ":path", path);
    Ok(Encoded { one, two })
}

/// Append the headers, and the place of the client's cookies.
fn add_headers(
    head: &mut Encoded,
    headers: Vec<(String, String)>,
    encoding: Encoding<'_>,
    lasting: &mut Vec<Lasting>,
) -> Result<(), String> {
    let Encoding { http, names, .. } = encoding;
    let Encoded { one, two } = head;
    let sends_cookies = http.cookies
        && !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    for (name, value) in headers {
        let value = Template::read(&value, names, Escape::None).map_err(unknown(&name))?;
        for source in value.sources() {
            if let Source::Drawn(variable) = source {
                check_header_values(&names.variables[variable])?;
            }
        }
        if value
            .fixed()
            .is_some_and(|fixed| fixed.iter().any(|byte| *byte < b' ' && *byte != b'\t'))
        {
            return Err(format!("the header {name} has a line break"));
        }
        one.push(format!("{name}: ").as_bytes());
        one.append(&value);
        one.push(b"\r\n");
        if !name.eq_ignore_ascii_case("host") {
            field(two, lasting, &name.to_ascii_lowercase(), value);
        }
    }
    if sends_cookies {
        one.push_cookies();
        two.push(Field {
            name: b"cookie".to_vec(),
            value: Value::Cookies,
        });
    }
    if encoding.closes {
        one.push(b"Connection: close\r\n");
    }
    Ok(())
}

/// Encode a path: braces and percent signs stay as they are, other bytes that an address may not
/// contain are escaped.
fn path(text: &str, names: Names<'_>) -> Result<Template, String> {
    let mut path = Vec::new();
    for part in text.split_inclusive(['{', '}']) {
        let text = part.trim_end_matches(['{', '}']);
        Escape::Address.write(text.as_bytes(), &mut path);
        path.extend_from_slice(&part.as_bytes()[text.len()..]);
    }
    // By now it is ASCII.
    Template::read(&String::from_utf8_lossy(&path), names, Escape::Address)
}

fn body(
    plan: &RequestPlan,
    names: Names<'_>,
    unknown: impl Fn(String) -> String,
) -> Result<Option<Template>, String> {
    match (&plan.body, &plan.body_base64) {
        (Some(_), Some(_)) => Err("it has two bodies".to_owned()),
        (Some(text), None) => {
            let escape = match plan.body_kind {
                BodyKind::Text => Escape::None,
                BodyKind::Json => Escape::Json,
                BodyKind::Form => Escape::Form,
            };
            Template::read(text, names, escape)
                .map(Some)
                .map_err(unknown)
        }
        (None, Some(coded)) => {
            let bytes = STANDARD
                .decode(coded)
                .map_err(|error| format!("body_base64: {error}"))?;
            Ok(Some(Template::plain(&bytes)))
        }
        (None, None) => Ok(None),
    }
}

/// Return the headers of a request: the given ones, after the defaults for missing ones.
fn headers(plan: &RequestPlan, http: &HttpPlan) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for (name, value) in [("Host", http.authority.as_str()), ("User-Agent", AGENT)] {
        if !plan
            .headers
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
        {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    for (name, value) in &plan.headers {
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("\"{name}\" is not a header name"));
        }
        if OURS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(format!("the header {name} is set by uncork; leave it out"));
        }
        if !is_header_value(value) {
            return Err(format!(
                "the header {name} has a line break, or ends in spaces"
            ));
        }
        headers.push((name.clone(), value.clone()));
    }
    Ok(headers)
}

fn check_header_values(variable: &Variable) -> Result<(), String> {
    if let Values::Listed(values) = &variable.values
        && let Some(value) = values.iter().find(|value| !is_header_value(value))
    {
        let name = &variable.name;
        return Err(format!(
            "the value {value:?} of {{{name}}} cannot be used in a header"
        ));
    }
    Ok(())
}

fn field(fields: &mut Vec<Field>, lasting: &mut Vec<Lasting>, name: &str, value: Template) {
    let name = name.as_bytes().to_vec();
    let value = match value.fixed() {
        None => Value::Passing(value),
        Some(fixed) => {
            let header = (name.clone(), fixed.to_vec());
            let number = lasting
                .iter()
                .position(|it| *it == header)
                .unwrap_or(lasting.len());
            let fixed = header.1.clone();
            if number == lasting.len() {
                lasting.push(header);
            }
            Value::Lasting(number, fixed)
        }
    };
    fields.push(Field { name, value });
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_header_value(value: &str) -> bool {
    value.trim_matches([' ', '\t']) == value
        && value
            .bytes()
            .all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}
