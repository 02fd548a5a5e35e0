//! One thread's work in one phase: it starts operations when the schedule says so, and counts how
//! they end.
//!
//! A slot is *closed* (its connection is not open, or not yet), *idle*, or *busy* with an
//! operation:
//!
//! ```text
//!            Opened               start                 Ended
//!  closed ───────────▶ idle ─────────────▶ busy ─────────────────▶ idle
//!     ▲                  │ Lost              │ Lost: it failed
//!     └──────────────────┴──────────────────┘
//! ```
//!
//! In a closed loop an idle slot starts its next operation at once. In an open loop operations
//! arrive at intended times. An operation that finds no idle slot waits, and another connection is
//! opened if the limit allows it. Latency counts from the intended start, so that waiting is part
//! of it (the correction for coordinated omission). Arrivals are not kept in a list: a second
//! iterator over the same arrivals counts those that are due.
//!
//! When the trial stops early, operations under way are cancelled and count as failed.

mod arriving;
mod happened;
pub(crate) mod replay;

use std::sync::atomic::Ordering;

use uncork_model::{Outcome, ScriptOrder, Stop};
use uncork_schedule::{Arrivals, ClosedLoop, Decision, Schedule};
use uncork_script::Prng;

use crate::lease::monotonic_ns;
use crate::log::Log;
use crate::open_loop::OpenLoop;
use crate::phase::Phase;
use crate::recorder::Load;
use crate::reservations::{Reservations, reservations_error};
use replay::Replay;

use crate::{Endpoint, LoadError, Recorder, Share, Task};

/// The longest wait before the stop signal is checked again.
const CHECK_INTERVAL_NS: u64 = 20_000_000;
/// How long clients that have finished keep their connections while others are at work. A pooler whose sessions keep server
/// connections has none for the others until then.
const LINGER_NS: u64 = 100_000_000;
/// The first pause before a lost connection is opened again.
const FIRST_PAUSE_NS: u64 = 50_000_000;
/// The longest pause.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// The trial ends when there has been no connection at all for this long.
const NO_CONNECTION_LIMIT_NS: u64 = 10_000_000_000;

/// The state that one thread keeps through all phases.
pub(crate) struct WorkerContext<'a, E> {
    pub(crate) share: Share,
    pub(crate) endpoint: &'a mut E,
    /// One random stream per client, for the choice of scripts.
    pub(crate) choice: &'a mut [Prng],
    /// Intended starts; `None` in a closed loop.
    pub(crate) arrivals: Option<Arrivals>,
    /// The operations of these arrivals, if each has its own client.
    pub(crate) replay: Option<Replay>,
    pub(crate) log: Option<Log>,
    pub(crate) reservations: Option<Reservations>,
}

/// Work until the phase is over or the trial stops early; return how long that took, from the first
/// start to the last answer.
pub(crate) fn work<E: Endpoint>(
    phase: &Phase<'_>,
    context: WorkerContext<'_, E>,
    recorder: &mut Recorder,
) -> Result<u64, LoadError> {
    let slots: Vec<Slot> = (0..context.endpoint.slots())
        .map(|slot| Slot {
            state: if context.endpoint.is_open(slot) {
                State::Idle
            } else {
                State::Closed
            },
            ..Slot::default()
        })
        .collect();
    let closed = slots.iter().filter(|slot| slot.is_closed()).count();
    let start_ns = context.endpoint.now_ns();
    let deadline_ns = phase.plan.deadline_ns.saturating_sub(start_ns);
    let mut worker = Worker {
        phase,
        schedule: ClosedLoop::new(phase.plan.part.stop(phase.stop), deadline_ns),
        deadline_ns: start_ns.saturating_add(deadline_ns),
        start_ns,
        first_number: phase.first_number(context.share),
        local_thread: context.share.thread % phase.plan.effective_threads(),
        start_monotonic_ns: phase.stop_signal.needs_lease().then(monotonic_ns),
        slots,
        idle: Vec::new(),
        free: 0,
        busy: 0,
        closed,
        without_ns: start_ns,
        finished_ns: None,
        releases: false,
        open_loop: None,
        replay: context.replay,
        share: context.share,
        endpoint: context.endpoint,
        choice: context.choice,
        log: context.log,
        reservations: context.reservations,
        recorder,
    };
    worker.endpoint.report(worker.recorder);
    worker.open_loop = context
        .arrivals
        .map(|arrivals| OpenLoop::new(arrivals, worker.share, phase.plan, phase.stop));
    if let Some(open_loop) = &mut worker.open_loop {
        open_loop.growing = worker.endpoint.growing() * phase.plan.pipeline_depth;
    }
    worker.run();
    let elapsed_ns = worker.endpoint.now_ns() - start_ns;
    worker.give_up();
    if let Some(open_loop) = &worker.open_loop {
        worker.recorder.unsent += open_loop.backlog() + worker.queued();
        worker.recorder.arrivals += open_loop.due;
        phase.number_after(worker.share, open_loop.taken);
    }
    worker.turn(elapsed_ns, true);
    if let Some(reservations) = &mut worker.reservations {
        reservations.finish().map_err(reservations_error)?;
    }
    if let Some(log) = worker.log.take() {
        log.finish()?;
    }
    Ok(elapsed_ns)
}

struct Worker<'a, E> {
    phase: &'a Phase<'a>,
    schedule: ClosedLoop,
    deadline_ns: u64,
    start_ns: u64,
    /// The same moment on the machine's monotonic clock; only with a lease.
    start_monotonic_ns: Option<u64>,
    share: Share,
    /// The thread's number in this process.
    local_thread: usize,
    /// Open loop: the number of this thread's first arrival.
    first_number: u64,
    endpoint: &'a mut E,
    choice: &'a mut [Prng],
    slots: Vec<Slot>,
    /// Open loop: idle slots, the one used last on top.
    idle: Vec<usize>,
    /// Number of idle slots before the last wait.
    free: usize,
    busy: usize,
    /// Slots whose connection is not open.
    closed: usize,
    /// When the last connection that sends something was lost, while there is none.
    without_ns: u64,
    /// Closed loop: when the first client had nothing left to send.
    finished_ns: Option<u64>,
    /// Whether clients that have finished close their connections.
    releases: bool,
    open_loop: Option<OpenLoop>,
    /// Operations that have a client of their own, in a replay.
    replay: Option<Replay>,
    log: Option<Log>,
    reservations: Option<Reservations>,
    recorder: &'a mut Recorder,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    state: State,
    /// Number of operations begun here.
    begun: u64,
    /// The pause before the next attempt to open the connection.
    pause_ns: u64,
}

impl Slot {
    fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    Closed,
    #[default]
    Idle,
    Busy(Operation),
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
struct Operation {
    number: u64,
    script: usize,
    intended_ns: u64,
    started_ns: u64,
}

impl<E: Endpoint> Worker<'_, E> {
    fn run(&mut self) {
        let slots = 0..self.slots.len();
        let open: Vec<usize> = slots
            .filter(|&slot| !self.slots[slot].is_closed())
            .collect();
        self.recorder.most = self.endpoint.connections().most;
        if self.replay.is_some() {
            self.free = open.len();
        } else if self.open_loop.is_some() {
            self.idle.extend(open.iter().rev());
            self.free = open.len();
        } else {
            for slot in open {
                self.start(slot, self.start_ns);
            }
        }
        let mut now_ns = self.endpoint.now_ns();
        loop {
            if self.replay.is_some() {
                self.replay_due(now_ns);
            } else if self.open_loop.is_some() {
                self.launch_due(now_ns);
                self.free = self.idle.len();
            }
            if self.must_stop() || self.is_over(now_ns) {
                break;
            }
            if now_ns >= self.deadline_ns {
                self.stop_early(Outcome::Deadline, "the trial's deadline passed");
                break;
            }
            let wake_ns = self.wake_ns(now_ns);
            match self.endpoint.next(wake_ns, self.recorder) {
                Ok(Some(event)) => now_ns = self.handle(event),
                Ok(None) => now_ns = self.endpoint.now_ns(),
                Err(error) => {
                    let message = format!("waiting for the server failed: {error}");
                    self.stop_early(Outcome::ConnectionLost, message);
                }
            }
            self.release_finished(now_ns);
            self.turn(now_ns.saturating_sub(self.start_ns), false);
        }
    }

    /// Let clients that have finished close their connections if others are still at work after a while. Connections of a
    /// warm-up or of a slice are used again.
    fn release_finished(&mut self, now_ns: u64) {
        let is_last = self.phase.board.is_some();
        let lingers = |at_ns: u64| now_ns < at_ns.saturating_add(LINGER_NS);
        if self.releases || !is_last || self.busy == 0 || self.finished_ns.is_none_or(lingers) {
            return;
        }
        self.releases = true;
        for slot in 0..self.slots.len() {
            if matches!(self.slots[slot].state, State::Idle) {
                self.endpoint.release(slot);
            }
        }
    }

    /// Closed loop: a slot has nothing left to send.
    fn leave(&mut self, slot: usize, now_ns: u64) {
        self.finished_ns.get_or_insert(now_ns);
        if self.releases {
            self.endpoint.release(slot);
        }
    }

    /// Whether nothing is left to do or to wait for.
    fn is_over(&mut self, now_ns: u64) -> bool {
        if self.busy > 0 {
            return false;
        }
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        let queued = self.queued();
        if let Some(open_loop) = &mut self.open_loop {
            // A duration ends the sending at once; a number of arrivals is sent to the last.
            return elapsed_ns >= open_loop.end_ns
                || (queued + open_loop.backlog() == 0 && open_loop.next_ns().is_none());
        }
        match self.phase.stop {
            Stop::DurationNs(duration_ns) if elapsed_ns >= duration_ns => true,
            // A connection that cannot be opened again does not matter if it has nothing left to send.
            Stop::Operations(count) => self.closed == 0 || self.phase.begun() >= count,
            _ => self.closed == 0,
        }
    }

    /// The time until which nothing needs to be done.
    fn wake_ns(&mut self, now_ns: u64) -> u64 {
        let check_ns = self.deadline_ns.min(now_ns + CHECK_INTERVAL_NS);
        let start_ns = self.start_ns;
        match &mut self.open_loop {
            Some(open_loop) => open_loop.next_ns().map_or(check_ns, |at_ns| {
                check_ns.min(start_ns.saturating_add(at_ns))
            }),
            None => check_ns,
        }
    }

    /// Whether the trial stops early. A lease is checked by a fresh reading of the clock, because
    /// this process may have been suspended.
    fn must_stop(&self) -> bool {
        self.phase.stop_signal.is_set()
            || self.start_monotonic_ns.is_some_and(|start_monotonic_ns| {
                let elapsed_ns = self.endpoint.now_ns().saturating_sub(self.start_ns);
                let now_ns = start_monotonic_ns + elapsed_ns;
                self.phase.stop_signal.lease_is_over(now_ns)
            })
    }

    fn stop_early(&self, outcome: Outcome, message: impl Into<String>) {
        self.phase.stop_signal.set(outcome, message);
    }

    // ---- slots ----

    fn free(&mut self, slot: usize) {
        self.slots[slot].state = State::Idle;
        self.busy -= 1;
    }

    fn close(&mut self, slot: usize, open_ns: u64) {
        if matches!(self.slots[slot].state, State::Closed) {
            return;
        }
        self.slots[slot].state = State::Closed;
        self.idle.retain(|&idle| idle != slot);
        self.without_ns = open_ns;
        self.closed += 1;
        self.endpoint.reopen(slot, open_ns);
    }

    fn available(&mut self, slot: usize, at_ns: u64) {
        if self.replay.is_some() {
            self.replay_next(slot, at_ns);
        } else if self.open_loop.is_some() {
            self.idle.push(slot);
        } else {
            self.start(slot, at_ns);
        }
    }

    // ---- starting ----

    /// Closed loop: start a slot's next operation, if there is one.
    fn start(&mut self, slot: usize, now_ns: u64) {
        if self.must_stop() {
            return;
        }
        let begun = self.slots[slot].begun;
        if let Stop::OperationsEach(count) = self.phase.stop
            && begun >= self.phase.slot_share(slot, count)
        {
            self.leave(slot, now_ns);
            return;
        }
        let local = self.phase.next_operation.fetch_add(1, Ordering::Relaxed);
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        match self
            .schedule
            .decide(local - self.phase.first_operation, elapsed_ns)
        {
            Decision::Start => {}
            Decision::Finished => {
                self.leave(slot, now_ns);
                return;
            }
            Decision::OverDeadline => {
                self.stop_early(Outcome::Deadline, "the trial's deadline passed");
                return;
            }
        }
        let number = self.phase.plan.part.number(local);
        let script = self.choose(slot, slot / self.phase.plan.pipeline_depth, number);
        self.begin(slot, number, script, now_ns, now_ns);
    }

    fn begin(&mut self, slot: usize, number: u64, script: usize, intended_ns: u64, now_ns: u64) {
        self.slots[slot].state = State::Busy(Operation {
            number,
            script,
            intended_ns,
            started_ns: now_ns,
        });
        self.slots[slot].begun += 1;
        self.busy += 1;
        if let Some(reservations) = &mut self.reservations
            && let Err(error) = reservations.begin(now_ns)
        {
            self.stop_early(Outcome::Interrupted, reservations_error(error).to_string());
        }
        self.recorder.start(script);
        let task = Task {
            number,
            script,
            at_ns: now_ns,
            retry_until_ns: self.phase.retry_until_ns(self.start_ns, intended_ns),
        };
        self.endpoint.begin(slot, task, self.recorder);
    }

    /// Choose the script of an operation: as recorded, or at random with the numbers of `client` (among those
    /// of this thread).
    fn choose(&mut self, slot: usize, client: usize, number: u64) -> usize {
        if let Some(recorded) = &self.phase.plan.recorded {
            return recorded.script(number);
        }
        let scripts = self.phase.weights.len();
        if self.phase.plan.order == ScriptOrder::Sequential || scripts == 1 {
            return usize::try_from(self.slots[slot].begun).unwrap_or(0) % scripts;
        }
        self.choice[client].pick(self.phase.weights)
    }

    // ---- ending ----

    fn turn(&mut self, elapsed_ns: u64, last: bool) {
        if let Some(board) = self.phase.board {
            let load = Load {
                backlog: self.open_loop.as_ref().map_or(0, OpenLoop::backlog) + self.queued(),
                clients: ((self.slots.len() - self.closed) / self.phase.plan.pipeline_depth) as u64,
            };
            self.recorder
                .turn(self.local_thread, elapsed_ns, load, board, last);
        }
    }

    /// Cancel operations under way, so that they do not disturb what is measured next. A server
    /// that cannot be reached is not asked again.
    fn give_up(&mut self) {
        let mut listens = true;
        for slot in 0..self.slots.len() {
            if let State::Busy(operation) = self.slots[slot].state {
                self.free(slot);
                self.recorder.failure(operation.script, None);
                listens = listens && self.endpoint.cancel(slot);
            }
        }
    }
}
