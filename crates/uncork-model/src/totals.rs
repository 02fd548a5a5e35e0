//! The results of a trial.

use std::collections::BTreeMap;

use serde::Serialize;

/// How a trial ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// By its own stop rule.
    #[default]
    #[serde(rename = "complete")]
    Complete,
    /// Its deadline passed; operations under way count as failed.
    #[serde(rename = "deadline")]
    Deadline,
    /// The server closed a connection, or all of them and accepted no new ones; operations under
    /// way count as failed.
    #[serde(rename = "connection lost")]
    ConnectionLost,
    /// Connections could not be opened before anything was measured.
    #[serde(rename = "refused")]
    Refused,
    /// The caller requested to stop; operations under way count as failed.
    #[serde(rename = "interrupted")]
    Interrupted,
    /// No operation succeeded, so that it ended early; operations under way count as failed.
    #[serde(rename = "nothing succeeded")]
    NothingSucceeded,
    /// A client aborted, and the trial was to end then; operations under way count as failed.
    #[serde(rename = "client aborted")]
    ClientAborted,
    /// Its lease was not renewed; operations under way count as failed.
    #[serde(rename = "lease ended")]
    LeaseEnded,
}

/// The totals of a trial. `started = succeeded + failed`, always; in an open loop `arrivals =
/// started + skipped + unsent`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Totals {
    /// How the trial ended.
    pub outcome: Outcome,
    /// Why, unless it is complete.
    pub message: Option<String>,
    /// Operations begun in the measured part.
    pub started: u64,
    /// Operations of which every statement succeeded.
    pub succeeded: u64,
    /// Operations with an error, and those under way when the trial stopped early.
    pub failed: u64,
    /// Intended starts in the measured part; `None` in a closed loop.
    pub arrivals: Option<u64>,
    /// Arrivals skipped because they exceeded the latency limit before they started.
    pub skipped: u64,
    /// Arrivals for which no connection became free before the end.
    pub unsent: u64,
    /// Operations that succeeded, but took longer than the latency limit.
    pub late: u64,
    /// Failed operations by SQLSTATE; `08006` is a lost connection. Operations under way when the
    /// trial stopped early have none.
    pub errors: BTreeMap<String, u64>,
    /// Connections that could not be opened, by SQLSTATE; `08001` is an unreachable server.
    pub connect_errors: BTreeMap<String, u64>,
    /// Operations that were tried more than once.
    pub retried: u64,
    /// Retries, by the SQLSTATE that caused them.
    pub retries: BTreeMap<String, u64>,
    /// Failed operations by statement and SQLSTATE, the most frequent first: the first 100 kinds.
    /// Empty in an HTTP load.
    pub failures: Vec<FailureTotals>,
    /// The message of the first error in the measured part, or else of the first in the warm-up.
    pub first_error: Option<String>,
    /// Rows that statements returned or changed, as the server counts them.
    pub rows: u64,
    /// Statements answered.
    pub statements: u64,
    /// How often a client waited for the server.
    pub round_trips: u64,
    /// How long the measured part took.
    pub elapsed_ns: u64,
    /// CPU time in user mode of the load engine's threads, in the measured part.
    pub client_user_ns: u64,
    /// CPU time in the kernel of the load engine's threads, in the measured part.
    pub client_system_ns: u64,
    /// CPU time of the busiest of the engine's threads as a fraction of its working time, from 0 to
    /// 1.
    pub busiest_thread: f64,
    /// Bytes sent in the measured part, as on the wire.
    pub sent_bytes: u64,
    /// Bytes received in the measured part, as on the wire.
    pub received_bytes: u64,
    /// Counts of connections, from the beginning on.
    pub connections: Connections,
    /// The digest of all answers as 32 hexadecimal digits, if requested.
    pub digest: Option<String>,
    /// Operations of the warm-up that failed.
    pub warmup_failed: u64,
    /// Operations begun to settle the slices of a block: not measured, but answered by the server.
    pub settling: u64,
    /// CPU time of the server's processes, if a process was given to watch.
    pub server: Option<ServerCpu>,
    /// CPU time stolen by the host, over all CPUs.
    pub steal_ns: u64,
    /// Time for which the watched process' control group (or else our own) was throttled; `None` if
    /// the kernel does not report it.
    pub throttled_ns: Option<u64>,
    /// The counts of an HTTP load only.
    pub http: Option<HttpTotals>,
    /// How long requests for a connection waited because the load's helper threads were opening
    /// others, added up over the clients, in the measured part.
    pub opening_wait_ns: u64,
    /// How long after its start time the last thread started; `None` without a start time.
    pub start_late_ns: Option<u64>,
}

/// The number of operations that failed with the same SQLSTATE in the same statement, or outside of any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FailureTotals {
    /// The SQLSTATE.
    pub code: String,
    /// How many.
    pub number: u64,
    /// The script.
    pub script: String,
    /// The statement's line in the script's text.
    pub line: Option<u64>,
    /// The statement's text or name; `None` if no statement failed.
    pub statement: Option<String>,
    /// The message of the first.
    pub message: String,
}

/// The counts of an HTTP load. `answers` is the sum of `statuses`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HttpTotals {
    /// Operations that the load was to begin; `None` if time ends it.
    pub planned: Option<u64>,
    /// Final answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed operations whose request the server certainly did not process.
    pub unprocessed: u64,
    /// Bytes of answers' headers as received, compressed by HTTP/2 and HTTP/3.
    pub header_bytes: u64,
    /// Bytes of the same headers after decompression: names and values.
    pub header_plain_bytes: u64,
    /// Bytes of answers' bodies, without framing.
    pub body_bytes: u64,
    /// Answers that stalled in the middle.
    pub stalls: Stalls,
    /// Connections that the server closed as announced, after a complete answer.
    pub closed: u64,
    /// The fewest operations that such a connection carried.
    pub closed_least: u64,
    /// The most operations that such a connection carried.
    pub closed_most: u64,
    /// How many of them GOAWAY announced, in HTTP/2 and HTTP/3.
    pub goaways: u64,
    /// HTTP/3: datagrams that this machine dropped because the buffer of a socket was full.
    pub udp_dropped: u64,
    /// The counts of each request, in the order of the scripts.
    pub requests: Vec<RequestTotals>,
}

/// The counts of one kind of request, in addition to its row in the statement table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestTotals {
    /// Its name.
    pub name: String,
    /// Bytes of requests: head and body, in HTTP/2 compressed, before encryption.
    pub sent_bytes: u64,
    /// Bytes of answers: headers as received, and bodies without framing.
    pub received_bytes: u64,
    /// Failed operations by kind.
    pub errors: BTreeMap<String, u64>,
    /// The first message of each kind.
    pub examples: BTreeMap<String, String>,
}

/// Answers that stalled in the middle, and an experiment about the cause: of silences longer than
/// 10 ms, some chosen at random were ended by an immediate acknowledgement, others were left as
/// controls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Stalls {
    /// Answers with a silence of 35 to 50 ms in the middle, as long as a delayed acknowledgement.
    pub answers: u64,
    /// Silences left as controls.
    pub kept: u64,
    /// How many of them ended within 35 ms.
    pub kept_short: u64,
    /// Silences in which the received bytes were acknowledged after 10 ms.
    pub hastened: u64,
    /// How many of them ended within 35 ms.
    pub hastened_short: u64,
}

impl Stalls {
    /// Add the results of another thread.
    pub fn tried(&mut self, other: &Self) {
        self.kept += other.kept;
        self.kept_short += other.kept_short;
        self.hastened += other.hastened;
        self.hastened_short += other.hastened_short;
    }

    /// Count the end of a silence that took part in the experiment.
    pub fn ended(&mut self, hastened: bool, short: bool) {
        let (all, of_them) = if hastened {
            (&mut self.hastened, &mut self.hastened_short)
        } else {
            (&mut self.kept, &mut self.kept_short)
        };
        *all += 1;
        *of_them += u64::from(short);
    }
}

/// Counts of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// How many were opened.
    pub opened: u64,
    /// How many were lost while in use.
    pub lost: u64,
    /// Maximum number open at once.
    pub most: u64,
    /// Total time to open them, authentication included.
    pub sum_ns: u64,
    /// The longest time to open one.
    pub max_ns: u64,
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

/// The kind of a row in the statement table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// One statement: its service times.
    Statement,
    /// The operations of one script: from the intended start.
    Script,
    /// All operations: from the intended start.
    Operation,
    /// All operations: from the start.
    Service,
    /// Open loop: lag from the intended to the real start, for operations that found a free
    /// connection. This delay is the generator's own fault.
    Lateness,
    /// Opening a connection, authentication included.
    Connect,
    /// HTTP: the part of it spent on the TLS handshake.
    Tls,
    /// HTTP: from the start to the head of the answer.
    FirstByte,
    /// HTTP: one step of the login, which each client carries out before its first operation.
    Login,
}

impl StatementKind {
    /// The word in the table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Script => "script",
            Self::Operation => "operation",
            Self::Service => "service",
            Self::Lateness => "lateness",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first byte",
            Self::Login => "login",
        }
    }
}

/// One row of the statement table. Latencies are of executions without an error: the histogram has
/// `executions - errors` values.
#[derive(Debug, Clone)]
pub struct StatementSummary {
    /// What the row describes.
    pub kind: StatementKind,
    /// The script that it belongs to; empty for all.
    pub script: String,
    /// The statement's or the script's name; otherwise the word of the kind.
    pub name: String,
    /// The statement's line in the script's text.
    pub line: Option<u64>,
    /// How many were begun.
    pub executions: u64,
    /// How many failed or were cancelled.
    pub errors: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// The sum of all latencies.
    pub sum_ns: u64,
    /// The sum of their squares, in ns².
    pub sum_squares: f64,
    /// Quantiles of the distribution; `None` if nothing succeeded.
    pub latency: Option<LatencyQuantiles>,
    /// The HDR histogram, in the format V2, uncompressed.
    pub histogram: Vec<u8>,
}

/// The counts of one script in one interval of the series.
#[derive(Debug, Clone, Default)]
pub struct SeriesRow {
    /// Which interval, from 0.
    pub interval: u64,
    /// When it began, from the beginning of the measured part.
    pub start_ns: u64,
    /// The script's name.
    pub script: String,
    /// Operations that ended in it.
    pub counts: IntervalCounts,
    /// The HDR histogram of their latencies from the intended start, in the format V2; empty if
    /// nothing succeeded.
    pub histogram: Vec<u8>,
}

/// The number of answers with one status in one interval of the series. All intervals add up to
/// [`HttpTotals::statuses`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRow {
    /// Which interval, from 0.
    pub interval: u64,
    /// When it began, from the beginning of the measured part.
    pub start_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// The status.
    pub status: u16,
    /// Final answers with this status; an answer counts when its head arrives.
    pub answers: u64,
}

/// The counts of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IntervalCounts {
    /// Operations begun.
    pub started: u64,
    /// Operations that succeeded.
    pub succeeded: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Arrivals skipped because they were too late.
    pub skipped: u64,
    /// Retries.
    pub retries: u64,
    /// Statements answered.
    pub statements: u64,
}

impl IntervalCounts {
    /// Add other counts.
    pub fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.retries += other.retries;
        self.statements += other.statements;
    }

    /// Whether all counts are zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Progress of a trial, over the last intervals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Progress {
    /// Time since the measured part began.
    pub elapsed_ns: u64,
    /// The number of seconds that the other numbers cover.
    pub seconds: f64,
    /// Operations that succeeded.
    pub succeeded: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Arrivals skipped.
    pub skipped: u64,
    /// Retries.
    pub retries: u64,
    /// Arrivals that wait for a free connection now.
    pub backlog: u64,
    /// Connections open now.
    pub clients: u64,
    /// Mean latency from the intended start; 0 if nothing succeeded, as below.
    pub mean_ns: f64,
    /// Standard deviation of the latencies.
    pub stddev_ns: f64,
    /// Their median.
    pub p50_ns: u64,
    /// Their quantile 0.99.
    pub p99_ns: u64,
    /// Their maximum.
    pub max_ns: u64,
    /// Quantile 0.99 of the generator's own lag.
    pub lateness_p99_ns: u64,
}

/// A distribution in eight numbers. The quantiles have three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyQuantiles {
    /// The minimum, exact.
    pub min_ns: u64,
    /// The maximum, exact.
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
    /// Quantile 0.9999.
    pub p9999_ns: u64,
}
