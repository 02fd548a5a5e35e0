//! The load plan: everything a trial needs to know, as JSON from Python.

use std::fmt;

use serde::Deserialize;

/// The version of the plan's shape. Raised when a field is added, removed or changes its meaning;
/// the Python package refuses a core that speaks another one.
pub const PLAN_VERSION: u32 = 1;

/// Why a plan was refused. The remedy is always to correct the plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Not JSON, an unknown field, or a value of the wrong type.
    #[error("the load plan is not valid: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Well-formed, but it contradicts itself or asks for the impossible.
    #[error("the load plan is not valid: {0}")]
    Invalid(String),
}

/// What one trial does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// Where to connect; only the fake driver goes without.
    #[serde(default)]
    pub connection: Option<Connection>,
    /// Who carries out the operations.
    pub driver: DriverKind,
    /// How many connections are kept busy, at least 1.
    pub clients: usize,
    /// How many threads share the connections, at least 1; never more than `clients` are started.
    pub threads: usize,
    /// How statements are sent.
    pub protocol: Protocol,
    /// The statements of one operation, in order; at least one.
    pub statements: Vec<Statement>,
    /// Whether the statements of one operation are wrapped in `BEGIN` and `COMMIT`.
    #[serde(default)]
    pub transaction: bool,
    /// How many operations run before measuring, in total over all clients.
    #[serde(default)]
    pub warmup_operations: u64,
    /// When the measured part ends.
    pub stop: Stop,
    /// The longest the whole trial may take, from the first connection on, in nanoseconds.
    pub deadline_ns: u64,
    /// Whether, and how, the answers are digested.
    #[serde(default)]
    pub digest: DigestMode,
    /// The postmaster whose processes' CPU time is read around the measured part.
    #[serde(default)]
    pub watch_pid: Option<u32>,
    /// The processor that the engine's threads and the server's backends share while operations
    /// run; `null` leaves placement to the kernel. Only for a server on this machine.
    #[serde(default)]
    pub pin_cpu: Option<usize>,
    /// What the fake driver answers; only with `driver = "fake"`.
    #[serde(default)]
    pub fake: Option<Fake>,
}

/// Where to connect, and as whom.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// The folder of a Unix socket (starts with `/`), a host name or an address.
    pub host: String,
    /// The TCP port, or the number in the Unix socket's name.
    pub port: u16,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, if the server asks for one.
    #[serde(default)]
    pub password: Option<Password>,
    /// Settings for the session, as in the connection option `options`.
    #[serde(default)]
    pub options: String,
    /// The longest one connection may take, authentication included, in nanoseconds.
    pub connect_timeout_ns: u64,
    /// What is demanded of encryption.
    #[serde(default)]
    pub sslmode: SslMode,
}

/// A password that does not show itself in messages.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Wraps a password.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The bytes to authenticate with.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

/// What is demanded of encryption, in the words of libpq.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never encrypt.
    Disable,
    /// Encrypt only if the server insists.
    Allow,
    /// Encrypt if the server can.
    #[default]
    Prefer,
    /// Encrypt or fail.
    Require,
    /// Encrypt and check the certificate's issuer, or fail.
    VerifyCa,
    /// Encrypt and check the certificate's issuer and name, or fail.
    VerifyFull,
}

impl SslMode {
    /// Whether a connection without encryption must be refused.
    #[must_use]
    pub fn demands_encryption(self) -> bool {
        matches!(self, Self::Require | Self::VerifyCa | Self::VerifyFull)
    }
}

/// Who carries out the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// A real server, by the PostgreSQL protocol.
    Postgres,
    /// No server: declared latencies in virtual time, to test everything around the driver.
    Fake,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// One query message with the parameters written into the text as literals.
    Simple,
    /// Parse, bind and execute each time, without a name.
    Extended,
    /// Parsed once a connection, before the warm-up; then bind and execute.
    Prepared,
}

/// One statement of an operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// What the results call it.
    pub name: String,
    /// The text, with `$1`, `$2`, … for parameters.
    pub sql: String,
    /// The columns of the parameter table bound to `$1`, `$2`, …
    #[serde(default)]
    pub parameters: Vec<usize>,
}

/// When the measured part ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many operations in total over all clients.
    Operations(u64),
    /// When this much time has passed; operations under way are finished.
    DurationNs(u64),
}

/// Whether, and how, the answers are digested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DigestMode {
    /// Not at all.
    #[default]
    None,
    /// The order of the rows within a statement does not matter.
    Multiset,
    /// The order of the rows within a statement matters.
    Ordered,
}

/// What the fake driver answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fake {
    /// How long statements take: statement `s` (of `n`) of operation `i` takes
    /// `latencies_ns[(i * n + s) % len]`. Each at least 1.
    pub latencies_ns: Vec<u64>,
    /// Every such operation (1st failing: number `fail_every - 1`) fails with SQLSTATE 40001.
    #[serde(default)]
    pub fail_every: Option<u64>,
    /// The connection that carries out this operation is lost.
    #[serde(default)]
    pub lose_at: Option<u64>,
}

impl LoadPlan {
    /// Reads a plan and checks it against itself.
    ///
    /// # Errors
    ///
    /// [`PlanError`] names the field; unknown fields are refused.
    pub fn parse(json: &[u8]) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_slice(json)?;
        plan.check()?;
        Ok(plan)
    }

    /// The number of threads that are really started.
    #[must_use]
    pub fn effective_threads(&self) -> usize {
        self.threads.min(self.clients)
    }

    fn check(&self) -> Result<(), PlanError> {
        let problem = if self.clients == 0 {
            "clients must be at least 1"
        } else if self.threads == 0 {
            "threads must be at least 1"
        } else if self.statements.is_empty() {
            "statements must name at least one statement"
        } else if self.deadline_ns == 0 {
            "deadline_ns must be positive"
        } else if matches!(self.stop, Stop::Operations(0) | Stop::DurationNs(0)) {
            "stop must be positive"
        } else if self.driver == DriverKind::Postgres && self.connection.is_none() {
            "the postgres driver needs a connection"
        } else if self.driver == DriverKind::Fake && self.fake.is_none() {
            "the fake driver needs fake.latencies_ns"
        } else if self.fake.as_ref().is_some_and(|fake| {
            fake.latencies_ns.is_empty()
                || fake.latencies_ns.contains(&0)
                || fake.fail_every == Some(0)
        }) {
            "fake.latencies_ns must hold at least one latency, each at least 1 ns, and \
             fake.fail_every must be positive"
        } else {
            return Ok(());
        };
        Err(PlanError::Invalid(problem.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAKE: &str = r#"{"driver": "fake", "clients": 2, "threads": 4, "protocol": "simple",
        "statements": [{"name": "a", "sql": "SELECT 1", "parameters": []}],
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
            "protocol": "prepared", "statements": [{"name": "s", "sql": "SELECT $1",
            "parameters": [0]}], "transaction": true, "warmup_operations": 10,
            "stop": {"duration_ns": 200000000}, "deadline_ns": 60000000000,
            "digest": "multiset", "watch_pid": 1234, "fake": null}"#;
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
            ("{\"operations\": 3}", "{\"operations\": 0}", "stop"),
            ("\"deadline_ns\": 1", "\"deadline_ns\": 0", "deadline_ns"),
            ("[1]", "[0]", "latencies_ns"),
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
