//! A block: slices of several arms in turn, over connections that stay open.
//!
//! A separate trial pays for connecting, for two readings of the server, and for whatever its
//! caller does in between; slices pay only for the readings. So they can be short, and arms that
//! follow each other within milliseconds run under the same conditions.
//!
//! ```text
//!  connect and warm up every arm ─▶ cycle 0: a slice of each arm, in its order
//!                                   cycle 1: the same, in another order
//! ⋯ until the last cycle, or until time is up
//! ```
//!
//! A slice may settle first: it runs operations that are not measured, until processor caches,
//! branch predictors and clock frequency have adapted to this arm again.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use uncork_model::{
    BlockPlan, DriverKind, Outcome, Parameters, PlanError, SlicePlan, SliceRow, Stop, Totals,
};
use uncork_sample::{Sampled, Sampler, ServerUse, delta, server_use, thread_waited_ns, waited_ns};

use super::{Control, Done, Report, Thread, Trial, add_connections, join, makes_sense};
use crate::pin::{pin_backends, pin_thread};
use crate::recorder::Shape;
use crate::{Driver, Endpoint, FakeDriver, HttpDriver, LoadError, PostgresDriver, Recorder};

/// The result of a block.
#[derive(Debug)]
pub struct BlockReport {
    /// Totals of each arm's slices.
    pub arms: Vec<Report>,
    /// The measurements of each slice, in chronological order.
    pub slices: Vec<SliceRow>,
    /// What machine and processes did meanwhile, if requested.
    pub system: Option<Sampled>,
}

/// Carry out a block. Blocks until it is over.
///
/// An arm that stopped early (see [`Totals::outcome`]) has no further slices; a server that is gone
/// ends the block.
///
/// # Errors
///
/// [`LoadError`] if an arm cannot be connected or prepared, or if the block was interrupted.
pub fn run_block(
    plan: &BlockPlan,
    parameters: &[Parameters],
    control: &Control,
) -> Result<BlockReport, LoadError> {
    if parameters.len() != plan.arms.len() {
        return Err(PlanError::Invalid("a block needs parameters for each arm".to_owned()).into());
    }
    let arms = || plan.arms.iter().zip(parameters);
    for (arm, parameters) in arms() {
        makes_sense(arm, parameters)?;
    }
    match plan.arms[0].driver {
        DriverKind::Postgres => {
            let drivers = arms()
                .map(|(arm, parameters)| PostgresDriver::new(arm, parameters, control))
                .collect::<Result<Vec<_>, _>>()?;
            let arms = drivers.iter().map(|driver| (driver, driver.shape()));
            run_arms(plan, arms, control)
        }
        DriverKind::Http => {
            let drivers = arms()
                .map(|(arm, _)| HttpDriver::new(arm, &control.interrupt))
                .collect::<Result<Vec<_>, _>>()?;
            let arms = drivers.iter().map(|driver| (driver, driver.shape()));
            run_arms(plan, arms, control)
        }
        DriverKind::Fake => {
            let shapes: Vec<_> = plan.arms.iter().map(Shape::of).collect();
            let drivers: Vec<_> = plan
                .arms
                .iter()
                .zip(&shapes)
                .map(|(arm, shape)| {
                    let fake = arm.fake.clone().unwrap_or_default();
                    FakeDriver::new(fake, shape, arm.digest, arm.pipeline_depth)
                })
                .collect();
            run_arms(plan, drivers.iter().zip(&shapes), control)
        }
    }
}

/// One arm of a block, connected.
struct Arm<'a, E> {
    trial: Trial<'a>,
    threads: Vec<Thread<E>>,
    /// One per thread, for all slices together.
    recorders: Vec<Recorder>,
    totals: Totals,
    server: Option<ServerUse>,
}

fn run_arms<'a, D: Driver + 'a>(
    plan: &'a BlockPlan,
    arms: impl Iterator<Item = (&'a D, &'a Shape)>,
    control: &'a Control,
) -> Result<BlockReport, LoadError> {
    let mut connected = Vec::with_capacity(plan.arms.len());
    for (arm, (driver, shape)) in plan.arms.iter().zip(arms) {
        connected.push(Arm::connect(
            Trial::new(arm, shape, control),
            driver,
            control,
        )?);
    }
    // Before this thread is pinned, because new threads inherit that.
    let sampler = plan.sample.as_ref().map(Sampler::start);
    pin_thread(plan.arms[0].pin_cpu)?;
    let slices = cycles(plan, &mut connected);
    // Without a sampler thread the measurement is still valid.
    let system = sampler.and_then(Result::ok).map(Sampler::stop);
    let slices = slices?;
    let arms = connected.into_iter().map(Arm::close).collect();
    if control.interrupt.requested() {
        return Err(LoadError::Interrupted);
    }
    Ok(BlockReport {
        arms,
        slices,
        system,
    })
}

fn cycles<E: Endpoint + Send>(
    plan: &BlockPlan,
    arms: &mut [Arm<'_, E>],
) -> Result<Vec<SliceRow>, LoadError> {
    let origin = Instant::now();
    let mut rows = Vec::new();
    for (number, cycle) in plan.cycles.iter().enumerate() {
        let balanced = number > 0 && number.is_multiple_of(plan.cycles_together);
        if balanced
            && plan
                .limit_ns
                .is_some_and(|limit_ns| since(origin) >= limit_ns)
        {
            break;
        }
        for &place in cycle {
            let arm = &mut arms[place];
            if arm.trial.stop_signal.is_set() {
                continue;
            }
            let row = arm.slice(plan.slices[place], number, origin)?;
            rows.push(SliceRow { arm: place, ..row });
            if arm.trial.stop_signal.interrupted() || arm.is_lost() {
                return Ok(rows);
            }
        }
    }
    Ok(rows)
}

fn since(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl<'a, E: Endpoint + Send> Arm<'a, E> {
    fn connect<D: Driver<Endpoint = E>>(
        trial: Trial<'a>,
        driver: &D,
        control: &Control,
    ) -> Result<Self, LoadError> {
        let mut totals = Totals::default();
        let mut threads = match trial.connect(driver, &control.interrupt) {
            Ok(threads) => threads,
            // A server's refusal is a result; see `Trial::not_connected`.
            Err(error) => {
                totals = trial.not_connected(error)?.totals;
                Vec::new()
            }
        };
        for thread in &threads {
            pin_backends(&thread.endpoint.backends(), trial.plan.pin_cpu)?;
        }
        let mut recorders: Vec<_> = threads.iter().map(|_| trial.recorder(true)).collect();
        if !trial.stop_signal.is_set() {
            let warmup = trial.warm_up(&mut threads)?;
            totals.warmup_failed = warmup.failed;
            totals.first_error.clone_from(&warmup.first_error);
            if let Some(first) = recorders.first_mut() {
                first.take_over_connections(&warmup);
            }
        }
        Ok(Self {
            trial,
            threads,
            recorders,
            totals,
            server: None,
        })
    }

    fn is_lost(&self) -> bool {
        let cause = self.trial.stop_signal.cause();
        cause.is_some_and(|(outcome, _)| *outcome == Outcome::ConnectionLost)
    }

    /// Run one slice, between two readings of the server's resource use.
    fn slice(
        &mut self,
        slice: SlicePlan,
        cycle: usize,
        origin: Instant,
    ) -> Result<SliceRow, LoadError> {
        if let Some(settle) = slice.settle {
            let mut unmeasured: Vec<_> = self
                .threads
                .iter()
                .map(|_| self.trial.recorder(false))
                .collect();
            phase(
                &self.trial,
                &mut self.threads,
                &mut unmeasured,
                settle,
                cycle,
            )?;
            for one in &unmeasured {
                self.totals.settling += one.started;
                self.totals.warmup_failed += one.failed;
                if self.totals.first_error.is_none() {
                    self.totals.first_error.clone_from(&one.first_error);
                }
            }
        }
        let (started, succeeded, sum_ns) = self.counts();
        let before = self.trial.snapshot();
        let waited = self.waited_ns();
        let begun_ns = since(origin);
        let done = phase(
            &self.trial,
            &mut self.threads,
            &mut self.recorders,
            slice.stop,
            cycle,
        )?;
        let waited_ns = self
            .waited_ns()
            .zip(waited)
            .map(|(after, before)| after.saturating_sub(before) + waited_by(&done));
        match (before, self.trial.snapshot()) {
            (Ok(before), Ok(after)) => self.add_cost(&before, &after),
            // The server is gone: its resource use is unknown, but the measurement is valid.
            (Err(error), _) | (_, Err(error)) => {
                self.trial
                    .stop_signal
                    .set(Outcome::ConnectionLost, error.to_string());
            }
        }
        let elapsed_ns = done.iter().map(|done| done.elapsed_ns).max().unwrap_or(0);
        let totals = &mut self.totals;
        totals.elapsed_ns += elapsed_ns;
        for done in &done {
            totals.client_user_ns += done.user_ns;
            totals.client_system_ns += done.system_ns;
            totals.busiest_thread = totals.busiest_thread.max(done.busy());
            totals.sent_bytes += done.traffic.sent_bytes;
            totals.received_bytes += done.traffic.received_bytes;
        }
        let now = self.counts();
        Ok(SliceRow {
            arm: 0,
            cycle,
            begun_ns,
            elapsed_ns,
            started: now.0 - started,
            succeeded: now.1 - succeeded,
            sum_ns: now.2 - sum_ns,
            waited_ns,
        })
    }

    fn add_cost(&mut self, before: &uncork_sample::Snapshot, after: &uncork_sample::Snapshot) {
        if let Some(used) = server_use(before, after) {
            self.server.get_or_insert_default().add(used);
        }
        let cost = delta(before, after);
        self.totals.steal_ns += cost.steal_ns;
        if let Some(throttled_ns) = cost.throttled_ns {
            *self.totals.throttled_ns.get_or_insert(0) += throttled_ns;
        }
    }

    /// Operations begun and succeeded, and the sum of latencies, so far.
    fn counts(&self) -> (u64, u64, u64) {
        self.recorders.iter().fold((0, 0, 0), |sum, one| {
            (
                sum.0 + one.started,
                sum.1 + one.succeeded,
                sum.2 + one.latencies_ns(),
            )
        })
    }

    /// How long the backends have waited for a processor, and this thread too if it sends the load
    /// itself.
    fn waited_ns(&self) -> Option<u64> {
        let own = if self.threads.len() == 1 {
            thread_waited_ns()?
        } else {
            0
        };
        self.threads
            .iter()
            .flat_map(|thread| thread.endpoint.backends())
            .map(waited_ns)
            .try_fold(own, |sum, one| Some(sum + one?))
    }

    fn close(self) -> Report {
        let Self {
            trial,
            threads,
            recorders,
            mut totals,
            server,
        } = self;
        for thread in threads {
            add_connections(&mut totals.connections, thread.endpoint.connections());
            let (user_ns, system_ns) = thread.endpoint.close();
            totals.client_user_ns += user_ns;
            totals.client_system_ns += system_ns;
        }
        totals.server = server.map(ServerUse::cpu);
        let mut recorder = trial.recorder(true);
        for one in &recorders {
            recorder.merge(one);
        }
        let connect_errors = std::mem::take(&mut totals.connect_errors);
        let mut report = trial.report(totals, &recorder);
        report.totals.connect_errors.extend(connect_errors);
        report
    }
}

/// Run all threads of an arm until `stop`. One of them is the calling thread, because starting
/// another takes as long as several operations.
fn phase<E: Endpoint + Send>(
    trial: &Trial<'_>,
    threads: &mut [Thread<E>],
    recorders: &mut [Recorder],
    stop: Stop,
    cycle: usize,
) -> Result<Vec<Done>, LoadError> {
    let first = trial.next_operation.load(Ordering::Relaxed);
    let phase = &trial.phase(first, stop, None);
    let seed = trial.plan.seed.wrapping_add(cycle as u64);
    let done = match (threads, recorders) {
        ([thread], [recorder]) => vec![trial.measure_thread(phase, thread, recorder, seed)?],
        (threads, recorders) => thread::scope(|scope| {
            let handles: Vec<_> = threads
                .iter_mut()
                .zip(recorders)
                .map(|(thread, recorder)| {
                    scope.spawn(move || {
                        let before = thread_waited_ns().unwrap_or(0);
                        let mut done = trial.measure_thread(phase, thread, recorder, seed)?;
                        done.waited_ns = thread_waited_ns().unwrap_or(0).saturating_sub(before);
                        Ok(done)
                    })
                })
                .collect();
            handles
                .into_iter()
                .map(|handle| join(handle)?)
                .collect::<Result<Vec<_>, LoadError>>()
        })?,
    };
    // In a closed loop, operations that clients requested after the end are numbered too.
    if let (Stop::Operations(count), None) = (stop, &trial.pattern) {
        trial.next_operation.store(first + count, Ordering::Relaxed);
    }
    Ok(done)
}

fn waited_by(done: &[Done]) -> u64 {
    done.iter().map(|done| done.waited_ns).sum()
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
