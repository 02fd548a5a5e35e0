//! `/proc/stat` and `/proc/pressure`.

/// Processor times of the machine since boot, in ticks, and other counts of `/proc/stat`.
///
/// `user` and `nice` include guest time, as the kernel counts it. Kernels before 2.6.33 do not
/// report all modes; missing ones are zero ticks since boot, as in `proc(5)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MachineTicks {
    pub(crate) user: u64,
    pub(crate) nice: u64,
    pub(crate) system: u64,
    pub(crate) idle: u64,
    pub(crate) iowait: u64,
    pub(crate) irq: u64,
    pub(crate) softirq: u64,
    pub(crate) steal: u64,
    pub(crate) guest: u64,
    /// Processors online.
    pub(crate) cpus: u64,
    /// Switches from one task to another since boot.
    pub(crate) switches: Option<u64>,
    /// Tasks begun since boot.
    pub(crate) forks: Option<u64>,
    /// Runnable tasks.
    pub(crate) running: Option<u64>,
    /// Tasks blocked on I/O.
    pub(crate) blocked: Option<u64>,
}

pub(crate) fn parse_machine(text: &str) -> Option<MachineTicks> {
    let mut found = None;
    let mut cpus = 0;
    let mut rest = MachineTicks::default();
    for line in text.lines() {
        let Some((name, values)) = line.split_once(' ') else {
            continue;
        };
        let one = || values.trim().parse::<u64>().ok();
        match name {
            "cpu" => found = parse_modes(values),
            "ctxt" => rest.switches = one(),
            "processes" => rest.forks = one(),
            "procs_running" => rest.running = one(),
            "procs_blocked" => rest.blocked = one(),
            _ if name.starts_with("cpu") => cpus += 1,
            _ => {}
        }
    }
    Some(MachineTicks {
        cpus,
        switches: rest.switches,
        forks: rest.forks,
        running: rest.running,
        blocked: rest.blocked,
        ..found?
    })
}

fn parse_modes(values: &str) -> Option<MachineTicks> {
    let numbers: Vec<u64> = values
        .split_whitespace()
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    // The first four exist in every version of /proc/stat.
    if numbers.len() < 4 {
        return None;
    }
    let mode = |place: usize| numbers.get(place).copied().unwrap_or(0);
    Some(MachineTicks {
        user: mode(0),
        nice: mode(1),
        system: mode(2),
        idle: mode(3),
        iowait: mode(4),
        irq: mode(5),
        softirq: mode(6),
        steal: mode(7),
        guest: mode(8) + mode(9),
        ..MachineTicks::default()
    })
}

/// How long tasks have waited for one resource, in microseconds since boot. `full` is `None` if the
/// kernel does not report it, as for the processor before 5.13.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub(crate) some_us: u64,
    pub(crate) full_us: Option<u64>,
}

pub(crate) fn parse_pressure(text: &str) -> Option<Pressure> {
    let total = |word: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(word))?;
        line.rsplit_once("total=")?.1.trim().parse().ok()
    };
    Some(Pressure {
        some_us: total("some ")?,
        full_us: total("full "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_modes_are_read_of_a_new_kernel() {
        let text = "cpu  10 1 5 70 3 2 4 6 8 9\ncpu0 5 0 2 35 1 1 2 3 4 0\ncpu1 5 1 3 35 2 1 2 3 4 0\n\
                    intr 99 0 0\nctxt 123\nbtime 1\nprocesses 45\nprocs_running 2\nprocs_blocked 1\n\
                    softirq 1 2\n";
        let found = parse_machine(text).expect("valid");
        assert_eq!((found.user, found.nice, found.system), (10, 1, 5));
        assert_eq!((found.idle, found.iowait, found.irq), (70, 3, 2));
        assert_eq!((found.softirq, found.steal, found.guest), (4, 6, 17));
        assert_eq!(
            (found.cpus, found.switches, found.forks),
            (2, Some(123), Some(45))
        );
        assert_eq!((found.running, found.blocked), (Some(2), Some(1)));
    }

    #[test]
    fn an_old_kernel_tells_less_and_another_text_nothing() {
        let found = parse_machine("cpu  1 2 3 4\ncpu0 1 2 3 4\n").expect("valid");
        assert_eq!((found.idle, found.steal, found.cpus), (4, 0, 1));
        assert_eq!((found.switches, found.forks), (None, None));
        assert_eq!(parse_machine("cpu  1 2 3\n"), None);
        assert_eq!(parse_machine("cpu  1 2 3 x\n"), None);
        assert_eq!(parse_machine("cpu0 1 2 3 4\n"), None);
    }

    #[test]
    fn pressure_of_the_processor_has_no_full_on_older_kernels() {
        let new = "some avg10=0.00 avg60=0.10 avg300=0.00 total=77\n\
                   full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        let expected = Pressure {
            some_us: 77,
            full_us: Some(5),
        };
        assert_eq!(parse_pressure(new), Some(expected));
        let old = "some avg10=0.00 avg60=0.10 avg300=0.00 total=78\n";
        assert_eq!(parse_pressure(old).expect("valid").full_us, None);
        assert_eq!(parse_pressure(""), None);
        assert_eq!(parse_pressure("some avg10=0.00\n"), None);
    }
}
