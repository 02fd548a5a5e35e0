//! Files of one process: `/proc/<pid>/{stat,status,io,smaps_rollup,cmdline}`.

/// The required fields of `/proc/<pid>/stat`; times in ticks, sizes in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) parent: u32,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    pub(crate) ended_user_ticks: u64,
    pub(crate) ended_system_ticks: u64,
    pub(crate) start_ticks: u64,
    pub(crate) rss_pages: u64,
}

/// Parse `/proc/<pid>/stat`. The process' name, in brackets, may contain anything, so the fields
/// are counted from the last closing bracket.
pub(crate) fn parse_stat(line: &str) -> Option<Stat> {
    let mut words = line.rsplit_once(')')?.1.split_whitespace();
    // proc(5) numbers the fields from 1; the first after the name is number 3. Fields are read in
    // ascending order.
    let mut at = 3;
    let mut field = |number: usize| {
        let found = words.nth(number - at)?;
        at = number + 1;
        found.parse::<u64>().ok()
    };
    Some(Stat {
        parent: u32::try_from(field(4)?).ok()?,
        minor_faults: field(10)?,
        major_faults: field(12)?,
        user_ticks: field(14)?,
        system_ticks: field(15)?,
        ended_user_ticks: field(16)?,
        ended_system_ticks: field(17)?,
        start_ticks: field(22)?,
        rss_pages: field(24)?,
    })
}

/// Context switches of a process: voluntary and involuntary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

/// Parse them for a process with one thread. With more threads the file covers only the first, and
/// no ended ones, so the total is unknown.
pub(crate) fn parse_switches(status: &str) -> Option<Switches> {
    if labelled(status, "Threads:").is_some_and(|threads| threads > 1) {
        return None;
    }
    Some(Switches {
        voluntary: labelled(status, "voluntary_ctxt_switches:")?,
        involuntary: labelled(status, "nonvoluntary_ctxt_switches:")?,
    })
}

/// The number of processors that a process may run on.
pub(crate) fn parse_allowed_cpus(status: &str) -> Option<u64> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    count_cpus(list.trim())
}

/// Count the processors of a list such as `0-3,8`.
pub(crate) fn count_cpus(list: &str) -> Option<u64> {
    list.split(',')
        .filter(|part| !part.is_empty())
        .map(|range| match range.split_once('-') {
            Some((low, high)) => {
                let (low, high): (u64, u64) = (low.parse().ok()?, high.parse().ok()?);
                high.checked_sub(low)?.checked_add(1)
            }
            None => range.parse::<u64>().ok().map(|_| 1),
        })
        .sum()
}

/// Reads and writes of a process: calls, and bytes from and to disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) read_calls: u64,
    pub(crate) write_calls: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

pub(crate) fn parse_io(text: &str) -> Option<Io> {
    Some(Io {
        read_calls: labelled(text, "syscr:")?,
        write_calls: labelled(text, "syscw:")?,
        read_bytes: labelled(text, "read_bytes:")?,
        written_bytes: labelled(text, "write_bytes:")?,
    })
}

/// Memory of a process in bytes, with shared memory divided among its users.
pub(crate) fn parse_pss(smaps_rollup: &str) -> Option<u64> {
    Some(labelled(smaps_rollup, "Pss:")? * 1024)
}

fn labelled(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `PostgreSQL`'s auxiliary processes, by the beginning of their titles.
const BACKGROUND: [&str; 16] = [
    "archiver",
    "autovacuum launcher",
    "autovacuum worker",
    "background writer",
    "bgworker",
    "checkpointer",
    "io worker",
    "logger",
    "logical replication",
    "parallel worker",
    "slotsync worker",
    "startup",
    "stats collector",
    "walreceiver",
    "walsender",
    "walwriter",
];

/// Classify a process by its title: `PostgreSQL`'s processes by their duty, others by the program.
/// Names of users, databases and addresses in titles are never returned.
pub(crate) fn kind(cmdline: &str, parent: bool) -> String {
    let title = cmdline.trim_end_matches(['\0', ' ']);
    if let Some(duty) = title.strip_prefix("postgres: ") {
        // With cluster_name set, its value and a colon come first.
        let candidates = [Some(duty), duty.split_once(": ").map(|(_, behind)| behind)];
        let known = candidates
            .into_iter()
            .flatten()
            .find_map(|duty| BACKGROUND.into_iter().find(|word| duty.starts_with(word)));
        return known.unwrap_or("client backend").to_owned();
    }
    let program = title.split('\0').next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    match name.split_whitespace().next().unwrap_or_default() {
        "postgres" | "postmaster" if parent => "postmaster".to_owned(),
        // A new process: its title is not set yet.
        "postgres" | "postmaster" => String::new(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_even_with_a_name_full_of_brackets() {
        let line = "12 (a) b) c) S 7 12 12 0 -1 4194304 1 2 3 4 100 200 300 400 20 0 1 0 999 5 6 7";
        let stat = parse_stat(line).expect("valid");
        let expected = Stat {
            parent: 7,
            minor_faults: 1,
            major_faults: 3,
            user_ticks: 100,
            system_ticks: 200,
            ended_user_ticks: 300,
            ended_system_ticks: 400,
            start_ticks: 999,
            rss_pages: 6,
        };
        assert_eq!(stat, expected);
        assert_eq!(parse_stat("12 (x) S"), None);
    }

    #[test]
    fn switches_and_allowed_processors_are_found_in_the_status() {
        let status = "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-2,5\n\
                      voluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t7\n";
        let expected = Switches {
            voluntary: 41,
            involuntary: 7,
        };
        assert_eq!(parse_switches(status), Some(expected));
        assert_eq!(parse_allowed_cpus(status), Some(4));
        assert_eq!(
            parse_switches(&format!("Threads:\t1\n{status}")),
            Some(expected)
        );
        assert_eq!(parse_switches(&format!("Threads:\t2\n{status}")), None);
        assert_eq!(parse_switches("Name:\tx\n"), None);
        assert_eq!(count_cpus("3-1"), None);
        assert_eq!(count_cpus("a"), None);
    }

    #[test]
    fn io_and_memory_are_read() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
                    cancelled_write_bytes: 7\n";
        let expected = Io {
            read_calls: 3,
            write_calls: 4,
            read_bytes: 5,
            written_bytes: 6,
        };
        assert_eq!(parse_io(text), Some(expected));
        assert_eq!(parse_io("rchar: 1\n"), None);
        let rollup = "55fe-7ffe ---p 00000000 00:00 0 [rollup]\nRss:  1848 kB\nPss:  213 kB\n";
        assert_eq!(parse_pss(rollup), Some(213 * 1024));
    }

    #[test]
    fn a_title_tells_the_duty_and_nothing_of_the_client() {
        for (title, expected) in [
            ("postgres: checkpointer \0\0\0", "checkpointer"),
            ("postgres: 15/main: walwriter ", "walwriter"),
            (
                "postgres: alice shop 10.0.0.7(51234) SELECT",
                "client backend",
            ),
            ("postgres: main: alice shop [local] idle", "client backend"),
            ("postgres: io worker 2", "io worker"),
            ("postgres: parallel worker for PID 71 ", "parallel worker"),
            ("/usr/sbin/mariadbd\0--datadir=/x\0", "mariadbd"),
            ("/usr/lib/postgresql/15/bin/postgres\0-D\0/x\0", ""),
            ("", ""),
        ] {
            assert_eq!(kind(title, false), expected, "{title}");
        }
        assert_eq!(kind("/x/bin/postgres\0-D\0/data\0", true), "postmaster");
    }
}
