//! How many operations a part of a load is to begin.

use uncork_model::{LoadPlan, Stop};
use uncork_schedule::{Arrivals, Pattern};

use crate::open_loop::limits;
use crate::run::pattern;
use crate::{LoadError, Share};

/// Return how many operations the measured part is to begin in this process; `None` if the server
/// decides, in a closed loop that ends after a time.
///
/// # Errors
///
/// [`LoadError::Pattern`] if the arrivals of an open loop are not valid.
pub fn planned(plan: &LoadPlan) -> Result<Option<u64>, LoadError> {
    let shares = shares(plan);
    let Some(arrivals) = &plan.arrivals else {
        return Ok(match plan.stop {
            Stop::Operations(count) => Some(plan.part.share(count)),
            Stop::OperationsEach(count) => {
                Some(count * shares.map(|share| share.count() as u64).sum::<u64>())
            }
            Stop::DurationNs(_) => None,
        });
    };
    let pattern = pattern(arrivals);
    pattern.check()?;
    let mut sum = 0;
    for share in shares {
        let (last, end_ns) = limits(share, plan, plan.stop);
        let arrivals = Arrivals::new(&pattern, plan.seed, share.thread, share.threads)?;
        let last = usize::try_from(last).unwrap_or(usize::MAX);
        sum += if end_ns == u64::MAX && !matches!(pattern, Pattern::Trace(_)) {
            last as u64
        } else {
            arrivals
                .take(last)
                .take_while(|&at_ns| at_ns < end_ns)
                .count() as u64
        };
    }
    Ok(Some(sum))
}

/// The shares of this part's threads.
pub(crate) fn shares(plan: &LoadPlan) -> impl Iterator<Item = Share> + use<> {
    let threads = plan.effective_threads();
    let (first, all, clients) = (
        plan.part.index * threads,
        plan.part.count * threads,
        plan.clients,
    );
    (first..first + threads).map(move |thread| Share {
        thread,
        threads: all,
        clients,
    })
}
