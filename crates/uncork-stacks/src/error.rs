//! Errors, with their position in the bytes.

/// Bytes that are not a profile, or a damaged one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReadError {
    /// A line of a text is not valid.
    #[error("line {line}: {problem}")]
    Line {
        /// From 1.
        line: usize,
        /// What was found and what was expected.
        problem: String,
    },
    /// Bytes of a binary format are not valid.
    #[error("byte {offset}: {problem}")]
    Byte {
        /// From 0, in the unpacked file.
        offset: usize,
        /// What was found and what was expected.
        problem: String,
    },
    /// The file as a whole is not valid.
    #[error("{0}")]
    Whole(String),
}

impl ReadError {
    pub(crate) fn line(line: usize, problem: impl Into<String>) -> Self {
        Self::Line {
            line,
            problem: problem.into(),
        }
    }

    pub(crate) fn byte(offset: usize, problem: impl Into<String>) -> Self {
        Self::Byte {
            offset,
            problem: problem.into(),
        }
    }

    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self::Whole(problem.into())
    }
}

/// A flame graph cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// There is nothing to draw.
    #[error("there are no stacks to draw")]
    Empty,
    /// The drawing library refused.
    #[error("the flame graph cannot be drawn: {0}")]
    Refused(String),
}
