//! Checks of answers. Pure.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use uncork_model::Checks;

use super::fault::{Fault, Head, Kind};

/// The most bytes of a body that are kept to find values in it.
const LONGEST_KEPT: usize = 64 << 20;

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
    pub(crate) fn for_checks(checks: &Checks) -> Self {
        if !checks.json.is_empty() {
            Self::Whole(Vec::new())
        } else if checks.sha256.is_some() {
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

/// Whether the checks need header fields.
pub(crate) fn needs_fields(checks: &Checks) -> bool {
    !checks.headers.is_empty()
}

/// Check a head; return what is wrong with it.
pub(crate) fn check_head(checks: &Checks, head: &Head) -> Option<Fault> {
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
            let message = format!("the answer's header {name} is {shown:?}, not {value:?}");
            return Some(Fault::new(Kind::Header, message));
        }
    }
    None
}

/// Check a body of so many bytes; return what is wrong with it.
pub(crate) fn check_body(checks: &Checks, size: u64, gathered: Gathered) -> Option<Fault> {
    if let Some(wanted) = checks.size
        && size != wanted
    {
        let message = format!("the body has {size} bytes, not {wanted}");
        return Some(Fault::new(Kind::Size, message));
    }
    let whole = match gathered {
        Gathered::Nothing => return None,
        Gathered::Digest(digest) => return check_digest(checks, &digest.finalize()),
        Gathered::Whole(whole) => whole,
    };
    check_digest(checks, &Sha256::digest(&whole)).or_else(|| check_json(checks, &whole))
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

fn check_json(checks: &Checks, body: &[u8]) -> Option<Fault> {
    let value: serde_json::Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => {
            return Some(Fault::new(
                Kind::Json,
                format!("the body is not JSON: {error}"),
            ));
        }
    };
    checks.json.iter().find_map(|(pointer, wanted)| {
        let message = match value.pointer(pointer) {
            Some(found) if found == wanted => return None,
            Some(found) => format!("in the body {pointer} is {found}, not {wanted}"),
            None => format!("the body has no {pointer}"),
        };
        Some(Fault::new(Kind::Json, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(json: &str) -> Checks {
        serde_json::from_str(json).expect("valid")
    }

    fn of_body(json: &str, body: &[u8]) -> Option<Kind> {
        let checks = checks(json);
        let mut gathered = Gathered::for_checks(&checks);
        for part in body.chunks(3) {
            gathered.add(part);
        }
        check_body(&checks, body.len() as u64, gathered).map(|fault| fault.kind)
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
        let found = |json: &str, status| check_head(&checks(json), &head(status)).map(|it| it.kind);
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
        let both = format!("{{{digest}, \"json\": [[\"\", 1]]}}");
        assert_eq!(of_body(&both, b"1"), Some(Kind::Digest));
    }
}
