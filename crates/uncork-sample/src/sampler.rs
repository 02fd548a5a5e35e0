//! The sampler: a thread that reads at regular intervals until it is stopped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use uncork_model::SamplerPlan;

use crate::clock;
use crate::groups::Group;
use crate::host::Host;
use crate::machine::Machine;
use crate::processes::Processes;
use crate::series::{Facts, Sampled, Tick};

/// For this long readings are as frequent as requested; after that only one in [`SLOWER`] is taken,
/// so that watching for a day does not fill the memory.
const FULL_RATE: Duration = Duration::from_mins(15);
const SLOWER: u32 = 10;

/// Requests to the thread.
#[derive(Debug, Default)]
struct Control {
    stop: AtomicBool,
    rest: AtomicBool,
}

/// A running sampler. It ends when it is stopped or dropped.
#[derive(Debug)]
pub struct Sampler {
    control: Arc<Control>,
    thread: Option<JoinHandle<Sampled>>,
}

impl Sampler {
    /// Take the first reading and begin. Unavailable sources are reported at the end.
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread.
    pub fn start(plan: &SamplerPlan) -> io::Result<Self> {
        Self::start_on(Host::here(), plan)
    }

    fn start_on(host: Host, plan: &SamplerPlan) -> io::Result<Self> {
        let mut reading = Reading::begin(host, plan);
        let control = Arc::new(Control::default());
        let seen = Arc::clone(&control);
        let thread = thread::Builder::new()
            .name("uncork-sampler".to_owned())
            .spawn(move || {
                reading.go_on(&seen);
                reading.finish()
            })?;
        Ok(Self {
            control,
            thread: Some(thread),
        })
    }

    /// Pause or continue. Off-time does not count: the intervals of readings are the same as
    /// without it, and what the machine did meanwhile is part of the first reading after it.
    pub fn rest(&self, resting: bool) {
        self.control.rest.store(resting, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Take a last reading and return all samples.
    #[must_use]
    pub fn stop(mut self) -> Sampled {
        // A thread that panicked has printed why to standard error; there is nothing to return.
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Sampled> {
        let thread = self.thread.take()?;
        self.control.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// The readings and their times.
struct Reading {
    host: Host,
    period: Duration,
    begun: Instant,
    machine: Machine,
    processes: Processes,
    groups: Vec<Group>,
    sampled: Sampled,
    buffer: Vec<u8>,
    last_ns: u64,
    last_own_ns: u64,
}

impl Reading {
    fn begin(host: Host, plan: &SamplerPlan) -> Self {
        let tick_ns = clock::tick_ns();
        let mut groups: Vec<Group> = Vec::new();
        for watch in &plan.watch {
            let group = Group::of(&host, watch.pid, &watch.role);
            match groups.iter_mut().find(|other| other.same(&group)) {
                Some(other) => other.add_role(&watch.role),
                None => groups.push(group),
            }
        }
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let facts = Facts {
            begun_unix_ns: unix.map_or(0, nanoseconds),
            period_ns: plan.period_ns,
            ..Facts::default()
        };
        let mut this = Self {
            machine: Machine::new(&host, tick_ns),
            processes: Processes::new(&host, &plan.watch, tick_ns, plan.memory),
            host,
            period: Duration::from_nanos(plan.period_ns),
            begun: Instant::now(),
            groups,
            sampled: Sampled {
                facts,
                ..Sampled::default()
            },
            buffer: Vec::new(),
            last_ns: 0,
            last_own_ns: 0,
        };
        let mut nothing = Tick::default();
        this.machine
            .read(0, &mut nothing, &mut Vec::new(), &mut this.buffer);
        for group in &mut this.groups {
            group.read(0, &mut this.buffer);
        }
        this
    }

    fn go_on(&mut self, control: &Control) {
        let stop = &control.stop;
        let mut due = self.period;
        loop {
            let mut elapsed = self.begun.elapsed();
            while elapsed < due && !stop.load(Ordering::Acquire) {
                if control.rest.load(Ordering::Acquire) {
                    self.rest(control);
                } else {
                    thread::park_timeout(due.saturating_sub(elapsed));
                }
                elapsed = self.begun.elapsed();
            }
            if stop.load(Ordering::Acquire) {
                self.read(elapsed, Duration::ZERO, true);
                return;
            }
            self.read(elapsed, elapsed.saturating_sub(due), false);
            let period = if elapsed < FULL_RATE {
                self.period
            } else {
                self.period * SLOWER
            };
            let (next, missed) = following(due, self.begun.elapsed(), period);
            self.sampled.facts.missed += missed;
            due = next;
        }
    }

    /// Wait for the end of a pause, and subtract it from the time.
    fn rest(&mut self, control: &Control) {
        let begun = Instant::now();
        while control.rest.load(Ordering::Acquire) && !control.stop.load(Ordering::Acquire) {
            thread::park();
        }
        self.begun += begun.elapsed();
    }

    fn read(&mut self, elapsed: Duration, late: Duration, last: bool) {
        let now_ns = nanoseconds(elapsed);
        let tick = u32::try_from(self.sampled.ticks.len()).unwrap_or(u32::MAX);
        let mut row = Tick {
            end_ns: now_ns,
            length_ns: now_ns - self.last_ns,
            late_ns: nanoseconds(late),
            ..Tick::default()
        };
        let devices = &mut self.sampled.devices;
        self.machine.read(tick, &mut row, devices, &mut self.buffer);
        let forks = self.machine.forks();
        let passed_ns = row.length_ns;
        self.processes
            .read(&self.host, tick, now_ns, passed_ns, forks, last);
        for group in &mut self.groups {
            self.sampled
                .groups
                .extend(group.read(tick, &mut self.buffer));
        }
        let own_ns = clock::thread_ns();
        row.own_ns = own_ns - self.last_own_ns;
        self.last_own_ns = own_ns;
        self.last_ns = now_ns;
        self.sampled.ticks.push(row);
    }

    fn finish(self) -> Sampled {
        let mut sampled = self.sampled;
        let (processes, rows, lacks) = self.processes.finish();
        sampled.processes = processes;
        sampled.process_ticks = rows;
        sampled.facts.elapsed_ns = self.last_ns;
        sampled.facts.bounds = self
            .groups
            .iter()
            .map(|group| group.bounds(&self.host))
            .collect();
        sampled.facts.lacks = self.machine.lacks().chain(lacks).collect();
        sampled.facts.own_ns = clock::thread_ns();
        sampled
    }
}

/// Return when the next reading is due, and how many before it are skipped. A late reading is taken
/// at once, unless the next one is due too.
fn following(due: Duration, elapsed: Duration, period: Duration) -> (Duration, u64) {
    let next = due + period;
    let behind = elapsed.saturating_sub(next).as_nanos() / period.as_nanos().max(1);
    let missed = u32::try_from(behind).unwrap_or(u32::MAX);
    (next + period * missed, u64::from(missed))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
