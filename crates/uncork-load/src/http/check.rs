//! Checks of answers, and values that later requests use. Pure.

use std::fmt::Write;

use memchr::memmem::Finder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uncork_model::{Capture, Checks};

use super::capture::Captured;
use super::fault::{Fault, Head, Kind};
use super::redaction::{is_secret, without_secret_fields};
use super::template::{Escape, Names, Operation, Template};

/// The most bytes of a body that are kept to find values in it.
const LONGEST_KEPT: usize = 64 << 20;
/// The most bytes of a body in a message.
const LONGEST_SHOWN: usize = 160;

/// What an answer must be, and which of its values are kept.
#[derive(Debug, Default)]
pub(crate) struct Expectations {
    checks: Checks,
    json: Vec<(String, Wanted)>,
    contains: Vec<Text>,
    pub(super) captures: Vec<Captured>,
}

/// The JSON value that is wanted: this one, or one that is written as this text.
#[derive(Debug)]
enum Wanted {
    Value(Value),
    Text(Template),
}

/// A text to find: always the same, or one for each operation.
#[derive(Debug)]
enum Text {
    Fixed(Box<Finder<'static>>),
    Varying(Template),
}

impl Expectations {
    /// Compile checks and captures. `in_header` says whether a header contains a captured value.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub(crate) fn compile(
        checks: &Checks,
        captures: &[Capture],
        names: Names<'_>,
        in_header: impl Fn(usize) -> bool,
    ) -> Result<Self, String> {
        let unknown = |name: String| format!("{{{name}}} in a check has no value");
        let text = |text: &str| Template::read(text, names, Escape::None).map_err(unknown);
        let mut json = Vec::new();
        for (pointer, wanted) in &checks.json {
            let wanted = match wanted {
                Value::String(wanted) if text(wanted)?.fixed().is_none() => {
                    Wanted::Text(text(wanted)?)
                }
                Value::String(wanted) => {
                    let fixed = text(wanted)?;
                    let fixed = String::from_utf8_lossy(fixed.fixed().unwrap_or_default());
                    Wanted::Value(Value::String(fixed.into_owned()))
                }
                wanted => Wanted::Value(wanted.clone()),
            };
            json.push((pointer.clone(), wanted));
        }
        let mut contains = Vec::new();
        for wanted in &checks.contains {
            let wanted = text(wanted)?;
            contains.push(match wanted.fixed() {
                Some(fixed) => Text::Fixed(Box::new(Finder::new(fixed).into_owned())),
                None => Text::Varying(wanted),
            });
        }
        let mut kept = Vec::new();
        for capture in captures {
            let place = names.captured.iter().position(|it| *it == capture.name);
            let place = place.ok_or_else(|| unknown(capture.name.clone()))?;
            kept.push(Captured::compile(capture, place, in_header(place))?);
        }
        Ok(Self {
            checks: checks.clone(),
            json,
            contains,
            captures: kept,
        })
    }

    /// The headers that are needed, in any case.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &str> {
        let captures = self.captures.iter().filter_map(Captured::header);
        let checks = self.checks.headers.iter().map(|(name, _)| name.as_str());
        checks.chain(captures)
    }

    fn reads_json(&self) -> bool {
        let captures = &self.captures;
        !self.json.is_empty()
            || !self.checks.exists.is_empty()
            || captures.iter().any(Captured::reads_json)
    }

    fn reads_body(&self) -> bool {
        let captures = &self.captures;
        self.reads_json() || !self.contains.is_empty() || captures.iter().any(Captured::reads_text)
    }
}

/// The part of a body that its checks need.
#[derive(Debug, Default)]
pub(crate) enum Gathered {
    #[default]
    Nothing,
    Digest(Box<Sha256>),
    Whole(Vec<u8>),
}

impl Gathered {
    /// Start with what these checks need.
    pub(crate) fn of(expected: &Expectations) -> Self {
        if expected.reads_body() {
            Self::Whole(Vec::new())
        } else if expected.checks.sha256.is_some() {
            Self::Digest(Box::default())
        } else {
            Self::Nothing
        }
    }

    /// Add a part of the body.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Nothing => {}
            Self::Digest(digest) => digest.update(bytes),
            Self::Whole(body) => {
                let room = LONGEST_KEPT - body.len();
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }
    }
}

/// Check a head; return what is wrong with it.
pub(crate) fn check_head(expected: &Expectations, head: &Head) -> Option<Fault> {
    let checks = &expected.checks;
    let status = head.status;
    let wanted = if checks.statuses.is_empty() {
        (200..400).contains(&status)
    } else {
        checks.statuses.contains(&status)
    };
    if !wanted {
        return Some(Fault::new(
            Kind::Status(status),
            format!("the answer has the status {status}"),
        ));
    }
    for (name, value) in &checks.headers {
        let found = head
            .fields
            .iter()
            .filter(|(its, _)| its.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value.as_slice());
        let mut found = found.peekable();
        let Some(&first) = found.peek() else {
            return Some(Fault::new(
                Kind::Header,
                format!("the answer has no header {name}"),
            ));
        };
        if let Some(value) = value
            && !found.any(|it| it == value.as_bytes())
        {
            let shown = String::from_utf8_lossy(first).into_owned();
            let message = if is_secret(name) {
                format!("the answer's header {name} has another value")
            } else {
                format!("the answer's header {name} is {shown:?}, not {value:?}")
            };
            return Some(Fault::new(Kind::Header, message));
        }
    }
    None
}

/// Check a body of so many bytes; return the values to keep, by their numbers.
pub(crate) fn check_body(
    expected: &Expectations,
    size: u64,
    gathered: Gathered,
    operation: Operation<'_>,
) -> Result<Vec<(usize, Vec<u8>)>, Fault> {
    let checks = &expected.checks;
    if let Some(wanted) = checks.size
        && size != wanted
    {
        let message = format!("the body has {size} bytes, not {wanted}");
        return Err(Fault::new(Kind::Size, message));
    }
    let whole = match gathered {
        Gathered::Nothing => return Ok(Vec::new()),
        Gathered::Digest(digest) => {
            return check_digest(checks, &digest.finalize()).map_or(Ok(Vec::new()), Err);
        }
        Gathered::Whole(whole) => whole,
    };
    if checks.sha256.is_some()
        && let Some(fault) = check_digest(checks, &Sha256::digest(&whole))
    {
        return Err(fault);
    }
    check_texts(expected, &whole, operation)?;
    let value = if expected.reads_json() {
        serde_json::from_slice(&whole).map_err(|error| {
            let message = format!("the body is not JSON: {error}{}", beginning(&whole));
            Fault::new(Kind::Json, message)
        })?
    } else {
        Value::Null
    };
    check_json(expected, &value, operation)?;
    let mut found = Vec::new();
    for capture in &expected.captures {
        found.extend(capture.find(&value, &whole)?);
    }
    Ok(found)
}

fn check_texts(
    expected: &Expectations,
    body: &[u8],
    operation: Operation<'_>,
) -> Result<(), Fault> {
    for text in &expected.contains {
        let mut varying = Vec::new();
        let (found, wanted) = match text {
            Text::Fixed(finder) => (finder.find(body).is_some(), finder.needle()),
            Text::Varying(template) => {
                template.write(operation, &mut varying);
                let found = memchr::memmem::find(body, &varying).is_some();
                (found, varying.as_slice())
            }
        };
        if !found {
            let wanted = String::from_utf8_lossy(wanted);
            let message = format!("the body does not contain {wanted:?}{}", beginning(body));
            return Err(Fault::new(Kind::Text, message));
        }
    }
    Ok(())
}

/// Show how a body begins, without the values of fields whose name suggests a secret.
pub(super) fn beginning(body: &[u8]) -> String {
    if body.is_empty() {
        return "; it is empty".to_owned();
    }
    // The value of a secret field may be longer than what is shown.
    let text = String::from_utf8_lossy(&body[..body.len().min(64 * LONGEST_SHOWN)]);
    let safe = without_secret_fields(&text);
    let mut shown: String = safe.chars().take(LONGEST_SHOWN).collect();
    if shown.len() < safe.len() {
        shown.push('…');
    }
    format!("; it begins with {shown:?}")
}

fn check_digest(checks: &Checks, digest: &[u8]) -> Option<Fault> {
    let wanted = checks.sha256.as_ref()?;
    let mut found = String::with_capacity(2 * digest.len());
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(found, "{byte:02x}");
    }
    (!found.eq_ignore_ascii_case(wanted)).then(|| {
        Fault::new(
            Kind::Digest,
            format!("the body's SHA-256 is {found}, not {wanted}"),
        )
    })
}

fn check_json(
    expected: &Expectations,
    value: &Value,
    operation: Operation<'_>,
) -> Result<(), Fault> {
    for (pointer, wanted) in &expected.json {
        let mut text = Vec::new();
        if let Wanted::Text(template) = wanted {
            template.write(operation, &mut text);
        }
        let found = value.pointer(pointer);
        let fits = match (found, wanted) {
            (None, _) => false,
            (Some(found), Wanted::Value(wanted)) => equal(found, wanted),
            (Some(Value::String(found)), Wanted::Text(_)) => found.as_bytes() == text,
            (Some(found), Wanted::Text(_)) => found.to_string().as_bytes() == text,
        };
        if fits {
            continue;
        }
        let message = match found {
            None => format!("the body has no {pointer}"),
            Some(_) if is_secret(pointer) => format!("in the body {pointer} has another value"),
            Some(found) => {
                let wanted = match wanted {
                    Wanted::Value(wanted) => wanted.to_string(),
                    Wanted::Text(_) => String::from_utf8_lossy(&text).into_owned(),
                };
                format!("in the body {pointer} is {found}, not {wanted}")
            }
        };
        return Err(Fault::new(Kind::Json, message));
    }
    let missing = expected.checks.exists.iter();
    let mut missing = missing.filter(|pointer| value.pointer(pointer).is_none());
    missing.next().map_or(Ok(()), |pointer| {
        Err(Fault::new(Kind::Json, format!("the body has no {pointer}")))
    })
}

/// Whether two JSON values are equal; `1` and `1.0` are.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() != other.is_f64() && one.as_f64() == other.as_f64())
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uncork_model::{Values, Variable};

    use super::*;

    fn checks(json: &str) -> Checks {
        serde_json::from_str(json).expect("valid")
    }

    fn expectations(json: &str, captures: &str) -> Result<Expectations, String> {
        let captures: Vec<Capture> = serde_json::from_str(captures).expect("valid");
        let known: Vec<_> = captures.iter().map(|it| it.name.clone()).collect();
        let names = Names {
            variables: &variables(),
            captured: &known,
            environment: &BTreeMap::new(),
        };
        Expectations::compile(&checks(json), &captures, names, |_| true)
    }

    fn variables() -> [Variable; 1] {
        [Variable {
            name: "id".to_owned(),
            values: Values::Range(7, 7),
            in_turn: false,
            per_client: false,
            group: None,
        }]
    }

    fn judged(expected: &Expectations, body: &[u8]) -> Result<Vec<(usize, Vec<u8>)>, Fault> {
        let mut gathered = Gathered::of(expected);
        for part in body.chunks(3) {
            gathered.add(part);
        }
        let operation = Operation {
            variables: &variables(),
            seed: 0,
            number: 0,
            client: 0,
            session: None,
        };
        check_body(expected, body.len() as u64, gathered, operation)
    }

    fn of_body(json: &str, body: &[u8]) -> Option<Kind> {
        let found = judged(&expectations(json, "[]").expect("valid"), body);
        found.err().map(|fault| fault.kind)
    }

    #[test]
    fn messages_show_the_body_without_secrets() {
        let expected = expectations(r#"{"contains": ["fine"]}"#, "[]").expect("valid");
        let body = format!(
            r#"{{"access_token": "{}", "error": "no"}}"#,
            "s".repeat(1000)
        );
        let fault = judged(&expected, body.as_bytes()).expect_err("not fine");
        assert_eq!(
            fault.message,
            r#"the body does not contain "fine"; it begins with "{\"access_token\": \"***\", \"error\": \"no\"}""#
        );
        let expected = expectations(r#"{"json": [["/api_key", "x"]]}"#, "[]").expect("valid");
        let fault = judged(&expected, br#"{"api_key": "secret"}"#).expect_err("another");
        assert_eq!(fault.message, "in the body /api_key has another value");
    }

    #[test]
    fn a_head_is_checked_by_status_and_headers() {
        let head = |status| Head {
            status,
            fields: vec![
                (b"x-kind".to_vec(), b"a".to_vec()),
                (b"x-kind".to_vec(), b"b".to_vec()),
            ],
            ..Head::default()
        };
        let found = |json: &str, status| {
            let expected = expectations(json, "[]").expect("valid");
            check_head(&expected, &head(status)).map(|it| it.kind)
        };
        assert_eq!(found("{}", 200), None);
        assert_eq!(found("{}", 304), None);
        assert_eq!(found("{}", 404), Some(Kind::Status(404)));
        assert_eq!(found(r#"{"statuses": [404]}"#, 404), None);
        assert_eq!(
            found(r#"{"statuses": [404]}"#, 200),
            Some(Kind::Status(200))
        );
        assert_eq!(found(r#"{"headers": [["X-Kind", null]]}"#, 200), None);
        assert_eq!(found(r#"{"headers": [["X-Kind", "b"]]}"#, 200), None);
        assert_eq!(
            found(r#"{"headers": [["X-Kind", "c"]]}"#, 200),
            Some(Kind::Header)
        );
        assert_eq!(
            found(r#"{"headers": [["X-Other", null]]}"#, 200),
            Some(Kind::Header)
        );
    }

    #[test]
    fn a_body_is_checked_by_size_digest_and_value() {
        let body = br#"{"a": [1, {"b": "c"}]}"#;
        let digest =
            "\"sha256\": \"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\"";
        assert_eq!(of_body(r#"{"size": 22}"#, body), None);
        assert_eq!(of_body(r#"{"size": 21}"#, body), Some(Kind::Size));
        assert_eq!(of_body(&format!("{{{digest}}}"), b"abc"), None);
        assert_eq!(
            of_body(&format!("{{{digest}}}"), b"xyz"),
            Some(Kind::Digest)
        );
        assert_eq!(
            of_body(r#"{"json": [["/a/1/b", "c"], ["/a/0", 1]]}"#, body),
            None
        );
        assert_eq!(
            of_body(r#"{"json": [["/a/1/b", "d"]]}"#, body),
            Some(Kind::Json)
        );
        assert_eq!(
            of_body(r#"{"json": [["/a/2", 1]]}"#, body),
            Some(Kind::Json)
        );
        assert_eq!(of_body(r#"{"json": [["/a", 1]]}"#, b"{"), Some(Kind::Json));
        assert_eq!(of_body(r#"{"json": [["/a", 1]]}"#, b"{\"a\": 1.0}"), None);
        assert_eq!(
            of_body(r#"{"json": [["/a", "{id}"]]}"#, b"{\"a\": 7}"),
            None
        );
        assert_eq!(
            of_body(r#"{"json": [["/a", "{id}"]]}"#, b"{\"a\": \"7\"}"),
            None
        );
        assert_eq!(
            of_body(r#"{"json": [["/a", "{id}"]]}"#, b"{\"a\": 8}"),
            Some(Kind::Json)
        );
        assert_eq!(of_body(r#"{"exists": ["/a/1"]}"#, body), None);
        assert_eq!(of_body(r#"{"exists": ["/b"]}"#, body), Some(Kind::Json));
        assert_eq!(of_body(r#"{"contains": ["{{\"b", "c"]}"#, body), None);
        assert_eq!(of_body(r#"{"contains": ["x{id}"]}"#, b"..x7.."), None);
        assert_eq!(
            of_body(r#"{"contains": ["x{id}"]}"#, b"x8"),
            Some(Kind::Text)
        );
        let both = format!("{{{digest}, \"json\": [[\"\", 1]]}}");
        assert_eq!(of_body(&both, b"1"), Some(Kind::Digest));
    }
}
