//! One distribution of latencies, with its counts.

use hdrhistogram::Histogram;
use uncork_model::{LatencyQuantiles, StatementKind, StatementSummary};

use crate::histogram;

/// The counts of a statement, a script, or anything else with a duration.
#[derive(Debug, Clone)]
pub struct Measure {
    executions: u64,
    errors: u64,
    rows: u64,
    sum_ns: u64,
    sum_squares: f64,
    min_ns: u64,
    max_ns: u64,
    histogram: Histogram<u64>,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            executions: 0,
            errors: 0,
            rows: 0,
            sum_ns: 0,
            sum_squares: 0.0,
            min_ns: u64::MAX,
            max_ns: 0,
            histogram: histogram::empty(),
        }
    }
}

impl Measure {
    /// Count a success.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a latency above 2^53 ns is three months long"
    )]
    pub fn success(&mut self, latency_ns: u64, rows: u64) {
        self.executions += 1;
        self.rows += rows;
        self.sum_ns += latency_ns;
        self.sum_squares += (latency_ns as f64) * (latency_ns as f64);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        self.histogram.saturating_record(latency_ns);
    }

    /// Count an error.
    pub fn error(&mut self) {
        self.executions += 1;
        self.errors += 1;
    }

    /// Count the rows that an operation's statements returned.
    pub fn add_rows(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// How many were begun.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// How many succeeded.
    #[must_use]
    pub fn successes(&self) -> u64 {
        self.executions - self.errors
    }

    /// The sum of all latencies.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The sum of their squares.
    #[must_use]
    pub fn sum_squares(&self) -> f64 {
        self.sum_squares
    }

    /// The maximum; 0 if nothing succeeded.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Return the latency at a quantile of all successes.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_ns)
    }

    /// The serialised histogram; empty if nothing succeeded.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        if self.successes() == 0 {
            Vec::new()
        } else {
            histogram::serialize(&self.histogram)
        }
    }

    /// Add another's counts.
    ///
    /// # Panics
    ///
    /// Never: all histograms here have the same bounds.
    pub fn merge(&mut self, other: &Self) {
        if other.executions == 0 && other.rows == 0 {
            return;
        }
        self.executions += other.executions;
        self.errors += other.errors;
        self.rows += other.rows;
        self.sum_ns += other.sum_ns;
        self.sum_squares += other.sum_squares;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.histogram
            .add(&other.histogram)
            .expect("all histograms have the same bounds");
    }

    /// Reset all counts.
    pub fn reset(&mut self) {
        if self.executions == 0 && self.rows == 0 {
            return;
        }
        self.executions = 0;
        self.errors = 0;
        self.rows = 0;
        self.sum_ns = 0;
        self.sum_squares = 0.0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.histogram.reset();
    }

    /// Return the row of the statement table.
    #[must_use]
    pub fn summary(&self, kind: StatementKind, script: &str, name: &str) -> StatementSummary {
        let latency = (self.successes() > 0).then(|| LatencyQuantiles {
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            p50_ns: self.quantile(0.5),
            p90_ns: self.quantile(0.9),
            p95_ns: self.quantile(0.95),
            p99_ns: self.quantile(0.99),
            p999_ns: self.quantile(0.999),
            p9999_ns: self.quantile(0.9999),
        });
        StatementSummary {
            kind,
            script: script.to_owned(),
            name: name.to_owned(),
            line: None,
            executions: self.executions,
            errors: self.errors,
            rows: self.rows,
            sum_ns: self.sum_ns,
            sum_squares: self.sum_squares,
            latency,
            histogram: histogram::serialize(&self.histogram),
        }
    }
}
