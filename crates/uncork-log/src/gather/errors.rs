//! Errors by kind: names and numbers in a message make no difference.

use std::collections::HashMap;

use crate::form::{form, form_tuple};
use crate::gather::activity::When;
use crate::gather::example::Place;
use crate::gather::series::{Scale, Series};
use crate::read::entry::Entry;
use crate::read::prefix::Severity;
use crate::read::time::Micros;

/// The maximum length of a message.
const MESSAGE: usize = 1_024;
/// How many kinds are distinguished.
const KINDS: usize = 10_000;
/// The message of the kind for all others.
const OTHER: &[u8] = b"(other messages)";
/// How many separate additions are kept for examples.
const APART: usize = 1_000;

/// The common properties of errors of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// The server that logged them, by its number.
    pub server: u32,
    /// `Warning` or worse.
    pub severity: Severity,
    /// Empty if the prefix does not contain it.
    pub sqlstate: Box<[u8]>,
    /// The message's first line without quoted names and numbers.
    pub message: Box<[u8]>,
}

/// The counts of one kind of error.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Number of errors.
    pub count: u64,
    /// When the first and the last were logged.
    pub seen: Option<(Micros, Micros)>,
    /// Over time.
    pub series: Series,
    /// Number of errors by the number of the statement's template.
    pub templates: HashMap<u32, u64>,
    /// The first error in the log: its message, detail, hint, context and statement.
    pub example: Option<(Place, [Box<[u8]>; 5])>,
}

/// Errors by kind.
#[derive(Debug, Clone, Default)]
pub struct Errors {
    all: HashMap<Kind, Facts>,
    /// Separate additions to examples: place, which part, text.
    apart: Vec<(Place, usize, Box<[u8]>)>,
    buffer: Vec<u8>,
}

impl Errors {
    /// Count an error; return its kind.
    pub(crate) fn add(
        &mut self,
        entry: &Entry<'_>,
        template: Option<u32>,
        when: &When<'_>,
    ) -> Kind {
        let place = when.place;
        generalise(entry.message, &mut self.buffer);
        let kind = Kind {
            server: when.server,
            severity: entry.head.severity,
            sqlstate: entry.head.sqlstate.into(),
            message: self.buffer.as_slice().into(),
        };
        let kind = self.bounded(kind);
        let facts = self.all.entry(kind.clone()).or_default();
        facts.count += 1;
        if let (Some(time), Some(bucket)) = (when.time, when.bucket) {
            facts.series.add(when.scale, bucket, 0);
            facts.see((time, time));
        }
        if let Some(template) = template {
            *facts.templates.entry(template).or_default() += 1;
        }
        if facts
            .example
            .as_ref()
            .is_none_or(|(first, _)| place < *first)
        {
            let parts = [
                entry.message,
                entry.detail,
                entry.hint,
                entry.context,
                entry.statement,
            ];
            facts.example = Some((
                place,
                parts.map(|part| part[..part.len().min(MESSAGE)].into()),
            ));
        }
        kind
    }

    /// Return the kind that an error counts as: a new one, unless there are too many.
    fn bounded(&self, kind: Kind) -> Kind {
        if self.all.len() < KINDS || self.all.contains_key(&kind) {
            return kind;
        }
        Kind {
            message: OTHER.into(),
            ..kind
        }
    }

    /// Add a separate addition to an error that was counted here or elsewhere.
    pub(crate) fn add_to(
        &mut self,
        kind: &Kind,
        place: Place,
        severity: Severity,
        text: &[u8],
        template: Option<u32>,
    ) {
        let facts = self.all.entry(kind.clone()).or_default();
        if let Some(template) = template {
            *facts.templates.entry(template).or_default() += 1;
        }
        let part = match severity {
            Severity::Detail => 1,
            Severity::Hint => 2,
            Severity::Context => 3,
            Severity::Statement => 4,
            _ => return,
        };
        if self.apart.len() < APART {
            let text = text[..text.len().min(MESSAGE)].into();
            self.apart.push((place, part, text));
        }
    }

    /// Insert separate additions into the examples.
    fn complete(&mut self) {
        for (place, parts) in self
            .all
            .values_mut()
            .filter_map(|facts| facts.example.as_mut())
        {
            for (_, part, text) in self.apart.iter().filter(|(of, ..)| of == place) {
                parts[*part].clone_from(text);
            }
        }
    }

    /// Add the errors of another collection; `templates` maps the numbers of its templates to the
    /// numbers here.
    pub fn merge(&mut self, other: Self, scale: &Scale, templates: &[u32]) {
        self.apart.extend(other.apart);
        for (kind, theirs) in other.all {
            let kind = self.bounded(kind);
            let facts = self.all.entry(kind).or_default();
            facts.count += theirs.count;
            facts.series.merge(scale, theirs.series);
            if let Some(seen) = theirs.seen {
                facts.see(seen);
            }
            for (template, count) in theirs.templates {
                *facts
                    .templates
                    .entry(templates[template as usize])
                    .or_default() += count;
            }
            if let Some(example) = theirs.example
                && facts
                    .example
                    .as_ref()
                    .is_none_or(|(first, _)| example.0 < *first)
            {
                facts.example = Some(example);
            }
        }
        if !self.apart.is_empty() {
            self.complete();
        }
    }

    /// All kinds, in no order.
    pub fn all(&self) -> impl Iterator<Item = (&Kind, &Facts)> {
        self.all.iter()
    }
}

impl Facts {
    fn see(&mut self, (first, last): (Micros, Micros)) {
        let seen = self.seen.get_or_insert((first, last));
        *seen = (seen.0.min(first), seen.1.max(last));
    }
}

/// Write the first line of a message without names and numbers that differ from case to case.
pub(crate) fn generalise(message: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let line = message
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    // CSV and JSON logs have the position in the statement in a field of its own.
    let line = without_place(line.trim_ascii());
    let line = &line[..line.len().min(MESSAGE)];
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' => {
                let end = memchr::memchr(b'"', &line[at + 1..]);
                out.extend_from_slice(b"\"\xe2\x80\xa6\"");
                at = end.map_or(line.len(), |length| at + length + 2);
            }
            b'0'..=b'9' => {
                let digits = line[at..].iter().position(|byte| !byte.is_ascii_digit());
                out.push(b'N');
                at = digits.map_or(line.len(), |length| at + length);
            }
            other => {
                out.push(other);
                at += 1;
            }
        }
    }
}

/// Remove the ` at character 15` that plain-text logs add to a message.
fn without_place(line: &[u8]) -> &[u8] {
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let before = &line[..line.len() - digits.count()];
    match before.strip_suffix(b" at character ") {
        Some(message) if before.len() < line.len() => message,
        _ => line,
    }
}

form!(Kind {
    server,
    severity,
    sqlstate,
    message
});
form!(Facts {
    count,
    seen,
    series,
    templates,
    example
});
form!(Errors { all, apart; buffer });
form_tuple!(
    (Micros, Micros) { 0, 1 };
    (Place, [Box<[u8]>; 5]) { 0, 1 };
    (Place, usize, Box<[u8]>) { 0, 1, 2 };
);

#[cfg(test)]
mod tests {
    use super::*;

    fn general(message: &str) -> String {
        let mut out = Vec::new();
        generalise(message.as_bytes(), &mut out);
        String::from_utf8(out).expect("is UTF-8")
    }

    #[test]
    fn names_and_numbers_make_no_difference() {
        assert_eq!(
            general("duplicate key value violates unique constraint \"a_pkey\"\n\tmore"),
            "duplicate key value violates unique constraint \"…\""
        );
        assert_eq!(
            general("syntax error at or near \"x\" at character 15"),
            "syntax error at or near \"…\""
        );
        assert_eq!(general("value 15 at character "), "value N at character");
        assert_eq!(general("relation \"a"), "relation \"…\"");
        assert_eq!(general(""), "");
    }
}
