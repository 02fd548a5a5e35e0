//! The words of the Rust core: what a trial is asked to do and what it answers.
//!
//! Pure: no clock, no file, no socket. Every count of time is in nanoseconds and says so in its
//! name (`_ns`); every count of data is in bytes.

mod parameters;
mod plan;
mod totals;

pub use parameters::{Column, ParameterError, Parameters};
pub use plan::{
    Connection, DigestMode, DriverKind, Fake, LoadPlan, PLAN_VERSION, Password, PlanError,
    Protocol, SslMode, Statement, Stop,
};
pub use totals::{LatencyQuantiles, Outcome, ServerCpu, StatementKind, StatementSummary, Totals};
