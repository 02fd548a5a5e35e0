//! Distinguishes the two JSON formats by their keys.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::ReadError;
use crate::format::Format;
use crate::profile::{Limits, Stacks};
use crate::{pyroscope, speedscope};

#[derive(Deserialize)]
struct Keys {
    flamebearer: Option<IgnoredAny>,
}

/// Return which of them an object is; any other is reported as invalid speedscope.
pub(crate) fn detect(bytes: &[u8]) -> Format {
    match serde_json::from_slice::<Keys>(bytes) {
        Ok(Keys {
            flamebearer: Some(_),
        }) => Format::Pyroscope,
        // Truncated: the first keys decide.
        Err(_) if memchr::memmem::find(bytes, b"\"flamebearer\"").is_some() => Format::Pyroscope,
        _ => Format::Speedscope,
    }
}

pub(crate) fn read_speedscope(bytes: &[u8], limits: Limits) -> Result<Stacks, ReadError> {
    let file = serde_json::from_slice(bytes).map_err(|error| refused("speedscope", &error))?;
    speedscope::read(&file, limits)
}

pub(crate) fn read_pyroscope(bytes: &[u8], limits: Limits) -> Result<Stacks, ReadError> {
    let file = serde_json::from_slice(bytes).map_err(|error| refused("Pyroscope", &error))?;
    pyroscope::read(&file, limits)
}

fn refused(what: &str, error: &serde_json::Error) -> ReadError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let problem = text.strip_suffix(&place).unwrap_or(&text);
    ReadError::line(
        error.line(),
        format!(
            "column {}: it is not {what} JSON: {problem}",
            error.column()
        ),
    )
}
