//! Unwraps logs that collectors have written: each line has something before it, or is inside a record. The lines of
//! one entry are joined again.

mod stamps;
mod syslog;

use memchr::{memchr, memrchr};

use crate::read::dialect::Dialect;
use crate::read::json::Json;
use crate::read::prefix::{Prefix, detect};
use crate::read::time::Written;
use stamps::{Stamps, stamp};
use syslog::Syslog;

/// How many lines decide whether a log is wrapped.
const FIRST: usize = 200;
/// The first byte of a line that wraps nothing and continues nothing: it is rejected, whatever it looks like.
/// Otherwise such lines would become a part of the entry before.
pub(crate) const FOREIGN: u8 = 0x1e;

/// Unwraps a log.
#[derive(Debug)]
pub struct Unwrapper {
    kind: Kind,
    dialect: Dialect,
    /// Set if inner lines have no time, but their wrapper has.
    stamps: Option<Stamps>,
    /// Whether the last line is incomplete: the rest follows.
    open: bool,
}

#[derive(Debug)]
enum Kind {
    /// BSD syslog, RFC 5424, logplex.
    Syslog(Box<Syslog>),
    /// Kubernetes container logs: `2026-05-31T08:00:00.0Z stderr F text`.
    Container,
    /// A JSON record around each line.
    Record(Box<Json>),
}

impl Unwrapper {
    /// Detect from its beginning whether a log is wrapped. Points in time without a year are in the twelve months
    /// before the log was last written. `prefix` is the prefix of the inner lines; otherwise it is detected. `None` if
    /// the log is not wrapped, or wraps an unknown format.
    #[must_use]
    pub fn detect(sample: &[u8], written: Written, prefix: Option<&Prefix>) -> Option<Self> {
        let end = memrchr(b'\n', sample).map_or(sample.len(), |at| at + 1);
        let sample = &sample[..end];
        let kinds = [
            Kind::Syslog(Box::new(Syslog::new(written, None))),
            Kind::Container,
            Kind::Record(Box::default()),
        ];
        kinds
            .into_iter()
            .find_map(|kind| kind.fitting(sample, written, prefix))
    }

    /// The name of the wrapper.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Syslog(_) => "syslog",
            Kind::Container => "container",
            Kind::Record(_) => "JSON",
        }
    }

    /// The format of the inner lines.
    #[must_use]
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// Unwrap whole lines; write the inner lines that are complete.
    pub fn feed(&mut self, lines: &[u8], out: &mut Vec<u8>) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                self.line(line, out);
            }
        }
    }

    /// Write what a line wraps. A line that wraps nothing is passed on unchanged, marked as [`FOREIGN`].
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        if let Kind::Syslog(syslog) = &mut self.kind {
            return syslog.line(line, out);
        }
        let begin = out.len();
        let Some(complete) = self.kind.unwrap(line, out) else {
            if std::mem::take(&mut self.open) {
                out.push(b'\n');
            }
            return write_foreign(line, out);
        };
        if let Some(stamps) = &mut self.stamps {
            stamps.receive(self.kind.received(line));
            stamps.write(out, begin, self.open);
        }
        // Also an empty text is a line: every line of the log is counted.
        if complete && (out.len() == begin || out.last() != Some(&b'\n')) {
            out.push(b'\n');
        }
        self.open = !complete;
    }

    /// Write what is still open at the end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Kind::Syslog(syslog) = &mut self.kind {
            syslog.finish(out);
        }
    }
}

impl Kind {
    /// Return an unwrapper of this kind, if it fits the lines of a sample and their inner format is
    /// known.
    fn fitting(
        mut self,
        sample: &[u8],
        written: Written,
        prefix: Option<&Prefix>,
    ) -> Option<Unwrapper> {
        let lines = sample.split(|byte| *byte == b'\n');
        // journalctl indents the further lines of a message.
        let is_further = |line: &[u8]| matches!(self, Self::Syslog(_)) && line.starts_with(b" ");
        let lines = lines.filter(|line| !line.is_empty() && !is_further(line));
        let lines: Vec<&[u8]> = lines.take(FIRST).collect();
        let fits = lines.iter().filter(|line| self.fits(line)).count();
        if fits * 2 <= lines.len() {
            return None;
        }
        if matches!(self, Self::Syslog(_)) {
            let heads = lines.iter().filter_map(|line| syslog::head_text(line));
            let inner = prefix.cloned().or_else(|| detect(heads))?;
            let outer = Prefix::parse(&format!("%m [%p] {}", inner.text())).ok()?;
            let syslog = Syslog::new(written, Some(inner));
            return Some(Unwrapper {
                kind: Self::Syslog(Box::new(syslog)),
                dialect: Dialect::with_prefix(outer),
                stamps: None,
                open: false,
            });
        }
        let (mut text, mut has_time) = (Vec::new(), false);
        for line in &lines {
            match self.unwrap(line, &mut text) {
                Some(false) => {}
                Some(true) if text.last() == Some(&b'\n') => {}
                Some(true) => text.push(b'\n'),
                None => write_foreign(line, &mut text),
            }
            has_time |= stamp(self.received(line)).is_some();
        }
        let dialect = match prefix {
            Some(prefix) => Dialect::with_prefix(prefix.clone()),
            None => Dialect::detect(&text)?,
        };
        let (dialect, stamps) = match dialect {
            Dialect::Lines(lines) if has_time && !lines.prefix().has_time() => (
                Dialect::with_prefix(lines.prefix().behind_time()),
                Some(Stamps::new(lines.prefix().clone())),
            ),
            dialect => (dialect, None),
        };
        Some(Unwrapper {
            kind: self,
            dialect,
            stamps,
            open: false,
        })
    }

    fn fits(&mut self, line: &[u8]) -> bool {
        match self {
            Self::Syslog(_) => syslog::Line::read(line).is_some(),
            Self::Container => container(line).is_some(),
            Self::Record(json) => {
                json.wrapped(line, &mut Vec::new()).is_some() && !Json::fits(line)
            }
        }
    }

    /// Write the text that a line wraps; return whether it is complete. `None` if the line wraps nothing.
    fn unwrap(&mut self, line: &[u8], out: &mut Vec<u8>) -> Option<bool> {
        match self {
            Self::Syslog(_) => None,
            Self::Container => {
                let (_, text, complete) = container(line)?;
                out.extend_from_slice(text);
                Some(complete)
            }
            Self::Record(json) => json.wrapped(line, out).map(|()| true),
        }
    }

    /// Return when the wrapper received the line that was unwrapped last; empty if it does not contain this.
    fn received<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Syslog(_) => b"",
            Self::Container => container(line).map_or(b"", |(time, ..)| time),
            Self::Record(json) => json.received(line),
        }
    }
}

/// Write a line that wraps nothing.
fn write_foreign(line: &[u8], out: &mut Vec<u8>) {
    if out.last().is_some_and(|last| *last != b'\n') {
        out.push(b'\n');
    }
    out.push(FOREIGN);
    out.extend_from_slice(line);
    out.push(b'\n');
}

/// Return the time and the text of a container log's line, and whether the text is complete.
fn container(line: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (time, stream, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let fits = time.len() >= 20
        && time.get(10) == Some(&b'T')
        && matches!(stream, b"stdout" | b"stderr")
        && matches!(tag.first(), Some(b'F' | b'P'));
    fits.then(|| (time, text, tag[0] == b'F'))
}

/// Return the text after the next space.
fn behind_space(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr(b' ', text)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests;
