//! Lines about single errors and statements, for a person who watches a load.
//!
//! Threads that send never wait for the reader. Lines are kept up to a limit until the reader takes
//! them; others are only counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use uncork_model::Verbosity;

/// How many lines wait for the reader at most.
const MOST_WAITING: usize = 500;

/// Lines that wait for the reader.
#[derive(Debug, Default)]
pub struct Messages {
    verbosity: Verbosity,
    lines: Mutex<VecDeque<String>>,
    /// The length of `lines`: a full list costs no lock and no formatting.
    waiting: AtomicUsize,
    left_out: AtomicU64,
}

impl Messages {
    /// Create an empty list that takes lines of this kind.
    #[must_use]
    pub fn new(verbosity: Verbosity) -> Self {
        Self {
            verbosity,
            ..Self::default()
        }
    }

    /// Whether single errors are wanted.
    #[must_use]
    pub fn errors(&self) -> bool {
        self.verbosity != Verbosity::Quiet
    }

    /// Whether single statements are wanted too.
    #[must_use]
    pub fn steps(&self) -> bool {
        self.verbosity == Verbosity::Steps
    }

    /// Add a line about an error, if errors are wanted.
    pub(crate) fn error(&self, line: impl FnOnce() -> String) {
        if self.errors() {
            self.add(line);
        }
    }

    /// Add a line about a step of an operation, if steps are wanted.
    pub(crate) fn step(&self, line: impl FnOnce() -> String) {
        if self.steps() {
            self.add(line);
        }
    }

    fn add(&self, line: impl FnOnce() -> String) {
        if self.waiting.load(Ordering::Relaxed) >= MOST_WAITING {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let line = line();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line);
        self.waiting.store(lines.len(), Ordering::Relaxed);
    }

    /// Take the lines that wait, and the number of lines left out since the last call.
    #[must_use]
    pub fn take(&self) -> (Vec<String>, u64) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = lines.drain(..).collect();
        self.waiting.store(0, Ordering::Relaxed);
        (taken, self.left_out.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verbosity_takes_its_lines() {
        for (verbosity, expected) in [
            (Verbosity::Quiet, vec![]),
            (Verbosity::Errors, vec!["an error"]),
            (Verbosity::Steps, vec!["an error", "a step"]),
        ] {
            let messages = Messages::new(verbosity);
            messages.error(|| "an error".to_owned());
            messages.step(|| "a step".to_owned());
            assert_eq!(messages.take().0, expected);
        }
    }

    #[test]
    fn lines_beyond_the_limit_are_counted_and_not_formatted() {
        let messages = Messages::new(Verbosity::Errors);
        for number in 0..MOST_WAITING {
            messages.error(|| number.to_string());
        }
        messages.error(|| unreachable!("the list is full"));
        messages.error(|| unreachable!("the list is full"));
        let (lines, left_out) = messages.take();
        assert_eq!((lines.len(), left_out), (MOST_WAITING, 2));
        messages.error(|| "room again".to_owned());
        assert_eq!(messages.take(), (vec!["room again".to_owned()], 0));
    }
}
