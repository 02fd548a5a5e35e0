//! Samples a server's processes and the machine: processor time, switches, faults, memory, disks,
//! networks, pressure, steal, throttling.
//!
//! Two [`Snapshot`]s are taken before and after a measurement; [`delta`] computes their difference.
//! A [`Sampler`] records the time in between.
//!
//! Total CPU time comes from each process' own clock and is exact to the nanosecond. Its split in
//! user mode and kernel comes from the ticks in `/proc/<pid>/stat`, which are coarse (usually
//! 10 ms): the total is divided by the ratio of the ticks that passed, or, when none passed, of
//! the ticks since the processes began. Processes that ended in between are known only by the
//! ticks that the postmaster collected for its children.

mod clock;
mod delta;
mod groups;
mod host;
mod machine;
mod parse;
mod proc;
mod processes;
mod sampler;
mod series;
mod time_budget;

use std::collections::BTreeMap;

pub use delta::{Delta, ServerUse, delta, server_use};
pub use proc::{SampleError, has_ended, server_snapshot, snapshot, thread_waited_ns, waited_ns};
pub use sampler::Sampler;
pub use series::{
    Bounds, Details, DeviceTick, Facts, GroupTick, Missing, Modes, Process, ProcessTick, Sampled,
    Stalls, Tick,
};

/// A reading at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The watched processes: the postmaster and its children; empty if none is watched.
    pub processes: BTreeMap<u32, ProcessTimes>,
    /// User-mode time of the postmaster's ended children, in ticks.
    pub ended_user_ticks: u64,
    /// Kernel time of the postmaster's ended children, in ticks.
    pub ended_system_ticks: u64,
    /// Time stolen by the host, over all CPUs, in ticks.
    pub steal_ticks: u64,
    /// Time throttled, in nanoseconds; `None` if the kernel does not report it.
    pub throttled_ns: Option<u64>,
    /// The length of a tick, in nanoseconds.
    pub tick_ns: u64,
}

/// The CPU time of one process since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    /// Total CPU time, in nanoseconds.
    pub total_ns: u64,
    /// Ticks in user mode.
    pub user_ticks: u64,
    /// Ticks in the kernel.
    pub system_ticks: u64,
    /// When it began, in ticks since boot: distinguishes reused process IDs.
    pub start_ticks: u64,
}
