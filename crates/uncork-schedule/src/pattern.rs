//! The arrival patterns of operations, and their limits.

use std::sync::Arc;

/// The lowest rate of a pattern, in arrivals per second: one in 32 years.
pub const LOWEST_RATE: f64 = 1e-9;

/// The highest rate of a pattern, in arrivals per second: one per nanosecond, the unit of time
/// here.
pub const HIGHEST_RATE: f64 = 1e9;

/// When operations are meant to start, over all threads.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// A Poisson process: independent, exponentially distributed gaps. Requests of many independent
    /// people arrive like this.
    Poisson {
        /// Arrivals per second, on average.
        rate: f64,
    },
    /// Equal gaps, the first arrival at 0.
    Constant {
        /// Arrivals per second.
        rate: f64,
    },
    /// Several arrivals at the same time, then nothing until the next burst; the first burst at 0.
    Bursts {
        /// Arrivals per second, not bursts: there are `rate / size` bursts per second.
        rate: f64,
        /// Arrivals in a burst.
        size: u32,
    },
    /// The times themselves, in nanoseconds since the phase began, in ascending order.
    Trace(Arc<[u64]>),
}

/// Why a pattern was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// Zero, negative, not a number, or beyond the resolution of nanoseconds.
    #[error(
        "arrivals.rate: {rate} is not a rate that can be kept; give arrivals a second, \
         from {LOWEST_RATE:e} to {HIGHEST_RATE:e}"
    )]
    Rate {
        /// The given rate.
        rate: f64,
    },
    /// A burst of nothing.
    #[error("arrivals.size: a burst has at least 1 arrival, found 0; give a size of 1 or more")]
    Size,
    /// A trace without arrivals.
    #[error("arrivals.offsets_ns: the trace has no arrivals; give at least one offset")]
    Empty,
    /// A trace whose times decrease.
    #[error(
        "arrivals.offsets_ns: offset {index} is {offset_ns} ns, earlier than the {before_ns} ns \
         ahead of it; sort the trace by time"
    )]
    Falling {
        /// The index of the wrong offset, counted from 0.
        index: usize,
        /// The wrong offset.
        offset_ns: u64,
        /// The offset before it.
        before_ns: u64,
    },
    /// The share of a thread that does not exist.
    #[error(
        "arrivals: thread {thread} of {threads} has no share; count threads from 0 and have at \
         least 1"
    )]
    Thread {
        /// The thread.
        thread: usize,
        /// How many threads there are.
        threads: usize,
    },
}

impl Pattern {
    /// Check the pattern for consistency.
    ///
    /// # Errors
    ///
    /// [`PatternError`] names the field of the plan, what was found and what to give instead.
    pub fn check(&self) -> Result<(), PatternError> {
        match self {
            Self::Poisson { rate } | Self::Constant { rate } => check_rate(*rate),
            Self::Bursts { rate, size } => {
                check_rate(*rate)?;
                if *size == 0 {
                    return Err(PatternError::Size);
                }
                Ok(())
            }
            Self::Trace(offsets_ns) => check_trace(offsets_ns),
        }
    }
}

fn check_rate(rate: f64) -> Result<(), PatternError> {
    // NaN is in no range.
    if (LOWEST_RATE..=HIGHEST_RATE).contains(&rate) {
        Ok(())
    } else {
        Err(PatternError::Rate { rate })
    }
}

fn check_trace(offsets_ns: &[u64]) -> Result<(), PatternError> {
    if offsets_ns.is_empty() {
        return Err(PatternError::Empty);
    }
    for (before, pair) in offsets_ns.windows(2).enumerate() {
        if pair[1] < pair[0] {
            return Err(PatternError::Falling {
                index: before + 1,
                offset_ns: pair[1],
                before_ns: pair[0],
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_that_cannot_be_kept_are_refused_with_a_remedy() {
        for rate in [
            0.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e10,
            1e-10,
        ] {
            for pattern in [
                Pattern::Poisson { rate },
                Pattern::Constant { rate },
                Pattern::Bursts { rate, size: 2 },
            ] {
                let message = pattern.check().expect_err("refused").to_string();
                assert!(
                    message.contains(&format!("arrivals.rate: {rate}")),
                    "{message}"
                );
                assert!(message.contains("from 1e-9 to 1e9"), "{message}");
            }
        }
        for rate in [LOWEST_RATE, 0.1, 2000.0, HIGHEST_RATE] {
            assert_eq!(Pattern::Poisson { rate }.check(), Ok(()));
        }
    }

    #[test]
    fn empty_bursts_and_traces_are_refused() {
        let bursts = Pattern::Bursts { rate: 1.0, size: 0 };
        assert_eq!(bursts.check(), Err(PatternError::Size));
        assert_eq!(Pattern::Trace([].into()).check(), Err(PatternError::Empty));
    }

    #[test]
    fn a_falling_trace_is_refused_where_it_falls() {
        let message = Pattern::Trace([1, 5, 4].into())
            .check()
            .expect_err("falls")
            .to_string();
        assert!(
            message.contains("offset 2 is 4 ns, earlier than the 5 ns"),
            "{message}"
        );
        assert_eq!(Pattern::Trace([0, 0, 7, 7].into()).check(), Ok(()));
    }
}
