//! A whole trial: connect, prepare, warm up, wait for everyone, measure, close.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use uncork_model::{
    DigestMode, DriverKind, LoadPlan, Outcome, Parameters, PlanError, StatementSummary, Stop,
    Totals,
};
use uncork_sample::{Snapshot, delta, server_snapshot, snapshot};
use uncork_schedule::ClosedLoop;

use crate::cut::Cut;
use crate::pin::{pin_backends, pin_thread};
use crate::worker::{Phase, Work, work};
use crate::{
    Driver, Endpoint, FakeDriver, Interrupt, LoadError, PostgresDriver, Recorder, Traffic,
};

/// What a trial answers.
#[derive(Debug)]
pub struct Report {
    /// In sum.
    pub totals: Totals,
    /// One row a statement, then one for the operation.
    pub statements: Vec<StatementSummary>,
}

/// Carries out a trial. Blocks until it is over; `interrupt` ends it within some 50 ms.
///
/// # Errors
///
/// [`LoadError`] when nothing could be measured. Errors of statements, a lost connection and a
/// missed deadline are results: see [`Totals::outcome`].
pub fn run(
    plan: &LoadPlan,
    parameters: &Parameters,
    interrupt: &Interrupt,
) -> Result<Report, LoadError> {
    for statement in &plan.statements {
        parameters.check(statement)?;
    }
    match plan.driver {
        DriverKind::Postgres => run_with(plan, &PostgresDriver::new(plan, parameters)?, interrupt),
        DriverKind::Fake => {
            let fake = plan.fake.clone().ok_or_else(|| {
                PlanError::Invalid("the fake driver needs fake.latencies_ns".to_owned())
            })?;
            let driver = FakeDriver::new(fake, plan.statements.len(), plan.digest);
            run_with(plan, &driver, interrupt)
        }
    }
}

fn run_with<D: Driver>(
    plan: &LoadPlan,
    driver: &D,
    interrupt: &Interrupt,
) -> Result<Report, LoadError> {
    let trial = Trial {
        plan,
        names: plan
            .statements
            .iter()
            .map(|statement| statement.name.as_str())
            .collect(),
        next_operation: AtomicU64::new(0),
        cut: Cut::new(interrupt),
    };
    let mut endpoints = match trial.connect(driver, interrupt) {
        Ok(endpoints) => endpoints,
        Err(error @ LoadError::Deadline(_)) => {
            trial.cut.set(Outcome::Deadline, error.to_string());
            return Ok(trial.report(Totals::default(), &trial.recorder()));
        }
        Err(error) => return Err(error),
    };
    let connect_ns = endpoints
        .iter()
        .map(Endpoint::connect_ns)
        .max()
        .unwrap_or(0);
    for endpoint in &endpoints {
        pin_backends(&endpoint.backends(), plan.pin_cpu)?;
    }
    let warmup = trial.warm_up(&mut endpoints)?;
    let mut totals = Totals {
        connect_ns,
        warmup_failed: warmup.failed,
        first_error: warmup.first_error.clone(),
        ..Totals::default()
    };
    let mut recorder = trial.recorder();
    if !trial.cut.is_set() {
        recorder = trial.measure(&mut endpoints, &mut totals)?;
    }
    for endpoint in endpoints {
        endpoint.close();
    }
    if trial.cut.interrupted() {
        return Err(LoadError::Interrupted);
    }
    Ok(trial.report(totals, &recorder))
}

struct Trial<'a> {
    plan: &'a LoadPlan,
    names: Vec<&'a str>,
    next_operation: AtomicU64,
    cut: Cut<'a>,
}

/// What one thread did in the measured part.
struct Share {
    recorder: Recorder,
    elapsed_ns: u64,
    user_ns: u64,
    system_ns: u64,
    traffic: Traffic,
}

impl Trial<'_> {
    fn recorder(&self) -> Recorder {
        Recorder::new(self.names.len())
    }

    fn phase(&self, first_operation: u64) -> Phase<'_> {
        Phase {
            names: &self.names,
            transaction: self.plan.transaction,
            next_operation: &self.next_operation,
            first_operation,
            cut: &self.cut,
        }
    }

    /// Opens all connections, each thread its share.
    fn connect<D: Driver>(
        &self,
        driver: &D,
        interrupt: &Interrupt,
    ) -> Result<Vec<D::Endpoint>, LoadError> {
        let threads = self.plan.effective_threads();
        let (share, rest) = (self.plan.clients / threads, self.plan.clients % threads);
        thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|number| share + usize::from(number < rest))
                .map(|clients| scope.spawn(move || driver.open(clients, interrupt)))
                .collect();
            let endpoints: Vec<_> = handles.into_iter().map(join).collect::<Result<_, _>>()?;
            endpoints.into_iter().collect()
        })
    }

    /// Runs the operations before the measured ones. Nobody goes on before everyone is done.
    fn warm_up<E: Endpoint + Send>(&self, endpoints: &mut [E]) -> Result<Recorder, LoadError> {
        let mut recorder = self.recorder();
        if self.plan.warmup_operations > 0 {
            let phase = self.phase(0);
            let stop = Stop::Operations(self.plan.warmup_operations);
            let phase = &phase;
            let recorders = thread::scope(|scope| {
                let handles: Vec<_> = endpoints
                    .iter_mut()
                    .map(|endpoint| {
                        scope.spawn(move || {
                            pin_thread(self.plan.pin_cpu)?;
                            Ok(work(phase, &self.schedule(stop, endpoint), endpoint))
                        })
                    })
                    .collect();
                handles
                    .into_iter()
                    .map(|handle| join(handle)?)
                    .collect::<Result<Vec<_>, LoadError>>()
            })?;
            for one in &recorders {
                recorder.merge(&one.recorder);
            }
        }
        self.next_operation
            .store(self.plan.warmup_operations, Ordering::Relaxed);
        Ok(recorder)
    }

    /// Runs the measured operations, between two readings of what the server has used.
    fn measure<E: Endpoint + Send>(
        &self,
        endpoints: &mut [E],
        totals: &mut Totals,
    ) -> Result<Recorder, LoadError> {
        let ready = Barrier::new(endpoints.len() + 1);
        let go = Barrier::new(endpoints.len() + 1);
        let phase = &self.phase(self.plan.warmup_operations);
        let (shares, before) = thread::scope(|scope| {
            let handles: Vec<_> = endpoints
                .iter_mut()
                .map(|endpoint| {
                    let (ready, go) = (&ready, &go);
                    scope.spawn(move || {
                        let pinned = pin_thread(self.plan.pin_cpu);
                        ready.wait();
                        go.wait();
                        pinned.map(|()| self.measure_share(phase, endpoint))
                    })
                })
                .collect();
            ready.wait();
            // Even if it fails the threads wait for us.
            let before = self.snapshot();
            if let Err(error) = &before {
                self.cut.set(Outcome::ConnectionLost, error.to_string());
            }
            go.wait();
            let shares = handles
                .into_iter()
                .map(|handle| join(handle)?)
                .collect::<Result<Vec<_>, LoadError>>();
            (shares, before)
        });
        let (shares, before) = (shares?, before?);
        match self.snapshot() {
            Ok(after) => {
                let cost = delta(&before, &after);
                totals.server = cost.server;
                totals.steal_ns = cost.steal_ns;
                totals.throttled_ns = cost.throttled_ns;
            }
            // The server is gone: what it cost is not known, what was measured is.
            Err(error) => self.cut.set(Outcome::ConnectionLost, error.to_string()),
        }
        let mut recorder = self.recorder();
        for share in &shares {
            recorder.merge(&share.recorder);
            totals.elapsed_ns = totals.elapsed_ns.max(share.elapsed_ns);
            totals.client_user_ns += share.user_ns;
            totals.client_system_ns += share.system_ns;
            totals.sent_bytes += share.traffic.sent_bytes;
            totals.received_bytes += share.traffic.received_bytes;
        }
        Ok(recorder)
    }

    fn measure_share<E: Endpoint>(&self, phase: &Phase<'_>, endpoint: &mut E) -> Share {
        let traffic = endpoint.traffic();
        let (user_ns, system_ns) = thread_cpu();
        let schedule = self.schedule(self.plan.stop, endpoint);
        let Work {
            recorder,
            elapsed_ns,
        } = work(phase, &schedule, endpoint);
        let (user_end_ns, system_end_ns) = thread_cpu();
        let traffic_end = endpoint.traffic();
        Share {
            recorder,
            elapsed_ns,
            user_ns: user_end_ns.saturating_sub(user_ns),
            system_ns: system_end_ns.saturating_sub(system_ns),
            traffic: Traffic {
                sent_bytes: traffic_end.sent_bytes - traffic.sent_bytes,
                received_bytes: traffic_end.received_bytes - traffic.received_bytes,
            },
        }
    }

    /// The schedule of a phase that begins now: the trial's deadline counts from its beginning.
    fn schedule(&self, stop: Stop, endpoint: &impl Endpoint) -> ClosedLoop {
        ClosedLoop::new(
            stop,
            self.plan.deadline_ns.saturating_sub(endpoint.now_ns()),
        )
    }

    fn snapshot(&self) -> Result<Snapshot, LoadError> {
        Ok(match self.plan.watch_pid {
            Some(pid) => server_snapshot(pid)?,
            None => snapshot()?,
        })
    }

    fn report(&self, mut totals: Totals, recorder: &Recorder) -> Report {
        if let Some((outcome, message)) = self.cut.cause() {
            totals.outcome = *outcome;
            totals.message = Some(message.clone());
        }
        totals.started = recorder.started;
        totals.succeeded = recorder.succeeded;
        totals.failed = recorder.failed;
        totals.errors.clone_from(&recorder.errors);
        if recorder.first_error.is_some() {
            totals.first_error.clone_from(&recorder.first_error);
        }
        totals.rows = recorder.operation.rows();
        totals.digest = (self.plan.digest != DigestMode::None).then(|| recorder.digest.hex());
        let statements = recorder.summaries(self.names.iter().copied());
        Report { totals, statements }
    }
}

fn join<T>(handle: thread::ScopedJoinHandle<'_, T>) -> Result<T, LoadError> {
    handle
        .join()
        .map_err(|_| LoadError::Defect("a thread panicked"))
}

/// The calling thread's CPU time in user mode and in the kernel.
fn thread_cpu() -> (u64, u64) {
    let nanoseconds = |time: TimeVal| {
        let microseconds = i128::from(time.tv_sec()) * 1_000_000 + i128::from(time.tv_usec());
        u64::try_from(microseconds * 1_000).unwrap_or(0)
    };
    // The call has no way to fail for one's own thread.
    getrusage(UsageWho::RUSAGE_THREAD).map_or((0, 0), |usage| {
        (
            nanoseconds(usage.user_time()),
            nanoseconds(usage.system_time()),
        )
    })
}

#[cfg(test)]
mod tests {
    use uncork_model::StatementKind;

    use super::*;

    /// A trial with the fake driver: three statements, of 1, 2 and 3 ns.
    fn trial(changes: &str) -> Report {
        let text = format!(
            r#"{{"driver": "fake", "protocol": "simple", "deadline_ns": 1000000, {changes},
            "statements": [{{"name": "a", "sql": ""}}, {{"name": "b", "sql": ""}},
            {{"name": "c", "sql": ""}}]}}"#
        );
        let plan = LoadPlan::parse(text.as_bytes()).expect("valid");
        run(&plan, &Parameters::default(), &Interrupt::default()).expect("runs")
    }

    /// Checks what must hold for every trial, and returns its totals.
    fn checked(report: &Report) -> &Totals {
        let totals = &report.totals;
        assert_eq!(totals.started, totals.succeeded + totals.failed);
        let (operation, statements) = report.statements.split_last().expect("has rows");
        assert_eq!(operation.kind, StatementKind::Operation);
        assert_eq!(operation.executions, totals.started);
        assert_eq!(operation.errors, totals.failed);
        assert_eq!(operation.rows, totals.rows);
        assert_eq!(
            statements.iter().map(|row| row.rows).sum::<u64>(),
            totals.rows
        );
        let errors: u64 = totals.errors.values().sum();
        assert!(errors <= totals.failed);
        if totals.outcome == Outcome::Complete {
            assert_eq!(errors, totals.failed);
            assert_eq!(totals.message, None);
        }
        for row in &report.statements {
            let points = crate::merge([row.histogram.as_slice()]).expect("valid");
            let recorded = points.last().map_or(0, |point| point.cumulative_count);
            assert_eq!(recorded, row.executions - row.errors);
            assert_eq!(row.latency.is_some(), recorded > 0);
        }
        totals
    }

    #[test]
    fn counts_add_up_however_a_trial_goes() {
        let mut outcomes = Vec::new();
        for clients in [1, 2, 7] {
            for threads in [1, 3] {
                for transaction in [false, true] {
                    for stop in [r#"{"operations": 50}"#, r#"{"duration_ns": 100}"#] {
                        for fate in ["", r#", "fail_every": 3"#, r#", "lose_at": 9"#] {
                            let report = trial(&format!(
                                r#""clients": {clients}, "threads": {threads},
                                "transaction": {transaction}, "stop": {stop},
                                "warmup_operations": 4,
                                "fake": {{"latencies_ns": [1, 2, 3]{fate}}}"#
                            ));
                            outcomes.push(checked(&report).outcome);
                        }
                    }
                }
            }
        }
        assert!(outcomes.contains(&Outcome::Complete));
        assert!(outcomes.contains(&Outcome::ConnectionLost));
    }

    #[test]
    fn statements_add_up_to_the_operation() {
        let report = trial(
            r#""clients": 1, "threads": 1, "stop": {"operations": 10},
            "fake": {"latencies_ns": [1, 2, 3]}"#,
        );
        let totals = checked(&report);
        let sums: Vec<u64> = report.statements.iter().map(|row| row.sum_ns).collect();
        assert_eq!(sums, [10, 20, 30, 60]);
        assert_eq!((totals.elapsed_ns, totals.rows), (60, 30));
    }

    #[test]
    fn a_missed_deadline_gives_up_what_is_under_way() {
        let report = trial(
            r#""clients": 2, "threads": 1, "stop": {"operations": 1000000000},
            "fake": {"latencies_ns": [300000]}"#,
        );
        let totals = checked(&report);
        assert_eq!(totals.outcome, Outcome::Deadline);
        assert_eq!(
            (totals.started, totals.failed, totals.elapsed_ns),
            (4, 2, 1_000_000)
        );
    }

    #[test]
    fn an_interrupt_ends_a_trial() {
        let text = r#"{"driver": "fake", "protocol": "simple", "deadline_ns": 1000, "clients": 1,
            "threads": 1, "statements": [{"name": "a", "sql": ""}], "stop": {"operations": 1},
            "fake": {"latencies_ns": [1]}}"#;
        let plan = LoadPlan::parse(text.as_bytes()).expect("valid");
        let interrupt = Interrupt::default();
        interrupt.request();
        let error = run(&plan, &Parameters::default(), &interrupt).expect_err("interrupted");
        assert!(matches!(error, LoadError::Interrupted));
    }
}
