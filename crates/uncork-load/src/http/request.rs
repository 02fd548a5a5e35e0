//! The requests of a load, encoded as far as possible before anything is measured. Pure.

mod compile;

use std::collections::BTreeMap;

use uncork_model::{HttpPlan, LoadPlan, PlanError, Variable};

use super::check::Expectations;
use super::fault::FieldNames;
use super::hpack::Header;
use super::session::{Login, Session};
use super::template::{Names, Operation, Template};
use crate::recorder::Shape;
use compile::{Encoding, captured, compile, in_headers};

/// All requests of a load.
#[derive(Debug)]
pub(crate) struct Program {
    /// The requests of operations, by script, followed by the steps of the login.
    pub(crate) requests: Vec<Request>,
    /// The number of the first step of the login.
    pub(crate) first_login: usize,
    /// The names of captured values, and their defaults.
    pub(crate) captured: Vec<String>,
    defaults: Vec<Option<Vec<u8>>>,
    /// Whether clients keep anything between their requests.
    keeps: bool,
    pub(crate) cookies: bool,
    pub(crate) environment: BTreeMap<String, String>,
    /// Number of HTTP/2 headers that are the same in all operations.
    pub(crate) lasting: usize,
    /// The header fields that checks, captures and cookies need.
    pub(crate) lists: FieldNames,
    pub(crate) shape: Shape,
    variables: Vec<Variable>,
    seed: u64,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Request {
    /// The answer has no body: `HEAD`.
    pub(crate) head_only: bool,
    pub(crate) expected: Expectations,
    /// The captured values that it contains.
    needs: Vec<usize>,
    /// Its name, for messages.
    pub(crate) name: String,
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
    /// The client's cookies; no header if there are none.
    Cookies,
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
        let mut requests = Vec::with_capacity(plan.scripts.len() + http.login.len());
        let scripts = plan.scripts.iter();
        let scripts = scripts.map(|it| ("request", &it.name, it.request.as_ref()));
        let logins = http.login.iter();
        let logins = logins.map(|it| ("login step", &it.name, Some(&it.request)));
        let plans: Vec<_> = scripts.chain(logins).collect();
        let (captured, defaults) = captured(plans.iter().filter_map(|(_, _, plan)| *plan));
        let names = Names {
            variables: &http.variables,
            captured: &captured,
            environment: &http.environment,
        };
        let in_headers = in_headers(plans.iter().filter_map(|(_, _, plan)| *plan), names);
        for (what, name, request) in plans {
            let compiled = request
                .ok_or_else(|| "it has no request".to_owned())
                .and_then(|request| {
                    let encoding = Encoding {
                        http,
                        names,
                        closes: plan.connect_each,
                        in_headers: &in_headers,
                    };
                    compile(name, request, encoding, &mut lasting)
                });
            requests.push(
                compiled.map_err(|problem| {
                    PlanError::Invalid(format!("{what} \"{name}\": {problem}"))
                })?,
            );
        }
        let fields = requests.iter().flat_map(|it| it.expected.headers());
        Ok(Self {
            lists: FieldNames::of(fields.chain(http.cookies.then_some("set-cookie"))),
            requests,
            first_login: plan.scripts.len(),
            keeps: http.cookies || !captured.is_empty() || !http.login.is_empty(),
            captured,
            defaults,
            cookies: http.cookies,
            environment: http.environment.clone(),
            lasting: lasting.len(),
            shape: Shape {
                logins: http.login.iter().map(|step| step.name.clone()).collect(),
                ..Shape::of(plan)
            },
            variables: http.variables.clone(),
            seed: plan.seed,
        })
    }

    /// A new client's state; none if clients keep nothing.
    pub(crate) fn session(&self) -> Option<Box<Session>> {
        self.keeps.then(|| {
            let mut session = Session::new(self.defaults.clone());
            if self.requests.len() > self.first_login {
                session.login = Login::Next(0);
            }
            Box::new(session)
        })
    }

    /// The name of a value that a request needs and that the client does not have.
    pub(crate) fn missing(&self, request: &Request, session: Option<&Session>) -> Option<&str> {
        let missing = request.needs.iter();
        let mut missing =
            missing.filter(|&&place| session.is_none_or(|session| session.value(place).is_none()));
        missing.next().map(|&place| self.captured[place].as_str())
    }

    /// The values of an operation of a client.
    pub(crate) fn operation<'a>(
        &'a self,
        number: u64,
        client: usize,
        session: Option<&'a Session>,
    ) -> Operation<'a> {
        Operation {
            variables: &self.variables,
            seed: self.seed,
            number,
            client: client as u64,
            session,
        }
    }
}

impl Request {
    /// Append the request of an operation for HTTP/1.1.
    pub(crate) fn write_http1(
        &self,
        operation: Operation<'_>,
        scratch: &mut ScratchBuffer,
        out: &mut Vec<u8>,
    ) {
        if let Some(whole) = self.one.fixed()
            && (!self.has_body || self.body.fixed().is_some())
        {
            out.extend_from_slice(whole);
            return;
        }
        self.one.write(operation, out);
        if self.has_body && self.body.fixed().is_none() {
            scratch.body.clear();
            self.body.write(operation, &mut scratch.body);
            out.extend_from_slice(
                format!("Content-Length: {}\r\n\r\n", scratch.body.len()).as_bytes(),
            );
            out.extend_from_slice(&scratch.body);
        }
    }

    /// Fill `scratch` with the parts of an operation's request that are its own in HTTP/2.
    /// Then [`Request::headers`] returns all its headers.
    pub(crate) fn fill(&self, operation: Operation<'_>, scratch: &mut ScratchBuffer) {
        scratch.body.clear();
        scratch.values.clear();
        scratch.ends.clear();
        if self.has_body {
            self.body.write(operation, &mut scratch.body);
        }
        for field in &self.two {
            match &field.value {
                Value::Lasting(..) => continue,
                Value::Passing(template) => template.write(operation, &mut scratch.values),
                Value::Cookies => self.write_cookies(operation, scratch),
                Value::Length => {
                    scratch
                        .values
                        .extend_from_slice(scratch.body.len().to_string().as_bytes());
                }
            }
            scratch.ends.push(scratch.values.len());
        }
    }

    /// Return the headers for HTTP/2, after [`Request::fill`].
    pub(crate) fn headers<'a>(
        &'a self,
        scratch: &'a ScratchBuffer,
    ) -> impl Iterator<Item = Header<'a>> {
        let (mut start, mut ends) = (0, scratch.ends.iter());
        self.two.iter().filter_map(move |field| match &field.value {
            Value::Lasting(number, value) => Some(Header::Lasting(*number, &field.name, value)),
            value => {
                let end = ends.next().copied().unwrap_or(start);
                let written = &scratch.values[start..end];
                start = end;
                let header = Header::Passing(&field.name, written);
                (!written.is_empty() || !matches!(value, Value::Cookies)).then_some(header)
            }
        })
    }

    /// Append the client's cookies for the path that was written before.
    fn write_cookies(&self, operation: Operation<'_>, scratch: &mut ScratchBuffer) {
        let Some(session) = operation.session.filter(|session| session.has_cookies()) else {
            return;
        };
        let path = self.two.iter().find(|field| field.name == b":path");
        let path = if let Some(Value::Lasting(_, path)) = path.map(|field| &field.value) {
            path.clone()
        } else {
            // Only the authority may be written before it.
            let written = self.two.iter().take_while(|field| field.name != b":path");
            let before = written.filter(|field| !matches!(field.value, Value::Lasting(..)));
            let place = before.count();
            let start = place
                .checked_sub(1)
                .and_then(|last| scratch.ends.get(last).copied());
            let end = scratch.ends.get(place).copied().unwrap_or(0);
            scratch.values[start.unwrap_or(0)..end].to_vec()
        };
        session.write_cookies(&path, &mut scratch.values);
    }
}

#[cfg(test)]
mod tests {
    use super::compile::AGENT;
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
        program.requests[0].write_http1(
            program.operation(0, 0, None),
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
        program.requests[0].fill(program.operation(0, 0, None), &mut scratch);
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
    fn requests_carry_captured_values_and_cookies_of_their_client() {
        let request = r#"{"method": "POST", "path": "/shop/{id}", "body": "{\"t\": \"{t}\"}",
            "body_kind": "json", "headers": [["Authorization", "Bearer {t}"]],
            "captures": [{"name": "t", "from": {"json": "/t"}}]}"#;
        let (mut plan, mut http) = plan(request, "");
        http.cookies = true;
        plan.http = Some(http.clone());
        let program = Program::compile(&plan, &http).expect("valid");
        let request = &program.requests[0];
        let mut session = program.session().expect("it keeps values");
        assert_eq!(program.missing(request, Some(&session)), Some("t"));
        session.capture(0, b"a\"b");
        session.set_cookie(b"s=1; Path=/shop", 0);
        session.set_cookie(b"n=2; Path=/other", 0);
        assert_eq!(program.missing(request, Some(&session)), None);
        let operation = program.operation(0, 0, Some(&session));
        let (mut scratch, mut out) = (ScratchBuffer::default(), Vec::new());
        request.write_http1(operation, &mut scratch, &mut out);
        let text = String::from_utf8(out).expect("is UTF-8");
        assert_eq!(
            text.replace(AGENT, "A"),
            "POST /shop/7 HTTP/1.1\r\nHost: h\r\nUser-Agent: A\r\nAuthorization: Bearer a\"b\r\n\
             Cookie: s=1\r\nContent-Length: 13\r\n\r\n{\"t\": \"a\\\"b\"}"
        );
        request.fill(operation, &mut scratch);
        let has_cookie = |scratch: &ScratchBuffer| {
            let mut headers = request.headers(scratch);
            headers.any(|it| matches!(it, Header::Passing(b"cookie", b"s=1")))
        };
        assert!(has_cookie(&scratch));
        let mut bare = program.session().expect("it keeps values");
        bare.capture(0, b"x");
        request.fill(program.operation(0, 0, Some(&bare)), &mut scratch);
        assert!(!has_cookie(&scratch));
        assert_eq!(request.headers(&scratch).count(), 7, "no empty cookie");
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
