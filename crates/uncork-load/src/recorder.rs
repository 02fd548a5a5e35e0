//! Counts what happened.
//!
//! The identities that hold at the end of every phase:
//! `started = succeeded + failed`; the operation's `executions = started` and `errors = failed`;
//! every histogram holds `executions - errors` values.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use uncork_model::{LatencyQuantiles, StatementKind, StatementSummary};

use crate::{Digest, Failure, histogram};

/// One thread's counts; those of all threads are merged at the end.
#[derive(Debug)]
pub struct Recorder {
    /// Operations begun.
    pub started: u64,
    /// Operations of which every step succeeded.
    pub succeeded: u64,
    /// Operations that failed, or were cut short.
    pub failed: u64,
    /// Errors by SQLSTATE.
    pub errors: BTreeMap<String, u64>,
    /// The first error's message.
    pub first_error: Option<String>,
    /// One measure for each statement of the plan.
    pub statements: Vec<Measure>,
    /// The operation as a whole.
    pub operation: Measure,
    /// The digest of all answers.
    pub digest: Digest,
}

/// What is counted of a statement, or of the operation.
#[derive(Debug)]
pub struct Measure {
    executions: u64,
    errors: u64,
    rows: u64,
    sum_ns: u64,
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
            min_ns: u64::MAX,
            max_ns: 0,
            histogram: histogram::empty(),
        }
    }
}

impl Measure {
    /// Counts a success.
    pub fn success(&mut self, latency_ns: u64, rows: u64) {
        self.executions += 1;
        self.rows += rows;
        self.sum_ns += latency_ns;
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        self.histogram.saturating_record(latency_ns);
    }

    /// Counts an error.
    pub fn error(&mut self) {
        self.executions += 1;
        self.errors += 1;
    }

    /// Counts rows of an operation, which its statements returned.
    pub fn add_rows(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn merge(&mut self, other: &Self) {
        self.executions += other.executions;
        self.errors += other.errors;
        self.rows += other.rows;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.histogram
            .add(&other.histogram)
            .expect("all histograms have the same bounds");
    }

    fn summary(&self, kind: StatementKind, name: &str) -> StatementSummary {
        let quantile = |quantile| self.histogram.value_at_quantile(quantile).min(self.max_ns);
        let latency = (self.executions > self.errors).then(|| LatencyQuantiles {
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
        });
        StatementSummary {
            kind,
            name: name.to_owned(),
            executions: self.executions,
            errors: self.errors,
            rows: self.rows,
            sum_ns: self.sum_ns,
            latency,
            histogram: histogram::serialize(&self.histogram),
        }
    }
}

impl Recorder {
    /// Nothing happened yet to so many statements.
    #[must_use]
    pub fn new(statements: usize) -> Self {
        Self {
            started: 0,
            succeeded: 0,
            failed: 0,
            errors: BTreeMap::new(),
            first_error: None,
            statements: (0..statements).map(|_| Measure::default()).collect(),
            operation: Measure::default(),
            digest: Digest::default(),
        }
    }

    /// Counts an operation's error; `place` says where it happened.
    pub fn failure(&mut self, place: &str, failure: &Failure) {
        *self.errors.entry(failure.sqlstate.clone()).or_default() += 1;
        if self.first_error.is_none() {
            let Failure { sqlstate, message } = failure;
            self.first_error = Some(format!("{place}: {message} (SQLSTATE {sqlstate})"));
        }
    }

    /// Counts an operation that succeeded.
    pub fn operation_succeeded(&mut self, latency_ns: u64) {
        self.succeeded += 1;
        self.operation.success(latency_ns, 0);
    }

    /// Counts an operation that failed or was cut short.
    pub fn operation_failed(&mut self) {
        self.failed += 1;
        self.operation.error();
    }

    /// Adds another thread's counts.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        for (sqlstate, count) in &other.errors {
            *self.errors.entry(sqlstate.clone()).or_default() += count;
        }
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
        for (mine, theirs) in self.statements.iter_mut().zip(&other.statements) {
            mine.merge(theirs);
        }
        self.operation.merge(&other.operation);
        self.digest.merge(other.digest);
    }

    /// One row a statement, in the plan's order, then one for the operation.
    #[must_use]
    pub fn summaries<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<StatementSummary> {
        let statements = self.statements.iter().zip(names);
        let mut rows: Vec<_> = statements
            .map(|(measure, name)| measure.summary(StatementKind::Statement, name))
            .collect();
        rows.push(
            self.operation
                .summary(StatementKind::Operation, "operation"),
        );
        rows
    }
}
