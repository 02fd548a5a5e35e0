//! Parses the kernel's text files. Pure. A text of an unknown form gives `None`, never zeros.

mod devices;
mod groups;
mod machine;
mod process;

pub(crate) use devices::{Disk, Interface, parse_disks, parse_interfaces};
pub(crate) use groups::{
    CpuStat, Hierarchy, counter, group_paths, lineage, parse_cfs, parse_cpu_max, parse_cpu_stat,
    parse_memory_limit,
};
pub(crate) use machine::{MachineTicks, Pressure, parse_machine, parse_pressure};
pub(crate) use process::{
    Io, Stat, Switches, kind, parse_allowed_cpus, parse_io, parse_pss, parse_stat, parse_switches,
};
