//! What can go wrong, and where in the bytes it did.

/// Bytes that are no profile, or a broken one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReadError {
    /// A line of a text is not what it should be.
    #[error("line {line}: {problem}")]
    Line {
        /// From 1.
        line: usize,
        /// What was found and what was expected.
        problem: String,
    },
    /// Bytes of a binary format are not what they should be.
    #[error("byte {offset}: {problem}")]
    Byte {
        /// From 0, in the unpacked file.
        offset: usize,
        /// What was found and what was expected.
        problem: String,
    },
    /// The file as a whole is not what it should be.
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

/// A flame graph that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// There is nothing to draw.
    #[error("there are no stacks to draw")]
    Empty,
    /// The drawing library refused.
    #[error("the flame graph cannot be drawn: {0}")]
    Refused(String),
}
