//! Values of answers that later requests of the same client use. Pure.

use regex::bytes::Regex;
use serde_json::Value;
use uncork_model::{Capture, CaptureSource};

use super::check::{Expectations, beginning};
use super::fault::{Fault, Head, Kind};
use super::session::Session;

/// A value to keep.
#[derive(Debug)]
pub(super) struct Captured {
    /// Its number among all captured values.
    place: usize,
    name: String,
    from: From,
    optional: bool,
    /// A header has it, so it must be fit for one.
    in_header: bool,
}

#[derive(Debug)]
enum From {
    Json(String),
    Header(String),
    Regex(Regex),
}

impl From {
    fn compile(plan: &CaptureSource) -> Result<Self, String> {
        Ok(match plan {
            CaptureSource::Json(pointer) => Self::Json(pointer.clone()),
            CaptureSource::Header(name) => Self::Header(name.clone()),
            CaptureSource::Regex(text) => {
                let regex = Regex::new(text);
                let regex = regex.map_err(|error| {
                    let error = error.to_string();
                    let last = error.lines().last().unwrap_or_default();
                    format!("the regular expression {text:?} is not valid: {last}")
                })?;
                Self::Regex(regex)
            }
        })
    }
}

/// Keep the values of a head that passed its checks; return what is wrong with it.
pub(crate) fn capture_headers(
    expected: &Expectations,
    head: &Head,
    session: &mut Session,
) -> Option<Fault> {
    for capture in &expected.captures {
        let From::Header(header) = &capture.from else {
            continue;
        };
        let found = head
            .fields
            .iter()
            .find(|(its, _)| its.eq_ignore_ascii_case(header.as_bytes()));
        match found {
            Some((_, value)) => session.capture(capture.place, value),
            None if capture.optional => {}
            None => {
                let name = &capture.name;
                let message = format!("the answer has no header {header} for {{{name}}}");
                return Some(Fault::new(Kind::Capture, message));
            }
        }
    }
    None
}

impl Captured {
    /// Compile a capture; `in_header` says whether a header contains the value.
    ///
    /// # Errors
    ///
    /// What is wrong with its regular expression.
    pub(super) fn compile(plan: &Capture, place: usize, in_header: bool) -> Result<Self, String> {
        Ok(Self {
            place,
            name: plan.name.clone(),
            from: From::compile(&plan.from)?,
            optional: plan.default.is_some(),
            in_header,
        })
    }

    /// The header that has the value.
    pub(super) fn header(&self) -> Option<&str> {
        match &self.from {
            From::Header(name) => Some(name),
            From::Json(_) | From::Regex(_) => None,
        }
    }

    pub(super) fn reads_json(&self) -> bool {
        matches!(self.from, From::Json(_))
    }

    pub(super) fn reads_text(&self) -> bool {
        matches!(self.from, From::Regex(_))
    }

    /// Find the value in a body, with the number under which to keep it.
    pub(super) fn find(
        &self,
        json: &Value,
        body: &[u8],
    ) -> Result<Option<(usize, Vec<u8>)>, Fault> {
        let name = &self.name;
        let missing = |message: String| Err(Fault::new(Kind::Capture, message));
        let value = match &self.from {
            From::Header(_) => return Ok(None),
            From::Json(pointer) => match json.pointer(pointer) {
                Some(Value::String(text)) => text.clone().into_bytes(),
                Some(value) if !value.is_null() => value.to_string().into_bytes(),
                _ if self.optional => return Ok(None),
                _ => {
                    let shown = beginning(body);
                    return missing(format!("the body has no {pointer} for {{{name}}}{shown}"));
                }
            },
            From::Regex(regex) => match regex.captures(body) {
                Some(groups) => {
                    let group = groups.get(1).or_else(|| groups.get(0));
                    group.map_or_else(Vec::new, |group| group.as_bytes().to_vec())
                }
                None if self.optional => return Ok(None),
                None => {
                    let shown = beginning(body);
                    return missing(format!(
                        "nothing in the body matches {regex} for {{{name}}}{shown}"
                    ));
                }
            },
        };
        if self.in_header && value.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
            return missing(format!(
                "the value for {{{name}}} has a line break, but a header uses it"
            ));
        }
        Ok(Some((self.place, value)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uncork_model::Checks;

    use super::*;
    use crate::http::template::Names;

    fn expectations(capture: &str) -> Result<Expectations, String> {
        let captures = format!("[{{\"name\": \"a\", {capture}}}]");
        let captures: Vec<Capture> = serde_json::from_str(&captures).expect("valid");
        let names = Names {
            variables: &[],
            captured: &["a".to_owned()],
            environment: &BTreeMap::new(),
        };
        Expectations::compile(&Checks::default(), &captures, names, |_| true)
    }

    fn captured(capture: &str, body: &str) -> Result<Vec<String>, String> {
        let expected = expectations(capture)?;
        let json = serde_json::from_str(body).unwrap_or_default();
        let found = expected.captures[0].find(&json, body.as_bytes());
        let found = found.map_err(|fault| fault.message)?;
        let texts = found.into_iter().map(|(_, value)| String::from_utf8(value));
        Ok(texts.map(|text| text.expect("is UTF-8")).collect())
    }

    #[test]
    fn values_are_captured_from_bodies() {
        let body = r#"{"a": {"t": "x\"y", "n": 12, "none": null}}"#;
        let json = |pointer: &str| captured(&format!(r#""from": {{"json": "{pointer}"}}"#), body);
        assert_eq!(json("/a/t"), Ok(vec!["x\"y".to_owned()]));
        assert_eq!(json("/a/n"), Ok(vec!["12".to_owned()]));
        assert!(json("/a/none").is_err_and(|it| it.contains("no /a/none for {a}")));
        let or_default = captured(r#""from": {"json": "/b"}, "default": "d""#, body);
        assert_eq!(or_default, Ok(vec![]));
        let regex = |regex: &str| captured(&format!(r#""from": {{"regex": "{regex}"}}"#), body);
        assert_eq!(regex(r"n.: (\\d+)"), Ok(vec!["12".to_owned()]));
        assert_eq!(regex(r"\\d+"), Ok(vec!["12".to_owned()]));
        assert!(regex("zzz").is_err_and(|it| it.contains("nothing in the body matches zzz")));
        assert!(regex("(").is_err_and(|it| it.contains("is not valid")));
        let broken = captured(r#""from": {"json": "/a"}"#, r#"{"a": "b\nc"}"#);
        assert!(broken.is_err_and(|it| it.contains("a header uses it")));
    }

    #[test]
    fn values_are_captured_from_headers() {
        let expected = expectations(r#""from": {"header": "X-Id"}"#);
        let expected = expected.expect("valid");
        assert_eq!(expected.headers().collect::<Vec<_>>(), ["X-Id"]);
        let mut session = Session::new(vec![None]);
        let mut head = Head::default();
        let missing = capture_headers(&expected, &head, &mut session);
        assert_eq!(missing.map(|fault| fault.kind), Some(Kind::Capture));
        head.fields.push((b"x-id".to_vec(), b"5".to_vec()));
        assert_eq!(capture_headers(&expected, &head, &mut session), None);
        assert_eq!(session.value(0), Some(&b"5"[..]));
    }
}
