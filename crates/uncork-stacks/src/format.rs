//! Recognises the format of a profile and reads it.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::error::ReadError;
use crate::profile::{Limits, Stacks};
use crate::{folded, json, perf, pprof};

/// A profile format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The output of `perf script`.
    PerfScript,
    /// A pprof protocol buffer, gzipped or not: Go, Pyroscope, Java, Python.
    Pprof,
    /// The JSON of speedscope.
    Speedscope,
    /// The JSON (flamebearer) of Pyroscope.
    Pyroscope,
    /// One folded stack and a number per line.
    Folded,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [
        Self::PerfScript,
        Self::Pprof,
        Self::Speedscope,
        Self::Pyroscope,
        Self::Folded,
    ];

    /// Return its name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::PerfScript => "perf",
            Self::Pprof => "pprof",
            Self::Speedscope => "speedscope",
            Self::Pyroscope => "pyroscope",
            Self::Folded => "folded",
        }
    }

    /// Return the format with a name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// Read a profile in a format, or in the detected one. `times` keeps each sample of `perf script`
/// separately with its time.
///
/// # Errors
///
/// If the bytes are not a profile, or are damaged: where and how.
pub fn read(
    bytes: &[u8],
    format: Option<Format>,
    times: bool,
    limits: Limits,
) -> Result<(Format, Stacks), ReadError> {
    let unpacked;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        unpacked = unpack(bytes, limits.unpacked)?;
        &unpacked
    } else {
        bytes
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ReadError::whole("it is empty"));
    }
    let format = match format {
        Some(format) => format,
        None => detect(bytes)?,
    };
    let stacks = match format {
        Format::PerfScript => perf::read(bytes, times, limits)?,
        Format::Pprof => pprof::read(bytes, limits)?,
        Format::Speedscope => json::read_speedscope(bytes, limits)?,
        Format::Pyroscope => json::read_pyroscope(bytes, limits)?,
        Format::Folded => folded::read(bytes, limits)?,
    };
    if stacks.rows.is_empty() && stacks.folded.is_empty() {
        return Err(ReadError::whole(format!(
            "it is a profile ({}) without a single sample",
            format.word()
        )));
    }
    Ok((format, stacks))
}

fn unpack(bytes: &[u8], most: usize) -> Result<Vec<u8>, ReadError> {
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(most as u64 + 1);
    reader.read_to_end(&mut unpacked).map_err(|error| {
        ReadError::byte(
            unpacked.len(),
            format!("the gzip around it is broken: {error}"),
        )
    })?;
    if unpacked.len() > most {
        return Err(ReadError::whole(format!(
            "unpacked it takes more than {} MB",
            most >> 20
        )));
    }
    Ok(unpacked)
}

fn detect(bytes: &[u8]) -> Result<Format, ReadError> {
    let start = &bytes[..bytes.len().min(64 << 10)];
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        return Ok(json::detect(bytes));
    }
    if start.starts_with(b"PERFILE2") {
        return Err(ReadError::whole(
            "it is perf's own file; give what `perf script` prints of it",
        ));
    }
    let binary = start.contains(&0)
        || std::str::from_utf8(start).is_err_and(|error| error.error_len().is_some());
    if binary && pprof::may_begin(start) {
        return Ok(Format::Pprof);
    }
    if perf::looks_like(start) {
        return Ok(Format::PerfScript);
    }
    if !binary && folded::looks_like(start) {
        return Ok(Format::Folded);
    }
    if pprof::looks_like(start) {
        return Ok(Format::Pprof);
    }
    Err(ReadError::whole(
        "its format is not recognized (perf script, pprof, speedscope, Pyroscope, folded); set \
        it with --format",
    ))
}
