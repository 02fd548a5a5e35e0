//! What a sampler tells: rows by interval, and facts.
//!
//! An interval lies between two readings; counts are of what happened in it. `None` is what could
//! not be read, never zero; what did nothing in an interval has no row.

use serde::Serialize;

/// Processor time of the machine by mode, in nanoseconds over all processors. `user` and `nice`
/// hold that of `guest` too.
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
    /// Serving interrupts.
    pub irq_ns: u64,
    /// Serving what interrupts left to do.
    pub softirq_ns: u64,
    /// Taken by the hypervisor for others.
    pub steal_ns: u64,
    /// In virtual machines of this one.
    pub guest_ns: u64,
}

/// How long any task (`some`), or all that wanted to work (`full`), waited for a resource.
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
    /// How much later than due the reading at its end began.
    pub late_ns: u64,
    /// Processors that were on.
    pub cpus: Option<u64>,
    /// What they did.
    pub modes: Option<Modes>,
    /// Tasks that ran or could at its end, our own among them.
    pub running: Option<u64>,
    /// Tasks that waited for a device at its end.
    pub blocked: Option<u64>,
    /// Switches from one task to another.
    pub switches: Option<u64>,
    /// Tasks begun.
    pub forks: Option<u64>,
    /// Waiting for resources.
    pub stalls: Stalls,
    /// Processor time of the sampler itself.
    pub own_ns: u64,
}

/// A watched process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id; `None` for all those together that ended before they were read a last time.
    pub pid: Option<u32>,
    /// What it is to the reader.
    pub role: String,
    /// What it does, such as `checkpointer`; empty if it never said.
    pub kind: String,
    /// When it was first seen, from the first reading; 0 if it was there at the start.
    pub seen_ns: u64,
    /// When it was missed; `None` if it was there to the end.
    pub ended_ns: Option<u64>,
}

/// A process in one interval. Details count from when they were last read: their sums are right,
/// their place in time is not finer than that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessTick {
    /// The interval, by number from 0.
    pub tick: u32,
    /// The process, by number from 0.
    pub process: u32,
    /// Its processor time.
    pub cpu_ns: u64,
    /// What costs more to read, if it was read at the interval's end.
    pub details: Option<Box<Details>>,
}

/// What a process did since its details were last read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Details {
    /// Processor time in user mode, to a tick of the kernel (10 ms).
    pub user_ns: Option<u64>,
    /// Processor time in the kernel, likewise.
    pub system_ns: Option<u64>,
    /// Page faults that needed no disk.
    pub minor_faults: Option<u64>,
    /// Page faults that did.
    pub major_faults: Option<u64>,
    /// Memory in use, what is shared counted whole.
    pub rss_bytes: Option<u64>,
    /// Memory in use, what is shared divided among those that share it.
    pub pss_bytes: Option<u64>,
    /// Times it left the processor to wait.
    pub voluntary: Option<u64>,
    /// Times it was taken off the processor.
    pub involuntary: Option<u64>,
    /// Calls that read.
    pub read_calls: Option<u64>,
    /// Calls that wrote.
    pub write_calls: Option<u64>,
    /// Bytes read from disks.
    pub read_bytes: Option<u64>,
    /// Bytes on their way to disks.
    pub written_bytes: Option<u64>,
}

/// A disk or a network interface in one interval. Of an interface, reading is receiving.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceTick {
    /// The interval.
    pub tick: u32,
    /// Whether it is an interface.
    pub network: bool,
    /// Its name.
    pub name: String,
    /// Requests, or packets.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Time of all reads together; of disks only.
    pub read_ns: Option<u64>,
    /// Requests, or packets.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Time of all writes together; of disks only.
    pub write_ns: Option<u64>,
    /// Time with anything under way; of disks only.
    pub busy_ns: Option<u64>,
    /// Flushes; of disks whose kernel tells.
    pub flushes: Option<u64>,
    /// Packets lost or damaged; of interfaces only.
    pub lost: Option<u64>,
}

/// A control group in one interval in which its quota was looked at.
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
    /// How long processes were kept from running, over all processors.
    pub throttled_ns: u64,
    /// Periods in which saved time was used beyond the quota; `None` where the kernel does not say.
    pub burst_periods: Option<u64>,
    /// How much of it was.
    pub burst_ns: Option<u64>,
}

/// What bounds the processes of one role.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bounds {
    /// The roles that share these.
    pub role: String,
    /// The version of control groups; `None` if it could not be told.
    pub cgroup: Option<u8>,
    /// Processors' worth of time that the quota gives; `None` if there is none.
    pub quota_cpus: Option<f64>,
    /// Time that may be saved up for a burst beyond the quota.
    pub burst_ns: Option<u64>,
    /// Processors that they may run on; `None` if it could not be read.
    pub allowed_cpus: Option<u64>,
    /// Memory that the group may use; `None` if all.
    pub memory_bytes: Option<u64>,
    /// How often it came up against that while it was watched.
    pub memory_hits: Option<u64>,
    /// How many of its processes were killed for want of memory meanwhile.
    pub oom_kills: Option<u64>,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Missing {
    /// What there is none of.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// What holds of the whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// The first reading, in nanoseconds since 1970.
    pub begun_unix_ns: u64,
    /// From the first reading to the last.
    pub elapsed_ns: u64,
    /// The time asked for between two readings.
    pub period_ns: u64,
    /// Readings that were left out because the sampler was late.
    pub missed: u64,
    /// Processor time of the sampler's thread.
    pub own_ns: u64,
    /// What bounds the watched processes.
    pub bounds: Vec<Bounds>,
    /// What could not be read.
    pub lacks: Vec<Missing>,
}

/// All that a sampler has seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// What holds of the whole.
    pub facts: Facts,
    /// The machine.
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
