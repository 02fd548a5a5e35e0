//! Reads the control groups of watched processes.

use crate::host::{Host, OpenFile};
use crate::parse::{
    CpuStat, Hierarchy, counter, group_paths, lineage, parse_allowed_cpus, parse_cfs,
    parse_cpu_max, parse_cpu_stat, parse_memory_limit,
};
use crate::series::{Bounds, GroupTick};

/// The control group of one or more watched roles.
#[derive(Debug)]
pub(crate) struct Group {
    role: String,
    /// Its folder for the controller `cpu`, which identifies it.
    folder: Option<String>,
    stat: Option<OpenFile>,
    last: Option<CpuStat>,
    cgroup: Option<u8>,
    quota_cpus: Option<f64>,
    burst_ns: Option<u64>,
    allowed_cpus: Option<u64>,
    memory: Option<Memory>,
}

/// The files with a group's memory limits.
#[derive(Debug)]
struct Memory {
    hierarchy: Hierarchy,
    folder: String,
    limit_bytes: Option<u64>,
    before: Counts,
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    hits: Option<u64>,
    oom_kills: Option<u64>,
}

/// A group's folder, and the version of its hierarchy.
type Found = (Hierarchy, String);

impl Group {
    /// Find the group of a process.
    pub(crate) fn of(host: &Host, pid: u32, role: &str) -> Self {
        let cgroup = host.read(&format!("proc/{pid}/cgroup")).unwrap_or_default();
        let chain = folders(host, &cgroup, "cpu", "cpu.stat");
        // Throttling happens in the group with the smallest quota, which may be an ancestor.
        let bound = chain
            .iter()
            .filter_map(|found| Some((quota(host, found)?, found)))
            .min_by(|one, other| one.0.total_cmp(&other.0));
        let place = bound.map(|(_, found)| found).or(chain.first());
        let stat = place.and_then(|(_, folder)| host.keep(&format!("{folder}/cpu.stat")).ok());
        let memory = folders(host, &cgroup, "memory", "memory.stat");
        Self {
            role: role.to_owned(),
            folder: place.map(|(_, folder)| folder.clone()),
            stat,
            last: None,
            cgroup: place.map(|(hierarchy, _)| match hierarchy {
                Hierarchy::V1 => 1,
                Hierarchy::V2 => 2,
            }),
            quota_cpus: bound.map(|(quota, _)| quota),
            burst_ns: bound.and_then(|(_, found)| burst(host, found)),
            allowed_cpus: host
                .read(&format!("proc/{pid}/status"))
                .ok()
                .and_then(|status| parse_allowed_cpus(&status)),
            memory: Memory::of(host, &memory),
        }
    }

    /// Whether another role has the same group.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.folder == other.folder && self.allowed_cpus == other.allowed_cpus
    }

    pub(crate) fn add_role(&mut self, role: &str) {
        if !self.role.split(", ").any(|one| one == role) {
            self.role = format!("{}, {role}", self.role);
        }
    }

    /// Read throttling since the last reading; `None` if there is no quota.
    pub(crate) fn read(&mut self, tick: u32, buffer: &mut Vec<u8>) -> Option<GroupTick> {
        let now = parse_cpu_stat(self.stat.as_ref()?.read(buffer).ok()?)?;
        let then = self.last.replace(now)?;
        (then != now).then(|| GroupTick {
            tick,
            role: self.role.clone(),
            periods: now.periods.saturating_sub(then.periods),
            throttled_periods: now.throttled_periods.saturating_sub(then.throttled_periods),
            throttled_ns: now.throttled_ns.saturating_sub(then.throttled_ns),
            burst_periods: passed(then.burst_periods, now.burst_periods),
            burst_ns: passed(then.burst_ns, now.burst_ns),
        })
    }

    /// Time throttled since the group was created; `None` if the kernel does not report it.
    pub(crate) fn throttled_ns(&self) -> Option<u64> {
        let mut buffer = Vec::new();
        let text = self.stat.as_ref()?.read(&mut buffer).ok()?;
        Some(parse_cpu_stat(text)?.throttled_ns)
    }

    pub(crate) fn bounds(&self, host: &Host) -> Bounds {
        let after = self.memory.as_ref().map(|memory| counts(host, memory));
        let counted = |get: fn(&Counts) -> Option<u64>| {
            let (memory, after) = (self.memory.as_ref()?, after.as_ref()?);
            passed(get(&memory.before), get(after))
        };
        Bounds {
            role: self.role.clone(),
            cgroup: self.cgroup,
            quota_cpus: self.quota_cpus,
            burst_ns: self.burst_ns,
            allowed_cpus: self.allowed_cpus,
            memory_bytes: self.memory.as_ref().and_then(|memory| memory.limit_bytes),
            memory_hits: counted(|counts| counts.hits),
            oom_kills: counted(|counts| counts.oom_kills),
        }
    }
}

fn passed(then: Option<u64>, now: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(then?))
}

/// The existing folders of a process' group and its ancestors, the innermost first, in the first
/// hierarchy that has the controller's file.
fn folders(host: &Host, cgroup: &str, controller: &str, file: &str) -> Vec<Found> {
    for group in group_paths(cgroup, controller) {
        for mount in group.mounts {
            let root = format!("sys/fs/cgroup/{mount}")
                .trim_end_matches('/')
                .to_owned();
            let found: Vec<Found> = lineage(group.path)
                .map(|path| format!("{root}/{path}").trim_end_matches('/').to_owned())
                .filter(|folder| host.path(&format!("{folder}/{file}")).is_file())
                .map(|folder| (group.hierarchy, folder))
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
    }
    Vec::new()
}

fn quota(host: &Host, (hierarchy, folder): &Found) -> Option<f64> {
    let read = |file: &str| host.read(&format!("{folder}/{file}")).ok();
    match hierarchy {
        Hierarchy::V1 => parse_cfs(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
        Hierarchy::V2 => parse_cpu_max(&read("cpu.max")?),
    }
}

fn burst(host: &Host, (hierarchy, folder): &Found) -> Option<u64> {
    let file = match hierarchy {
        Hierarchy::V1 => "cpu.cfs_burst_us",
        Hierarchy::V2 => "cpu.max.burst",
    };
    let text = host.read(&format!("{folder}/{file}")).ok()?;
    text.trim()
        .parse::<u64>()
        .ok()
        .map(|burst_us| burst_us * 1_000)
}

impl Memory {
    fn of(host: &Host, chain: &[Found]) -> Option<Self> {
        let limited = chain
            .iter()
            .filter_map(|(hierarchy, folder)| {
                let file = match hierarchy {
                    Hierarchy::V1 => "memory.limit_in_bytes",
                    Hierarchy::V2 => "memory.max",
                };
                let text = host.read(&format!("{folder}/{file}")).ok()?;
                Some((parse_memory_limit(&text)?, hierarchy, folder))
            })
            .min_by_key(|(limit, ..)| *limit);
        let (limit_bytes, hierarchy, folder) = match limited {
            Some((limit, hierarchy, folder)) => (Some(limit), hierarchy, folder),
            None => chain
                .first()
                .map(|(hierarchy, folder)| (None, hierarchy, folder))?,
        };
        let mut memory = Self {
            hierarchy: *hierarchy,
            folder: folder.clone(),
            limit_bytes,
            before: Counts {
                hits: None,
                oom_kills: None,
            },
        };
        memory.before = counts(host, &memory);
        Some(memory)
    }
}

fn counts(host: &Host, memory: &Memory) -> Counts {
    let read = |file: &str| host.read(&format!("{}/{file}", memory.folder)).ok();
    match memory.hierarchy {
        Hierarchy::V1 => Counts {
            hits: read("memory.failcnt").and_then(|text| text.trim().parse().ok()),
            oom_kills: read("memory.oom_control").and_then(|text| counter(&text, "oom_kill")),
        },
        Hierarchy::V2 => {
            let events = read("memory.events");
            let of = |name| events.as_deref().and_then(|text| counter(text, name));
            Counts {
                hits: of("max"),
                oom_kills: of("oom_kill"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
