//! The load plan: everything a trial needs to know, as JSON from Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::{
    Connection, HttpPlan, PartPlan, RecordedPlan, SamplerPlan, ScriptOrder, ScriptPlan, Verbosity,
};

/// The version of the plan's schema; the Python package refuses a core with another version.
pub const PLAN_VERSION: u32 = 11;

/// Why a plan was refused. The remedy is always to correct the plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Invalid JSON, an unknown field, or a value of the wrong type.
    #[error("the load plan is not valid: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Valid JSON, but contradictory or impossible.
    #[error("the load plan is not valid: {0}")]
    Invalid(String),
}

/// What one trial does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct LoadPlan {
    /// Where to connect; only with `driver = "postgres"`.
    #[serde(default)]
    pub connection: Option<Connection>,
    /// Where to send requests; only with `driver = "http"`.
    #[serde(default)]
    pub http: Option<HttpPlan>,
    /// The driver that carries out the operations.
    pub driver: DriverKind,
    /// How many connections are opened at the start, at least 1.
    pub clients: usize,
    /// The connection limit of an open loop, which opens more when all are busy; `null`: `clients`.
    #[serde(default)]
    pub max_clients: Option<usize>,
    /// How many threads share the connections, at least 1; at most `clients` are started.
    pub threads: usize,
    /// The protocol by which statements are sent.
    #[serde(default)]
    pub protocol: Protocol,
    /// How many operations are under way on one connection: pipelined, or as streams of HTTP/2.
    /// Above 1, the statements of an operation are sent without waiting for the answers in between.
    #[serde(default = "one")]
    pub pipeline_depth: usize,
    /// The scripts; at least one.
    pub scripts: Vec<ScriptPlan>,
    /// How each client chooses the next script.
    #[serde(default)]
    pub order: ScriptOrder,
    /// Which script and values each operation has, as recorded; `null` lets `order` choose.
    #[serde(default)]
    pub recorded: Option<RecordedPlan>,
    /// Initial values of script variables, by name.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Seed of everything random.
    #[serde(default)]
    pub seed: u64,
    /// When operations start in an open loop; `null` is a closed loop.
    #[serde(default)]
    pub arrivals: Option<ArrivalPlan>,
    /// Slower operations count as late; in an open loop, operations that exceed this before they
    /// start are skipped.
    #[serde(default)]
    pub latency_limit_ns: Option<u64>,
    /// How often an operation is tried that fails with a serialization failure or a deadlock; 0 is
    /// unlimited.
    #[serde(default = "one_try")]
    pub max_tries: u32,
    /// What happens when a connection is lost.
    #[serde(default)]
    pub on_lost: OnLost,
    /// Whether each operation has a connection of its own.
    #[serde(default)]
    pub connect_each: bool,
    /// When statements are prepared.
    #[serde(default)]
    pub prepare: Prepare,
    /// How many operations run before measuring, in total over all clients, in a closed loop.
    #[serde(default)]
    pub warmup_operations: u64,
    /// How long operations run before measuring, instead of their number; in an open loop, as they arrive.
    #[serde(default)]
    pub warmup_ns: u64,
    /// When the measured part ends.
    pub stop: Stop,
    /// The longest the whole trial may take, from the first connection on, in nanoseconds.
    pub deadline_ns: u64,
    /// Whether, and how, the answers are digested.
    #[serde(default)]
    pub digest: DigestMode,
    /// The postmaster whose processes' CPU time is measured around the measured part.
    #[serde(default)]
    pub watch_pid: Option<u32>,
    /// The process that accepts the connections, if it runs on this machine. Once it has ended and
    /// no connection is left, the trial ends at once instead of trying to connect again.
    #[serde(default)]
    pub accepting_pid: Option<u32>,
    /// What is sampled during the measured part; `null` is nothing.
    #[serde(default)]
    pub sample: Option<SamplerPlan>,
    /// The processor that the engine's threads and the server's backends share during the load;
    /// `null` leaves placement to the kernel. Only for a server on this machine.
    #[serde(default)]
    pub pin_cpu: Option<usize>,
    /// What the fake driver answers; only with `driver = "fake"`.
    #[serde(default)]
    pub fake: Option<Fake>,
    /// Length of an interval of the series; 0 is no series.
    #[serde(default)]
    pub interval_ns: u64,
    /// After how many intervals progress is reported; 0 is never.
    #[serde(default)]
    pub progress_intervals: u32,
    /// The log of operations; `null` is none.
    #[serde(default)]
    pub log: Option<LogPlan>,
    /// Whether an interrupted trial returns its partial result instead of an error.
    #[serde(default)]
    pub keep_interrupted: bool,
    /// Whether the trial ends early if nothing succeeds.
    #[serde(default)]
    pub give_up: bool,
    /// Whether the trial ends at the first client that aborts, as by pgbench's `--exit-on-abort`.
    #[serde(default)]
    pub exit_on_abort: bool,
    /// Which lines the trial writes about single errors and statements.
    #[serde(default)]
    pub verbosity: Verbosity,
    /// This process's part of the load.
    #[serde(default)]
    pub part: PartPlan,
}

fn one() -> usize {
    1
}

fn one_try() -> u32 {
    1
}

/// When operations start in an open loop.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind")]
pub enum ArrivalPlan {
    /// Independent arrivals (a Poisson process) at a mean rate.
    Poisson {
        /// Arrivals per second.
        rate: f64,
    },
    /// At equal intervals.
    Constant {
        /// Arrivals per second.
        rate: f64,
    },
    /// Several at once, in bursts at equal intervals.
    Bursts {
        /// Arrivals per second.
        rate: f64,
        /// Arrivals per burst.
        size: u32,
    },
    /// As recorded in a trace.
    Trace {
        /// The times from the beginning, in ascending order.
        offsets_ns: Vec<u64>,
    },
}

/// What happens when a connection is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// The trial ends.
    #[default]
    Stop,
    /// The loss is counted, and the connection opened again. Refused connections are counted too.
    Reconnect,
}

/// When statements are prepared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Prepare {
    /// When a connection is opened; a statement that cannot be prepared is an error of the plan.
    #[default]
    #[serde(rename = "ahead")]
    Ahead,
    /// With its first execution on a connection; objects it needs may be created before.
    #[serde(rename = "first use")]
    FirstUse,
}

/// The log of operations, in pgbench's format.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPlan {
    /// The first thread's file; other threads append `.1`, `.2`, … to the name.
    pub path: PathBuf,
    /// The sampled fraction of operations, above 0 and up to 1.
    pub sample: f64,
    /// Write sums over this interval instead of single operations.
    #[serde(default)]
    pub aggregate_ns: Option<u64>,
}

/// The driver that carries out the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// A real server, by the PostgreSQL protocol.
    Postgres,
    /// A real server, by HTTP.
    Http,
    /// No server: declared latencies in virtual time, to test everything around the driver.
    Fake,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// One query message with the parameters inserted as literals.
    #[default]
    Simple,
    /// Parse, bind and execute each time, with the unnamed statement.
    Extended,
    /// Parsed once per connection, before the warm-up; then bind and execute.
    Prepared,
}

/// One statement of an operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Its name in results.
    pub name: String,
    /// The text, with `$1`, `$2`, … for parameters.
    pub sql: String,
    /// The columns of the parameter table bound to `$1`, `$2`, …
    #[serde(default)]
    pub parameters: Vec<usize>,
    /// How a statement takes several rows of parameters; `null` takes one.
    #[serde(default)]
    pub batch: Option<Batch>,
}

/// How a statement of an operation takes several rows of parameters.
///
/// An operation uses `rows * times` rows of the parameter table, from row
/// `operation * rows * times` on (modulo the table's length); each execution takes the next `rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Rows per execution, at least 1.
    pub rows: usize,
    /// Executions per operation, at least 1.
    pub times: usize,
    /// How an execution takes its rows.
    pub form: BatchForm,
    /// Whether all executions are sent without waiting, with one `Sync` at the end: outside a
    /// transaction block they form one implicit transaction.
    #[serde(default)]
    pub pipelined: bool,
}

/// How an execution takes its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchForm {
    /// One row: `$1`, `$2`, … are its columns.
    Scalar,
    /// `$1`, `$2`, … are the columns of the first row, then those of the second, and so on.
    Values,
    /// `$k` is column `k` of all rows, as an array literal.
    Arrays,
    /// The statement is `COPY … FROM STDIN`, the rows are its data in the text format.
    Copy,
}

/// When the measured part ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many operations in total over all clients.
    Operations(u64),
    /// After this many operations of each client.
    OperationsEach(u64),
    /// When this much time has passed; operations under way are completed.
    DurationNs(u64),
}

/// Whether, and how, the answers are digested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DigestMode {
    /// No digest.
    #[default]
    None,
    /// The order of the rows within a statement does not matter.
    Multiset,
    /// The order of the rows within a statement matters.
    Ordered,
}

/// What the fake driver answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fake {
    /// How long statements take: statement `s` (of `n`) of operation `i` takes
    /// `latencies_ns[(i * n + s) % len]`. Each at least 1.
    pub latencies_ns: Vec<u64>,
    /// Every n-th operation (first number `fail_every - 1`) fails with SQLSTATE 40001.
    #[serde(default)]
    pub fail_every: Option<u64>,
    /// The connection is lost during this operation.
    #[serde(default)]
    pub lose_at: Option<u64>,
}

impl Stop {
    pub(crate) fn is_zero(self) -> bool {
        match self {
            Self::Operations(count) | Self::OperationsEach(count) | Self::DurationNs(count) => {
                count == 0
            }
        }
    }
}

impl LoadPlan {
    /// Parse a plan and check its consistency.
    ///
    /// # Errors
    ///
    /// [`PlanError`] names the field; unknown fields are refused.
    pub fn parse(json: &[u8]) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_slice(json)?;
        plan.check()?;
        Ok(plan)
    }

    /// The number of threads that are actually started, in each part.
    #[must_use]
    pub fn effective_threads(&self) -> usize {
        self.threads.min(self.clients / self.part.count)
    }

    /// The connection limit.
    #[must_use]
    pub fn most_clients(&self) -> usize {
        self.max_clients.unwrap_or(self.clients)
    }

    /// All statements given as such, in order.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.scripts.iter().flat_map(|script| &script.statements)
    }

    pub(crate) fn check(&self) -> Result<(), PlanError> {
        match self.problem() {
            Some(problem) => Err(PlanError::Invalid(problem.to_owned())),
            None => Ok(()),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let http = self.driver == DriverKind::Http;
        let both = |script: &ScriptPlan| {
            script.request.is_none() && script.text.is_some() != script.statements.is_empty()
        };
        let batch = |batch: &Batch| {
            batch.rows == 0
                || batch.times == 0
                || (batch.form == BatchForm::Scalar && batch.rows > 1)
        };
        let checks = [
            (self.clients == 0, "clients must be at least 1"),
            (self.threads == 0, "threads must be at least 1"),
            (
                self.part.index >= self.part.count || self.clients < self.part.count,
                "part.index must be below part.count, and clients must not",
            ),
            (
                self.most_clients() < self.clients,
                "max_clients must not be below clients",
            ),
            (
                self.pipeline_depth == 0,
                "pipeline_depth must be at least 1",
            ),
            (
                self.pipeline_depth > 1 && (self.max_tries != 1 || self.connect_each),
                "pipeline_depth above 1 excludes max_tries and connect_each",
            ),
            (
                self.pipeline_depth > 1 && self.protocol == Protocol::Simple && !http,
                "pipeline_depth above 1 needs the extended or the prepared protocol",
            ),
            (
                self.scripts.is_empty(),
                "scripts must name at least one script",
            ),
            (
                self.scripts.iter().all(|script| script.weight == 0),
                "at least one script must have a positive weight",
            ),
            (
                self.scripts.iter().any(both),
                "a script has either text or statements, at least one",
            ),
            (
                self.statements()
                    .filter_map(|statement| statement.batch.as_ref())
                    .any(batch),
                "a batch has at least one row and one execution, and a scalar one has one row",
            ),
            (
                self.scripts.iter().any(ScriptPlan::has_misplaced_pause),
                "pauses must be in the order of the statements that they precede",
            ),
            (
                self.pipeline_depth > 1 && self.scripts.iter().any(ScriptPlan::has_pauses),
                "pipeline_depth above 1 sends without waiting, which excludes pauses",
            ),
            (self.deadline_ns == 0, "deadline_ns must be positive"),
            (self.stop.is_zero(), "stop must be positive"),
            (
                self.driver == DriverKind::Postgres && self.connection.is_none(),
                "the postgres driver needs a connection",
            ),
            (
                http && self.http.is_none(),
                "the http driver needs http, which says where to send requests",
            ),
            (
                self.scripts
                    .iter()
                    .any(|script| script.request.is_some() != http),
                "a script has a request exactly with the http driver",
            ),
            (
                self.warmup_operations > 0 && self.warmup_ns > 0,
                "warmup_operations and warmup_ns exclude each other",
            ),
            (
                self.driver == DriverKind::Fake && self.fake.is_none(),
                "the fake driver needs fake.latencies_ns",
            ),
            (
                self.fake.as_ref().is_some_and(Fake::is_empty),
                "fake.latencies_ns must hold at least one latency, each at least 1 ns, and \
                 fake.fail_every must be positive",
            ),
            (
                self.log
                    .as_ref()
                    .is_some_and(|log| !(log.sample > 0.0 && log.sample <= 1.0)),
                "log.sample must be above 0 and at most 1",
            ),
        ];
        checks
            .into_iter()
            .find_map(|(wrong, problem)| wrong.then_some(problem))
            .or_else(|| self.http.as_ref().and_then(HttpPlan::problem))
            .or_else(|| self.recorded.as_ref()?.problem(self))
    }
}

impl Fake {
    fn is_empty(&self) -> bool {
        self.latencies_ns.is_empty() || self.latencies_ns.contains(&0) || self.fail_every == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAKE: &str = r#"{"driver": "fake", "clients": 2, "threads": 4, "protocol": "simple",
        "scripts": [{"name": "s", "weight": 1,
        "statements": [{"name": "a", "sql": "SELECT 1", "parameters": []}]}],
        "stop": {"operations": 3}, "deadline_ns": 1, "fake": {"latencies_ns": [1]}}"#;

    #[test]
    fn a_plan_is_read_and_threads_are_bounded_by_clients() {
        let plan = LoadPlan::parse(FAKE.as_bytes()).expect("valid");
        assert_eq!(plan.stop, Stop::Operations(3));
        assert_eq!(plan.effective_threads(), 2);
        assert_eq!(plan.digest, DigestMode::None);
    }

    #[test]
    fn the_whole_contract_is_read() {
        let text = r#"{"connection": {"host": "/run", "port": 5432, "user": "u", "database": "d",
            "password": "secret", "options": "-c x=y", "connect_timeout_ns": 5000000000,
            "sslmode": "verify-full"}, "driver": "postgres", "clients": 1, "threads": 1,
            "protocol": "prepared", "scripts": [{"name": "s", "weight": 1,
            "statements": [{"name": "s", "sql": "SELECT $1", "parameters": [0], "batch":
            {"rows": 5, "times": 2, "form": "arrays"}}], "transaction": true},
            {"name": "t", "weight": 2, "text": "SELECT 1"}], "warmup_operations": 10,
            "arrivals": {"kind": "bursts", "rate": 10, "size": 2}, "max_clients": 5,
            "on_lost": "reconnect", "prepare": "first use", "variables": {"scale": "1"},
            "log": {"path": "log", "sample": 0.5},
            "stop": {"duration_ns": 200000000}, "deadline_ns": 60000000000,
            "digest": "multiset", "watch_pid": 1234, "fake": null,
            "sample": {"period_ns": 100000000, "watch": [{"role": "server", "pid": 1234}]}}"#;
        let plan = LoadPlan::parse(text.as_bytes()).expect("valid");
        let connection = plan.connection.as_ref().expect("given");
        assert!(connection.sslmode.demands_encryption());
        assert!(!format!("{plan:?}").contains("secret"));
    }

    #[test]
    fn unknown_fields_are_refused_everywhere() {
        for (old, new) in [
            ("\"clients\"", "\"clientz\": 1, \"clients\""),
            ("\"name\"", "\"nam\": 1, \"name\""),
            ("\"latencies_ns\"", "\"latency\": 1, \"latencies_ns\""),
            ("{\"operations\": 3}", "{\"operation\": 3}"),
        ] {
            let text = FAKE.replace(old, new);
            let error = LoadPlan::parse(text.as_bytes()).expect_err(new).to_string();
            assert!(error.contains("unknown"), "{error}");
        }
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        for (old, new, word) in [
            ("\"clients\": 2", "\"clients\": 0", "clients"),
            ("\"threads\": 4", "\"threads\": 0", "threads"),
            (
                "\"threads\": 4",
                "\"threads\": 4, \"part\": {\"count\": 3}",
                "part.count",
            ),
            ("{\"operations\": 3}", "{\"operations\": 0}", "stop"),
            ("\"deadline_ns\": 1", "\"deadline_ns\": 0", "deadline_ns"),
            ("[1]", "[0]", "latencies_ns"),
            ("\"weight\": 1", "\"weight\": 0", "weight"),
            ("\"weight\": 1", "\"weight\": 1, \"text\": \"\"", "either"),
            (
                "\"parameters\": []",
                "\"batch\": {\"rows\": 2, \"times\": 1, \"form\": \"scalar\"}",
                "batch",
            ),
            (
                "\"threads\": 4",
                "\"threads\": 4, \"max_clients\": 1",
                "max_clients",
            ),
            (
                "\"fake\": {\"latencies_ns\": [1]}",
                "\"fake\": null",
                "latencies_ns",
            ),
            (
                "\"driver\": \"fake\"",
                "\"driver\": \"postgres\"",
                "connection",
            ),
        ] {
            let text = FAKE.replace(old, new);
            let error = LoadPlan::parse(text.as_bytes()).expect_err(new).to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
