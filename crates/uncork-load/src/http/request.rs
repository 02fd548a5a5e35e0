//! The requests of a load, encoded as far as possible before anything is measured. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use uncork_model::{Checks, HttpPlan, LoadPlan, PlanError, RequestPlan, Values, Variable};

use super::check::needs_fields;
use super::hpack::Header;
use super::template::{Drawn, Template, escape};
use crate::recorder::Shape;

/// The user agent.
const AGENT: &str = concat!("uncork/", env!("CARGO_PKG_VERSION"));
/// Headers that mark the end of a message or control the connection: only uncork sets them.
const OURS: [&str; 6] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// All requests of a load.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) requests: Vec<Request>,
    /// Number of HTTP/2 headers that are the same in all operations.
    pub(crate) lasting: usize,
    /// Whether any check needs header fields.
    pub(crate) lists: bool,
    pub(crate) shape: Shape,
    variables: Vec<Variable>,
    seed: u64,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Request {
    /// The answer has no body: `HEAD`.
    pub(crate) head_only: bool,
    pub(crate) checks: Checks,
    /// HTTP/1.1: the request line and the headers, followed by length, empty line and body if the
    /// body is always the same.
    one: Template,
    two: Vec<Field>,
    body: Template,
    has_body: bool,
}

/// A header of HTTP/2.
#[derive(Debug)]
struct Field {
    name: Vec<u8>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    /// The same in all operations; its number among such headers.
    Lasting(usize, Vec<u8>),
    Passing(Template),
    /// The body's length.
    Length,
}

/// Buffers for the parts of a request that differ from operation to operation.
#[derive(Debug, Default)]
pub(crate) struct ScratchBuffer {
    pub(crate) body: Vec<u8>,
    values: Vec<u8>,
    ends: Vec<usize>,
}

impl Program {
    /// Encode the requests of a plan.
    ///
    /// # Errors
    ///
    /// [`PlanError`] names the request and the problem.
    pub(crate) fn compile(plan: &LoadPlan, http: &HttpPlan) -> Result<Self, PlanError> {
        let mut lasting = Vec::new();
        let mut requests = Vec::with_capacity(plan.scripts.len());
        for script in &plan.scripts {
            let compiled = script
                .request
                .as_ref()
                .ok_or_else(|| "it has no request".to_owned())
                .and_then(|request| compile(request, http, plan.connect_each, &mut lasting));
            requests.push(compiled.map_err(|problem| {
                PlanError::Invalid(format!("request \"{}\": {problem}", script.name))
            })?);
        }
        Ok(Self {
            lists: requests.iter().any(|request| needs_fields(&request.checks)),
            requests,
            lasting: lasting.len(),
            shape: Shape::of(plan),
            variables: http.variables.clone(),
            seed: plan.seed,
        })
    }

    fn drawn(&self, number: u64) -> Drawn<'_> {
        Drawn {
            variables: &self.variables,
            seed: self.seed,
            number,
        }
    }

    /// Append the request of operation `number` for HTTP/1.1.
    pub(crate) fn write_http1(
        &self,
        request: &Request,
        number: u64,
        scratch: &mut ScratchBuffer,
        out: &mut Vec<u8>,
    ) {
        if let Some(whole) = request.one.fixed()
            && (!request.has_body || request.body.fixed().is_some())
        {
            out.extend_from_slice(whole);
            return;
        }
        let drawn = self.drawn(number);
        request.one.write(drawn, out);
        if request.has_body && request.body.fixed().is_none() {
            scratch.body.clear();
            request.body.write(drawn, &mut scratch.body);
            out.extend_from_slice(
                format!("Content-Length: {}\r\n\r\n", scratch.body.len()).as_bytes(),
            );
            out.extend_from_slice(&scratch.body);
        }
    }

    /// Fill `scratch` with the parts of operation `number`'s request that are its own in HTTP/2.
    /// Then [`Request::headers`] returns all its headers.
    pub(crate) fn fill(&self, request: &Request, number: u64, scratch: &mut ScratchBuffer) {
        let drawn = self.drawn(number);
        scratch.body.clear();
        scratch.values.clear();
        scratch.ends.clear();
        if request.has_body {
            request.body.write(drawn, &mut scratch.body);
        }
        for field in &request.two {
            match &field.value {
                Value::Lasting(..) => continue,
                Value::Passing(template) => template.write(drawn, &mut scratch.values),
                Value::Length => {
                    scratch
                        .values
                        .extend_from_slice(scratch.body.len().to_string().as_bytes());
                }
            }
            scratch.ends.push(scratch.values.len());
        }
    }
}

impl Request {
    /// Return the headers for HTTP/2, after [`Program::fill`].
    pub(crate) fn headers<'a>(
        &'a self,
        scratch: &'a ScratchBuffer,
    ) -> impl Iterator<Item = Header<'a>> {
        let (mut start, mut ends) = (0, scratch.ends.iter());
        self.two.iter().map(move |field| match &field.value {
            Value::Lasting(number, value) => Header::Lasting(*number, &field.name, value),
            Value::Passing(_) | Value::Length => {
                let end = ends.next().copied().unwrap_or(start);
                let value = &scratch.values[start..end];
                start = end;
                Header::Passing(&field.name, value)
            }
        })
    }
}

/// A header that is the same in all operations.
type Lasting = (Vec<u8>, Vec<u8>);

fn compile(
    plan: &RequestPlan,
    http: &HttpPlan,
    closes: bool,
    lasting: &mut Vec<Lasting>,
) -> Result<Request, String> {
    let variables = &http.variables;
    let unknown = |place: &str| {
        let place = place.to_owned();
        move |name: String| {
            format!(
                "{{{name}}} in {place} is not a variable; declare it (--var {name}=…), or write \
                {{{{"
            )
        }
    };
    if plan.method.is_empty() || !plan.method.bytes().all(is_token) {
        return Err(format!("\"{}\" is not a method", plan.method));
    }
    if !plan.path.starts_with(['/', '*', '{']) {
        return Err(format!(
            "the path \"{}\" does not begin with a slash",
            plan.path
        ));
    }
    let path = path(&plan.path, variables).map_err(unknown("the path"))?;
    let headers = headers(plan, http)?;
    let body = body(plan, variables, unknown("the body"))?;
    let (body, has_body) = (body.clone().unwrap_or_default(), body.is_some());
    let mut one = Template::plain(format!("{} ", plan.method).as_bytes());
    one.append(&path);
    one.push(b" HTTP/1.1\r\n");
    let mut two = Vec::new();
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let authority = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = authority.map_or(http.authority.as_str(), |(_, value)| value);
    let authority = Template::read(authority, variables, false).map_err(unknown("the host"))?;
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
    for (name, value) in headers {
        let value = Template::read(&value, variables, false).map_err(unknown(&name))?;
        for variable in value.variables() {
            check_header_values(&variables[variable])?;
        }
        one.push(format!("{name}: ").as_bytes());
        one.append(&value);
        one.push(b"\r\n");
        if !name.eq_ignore_ascii_case("host") {
            field(&mut two, lasting, &name.to_ascii_lowercase(), value);
        }
    }
    if closes {
        one.push(b"Connection: close\r\n");
    }
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
    Ok(Request {
        head_only: plan.method == "HEAD",
        checks: plan.checks.clone(),
        one,
        two,
        body,
        has_body,
    })
}

/// Encode a path: braces and percent signs stay as they are, other bytes that an address may not
/// contain are escaped.
fn path(text: &str, variables: &[Variable]) -> Result<Template, String> {
    let mut path = Vec::new();
    for part in text.split_inclusive(['{', '}']) {
        let text = part.trim_end_matches(['{', '}']);
        escape(text.as_bytes(), &mut path);
        path.extend_from_slice(&part.as_bytes()[text.len()..]);
    }
    // By now it is ASCII.
    Template::read(&String::from_utf8_lossy(&path), variables, true)
}

fn body(
    plan: &RequestPlan,
    variables: &[Variable],
    unknown: impl Fn(String) -> String,
) -> Result<Option<Template>, String> {
    match (&plan.body, &plan.body_base64) {
        (Some(_), Some(_)) => Err("it has two bodies".to_owned()),
        (Some(text), None) => Template::read(text, variables, false)
            .map(Some)
            .map_err(unknown),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(request: &str, more: &str) -> (LoadPlan, HttpPlan) {
        let text = format!(
            r#"{{"driver": "http", "clients": 1, "threads": 1, "stop": {{"operations": 1}},
            "deadline_ns": 1, "scripts": [{{"name": "r", "weight": 1, "request": {request}}}],
            "http": {{"host": "h", "port": 80, "authority": "h", "version": "1.1",
            "connect_timeout_ns": 1, "variables": [
            {{"name": "id", "values": {{"range": [7, 7]}}}},
            {{"name": "bad", "values": {{"listed": ["a\r\nb"]}}}}]}}{more}}}"#
        );
        let plan = LoadPlan::parse(text.as_bytes()).expect("valid");
        let http = plan.http.clone().expect("given");
        (plan, http)
    }

    fn written(request: &str, more: &str) -> String {
        let (plan, http) = plan(request, more);
        let program = Program::compile(&plan, &http).expect("valid");
        let mut out = Vec::new();
        program.write_http1(
            &program.requests[0],
            0,
            &mut ScratchBuffer::default(),
            &mut out,
        );
        String::from_utf8(out)
            .expect("is UTF-8")
            .replace(AGENT, "A")
    }

    #[test]
    fn requests_of_http_1_are_written() {
        assert_eq!(
            written(r#"{"method": "GET", "path": "/a b/{id}%20"}"#, ""),
            "GET /a%20b/7%20 HTTP/1.1\r\nHost: h\r\nUser-Agent: A\r\n\r\n"
        );
        assert_eq!(
            written(
                r#"{"method": "POST", "path": "/", "headers": [["X", "{id}"]], "body": "hé{id}"}"#,
                ""
            ),
            "POST / HTTP/1.1\r\nHost: h\r\nUser-Agent: A\r\nX: 7\r\nContent-Length: 4\r\n\r\nhé7"
        );
        assert_eq!(
            written(
                r#"{"method": "PUT", "path": "/", "headers": [["host", "o"], ["User-Agent", "me"]],
                "body_base64": "AAEC"}"#,
                r#", "connect_each": true"#
            ),
            "PUT / HTTP/1.1\r\nhost: o\r\nUser-Agent: me\r\nConnection: close\r\nContent-Length: 3\r\n\r\n\0\u{1}\u{2}"
        );
    }

    #[test]
    fn headers_of_http_2_are_lasting_where_they_can_be() {
        let (plan, http) = plan(
            r#"{"method": "POST", "path": "/{id}", "headers": [["X-A", "b"]], "body": "{id}"}"#,
            "",
        );
        let program = Program::compile(&plan, &http).expect("valid");
        let mut scratch = ScratchBuffer::default();
        program.fill(&program.requests[0], 0, &mut scratch);
        let shown: Vec<String> = program.requests[0]
            .headers(&scratch)
            .map(|header| match header {
                Header::Lasting(number, name, value) => {
                    format!("{number} {}={}", name.escape_ascii(), value.escape_ascii())
                }
                Header::Passing(name, value) => {
                    format!("{}={}", name.escape_ascii(), value.escape_ascii())
                }
            })
            .collect();
        let expected = [
            "0 :method=POST",
            "1 :scheme=http",
            "2 :authority=h",
            ":path=/7",
            &format!("3 user-agent={AGENT}"),
            "4 x-a=b",
            "content-length=1",
        ];
        assert_eq!(shown, expected);
        assert_eq!(scratch.body, b"7");
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_name() {
        for (request, word) in [
            (r#"{"method": "GE T", "path": "/"}"#, "not a method"),
            (r#"{"method": "GET", "path": "x"}"#, "slash"),
            (r#"{"method": "GET", "path": "/{x}"}"#, "--var x="),
            (
                r#"{"method": "GET", "path": "/", "headers": [["a b", "c"]]}"#,
                "not a header name",
            ),
            (
                r#"{"method": "GET", "path": "/", "headers": [["a", "b\r\nc: d"]]}"#,
                "line break",
            ),
            (
                r#"{"method": "GET", "path": "/", "headers": [["a", "{bad}"]]}"#,
                "cannot be used",
            ),
            (
                r#"{"method": "GET", "path": "/", "headers": [["Content-Length", "3"]]}"#,
                "set by uncork",
            ),
            (
                r#"{"method": "GET", "path": "/", "body_base64": "!"}"#,
                "body_base64",
            ),
        ] {
            let (plan, http) = plan(request, "");
            let error = Program::compile(&plan, &http)
                .expect_err(request)
                .to_string();
            assert!(error.contains(word), "{error}");
            assert!(error.contains("request \"r\""), "{error}");
        }
    }
}
