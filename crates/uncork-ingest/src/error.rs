//! Why logs could not be read at all.

use std::path::PathBuf;

use crate::events::WriteError;

/// Why logs could not be read at all. An error in one of several files is reported with that file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened.
    #[error("{}: {}", path.display(), message(source))]
    Open {
        /// Its path, as given.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Events cannot be written. The message is that of who writes them.
    #[error("{0}")]
    Events(WriteError),
}

/// The system's message, without its number.
fn message(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
