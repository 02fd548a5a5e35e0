//! What a trial answers.

use std::collections::BTreeMap;

use serde::Serialize;

/// How a trial ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// By its own stop rule.
    #[default]
    #[serde(rename = "complete")]
    Complete,
    /// It would have taken longer than its deadline; what was under way counts as failed.
    #[serde(rename = "deadline")]
    Deadline,
    /// The server closed a connection; what was under way counts as failed.
    #[serde(rename = "connection lost")]
    ConnectionLost,
}

/// What a trial did, in sum. `started = succeeded + failed`, always.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Totals {
    /// How the trial ended.
    pub outcome: Outcome,
    /// Why, unless complete.
    pub message: Option<String>,
    /// Operations begun in the measured part.
    pub started: u64,
    /// Operations of which every statement succeeded.
    pub succeeded: u64,
    /// Operations with an error, and those under way when the trial was cut short.
    pub failed: u64,
    /// Errors by SQLSTATE. One operation has at most one; operations cut short have none.
    pub errors: BTreeMap<String, u64>,
    /// The message of the first error in the measured part, else of the first in the warm-up.
    pub first_error: Option<String>,
    /// Rows that statements returned or changed, as the server counts them.
    pub rows: u64,
    /// How long the measured part took.
    pub elapsed_ns: u64,
    /// CPU time in user mode of the load engine's threads, in the measured part.
    pub client_user_ns: u64,
    /// CPU time in the kernel of the load engine's threads, in the measured part.
    pub client_system_ns: u64,
    /// Bytes sent in the measured part.
    pub sent_bytes: u64,
    /// Bytes received in the measured part.
    pub received_bytes: u64,
    /// The longest time one connection took to open, authentication included.
    pub connect_ns: u64,
    /// The digest of all answers as 32 hexadecimal digits, if one was asked for.
    pub digest: Option<String>,
    /// Operations of the warm-up that failed.
    pub warmup_failed: u64,
    /// CPU time of the server's processes, if a process was given to watch.
    pub server: Option<ServerCpu>,
    /// CPU time that the host took away from this machine, over all CPUs.
    pub steal_ns: u64,
    /// Time for which the watched process' control group (else our own) was throttled; `None`
    /// where the kernel does not say.
    pub throttled_ns: Option<u64>,
}

/// CPU time of a server's processes between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ServerCpu {
    /// The part of `total_ns` in user mode, by the ratio of clock ticks.
    pub user_ns: u64,
    /// The part of `total_ns` in the kernel, by the ratio of clock ticks.
    pub system_ns: u64,
    /// All CPU time.
    pub total_ns: u64,
}

/// What a row of the statement table describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// One statement of the plan.
    Statement,
    /// The operation as a whole.
    Operation,
}

impl StatementKind {
    /// The word in the table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Operation => "operation",
        }
    }
}

/// One row of the statement table. Latencies are those of executions without an error:
/// the histogram holds `executions - errors` values.
#[derive(Debug, Clone)]
pub struct StatementSummary {
    /// What the row describes.
    pub kind: StatementKind,
    /// The statement's name; `operation` for the operation.
    pub name: String,
    /// How often it was begun.
    pub executions: u64,
    /// How often it ended in an error, or was cut short.
    pub errors: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// The sum of all latencies.
    pub sum_ns: u64,
    /// What is known of their distribution; `None` when nothing succeeded.
    pub latency: Option<LatencyQuantiles>,
    /// The HDR histogram, in the format V2, uncompressed.
    pub histogram: Vec<u8>,
}

/// A distribution in seven numbers. The quantiles have three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyQuantiles {
    /// The least, exact.
    pub min_ns: u64,
    /// The greatest, exact.
    pub max_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// Quantile 0.9.
    pub p90_ns: u64,
    /// Quantile 0.95.
    pub p95_ns: u64,
    /// Quantile 0.99.
    pub p99_ns: u64,
    /// Quantile 0.999.
    pub p999_ns: u64,
}
