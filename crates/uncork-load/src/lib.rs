//! Sends load and measures the answers.
//!
//! Three independent values make a trial: a [`Schedule`](uncork_schedule::Schedule) says when an
//! operation starts, a [`Driver`] carries it out, a [`Recorder`] counts. [`run`] joins them:
//! connect, prepare, warm up, wait for everyone, measure, close.
//!
//! Each thread keeps its share of the connections busy from one event loop; there is no thread
//! and no channel per connection. All requests are encoded before anything is measured.

mod cut;
mod digest;
mod driver;
mod error;
mod fake;
mod histogram;
mod pin;
mod postgres;
mod recorder;
mod run;
mod worker;

pub use cut::Interrupt;
pub use digest::{Digest, RowsDigest};
pub use driver::{Completion, Driver, Endpoint, Failure, Lost, Reply, Request, Step, Traffic};
pub use error::{ConnectError, LoadError, PrepareFailure};
pub use fake::{FakeDriver, FakeEndpoint};
pub use histogram::{HistogramError, QuantilePoint, merge};
pub use postgres::{PostgresDriver, PostgresEndpoint};
pub use recorder::{Measure, Recorder};
pub use run::{Report, run};
