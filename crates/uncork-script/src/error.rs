//! Errors in scripts and in evaluations.

use thiserror::Error;

/// A script that cannot be run: displayed as `name:line: what was found; what to do`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name}:{line}: {message}")]
pub struct ScriptError {
    name: String,
    line: usize,
    message: String,
}

impl ScriptError {
    pub(crate) fn new(name: &str, fault: Fault) -> Self {
        Self {
            name: name.to_owned(),
            line: fault.line,
            message: fault.message,
        }
    }

    /// The script's name, as it was given to the parser.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of the script, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// What was found and what to do, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// A script error without the script's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

/// An expression, a `\sleep` or a captured column that has no value; displayed as pgbench's
/// message. [`crate::Script::locate`] adds the place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .0.0)]
pub struct EvaluationError(Box<Reason>);

/// Behind a pointer, so that a result of evaluation fits in two registers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reason(String);

impl EvaluationError {
    /// Create an error with this reason.
    ///
    /// Kept out of line: evaluation is in the hot path, failing is not.
    #[cold]
    #[inline(never)]
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(Box::new(Reason(reason.into())))
    }
}

/// Find the word in `known` that `word` probably meant: at most two letters differ, and less than half of them.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .iter()
        .map(|&candidate| (distance(&word, candidate), candidate))
        .filter(|&(differing, candidate)| differing <= 2 && differing * 2 < candidate.len().max(3))
        .min_by_key(|&(differing, _)| differing)
        .map(|(_, candidate)| candidate)
}

/// Count the letters to insert, delete or replace to turn one word into the other (Levenshtein distance).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (column, &opposite) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != opposite);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_line_and_reason() {
        let error = ScriptError::new("load.sql", Fault::new(3, "found x; do y"));
        assert_eq!(error.to_string(), "load.sql:3: found x; do y");
        assert_eq!(
            (error.name(), error.line(), error.message()),
            ("load.sql", 3, "found x; do y")
        );
    }

    #[test]
    fn a_misspelt_word_finds_its_neighbour() {
        let known = ["set", "sleep", "endif", "startpipeline"];
        assert_eq!(nearest("sleeps", &known), Some("sleep"));
        assert_eq!(nearest("StartPipelines", &known), Some("startpipeline"));
        assert_eq!(nearest("sett", &known), Some("set"));
        assert_eq!(nearest("gexec", &known), None);
        assert_eq!(nearest("x", &known), None);
    }
}
