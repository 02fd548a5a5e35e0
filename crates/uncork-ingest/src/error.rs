//! Why logs could not be read at all.

use std::path::PathBuf;

/// Why logs could not be read at all. Trouble with one of several files is told with that file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened.
    #[error("{}: {}", path.display(), told(source))]
    Open {
        /// As it was given.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Events cannot be written.
    #[error("cannot write events into {}: {}", path.display(), told(source))]
    Events {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// What the system says, without its number.
fn told(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
