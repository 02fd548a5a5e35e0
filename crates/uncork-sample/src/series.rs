//! The sampler's results: rows by interval, and facts.
//!
//! An interval lies between two readings; counts are of what happened in it. `None` means
//! unavailable, never zero. A process or device that did nothing in an interval has no row.

use serde::Serialize;

/// Processor time of the machine by mode, in nanoseconds over all processors. `user` and `nice`
/// include `guest`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// In programs.
    pub user_ns: u64,
    /// In programs of low priority.
    pub nice_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Idle while something waited for a disk.
    pub iowait_ns: u64,
    /// Serving hardware interrupts.
    pub irq_ns: u64,
    /// Serving software interrupts.
    pub softirq_ns: u64,
    /// Stolen by the hypervisor for other machines.
    pub steal_ns: u64,
    /// In virtual machines on this one.
    pub guest_ns: u64,
}

/// How long any task (`some`), or all tasks that could work (`full`), waited for a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Any task for a processor.
    pub cpu_some_ns: Option<u64>,
    /// Any task for disks.
    pub io_some_ns: Option<u64>,
    /// All tasks for disks.
    pub io_full_ns: Option<u64>,
    /// Any task for memory.
    pub memory_some_ns: Option<u64>,
    /// All tasks for memory.
    pub memory_full_ns: Option<u64>,
}

/// The machine in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tick {
    /// When it ended, from the first reading.
    pub end_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// How late the reading at its end began.
    pub late_ns: u64,
    /// Processors online.
    pub cpus: Option<u64>,
    /// Processor time by mode.
    pub modes: Option<Modes>,
    /// Runnable tasks at its end, including our own.
    pub running: Option<u64>,
    /// Tasks blocked on I/O at its end.
    pub blocked: Option<u64>,
    /// Context switches.
    pub switches: Option<u64>,
    /// Tasks begun.
    pub forks: Option<u64>,
    /// Pressure: waiting for resources.
    pub stalls: Stalls,
    /// Processor time of the sampler itself.
    pub own_ns: u64,
}

/// A watched process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process ID; `None` for the row of all processes that ended before they were read a last
    /// time.
    pub pid: Option<u32>,
    /// Its role.
    pub role: String,
    /// Its duty, such as `checkpointer`; empty if unknown.
    pub kind: String,
    /// When it was first seen, from the first reading; 0 if it existed at the start.
    pub seen_ns: u64,
    /// When it was first missing; `None` if it existed to the end.
    pub ended_ns: Option<u64>,
}

/// A process in one interval. Details count from when they were last read: their sums are exact,
/// but they cannot be assigned to times more precisely than that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessTick {
    /// The interval, by number from 0.
    pub tick: u32,
    /// The process, by number from 0.
    pub process: u32,
    /// Its CPU time.
    pub cpu_ns: u64,
    /// Costlier details, if they were read at the interval's end.
    pub details: Option<Box<Details>>,
}

/// What a process did since its details were last read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Details {
    /// CPU time in user mode, to a tick of the kernel (10 ms).
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, likewise.
    pub system_ns: Option<u64>,
    /// Minor page faults.
    pub minor_faults: Option<u64>,
    /// Major page faults.
    pub major_faults: Option<u64>,
    /// Memory in use, including all shared memory (RSS).
    pub rss_bytes: Option<u64>,
    /// Memory in use, with shared memory divided among its users (PSS).
    pub pss_bytes: Option<u64>,
    /// Voluntary context switches.
    pub voluntary: Option<u64>,
    /// Involuntary context switches.
    pub involuntary: Option<u64>,
    /// Read calls.
    pub read_calls: Option<u64>,
    /// Write calls.
    pub write_calls: Option<u64>,
    /// Bytes read from disks.
    pub read_bytes: Option<u64>,
    /// Bytes to be written to disks.
    pub written_bytes: Option<u64>,
}

/// A disk or a network interface in one interval. For an interface, reading is receiving.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceTick {
    /// The interval.
    pub tick: u32,
    /// Whether it is an interface.
    pub network: bool,
    /// Its name.
    pub name: String,
    /// Read requests, or packets received.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Total time of all reads; disks only.
    pub read_ns: Option<u64>,
    /// Write requests, or packets sent.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Total time of all writes; disks only.
    pub write_ns: Option<u64>,
    /// Time with any request under way; disks only.
    pub busy_ns: Option<u64>,
    /// Flushes; only for disks, if the kernel reports them.
    pub flushes: Option<u64>,
    /// Packets lost or damaged; interfaces only.
    pub lost: Option<u64>,
}

/// A control group with a quota in one interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTick {
    /// The interval.
    pub tick: u32,
    /// The roles of the processes in it, joined by a comma.
    pub role: String,
    /// Periods of the quota.
    pub periods: u64,
    /// Periods in which it was used up.
    pub throttled_periods: u64,
    /// How long processes were throttled, over all processors.
    pub throttled_ns: u64,
    /// Periods in which saved time exceeded the quota; `None` if the kernel does not report it.
    pub burst_periods: Option<u64>,
    /// Saved time used beyond the quota.
    pub burst_ns: Option<u64>,
}

/// The resource limits of one role's processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bounds {
    /// The roles that share these limits.
    pub role: String,
    /// The version of control groups; `None` if unknown.
    pub cgroup: Option<u8>,
    /// The quota in processors; `None` if there is none.
    pub quota_cpus: Option<f64>,
    /// Time that may be saved for a burst beyond the quota.
    pub burst_ns: Option<u64>,
    /// Processors that they may run on; `None` if unknown.
    pub allowed_cpus: Option<u64>,
    /// The memory limit; `None` if there is none.
    pub memory_bytes: Option<u64>,
    /// How often the memory limit was reached meanwhile.
    pub memory_hits: Option<u64>,
    /// How many of its processes the out-of-memory killer ended meanwhile.
    pub oom_kills: Option<u64>,
}

/// A source that is unavailable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// Facts about the whole sampling.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// The first reading, in nanoseconds since 1970.
    pub begun_unix_ns: u64,
    /// Time from the first reading to the last.
    pub elapsed_ns: u64,
    /// The requested time between two readings.
    pub period_ns: u64,
    /// Readings skipped because the sampler was late.
    pub missed: u64,
    /// CPU time of the sampler's thread.
    pub own_ns: u64,
    /// The limits of the watched processes.
    pub bounds: Vec<Bounds>,
    /// Unavailable sources.
    pub lacks: Vec<Missing>,
}

/// All results of a sampler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// Facts about the whole sampling.
    pub facts: Facts,
    /// The machine by interval.
    pub ticks: Vec<Tick>,
    /// The processes.
    pub processes: Vec<Process>,
    /// The processes by interval.
    pub process_ticks: Vec<ProcessTick>,
    /// Disks and interfaces by interval.
    pub devices: Vec<DeviceTick>,
    /// Control groups by interval.
    pub groups: Vec<GroupTick>,
}
