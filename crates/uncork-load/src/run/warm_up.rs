//! What is sent before the measured part.

use std::sync::atomic::Ordering;
use std::thread;

use uncork_model::Stop;
use uncork_schedule::Arrivals;

use super::{Thread, Trial, join};
use crate::phase::Phase;
use crate::pin::pin_thread;
use crate::worker::{WorkerContext, work};
use crate::{Endpoint, LoadError, Recorder};

/// Flips the highest bit of the seed for the warm-up of an open loop: other arrivals, other values.
pub(crate) const WARM_UP_SEED: u64 = 1 << 63;
/// The numbers of an open loop's warm-up, above those of any measured part.
pub(super) const WARM_UP_NUMBERS: u64 = 1 << 48;

impl Trial<'_> {
    /// Run the warm-up. No thread continues before all are done.
    pub(super) fn warm_up<E: Endpoint + Send>(
        &self,
        threads: &mut [Thread<E>],
    ) -> Result<Recorder, LoadError> {
        let mut recorder = self.recorder(false);
        if self.plan.warmup_operations > 0 || self.plan.warmup_ns > 0 {
            let stop = if self.plan.warmup_ns > 0 {
                Stop::DurationNs(self.plan.warmup_ns)
            } else {
                Stop::Operations(self.plan.warmup_operations)
            };
            let paced = self.pattern.is_some() && self.plan.warmup_ns > 0;
            let phase = &Phase {
                numbers_from: if paced { WARM_UP_NUMBERS } else { 0 },
                ..self.phase(0, stop, None)
            };
            let recorders = thread::scope(|scope| {
                let handles: Vec<_> = threads
                    .iter_mut()
                    .map(|thread| {
                        scope.spawn(move || {
                            pin_thread(self.plan.pin_cpu)?;
                            self.warm_up_thread(phase, thread, paced)
                        })
                    })
                    .collect();
                handles
                    .into_iter()
                    .map(|handle| join(handle)?)
                    .collect::<Result<Vec<_>, LoadError>>()
            })?;
            for one in &recorders {
                recorder.merge(one);
            }
        }
        if self.plan.warmup_ns > 0 && self.pattern.is_some() {
            self.next_operation.store(0, Ordering::Relaxed);
        } else if self.plan.warmup_ns == 0 {
            let warmup = self.plan.part.share(self.plan.warmup_operations);
            self.next_operation.store(warmup, Ordering::Relaxed);
        }
        Ok(recorder)
    }

    /// Run one thread's warm-up. A paced one, of an open loop, has the arrivals of another seed,
    /// numbers and values of its own: the measured part is the same as without it.
    fn warm_up_thread<E: Endpoint>(
        &self,
        phase: &Phase<'_>,
        thread: &mut Thread<E>,
        paced: bool,
    ) -> Result<Recorder, LoadError> {
        let share = thread.share;
        let arrivals = match &self.pattern {
            Some(pattern) if paced => Some(Arrivals::new(
                pattern,
                self.plan.seed ^ WARM_UP_SEED,
                share.thread,
                share.threads,
            )?),
            _ => None,
        };
        let mut recorder = self.recorder(false);
        let mut choice = thread.choice.clone();
        if paced {
            thread.endpoint.restart_scripts(true);
        }
        let context = WorkerContext {
            share,
            endpoint: &mut thread.endpoint,
            choice: if paced {
                &mut choice
            } else {
                &mut thread.choice
            },
            arrivals,
            replay: None,
            log: None,
            reservations: None,
        };
        work(phase, context, &mut recorder)?;
        if paced {
            thread.endpoint.restart_scripts(false);
        }
        Ok(recorder)
    }
}
