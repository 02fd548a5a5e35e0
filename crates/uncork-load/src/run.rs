//! A whole trial: connect, prepare, warm up, wait for all threads, measure, close.

mod block;
mod messages;
mod start_time;
mod warm_up;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use uncork_model::{
    ArrivalPlan, Connections, DigestMode, DriverKind, HttpPlan, LoadPlan, OnLost, Outcome,
    Parameters, PlanError, SeriesRow, StatementSummary, StatusRow, Stop, Totals,
};
use uncork_sample::{Sampled, Sampler, Snapshot, delta, server_snapshot, snapshot};
use uncork_schedule::{Arrivals, Pattern};
use uncork_script::{Prng, Streams};

use crate::board::Board;
use crate::log::Log;
use crate::phase::Phase;
use crate::pin::{pin_backends, pin_thread};
use crate::planned::shares;
use crate::recorder::Shape;
use crate::reservations::{Reservations, reservations_error};
use crate::socket::udp_drops;
use crate::stop_signal::StopSignal;
use crate::thread_cpu::thread_cpu;
use crate::worker::replay::Replay;
use crate::worker::{WorkerContext, work};
use crate::{
    Driver, Endpoint, FakeDriver, HttpDriver, Interrupt, Lease, LoadError, PostgresDriver,
    Recorder, Share, Traffic,
};

pub use block::{BlockReport, run_block};
pub use messages::Messages;
pub(crate) use warm_up::WARM_UP_SEED;

/// The result of a trial.
#[derive(Debug)]
pub struct Report {
    /// Totals of the measured part.
    pub totals: Totals,
    /// One row per statement, then one per script, then those of all operations.
    pub statements: Vec<StatementSummary>,
    /// Counts of each interval, if a series is requested.
    pub series: Vec<SeriesRow>,
    /// Number of answers by status and interval, if a series of an HTTP load is requested.
    pub statuses: Vec<StatusRow>,
    /// What machine and processes did meanwhile, if requested and anything was measured.
    pub system: Option<Sampled>,
}

/// How the caller of [`run`] watches and stops a trial.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// Stops the trial within about 50 ms.
    pub interrupt: Interrupt,
    /// Receives progress.
    pub board: Arc<Board>,
    /// Lets the trial continue, if its plan requires a lease.
    pub lease: Lease,
    /// Receives lines about single errors and statements, as the plan's verbosity requires.
    pub messages: Arc<Messages>,
}

/// Carry out a trial. Blocks until it is over.
///
/// # Errors
///
/// [`LoadError`] if nothing could be measured. Errors of statements, a lost connection and a missed
/// deadline are results: see [`Totals::outcome`].
pub fn run(
    plan: &LoadPlan,
    parameters: &Parameters,
    control: &Control,
) -> Result<Report, LoadError> {
    makes_sense(plan, parameters)?;
    match plan.driver {
        DriverKind::Postgres => {
            let driver = PostgresDriver::new(plan, parameters, control)?;
            run_with(plan, &driver, driver.shape(), control)
        }
        DriverKind::Http => {
            let driver = HttpDriver::new(plan, &control.interrupt)?;
            run_with(plan, &driver, driver.shape(), control)
        }
        DriverKind::Fake => {
            let fake = plan.fake.clone().ok_or_else(|| {
                PlanError::Invalid("the fake driver needs fake.latencies_ns".to_owned())
            })?;
            let shape = Shape::of(plan);
            let driver = FakeDriver::new(fake, &shape, plan.digest, plan.pipeline_depth);
            run_with(plan, &driver, &shape, control)
        }
    }
}

/// Check a plan and its scripts or requests, without connecting to a server.
///
/// # Errors
///
/// The [`LoadError`] that [`run`] would return before it connects.
pub fn check(plan: &LoadPlan, parameters: &Parameters) -> Result<(), LoadError> {
    makes_sense(plan, parameters)?;
    match plan.driver {
        DriverKind::Http => HttpDriver::new(plan, &Interrupt::default()).map(|_| ()),
        DriverKind::Postgres | DriverKind::Fake => PostgresDriver::check(plan, parameters),
    }
}

fn makes_sense(plan: &LoadPlan, parameters: &Parameters) -> Result<(), LoadError> {
    for statement in plan.statements() {
        parameters.check(statement)?;
    }
    if let Some(arrivals) = &plan.arrivals {
        pattern(arrivals).check()?;
    }
    Ok(())
}

fn run_with<D: Driver>(
    plan: &LoadPlan,
    driver: &D,
    shape: &Shape,
    control: &Control,
) -> Result<Report, LoadError> {
    let trial = Trial::new(plan, shape, control);
    let mut threads = match trial.connect(driver, &control.interrupt) {
        Ok(threads) => threads,
        Err(error) => return trial.not_connected(error),
    };
    for thread in &threads {
        pin_backends(&thread.endpoint.backends(), plan.pin_cpu)?;
    }
    let warmup = trial.warm_up(&mut threads)?;
    let mut totals = Totals {
        warmup_failed: warmup.failed,
        first_error: warmup.first_error.clone(),
        ..Totals::default()
    };
    let mut recorder = trial.recorder(false);
    let mut system = None;
    if !trial.stop_signal.is_set() {
        (recorder, system) = trial.measure(&mut threads, &mut totals)?;
        recorder.take_over_connections(&warmup);
    }
    for thread in threads {
        add_connections(&mut totals.connections, thread.endpoint.connections());
        let (user_ns, system_ns) = thread.endpoint.close();
        totals.client_user_ns += user_ns;
        totals.client_system_ns += system_ns;
    }
    if trial.stop_signal.interrupted() {
        if !plan.keep_interrupted {
            return Err(LoadError::Interrupted);
        }
        trial
            .stop_signal
            .set(Outcome::Interrupted, "stopped on request");
    }
    Ok(Report {
        system,
        ..trial.report(totals, &recorder)
    })
}

pub(crate) fn pattern(plan: &ArrivalPlan) -> Pattern {
    match plan {
        ArrivalPlan::Poisson { rate } => Pattern::Poisson { rate: *rate },
        ArrivalPlan::Constant { rate } => Pattern::Constant { rate: *rate },
        ArrivalPlan::Bursts { rate, size } => Pattern::Bursts {
            rate: *rate,
            size: *size,
        },
        ArrivalPlan::Trace { offsets_ns } => Pattern::Trace(offsets_ns.as_slice().into()),
    }
}

fn add_connections(sum: &mut Connections, one: Connections) {
    sum.opened += one.opened;
    sum.lost += one.lost;
    sum.sum_ns += one.sum_ns;
    sum.max_ns = sum.max_ns.max(one.max_ns);
}

struct Trial<'a> {
    plan: &'a LoadPlan,
    shape: &'a Shape,
    weights: Vec<u32>,
    pattern: Option<Pattern>,
    next_operation: AtomicU64,
    stop_signal: StopSignal<'a>,
    board: &'a Board,
    messages: &'a Messages,
}

/// The state of one thread.
struct Thread<E> {
    share: Share,
    endpoint: E,
    /// For each client, the random numbers that choose its scripts.
    choice: Vec<Prng>,
}

/// What one thread did in the measured part, in addition to its recorder's counts.
struct Done {
    elapsed_ns: u64,
    start_late_ns: Option<u64>,
    user_ns: u64,
    system_ns: u64,
    /// How long it waited for a processor, if measured.
    waited_ns: u64,
    traffic: Traffic,
    /// How long requests for a connection waited; see [`Endpoint::opening_wait_ns`].
    opening_wait_ns: u64,
}

impl<'a> Trial<'a> {
    fn new(plan: &'a LoadPlan, shape: &'a Shape, control: &'a Control) -> Self {
        Self {
            plan,
            shape,
            weights: plan.scripts.iter().map(|script| script.weight).collect(),
            pattern: plan.arrivals.as_ref().map(pattern),
            next_operation: AtomicU64::new(0),
            stop_signal: StopSignal::new(
                &control.interrupt,
                plan.give_up,
                plan.part.lease_ns.map(|term_ns| (&control.lease, term_ns)),
            ),
            board: &control.board,
            messages: &control.messages,
        }
    }
}

impl Trial<'_> {
    fn recorder(&self, measured: bool) -> Recorder {
        let interval_ns = if measured { self.plan.interval_ns } else { 0 };
        let open_loop = measured && self.pattern.is_some();
        Recorder::new(self.shape, open_loop, interval_ns)
    }

    fn phase(&self, first_operation: u64, stop: Stop, board: Option<&'_ Board>) -> Phase<'_> {
        Phase {
            plan: self.plan,
            weights: &self.weights,
            next_operation: &self.next_operation,
            numbers_from: 0,
            first_operation,
            stop_signal: &self.stop_signal,
            board: board.map(|_| self.board),
            messages: self.messages,
            stop,
        }
    }

    /// Open all connections, each thread its share.
    fn connect<D: Driver>(
        &self,
        driver: &D,
        interrupt: &Interrupt,
    ) -> Result<Vec<Thread<D::Endpoint>>, LoadError> {
        let plan = self.plan;
        let streams = Streams::new(plan.seed, plan.most_clients(), None);
        let thread = |share: Share| {
            // Additional connections are numbered after those of all threads.
            let most = share.count() + (plan.most_clients() - plan.clients);
            let choice = (0..most)
                .map(|index| share.client(index))
                .take_while(|&client| client < plan.most_clients())
                .map(|client| streams.client(client).choose)
                .collect();
            Ok(Thread {
                share,
                endpoint: driver.open(share, interrupt)?,
                choice,
            })
        };
        thread::scope(|scope| {
            let handles: Vec<_> = shares(plan)
                .map(|share| {
                    let thread = &thread;
                    scope.spawn(move || thread(share))
                })
                .collect();
            let opened: Vec<_> = handles.into_iter().map(join).collect::<Result<_, _>>()?;
            opened.into_iter().collect()
        })
    }

    /// Return the report of a trial whose connections could not be opened.
    fn not_connected(&self, error: LoadError) -> Result<Report, LoadError> {
        let mut totals = Totals::default();
        match error {
            LoadError::Deadline(_) => self.stop_signal.set(Outcome::Deadline, error.to_string()),
            LoadError::Interrupted if self.plan.keep_interrupted => {
                self.stop_signal
                    .set(Outcome::Interrupted, "stopped on request");
            }
            LoadError::Connect(_)
                if self.plan.on_lost == OnLost::Reconnect || self.shape.answers =>
            {
                let failure = error.into_failure();
                totals.connect_errors = BTreeMap::from([(failure.code.clone(), 1)]);
                totals.first_error = Some(failure.message.clone());
                self.stop_signal.set(Outcome::Refused, failure.message);
            }
            error => return Err(error),
        }
        let mut report = self.report(totals.clone(), &self.recorder(true));
        report.totals.connect_errors = totals.connect_errors;
        Ok(report)
    }

    /// Run the measured operations, between two readings of the server's resource use.
    fn measure<E: Endpoint + Send>(
        &self,
        threads: &mut [Thread<E>],
        totals: &mut Totals,
    ) -> Result<(Recorder, Option<Sampled>), LoadError> {
        let ready = Barrier::new(threads.len() + 1);
        let go = Barrier::new(threads.len() + 1);
        self.board.begin(threads.len(), self.plan.interval_ns);
        let first = self.next_operation.load(Ordering::Relaxed);
        let phase = &self.phase(first, self.plan.stop, Some(self.board));
        let (shares, before, system, dropped) = thread::scope(|scope| {
            let handles: Vec<_> = threads
                .iter_mut()
                .map(|thread| {
                    let (ready, go) = (&ready, &go);
                    scope.spawn(move || {
                        let pinned = pin_thread(self.plan.pin_cpu);
                        ready.wait();
                        go.wait();
                        pinned?;
                        let mut recorder = self.recorder(true);
                        let done =
                            self.measure_thread(phase, thread, &mut recorder, self.plan.seed)?;
                        Ok((done, recorder))
                    })
                })
                .collect();
            ready.wait();
            start_time::approach(self.plan.part.start_at_ns, &self.stop_signal);
            // The other threads wait for this one, even if it fails.
            let before = self.snapshot();
            if let Err(error) = &before {
                self.stop_signal
                    .set(Outcome::ConnectionLost, error.to_string());
            }
            let sampler = self.plan.sample.as_ref().map(Sampler::start);
            let dropped = udp_drops();
            go.wait();
            let shares = handles
                .into_iter()
                .map(|handle| join(handle)?)
                .collect::<Result<Vec<_>, LoadError>>();
            // Without a sampler thread the measurement is still valid.
            let system = sampler.and_then(Result::ok).map(Sampler::stop);
            (shares, before, system, udp_drops().saturating_sub(dropped))
        });
        let (shares, before) = (shares?, before?);
        match self.snapshot() {
            Ok(after) => {
                let cost = delta(&before, &after);
                totals.server = cost.server;
                totals.steal_ns = cost.steal_ns;
                totals.throttled_ns = cost.throttled_ns;
            }
            // The server is gone: its resource use is unknown, but the measurement is valid.
            Err(error) => self
                .stop_signal
                .set(Outcome::ConnectionLost, error.to_string()),
        }
        let mut recorder = self.recorder(true);
        for (share, counted) in &shares {
            recorder.merge(counted);
            totals.elapsed_ns = totals.elapsed_ns.max(share.elapsed_ns);
            totals.start_late_ns = totals.start_late_ns.max(share.start_late_ns);
            totals.client_user_ns += share.user_ns;
            totals.client_system_ns += share.system_ns;
            totals.busiest_thread = totals.busiest_thread.max(share.busy());
            totals.opening_wait_ns += share.opening_wait_ns;
            totals.sent_bytes += share.traffic.sent_bytes;
            totals.received_bytes += share.traffic.received_bytes;
        }
        if self.plan.http.as_ref().is_some_and(HttpPlan::uses_udp) {
            recorder.answers().udp_dropped = dropped;
        }
        Ok((recorder, system))
    }

    fn measure_thread<E: Endpoint>(
        &self,
        phase: &Phase<'_>,
        thread: &mut Thread<E>,
        recorder: &mut Recorder,
        arrivals_seed: u64,
    ) -> Result<Done, LoadError> {
        let share = thread.share;
        let local_thread = share.thread % self.plan.effective_threads();
        let (replay, arrivals) = match (Replay::of(self.plan, share), &self.pattern) {
            (Some((replay, own)), _) => (Some(replay), Some(Arrivals::new(&own, 0, 0, 1)?)),
            (None, Some(pattern)) => {
                let arrivals = Arrivals::new(pattern, arrivals_seed, share.thread, share.threads)?;
                (None, Some(arrivals))
            }
            (None, None) => (None, None),
        };
        let log = match &self.plan.log {
            Some(log) => Some(Log::open(
                log,
                local_thread,
                self.pattern.is_some(),
                self.plan.max_tries != 1,
                Prng::new(self.plan.seed ^ share.thread as u64),
            )?),
            None => None,
        };
        let reservations = match &self.plan.part.reservations {
            Some(path) => Some(Reservations::open(path, local_thread).map_err(reservations_error)?),
            None => None,
        };
        let start_late_ns = start_time::wait(self.plan.part.start_at_ns, &self.stop_signal);
        let traffic = thread.endpoint.traffic();
        let opening_wait_ns = thread.endpoint.opening_wait_ns();
        let (user_ns, system_ns) = thread_cpu();
        let context = WorkerContext {
            share,
            endpoint: &mut thread.endpoint,
            choice: &mut thread.choice,
            arrivals,
            replay,
            log,
            reservations,
        };
        let elapsed_ns = work(phase, context, recorder)?;
        let (user_end_ns, system_end_ns) = thread_cpu();
        let traffic_end = thread.endpoint.traffic();
        Ok(Done {
            elapsed_ns,
            start_late_ns,
            user_ns: user_end_ns.saturating_sub(user_ns),
            system_ns: system_end_ns.saturating_sub(system_ns),
            waited_ns: 0,
            opening_wait_ns: thread.endpoint.opening_wait_ns() - opening_wait_ns,
            traffic: Traffic {
                sent_bytes: traffic_end.sent_bytes - traffic.sent_bytes,
                received_bytes: traffic_end.received_bytes - traffic.received_bytes,
            },
        })
    }

    fn snapshot(&self) -> Result<Snapshot, LoadError> {
        Ok(match self.plan.watch_pid {
            Some(pid) => server_snapshot(pid)?,
            None => snapshot()?,
        })
    }

    /// Return after how many operations the measured part ends, if a number ends it.
    fn planned(&self) -> Option<u64> {
        match self.plan.stop {
            Stop::DurationNs(_) => None,
            _ => crate::planned(self.plan).ok().flatten(),
        }
    }

    fn report(&self, mut totals: Totals, recorder: &Recorder) -> Report {
        if let Some((outcome, message)) = self.stop_signal.cause() {
            totals.outcome = *outcome;
            totals.message = Some(message.clone());
        }
        totals.started = recorder.started;
        totals.succeeded = recorder.succeeded;
        totals.failed = recorder.failed;
        totals.arrivals = self.pattern.is_some().then_some(recorder.arrivals);
        totals.skipped = recorder.skipped;
        totals.unsent = recorder.unsent;
        totals.late = recorder.late;
        totals.errors.clone_from(&recorder.errors);
        totals.connect_errors.clone_from(&recorder.connect_errors);
        totals.retried = recorder.retried;
        totals.retries.clone_from(&recorder.retries);
        totals.failures = recorder.failures(self.shape);
        if recorder.first_error.is_some() {
            totals.first_error.clone_from(&recorder.first_error);
        }
        totals.rows = recorder.rows;
        totals.statements = recorder.answered;
        totals.round_trips = recorder.round_trips;
        totals.connections.most = recorder.most;
        totals.http = self
            .shape
            .answers
            .then(|| recorder.http_totals(self.planned()));
        totals.digest = (self.plan.digest != DigestMode::None).then(|| recorder.digest.hex());
        Report {
            statuses: self.board.statuses(totals.elapsed_ns),
            totals,
            statements: recorder.summaries(),
            series: self.board.series(&self.shape.scripts),
            system: None,
        }
    }
}

impl Done {
    #[expect(
        clippy::cast_precision_loss,
        reason = "times of a trial are far below 2^53 ns"
    )]
    fn busy(&self) -> f64 {
        let used_ns = (self.user_ns + self.system_ns) as f64;
        (used_ns / (self.elapsed_ns.max(1) as f64)).min(1.0)
    }
}

fn join<T>(handle: thread::ScopedJoinHandle<'_, T>) -> Result<T, LoadError> {
    handle
        .join()
        .map_err(|_| LoadError::Defect("a thread panicked"))
}

#[cfg(test)]
mod part_tests;
#[cfg(test)]
mod tests;
