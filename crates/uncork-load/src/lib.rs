//! Sends load and measures the answers.
//!
//! A trial has three independent parts: a [`Schedule`](uncork_schedule::Schedule) decides when an
//! operation starts, a [`Driver`] carries it out, a [`Recorder`] counts. [`run`] joins them:
//! connect, prepare, warm up, wait for all threads, measure, close.
//!
//! Each thread keeps its share of the connections busy from one event loop; there is no thread
//! and no channel per connection. All requests are encoded before anything is measured.

mod answers;
mod board;
mod digest;
mod driver;
mod error;
mod fake;
mod histogram;
mod http;
mod lease;
mod log;
mod measure;
mod open_loop;
mod phase;
mod pin;
mod planned;
mod postgres;
mod recorder;
mod reservations;
mod run;
mod socket;
mod stop_signal;
mod thread_cpu;
mod tls;
mod worker;

pub use answers::Answers;
pub use board::Board;
pub use digest::{Digest, RowsDigest};
pub use driver::{Driver, End, Endpoint, Event, FailedAt, Failure, Share, Task, Traffic};
pub use error::{ConnectError, LoadError, PrepareFailure};
pub use fake::{FakeDriver, FakeEndpoint};
pub use histogram::{HistogramError, LogInterval, QuantilePoint, add_up, interval_log, merge};
pub use http::{HttpDriver, HttpEndpoint};
pub use lease::Lease;
pub use measure::Measure;
pub use planned::planned;
pub use postgres::{PostgresDriver, PostgresEndpoint};
pub use recorder::{Load, Recorder, Shape, StatementFacts};
pub use run::{BlockReport, Control, Messages, Report, check, run, run_block};
pub use stop_signal::Interrupt;
