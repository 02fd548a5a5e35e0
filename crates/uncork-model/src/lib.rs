//! The vocabulary of the Rust core: plans of trials and their results.
//!
//! Pure: no clock, no file, no socket. Every time is in nanoseconds, and its name ends in `_ns`;
//! every amount of data is in bytes.

mod block;
mod connection;
mod http;
mod parameters;
mod part;
mod plan;
mod recorded;
mod sampler;
mod script;
mod totals;
mod verbosity;

pub use block::{BlockPlan, SlicePlan, SliceRow};
pub use connection::{ChannelBinding, Connection, Password, SslMode, SslNegotiation};
pub use http::{
    BodyKind, Capture, CaptureSource, Checks, HttpPlan, HttpTls, HttpVersion, LoginStep,
    RequestPlan, Values, Variable,
};
pub use parameters::{Column, ParameterError, Parameters};
pub use part::PartPlan;
pub use plan::{
    ArrivalPlan, Batch, BatchForm, DigestMode, DriverKind, Fake, LoadPlan, LogPlan, OnLost,
    PLAN_VERSION, PlanError, Prepare, Protocol, Statement, Stop,
};
pub use recorded::RecordedPlan;
pub use sampler::{SamplerPlan, Watch};
pub use script::{Pause, ScriptOrder, ScriptPlan};
pub use totals::{
    Connections, FailureTotals, HttpTotals, IntervalCounts, LatencyQuantiles, Outcome, Progress,
    RequestTotals, SeriesRow, ServerCpu, Stalls, StatementKind, StatementSummary, StatusRow,
    Totals,
};
pub use verbosity::Verbosity;
