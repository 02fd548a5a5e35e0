//! The difference between two snapshots: pure.

use uncork_model::ServerCpu;

use crate::{ProcessTimes, Snapshot};

/// The difference between two snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delta {
    /// CPU time of the watched processes; `None` if none was watched.
    pub server: Option<ServerCpu>,
    /// Time stolen by the host, over all CPUs.
    pub steal_ns: u64,
    /// Time throttled; `None` if the kernel does not report it.
    pub throttled_ns: Option<u64>,
}

/// Compute the difference from `before` to `after`.
///
/// `total_ns` is the sum over living processes of their clocks' advance, plus, for processes that
/// ended, the ticks that the postmaster collected minus what they had used `before`. `user_ns +
/// system_ns = total_ns`, divided by the ratio of ticks.
#[must_use]
pub fn delta(before: &Snapshot, after: &Snapshot) -> Delta {
    let server = server_use(before, after).map(ServerUse::cpu);
    Delta {
        server,
        steal_ns: after.steal_ticks.saturating_sub(before.steal_ticks) * after.tick_ns,
        throttled_ns: match (before.throttled_ns, after.throttled_ns) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            _ => None,
        },
    }
}

/// CPU time of the watched processes, before it is split into user mode and kernel. The ticks of
/// one short slice are too few for the split; those of many slices together suffice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerUse {
    passed: ProcessTimes,
    /// The ticks of the processes since they began, which give the split if no tick passed.
    since_start: ProcessTimes,
}

impl ServerUse {
    /// Add the use of another time span.
    pub fn add(&mut self, other: Self) {
        self.passed.total_ns += other.passed.total_ns;
        self.passed.user_ticks += other.passed.user_ticks;
        self.passed.system_ticks += other.passed.system_ticks;
        self.since_start = other.since_start;
    }

    /// Split the CPU time by the ratio of ticks.
    #[must_use]
    pub fn cpu(self) -> ServerCpu {
        let passed = self.passed;
        let ratio = if passed.user_ticks + passed.system_ticks > 0 {
            passed
        } else {
            self.since_start
        };
        let user_ns = share(passed.total_ns, ratio.user_ticks, ratio.system_ticks);
        ServerCpu {
            user_ns,
            system_ns: passed.total_ns - user_ns,
            total_ns: passed.total_ns,
        }
    }
}

/// Return what the watched processes used from `before` to `after`; `None` if none was watched.
#[must_use]
pub fn server_use(before: &Snapshot, after: &Snapshot) -> Option<ServerUse> {
    if after.processes.is_empty() {
        return None;
    }
    let mut passed = ProcessTimes::default();
    let mut since_start = ProcessTimes::default();
    for (pid, now) in &after.processes {
        let then = before
            .processes
            .get(pid)
            .filter(|then| then.start_ticks == now.start_ticks)
            .copied()
            .unwrap_or_default();
        passed.total_ns += now.total_ns.saturating_sub(then.total_ns);
        passed.user_ticks += now.user_ticks.saturating_sub(then.user_ticks);
        passed.system_ticks += now.system_ticks.saturating_sub(then.system_ticks);
        since_start.user_ticks += now.user_ticks;
        since_start.system_ticks += now.system_ticks;
    }
    let ended = ended(before, after);
    passed.total_ns += ended.total_ns;
    passed.user_ticks += ended.user_ticks;
    passed.system_ticks += ended.system_ticks;
    Some(ServerUse {
        passed,
        since_start,
    })
}

/// Return what processes that ended used between the snapshots: the ticks that their parent
/// collected, which cover their whole lives, minus what they had used `before`.
fn ended(before: &Snapshot, after: &Snapshot) -> ProcessTimes {
    let mut gone = ProcessTimes::default();
    for (pid, then) in &before.processes {
        let alive = after
            .processes
            .get(pid)
            .is_some_and(|now| now.start_ticks == then.start_ticks);
        if !alive {
            gone.total_ns += then.total_ns;
            gone.user_ticks += then.user_ticks;
            gone.system_ticks += then.system_ticks;
        }
    }
    let user = after
        .ended_user_ticks
        .saturating_sub(before.ended_user_ticks);
    let system = after
        .ended_system_ticks
        .saturating_sub(before.ended_system_ticks);
    ProcessTimes {
        total_ns: ((user + system) * after.tick_ns).saturating_sub(gone.total_ns),
        user_ticks: user.saturating_sub(gone.user_ticks),
        system_ticks: system.saturating_sub(gone.system_ticks),
        start_ticks: 0,
    }
}

/// Return the part of `total_ns` in proportion to `user` ticks; all of it if there are no ticks.
fn share(total_ns: u64, user: u64, system: u64) -> u64 {
    if user + system == 0 {
        return total_ns;
    }
    let part = u128::from(total_ns) * u128::from(user) / u128::from(user + system);
    u64::try_from(part).unwrap_or(total_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 10_000_000;

    fn times(total_ns: u64, user_ticks: u64, system_ticks: u64) -> ProcessTimes {
        ProcessTimes {
            total_ns,
            user_ticks,
            system_ticks,
            start_ticks: 7,
        }
    }

    fn snapshot(processes: &[(u32, ProcessTimes)]) -> Snapshot {
        Snapshot {
            processes: processes.iter().copied().collect(),
            tick_ns: TICK_NS,
            ..Snapshot::default()
        }
    }

    fn server(before: &Snapshot, after: &Snapshot) -> ServerCpu {
        delta(before, after).server.expect("watched")
    }

    #[test]
    fn living_processes_are_exact_and_split_by_ticks() {
        let before = snapshot(&[(1, times(100, 5, 5)), (2, times(50, 0, 0))]);
        let after = snapshot(&[(1, times(1_100, 8, 6)), (2, times(50, 0, 0))]);
        let cpu = server(&before, &after);
        assert_eq!(
            cpu,
            ServerCpu {
                user_ns: 750,
                system_ns: 250,
                total_ns: 1_000
            }
        );
    }

    #[test]
    fn a_short_time_is_split_by_the_processes_whole_lives() {
        let before = snapshot(&[(1, times(0, 1, 3))]);
        let after = snapshot(&[(1, times(400, 1, 3))]);
        let cpu = server(&before, &after);
        assert_eq!((cpu.user_ns, cpu.system_ns), (100, 300));
    }

    #[test]
    fn a_new_process_counts_from_its_beginning_even_with_a_used_id() {
        let mut reborn = times(30, 0, 0);
        reborn.start_ticks = 8;
        let before = snapshot(&[(1, times(0, 0, 0)), (2, times(1_000, 0, 0))]);
        let after = snapshot(&[(1, times(0, 0, 0)), (2, reborn), (3, times(12, 0, 0))]);
        assert_eq!(server(&before, &after).total_ns, 42);
    }

    #[test]
    fn an_ended_process_counts_only_what_it_used_since() {
        let before = snapshot(&[(1, times(0, 0, 0)), (2, times(2 * TICK_NS, 1, 1))]);
        let mut after = snapshot(&[(1, times(0, 0, 0))]);
        after.ended_user_ticks = 4;
        after.ended_system_ticks = 1;
        let cpu = server(&before, &after);
        assert_eq!(cpu.total_ns, 3 * TICK_NS);
        assert_eq!((cpu.user_ns, cpu.system_ns), (3 * TICK_NS, 0));
    }

    #[test]
    fn steal_and_throttling_are_differences_and_unknown_stays_unknown() {
        let mut before = snapshot(&[]);
        let mut after = snapshot(&[]);
        before.steal_ticks = 3;
        after.steal_ticks = 5;
        assert_eq!(delta(&before, &after).steal_ns, 2 * TICK_NS);
        assert_eq!(delta(&before, &after).throttled_ns, None);
        assert_eq!(delta(&before, &after).server, None);
        before.throttled_ns = Some(10);
        after.throttled_ns = Some(25);
        assert_eq!(delta(&before, &after).throttled_ns, Some(15));
    }
}
