//! Log formats: detected from a log's beginning, and then read with one scanner.

use memchr::memchr_iter;

use crate::read::bouncer::Bouncer;
use crate::read::csv::Csv;
use crate::read::entry::Sink;
use crate::read::json::Json;
use crate::read::lines::Lines;
use crate::read::prefix::{Prefix, detect};
use crate::read::time::Clock;

/// How many lines decide whether a log is JSON or CSV.
const FIRST: usize = 200;

/// The format of a log, with the state to scan it.
#[derive(Debug, Clone)]
pub enum Dialect {
    /// What a server writes to standard error.
    Lines(Lines),
    /// `log_destination = csvlog`.
    Csv(Csv),
    /// `log_destination = jsonlog`, and JSON wrappers of such records.
    Json(Box<Json>),
    /// What `PgBouncer` writes.
    Bouncer(Bouncer),
}

impl Dialect {
    /// Detect the format of a log from its beginning. `None` if it is unknown.
    #[must_use]
    pub fn detect(sample: &[u8]) -> Option<Self> {
        let lines = whole_lines(sample);
        let fitting = |fits: fn(&[u8]) -> bool| {
            let first = lines.iter().filter(|line| !line.is_empty()).take(FIRST);
            first.filter(|line| fits(line)).count()
        };
        let tried = lines
            .iter()
            .filter(|line| !line.is_empty())
            .take(FIRST)
            .count();
        // CSV records may span several lines; JSON records do not.
        if fitting(Json::fits) * 2 > tried {
            return Some(Self::Json(Box::default()));
        }
        if fitting(Bouncer::fits) * 2 > tried {
            return Some(Self::Bouncer(Bouncer::default()));
        }
        let (csv, prefix) = (fitting(Csv::fits), detect(lines.iter().copied()));
        match prefix {
            Some(prefix) if !(csv > 0 && prefix.text().is_empty()) => {
                Some(Self::Lines(Lines::new(prefix)))
            }
            _ if csv > 0 => Some(Self::Csv(Csv::default())),
            _ => None,
        }
    }

    /// The format of lines with a prefix.
    #[must_use]
    pub fn with_prefix(prefix: Prefix) -> Self {
        Self::Lines(Lines::new(prefix))
    }

    /// The name of the format.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lines(_) => "stderr",
            Self::Csv(_) => "csvlog",
            Self::Json(_) => "jsonlog",
            Self::Bouncer(_) => "pgbouncer",
        }
    }

    /// The prefix of lines; `None` for CSV and JSON.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Self::Lines(lines) => Some(lines.prefix().text()),
            Self::Csv(_) | Self::Json(_) | Self::Bouncer(_) => None,
        }
    }

    /// Cached points in time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        match self {
            Self::Lines(lines) => lines.clock(),
            Self::Csv(csv) => csv.clock(),
            Self::Json(json) => json.clock(),
            Self::Bouncer(bouncer) => bouncer.clock(),
        }
    }

    /// Find where a text that begins with an entry may be cut: before its last entry. `None` if there is no such
    /// place.
    pub fn cut(&mut self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Lines(lines) => lines.cut(text),
            Self::Csv(_) => Csv::cut(text),
            Self::Json(_) => Json::cut(text),
            Self::Bouncer(_) => Bouncer::cut(text),
        }
    }

    /// Scan a block that begins with an entry; `offset` is its place in the file.
    pub fn scan(&mut self, block: &[u8], offset: u64, sink: &mut impl Sink) {
        match self {
            Self::Lines(lines) => lines.scan(block, offset, sink),
            Self::Csv(csv) => csv.scan(block, offset, sink),
            Self::Json(json) => json.scan(block, offset, sink),
            Self::Bouncer(bouncer) => bouncer.scan(block, offset, sink),
        }
    }
}

/// Return the lines of a sample, without the last one if it is truncated.
fn whole_lines(sample: &[u8]) -> Vec<&[u8]> {
    let mut begin = 0;
    let mut lines: Vec<&[u8]> = memchr_iter(b'\n', sample)
        .map(|end| {
            let line = &sample[begin..end];
            begin = end + 1;
            line.strip_suffix(b"\r").unwrap_or(line)
        })
        .collect();
    if lines.is_empty() {
        lines.push(sample);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_found_out() {
        for (sample, name) in [
            (
                "2025-11-30 21:10:20.1 UTC [1] LOG:  ready\n\tand more\n2025-11-30 21:10:20.1 UTC [1] LOG:  re",
                "stderr",
            ),
            ("2025-11-30 21:10:20.1 UTC [1] LOG:  ready", "stderr"),
            (
                "2025-11-30 21:10:20.101 UTC,,,55,,692cb2bb.37,1,,2025-11-30 21:10:19 UTC,,0,LOG,00000,\"a\nb\",,,,,,,,,\"\",\"postmaster\",,0\n",
                "csvlog",
            ),
            (
                "\"2025-11-30 21:10:20.101 UTC\",\"me\",\"shop\",\"55\",\"\",\"692cb2bb.37\",\"1\",\"\",\"\",\"\",\"0\",\"LOG\",\"00000\",\"ready\",\"\"\n",
                "csvlog",
            ),
            (
                "{\"timestamp\":\"2025-11-30 21:10:20.101 UTC\",\"pid\":55,\"error_severity\":\"LOG\",\"message\":\"ready\"}\n",
                "jsonlog",
            ),
        ] {
            let dialect = Dialect::detect(sample.as_bytes());
            assert_eq!(dialect.map(|found| found.name()), Some(name), "{sample}");
        }
        let pooler = b"2026-05-31 08:00:00.123 UTC [55] LOG stats: 0 xacts/s\n";
        assert_eq!(
            Dialect::detect(pooler).map(|found| found.name()),
            Some("pgbouncer")
        );
        for sample in ["", "\n\n", "Dear Sir or Madam,\nno log is this.\n"] {
            assert!(Dialect::detect(sample.as_bytes()).is_none(), "{sample}");
        }
    }
}
