//! When an operation may start, and when a trial ends.
//!
//! Pure: counts and elapsed time come in, decisions go out; no clock is read here.
//!
//! - A closed loop starts an operation as soon as a client is free: [`ClosedLoop`] answers whether
//!   it still may.
//! - An open loop starts operations at intended times, whether or not the server has answered the
//!   ones before: [`Arrivals`] yields one thread's share of the times that a [`Pattern`] names.

mod arrivals;
mod closed;
mod pattern;
mod poisson;
mod spaced;

pub use arrivals::Arrivals;
pub use closed::{ClosedLoop, Decision, Schedule};
pub use pattern::{HIGHEST_RATE, LOWEST_RATE, Pattern, PatternError};
