//! One thread's share of a pattern's arrivals.

use std::sync::Arc;

use crate::pattern::{Pattern, PatternError};
use crate::poisson::Poisson;
use crate::spaced::Spaced;

/// The intended starts of one thread's operations, in nanoseconds since the phase began, in
/// ascending order. All threads' shares together form the whole pattern.
///
/// It ends with the end of a trace; the other patterns continue until the time exceeds 64 bits. The
/// same pattern, seed, thread and number of threads give the same arrivals on every machine.
#[derive(Debug, Clone)]
pub struct Arrivals {
    share: Share,
}

#[derive(Debug, Clone)]
enum Share {
    /// Random gaps of this thread's own.
    Own(Poisson),
    /// Every so many arrivals of a pattern known in advance.
    Turns(Turns),
}

/// The arrivals `next`, `next + step`, … of a pattern known in advance.
#[derive(Debug, Clone)]
struct Turns {
    times: Times,
    /// `None` after the last one.
    next: Option<u64>,
    step: u64,
}

#[derive(Debug, Clone)]
enum Times {
    Bursts { spaced: Spaced, size: u64 },
    Trace(Arc<[u64]>),
}

impl Arrivals {
    /// The share of `thread` (from 0) out of `threads`. The seed matters to random patterns only.
    ///
    /// # Errors
    ///
    /// The errors of [`Pattern::check`], and a thread that does not exist.
    pub fn new(
        pattern: &Pattern,
        seed: u64,
        thread: usize,
        threads: usize,
    ) -> Result<Self, PatternError> {
        pattern.check()?;
        if thread >= threads {
            return Err(PatternError::Thread { thread, threads });
        }
        let times = match pattern {
            Pattern::Poisson { rate } => {
                return Ok(Self {
                    share: Share::Own(Poisson::new(*rate, seed, thread, threads)),
                });
            }
            Pattern::Constant { rate } => bursts(*rate, 1),
            Pattern::Bursts { rate, size } => bursts(*rate, *size),
            Pattern::Trace(offsets_ns) => Times::Trace(Arc::clone(offsets_ns)),
        };
        let turns = Turns {
            times,
            next: Some(thread as u64),
            step: threads as u64,
        };
        Ok(Self {
            share: Share::Turns(turns),
        })
    }
}

/// A constant rate is a sequence of bursts of one.
fn bursts(rate: f64, size: u32) -> Times {
    Times::Bursts {
        spaced: Spaced::new(rate),
        size: u64::from(size),
    }
}

impl Times {
    /// When arrival `index` of all threads is due.
    fn at(&self, index: u64) -> Option<u64> {
        match self {
            // A burst is due when its first arrival would be at a constant rate.
            Self::Bursts { spaced, size } => spaced.at(index - index % size),
            Self::Trace(offsets_ns) => offsets_ns.get(usize::try_from(index).ok()?).copied(),
        }
    }
}

impl Iterator for Turns {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let index = self.next?;
        let time = self.times.at(index);
        self.next = time.and_then(|_| index.checked_add(self.step));
        time
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match &mut self.share {
            Share::Own(poisson) => poisson.next(),
            Share::Turns(turns) => turns.next(),
        }
    }
}

impl std::iter::FusedIterator for Arrivals {}

#[cfg(test)]
mod tests;
