//! Follows the watched processes and their children.
//!
//! Each reading reads every process' clock, which costs less than a microsecond, and further
//! details only of processes that have run since. Reading their files costs ten times as much, so
//! it has a time budget. No file of a process is kept open: a server may have more processes than
//! we may have open files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::ClockId;
use uncork_model::Watch;

use crate::clock;
use crate::host::Host;
use crate::parse::{Io, Stat, Switches, kind, parse_io, parse_pss, parse_stat, parse_switches};
use crate::proc::children;
use crate::series::{Details, Missing, Process, ProcessTick};
use crate::time_budget::TimeBudget;

/// The share of one processor that details may cost, in parts per million.
const DETAILS_PPM: u64 = 2_500;
/// The same for memory, which the kernel walks page by page.
const MEMORY_PPM: u64 = 1_000;
/// The shortest interval between readings of a process' switches and calls.
const SLOW_NS: u64 = clock::NS_PER_S;
/// How often children are searched even if no process was begun since.
const CHILDREN_NS: u64 = clock::NS_PER_S;

/// The watched processes' last readings.
#[derive(Debug)]
pub(crate) struct Processes {
    tick_ns: u64,
    page_bytes: u64,
    memory: bool,
    roots: Vec<Root>,
    living: BTreeMap<u32, LiveProcess>,
    found: Vec<Process>,
    rows: Vec<ProcessTick>,
    details: TimeBudget,
    slow_memory: TimeBudget,
    /// The process with which reading details continues.
    next: u32,
    next_memory: u32,
    forks: Option<u64>,
    looked_ns: u64,
    lacks: BTreeSet<Missing>,
}

/// A process whose children are watched.
#[derive(Debug)]
struct Root {
    watch: Watch,
    /// Ticks of ended children that the kernel had collected at the start.
    ended_ticks: u64,
    /// What those are known to have used over their whole lives, and what was reported for the
    /// rest.
    known_ns: u64,
    told_ns: u64,
    /// The number of the row for all other processes.
    rest: Option<u32>,
}

#[derive(Debug)]
struct LiveProcess {
    number: u32,
    role: usize,
    root: bool,
    clock: ClockId,
    cpu_ns: u64,
    /// It ran since its details were read.
    ran: bool,
    /// It ran since its switches and calls were read.
    behind: bool,
    stat: Stat,
    slow_ns: Option<u64>,
    switches: Option<Switches>,
    io: Option<Io>,
}

impl Processes {
    pub(crate) fn new(host: &Host, watch: &[Watch], tick_ns: u64, memory: bool) -> Self {
        let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
            .ok()
            .flatten()
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(4_096);
        let mut this = Self {
            tick_ns,
            page_bytes,
            memory,
            roots: Vec::new(),
            living: BTreeMap::new(),
            found: Vec::new(),
            rows: Vec::new(),
            details: TimeBudget::new(DETAILS_PPM),
            slow_memory: TimeBudget::new(MEMORY_PPM),
            next: 0,
            next_memory: 0,
            forks: None,
            looked_ns: 0,
            lacks: BTreeSet::new(),
        };
        for one in watch {
            this.roots.push(Root {
                watch: one.clone(),
                ended_ticks: 0,
                known_ns: 0,
                told_ns: 0,
                rest: None,
            });
            this.begin(host, this.roots.len() - 1);
        }
        this
    }

    fn begin(&mut self, host: &Host, role: usize) {
        let Watch {
            pid,
            role: name,
            children: follow,
        } = self.roots[role].watch.clone();
        if !self.add(host, pid, role, true, 0, true) {
            let reason = format!("there is no process {pid}");
            self.lack(&format!("the process of the {name}"), reason);
            return;
        }
        if !follow {
            return;
        }
        match read_stat(host, pid) {
            Ok(stat) => {
                self.roots[role].ended_ticks = stat.ended_user_ticks + stat.ended_system_ticks;
            }
            Err(error) => self.lack(&format!("ended processes of the {name}"), error.to_string()),
        }
        match children(host, pid) {
            Ok(found) => {
                for child in found {
                    self.add(host, child, role, false, 0, true);
                }
            }
            Err(error) => self.lack(&format!("children of the {name}"), error.to_string()),
        }
    }

    /// Begin to follow a process; return whether it exists. For a process that existed at the
    /// start, earlier use does not count; for one that began later, all of it counts.
    fn add(
        &mut self,
        host: &Host,
        pid: u32,
        role: usize,
        root: bool,
        now_ns: u64,
        was_there: bool,
    ) -> bool {
        let Ok(clock) = clock::process_clock(pid) else {
            return false;
        };
        let Ok(cpu_ns) = clock::read(clock) else {
            return false;
        };
        let stat = read_stat(host, pid).ok();
        let mut living = LiveProcess {
            number: u32::try_from(self.found.len()).unwrap_or(u32::MAX),
            role,
            root,
            clock,
            cpu_ns: if was_there { cpu_ns } else { 0 },
            ran: !was_there,
            behind: !was_there,
            stat: Stat {
                start_ticks: stat.map_or(0, |stat| stat.start_ticks),
                ..Stat::default()
            },
            slow_ns: None,
            switches: None,
            io: None,
        };
        if was_there {
            living.stat = stat.unwrap_or_default();
            self.read_slow(host, pid, &mut living, now_ns);
        } else {
            living.switches = Some(Switches::default());
            living.io = Some(Io::default());
        }
        self.found.push(Process {
            pid: Some(pid),
            role: self.roots[role].watch.role.clone(),
            kind: read_kind(host, pid, root),
            seen_ns: now_ns,
            ended_ns: None,
        });
        self.living.insert(pid, living);
        true
    }

    /// Read all processes: add rows for those that ran. `last` reads the details of all.
    pub(crate) fn read(
        &mut self,
        host: &Host,
        tick: u32,
        now_ns: u64,
        passed_ns: u64,
        forks: Option<u64>,
        last: bool,
    ) {
        let first_row = self.rows.len();
        if forks.is_none() || forks != self.forks || now_ns - self.looked_ns >= CHILDREN_NS {
            self.look_for_children(host, now_ns);
            self.forks = forks;
            self.looked_ns = now_ns;
        }
        self.read_clocks(tick, now_ns);
        self.read_ended(host, tick, now_ns);
        self.details.grow(passed_ns);
        self.slow_memory.grow(passed_ns);
        self.read_details(host, tick, now_ns, first_row, last);
        if self.memory {
            self.read_memory(host, tick, first_row);
        }
    }

    pub(crate) fn finish(self) -> (Vec<Process>, Vec<ProcessTick>, Vec<Missing>) {
        (self.found, self.rows, self.lacks.into_iter().collect())
    }

    fn lack(&mut self, what: &str, reason: String) {
        self.lacks.insert(Missing {
            what: what.to_owned(),
            reason,
        });
    }

    fn look_for_children(&mut self, host: &Host, now_ns: u64) {
        for role in 0..self.roots.len() {
            let watch = &self.roots[role].watch;
            if !watch.children {
                continue;
            }
            for pid in children(host, watch.pid).unwrap_or_default() {
                if !self.living.contains_key(&pid) {
                    self.add(host, pid, role, false, now_ns, false);
                }
            }
        }
    }

    fn read_clocks(&mut self, tick: u32, now_ns: u64) {
        let mut ended = Vec::new();
        for (&pid, living) in &mut self.living {
            match clock::read(living.clock) {
                // A clock that went back belongs to another process with a reused ID.
                Ok(cpu_ns) if cpu_ns >= living.cpu_ns => {
                    if cpu_ns > living.cpu_ns {
                        living.ran = true;
                        living.behind = true;
                        self.rows.push(ProcessTick {
                            tick,
                            process: living.number,
                            cpu_ns: cpu_ns - living.cpu_ns,
                            details: None,
                        });
                        living.cpu_ns = cpu_ns;
                    }
                }
                _ => ended.push(pid),
            }
        }
        for pid in ended {
            self.end(pid, now_ns);
        }
    }

    fn end(&mut self, pid: u32, now_ns: u64) {
        if let Some(gone) = self.living.remove(&pid) {
            self.found[gone.number as usize].ended_ns = Some(now_ns);
            if !gone.root {
                self.roots[gone.role].known_ns += gone.cpu_ns;
            }
        }
    }

    /// Add what children used that ended between two readings, by the ticks that the kernel
    /// collected for their parent. These cover whole lives, so what was already reported is
    /// subtracted and nothing counts twice.
    fn read_ended(&mut self, host: &Host, tick: u32, now_ns: u64) {
        for role in 0..self.roots.len() {
            let root = &self.roots[role];
            if !root.watch.children || !self.living.contains_key(&root.watch.pid) {
                continue;
            }
            let Ok(stat) = read_stat(host, root.watch.pid) else {
                continue;
            };
            let ticks = stat.ended_user_ticks + stat.ended_system_ticks;
            let ended_ns = ticks.saturating_sub(root.ended_ticks) * self.tick_ns;
            let rest_ns = ended_ns.saturating_sub(root.known_ns);
            if rest_ns <= root.told_ns {
                continue;
            }
            let number = root.rest.unwrap_or_else(|| {
                self.found.push(Process {
                    pid: None,
                    role: root.watch.role.clone(),
                    kind: "ended processes".to_owned(),
                    seen_ns: now_ns,
                    ended_ns: None,
                });
                u32::try_from(self.found.len() - 1).unwrap_or(u32::MAX)
            });
            let root = &mut self.roots[role];
            root.rest = Some(number);
            self.rows.push(ProcessTick {
                tick,
                process: number,
                cpu_ns: rest_ns - root.told_ns,
                details: None,
            });
            root.told_ns = rest_ns;
        }
    }

    /// Read more details of processes that ran, in turn, within the time budget.
    fn read_details(&mut self, host: &Host, tick: u32, now_ns: u64, first_row: usize, all: bool) {
        let due = |living: &LiveProcess| {
            let slow = living.slow_ns.is_none_or(|then| now_ns - then >= SLOW_NS);
            living.ran || (living.behind && (all || slow))
        };
        let waiting: Vec<u32> = turn(&self.living, self.next, due);
        let mut reused = Vec::new();
        let mut spent_ns = clock::thread_ns();
        for pid in waiting {
            if !all && !self.details.allows() {
                self.next = pid;
                break;
            }
            let Some(mut living) = self.living.remove(&pid) else {
                continue;
            };
            if let Ok(now) = read_stat(host, pid) {
                if now.start_ticks == living.stat.start_ticks {
                    let mut details = self.stat_details(&living.stat, &now);
                    living.stat = now;
                    if all || living.slow_ns.is_none_or(|then| now_ns - then >= SLOW_NS) {
                        let before = (living.switches, living.io);
                        self.read_slow(host, pid, &mut living, now_ns);
                        add_slow(&mut details, before, (living.switches, living.io));
                        living.behind = false;
                    }
                    self.row(tick, living.number, first_row).details = Some(Box::new(details));
                } else {
                    reused.push(pid);
                }
            }
            let process = &mut self.found[living.number as usize];
            if process.kind.is_empty() {
                process.kind = read_kind(host, pid, living.root);
            }
            living.ran = false;
            self.living.insert(pid, living);
            let now_spent_ns = clock::thread_ns();
            self.details.spend(now_spent_ns.saturating_sub(spent_ns));
            spent_ns = now_spent_ns;
        }
        for pid in reused {
            self.end(pid, now_ns);
        }
    }

    /// Read the memory of the next process, within the time budget.
    fn read_memory(&mut self, host: &Host, tick: u32, first_row: usize) {
        if !self.slow_memory.allows() {
            return;
        }
        let Some(&pid) = turn(&self.living, self.next_memory, |_| true).first() else {
            return;
        };
        self.next_memory = pid.saturating_add(1);
        let before_ns = clock::thread_ns();
        let text = host.read(&format!("proc/{pid}/smaps_rollup"));
        self.slow_memory
            .spend(clock::thread_ns().saturating_sub(before_ns));
        let (number, role) = (self.living[&pid].number, self.living[&pid].role);
        match text {
            Ok(text) => {
                if let Some(pss) = parse_pss(&text) {
                    let row = self.row(tick, number, first_row);
                    row.details.get_or_insert_default().pss_bytes = Some(pss);
                }
            }
            Err(error) => self.lack_of(role, "shares of memory", &error),
        }
    }

    /// Return the row of a process in this interval, which may not exist yet.
    fn row(&mut self, tick: u32, process: u32, first: usize) -> &mut ProcessTick {
        let place = self.rows[first..]
            .iter()
            .position(|row| row.process == process)
            .map_or(self.rows.len(), |place| first + place);
        if place == self.rows.len() {
            self.rows.push(ProcessTick {
                tick,
                process,
                cpu_ns: 0,
                details: None,
            });
        }
        &mut self.rows[place]
    }

    fn stat_details(&self, then: &Stat, now: &Stat) -> Details {
        let passed = |get: fn(&Stat) -> u64| get(now).saturating_sub(get(then));
        Details {
            user_ns: Some(passed(|stat| stat.user_ticks) * self.tick_ns),
            system_ns: Some(passed(|stat| stat.system_ticks) * self.tick_ns),
            minor_faults: Some(passed(|stat| stat.minor_faults)),
            major_faults: Some(passed(|stat| stat.major_faults)),
            rss_bytes: Some(now.rss_pages * self.page_bytes),
            ..Details::default()
        }
    }

    fn read_slow(&mut self, host: &Host, pid: u32, living: &mut LiveProcess, now_ns: u64) {
        living.slow_ns = Some(now_ns);
        living.switches = if pid == std::process::id() {
            own_switches()
        } else {
            let status = host.read(&format!("proc/{pid}/status")).ok();
            status.and_then(|status| parse_switches(&status))
        };
        match host.read(&format!("proc/{pid}/io")) {
            Ok(text) => living.io = parse_io(&text),
            Err(error) => {
                living.io = None;
                self.lack_of(living.role, "disk reads and writes", &error);
            }
        }
    }

    /// Record what may not be read of a role's processes. A process that has just ended is ignored.
    fn lack_of(&mut self, role: usize, what: &str, error: &io::Error) {
        if error.kind() == io::ErrorKind::PermissionDenied {
            let role = self.roots[role].watch.role.clone();
            let reason = "they are another user's; run as that user or as root".to_owned();
            self.lack(&format!("{what} of the {role}'s processes"), reason);
        }
    }
}

/// Return the matching processes, from one on and then from the beginning.
fn turn(
    living: &BTreeMap<u32, LiveProcess>,
    from: u32,
    wanted: impl Fn(&LiveProcess) -> bool,
) -> Vec<u32> {
    let behind = living.range(from..);
    let before = living.range(..from);
    behind
        .chain(before)
        .filter(|(_, living)| wanted(living))
        .map(|(&pid, _)| pid)
        .collect()
}

fn add_slow(
    details: &mut Details,
    (switches, io): (Option<Switches>, Option<Io>),
    (switches_now, io_now): (Option<Switches>, Option<Io>),
) {
    if let (Some(then), Some(now)) = (switches, switches_now) {
        details.voluntary = Some(now.voluntary.saturating_sub(then.voluntary));
        details.involuntary = Some(now.involuntary.saturating_sub(then.involuntary));
    }
    if let (Some(then), Some(now)) = (io, io_now) {
        details.read_calls = Some(now.read_calls.saturating_sub(then.read_calls));
        details.write_calls = Some(now.write_calls.saturating_sub(then.write_calls));
        details.read_bytes = Some(now.read_bytes.saturating_sub(then.read_bytes));
        details.written_bytes = Some(now.written_bytes.saturating_sub(then.written_bytes));
    }
}

/// Our own switches, including threads that ended: only for the own process are they available.
fn own_switches() -> Option<Switches> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(Switches {
        voluntary: u64::try_from(usage.voluntary_context_switches()).ok()?,
        involuntary: u64::try_from(usage.involuntary_context_switches()).ok()?,
    })
}

fn read_stat(host: &Host, pid: u32) -> io::Result<Stat> {
    let text = host.read(&format!("proc/{pid}/stat"))?;
    parse_stat(&text).ok_or_else(|| io::Error::other("its stat has an unknown form"))
}

fn read_kind(host: &Host, pid: u32, root: bool) -> String {
    let title = host.read(&format!("proc/{pid}/cmdline"));
    title.map_or_else(|_| String::new(), |title| kind(&title, root))
}
