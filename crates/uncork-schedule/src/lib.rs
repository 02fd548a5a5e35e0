//! Decides when an operation may start, and when a trial ends.
//!
//! Pure: counts and elapsed time in, decisions out; no clock is read here.
//!
//! - A closed loop starts an operation as soon as a client is free: [`ClosedLoop`] decides whether
//!   it still may.
//! - An open loop starts operations at intended times, whether or not the server has answered
//!   earlier ones: [`Arrivals`] yields one thread's share of a [`Pattern`]'s times.

mod arrivals;
mod closed;
mod pattern;
mod poisson;
mod spaced;

pub use arrivals::Arrivals;
pub use closed::{ClosedLoop, Decision, Schedule};
pub use pattern::{HIGHEST_RATE, LOWEST_RATE, Pattern, PatternError};
