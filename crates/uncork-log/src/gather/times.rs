//! Counts with their durations.

use crate::form::form;

/// How often something happened, and how long it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Number of occurrences.
    pub count: u64,
    /// Total duration, in microseconds.
    pub micros: u64,
    /// Longest duration, in microseconds.
    pub max: u64,
}

impl Times {
    /// Count one occurrence.
    pub fn add(&mut self, micros: u64) {
        self.merge(&Self {
            count: 1,
            micros,
            max: micros,
        });
    }

    /// Add the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.micros += other.micros;
        self.max = self.max.max(other.max);
    }
}

form!(Times { count, micros, max });
