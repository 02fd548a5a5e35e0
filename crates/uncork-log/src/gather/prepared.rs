//! The statement behind `EXECUTE name`: from the detail that the server logs with it, or else (with
//! `log_error_verbosity = terse`) from the `PREPARE` that the session logged before.

use std::collections::HashMap;

use crate::form::form_inner;
use crate::gather::Gathered;
use crate::gather::event::{Event, session};
use crate::gather::example::Place;
use crate::read::entry::Entry;

/// How many prepared statements of a session are kept.
const NAMES: usize = 1_000;

/// The statements that a session has prepared, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Prepared(HashMap<Box<[u8]>, Box<[u8]>>);

impl Prepared {
    pub(super) fn add(&mut self, name: Box<[u8]>, statement: Box<[u8]>) {
        if self.0.len() < NAMES || self.0.contains_key(&name) {
            self.0.insert(name, statement);
        }
    }

    /// Return the statement that an `EXECUTE` runs; `None` if the text is another statement, or the name is unknown.
    pub(super) fn get(&self, sql: &[u8]) -> Option<&[u8]> {
        let name = executed(sql)?;
        self.0.get(&*name).map(|statement| &**statement)
    }
}

impl Gathered {
    /// Leave what a statement prepares for the sequence of its session.
    pub(super) fn note_prepared(&mut self, entry: &Entry<'_>, place: Place, sql: &[u8]) {
        if let Some((name, statement)) = definition(sql) {
            self.events
                .push(Event::prepared(&entry.head, place, &name, statement));
        }
    }

    /// Leave an `EXECUTE` that is logged without its statement for the sequence of its session. Return whether the
    /// statement is one.
    pub(super) fn defers(
        &mut self,
        entry: &Entry<'_>,
        place: Place,
        sql: &[u8],
        micros: u64,
    ) -> bool {
        self.note_prepared(entry, place, sql);
        let deferred =
            entry.detail.is_empty() && executed(sql).is_some() && session(&entry.head) != 0;
        if deferred {
            self.events.push(Event::executed(entry, place, sql, micros));
        }
        deferred
    }
}

/// Return the statement of `prepare: PREPARE name (types) AS statement`. `None` if the detail is another one.
pub(crate) fn prepared(detail: &[u8]) -> Option<&[u8]> {
    let (_, statement) = definition(detail.strip_prefix(b"prepare: ")?)?;
    Some(statement)
}

/// Return the name and the statement of `PREPARE name (types) AS statement`. `None` if it is another statement.
fn definition(sql: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let rest = word(sql.trim_ascii_start(), b"PREPARE")?.trim_ascii_start();
    let after = name(rest)?;
    let plain = plain(&rest[..rest.len() - after.len()]);
    let rest = after.trim_ascii_start();
    let rest = match rest.first() {
        Some(b'(') => types(rest)?.trim_ascii_start(),
        _ => rest,
    };
    Some((plain, word(rest, b"AS")?.trim_ascii_start()))
}

/// Return the name of `EXECUTE name (parameters)`. `None` if it is another statement.
fn executed(sql: &[u8]) -> Option<Vec<u8>> {
    let rest = word(sql.trim_ascii_start(), b"EXECUTE")?;
    let rest = rest.trim_ascii();
    let end = match rest.first()? {
        b'"' => rest.len() - name(rest)?.len(),
        _ => rest
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'(' | b';'))
            .unwrap_or(rest.len()),
    };
    (end > 0).then(|| plain(&rest[..end]))
}

/// Return a name as the server keeps it: in lower case unless it is quoted, and without quotes.
fn plain(name: &[u8]) -> Vec<u8> {
    let inner = name
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    let Some(inner) = inner else {
        return name.to_ascii_lowercase();
    };
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        plain.push(*byte);
        if *byte == b'"' {
            bytes.next();
        }
    }
    plain
}

/// Remove a keyword and check that it ends there.
fn word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (first, rest) = text.split_at_checked(word.len())?;
    let ends = rest.first().is_some_and(u8::is_ascii_whitespace);
    (ends && first.eq_ignore_ascii_case(word)).then_some(rest)
}

/// Remove a name, which may be quoted.
fn name(text: &[u8]) -> Option<&[u8]> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let end = text
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || *byte == b'(')?;
        return (end > 0).then_some(&text[end..]);
    };
    loop {
        rest = &rest[memchr::memchr(b'"', rest)? + 1..];
        match rest.strip_prefix(b"\"") {
            Some(doubled) => rest = doubled,
            None => return Some(rest),
        }
    }
}

/// Remove a list of types in parentheses; types have parentheses of their own, as in `numeric(10, 2)`.
fn types(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_u32;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(&text[at + 1..]),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

form_inner!(Prepared);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_stands_after_as() {
        for (detail, statement) in [
            ("prepare: PREPARE p AS SELECT 1", Some("SELECT 1")),
            (
                "prepare: prepare as (int, numeric(10, 2)) as\n\tUPDATE t SET a = $1",
                Some("UPDATE t SET a = $1"),
            ),
            (
                "prepare: PREPARE \"a \"\" as\"(int) AS SELECT $1",
                Some("SELECT $1"),
            ),
            ("prepare: PREPARE p(int) AS SELECT $1", Some("SELECT $1")),
            ("parameters: $1 = '5'", None),
            ("prepare: BEGIN; PREPARE p AS SELECT 1", None),
            ("prepare: PREPARE p (int", None),
            ("prepare: PREPARE", None),
        ] {
            let found = prepared(detail.as_bytes());
            assert_eq!(found, statement.map(str::as_bytes), "{detail}");
        }
    }

    #[test]
    fn an_execute_names_its_statement_as_the_prepare_did() {
        let mut all = Prepared::default();
        for (sql, name) in [
            ("PREPARE Point (int) AS SELECT $1", "Point"),
            ("prepare \"A \"\" b\"(int) as SELECT 2", "\"A \"\" b\""),
        ] {
            let (plain, statement) = definition(sql.as_bytes()).expect("is a PREPARE");
            all.add(plain.into(), statement.into());
            let known = |execute: String| all.get(execute.as_bytes()).is_some();
            assert!(known(format!("EXECUTE {name}")), "{name}");
            assert!(known(format!("execute {name};")), "{name}");
            assert!(known(format!("EXECUTE\n\t{name} (5)")), "{name}");
            assert!(known(format!("EXECUTE {name}(5, 'a')")), "{name}");
        }
        for sql in [
            "",
            "EXECUTE",
            "EXECUTE ",
            "EXECUTE other(5)",
            "EXECUTE \"Point\"",
            "EXECUTED point",
            "SELECT point",
        ] {
            assert_eq!(all.get(sql.as_bytes()), None, "{sql}");
        }
    }
}
