//! Every line of a log begins an entry, continues one, or is rejected. The tests assemble logs from parts whose
//! classification is known.

use std::fmt::Write as _;

use uncork_log::{Dialect, Gathered, Prefix, Unwrapper, Written};

/// How lines are classified.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Counts {
    entries: u64,
    heads: u64,
    continuations: u64,
    rejected: u64,
}

fn counts(gathered: &Gathered) -> Counts {
    Counts {
        entries: gathered.entries,
        heads: gathered.heads,
        continuations: gathered.continuations,
        rejected: gathered.rejected,
    }
}

/// Scan a log in blocks of a size.
fn scan(dialect: &Dialect, log: &[u8], size: usize) -> Gathered {
    let mut gathered = Gathered::default();
    let mut scanner = dialect.clone();
    let (mut begin, mut end) = (0, 0);
    while begin < log.len() {
        end = log.len().min(end + size);
        let cut = if end == log.len() {
            Some(end - begin)
        } else {
            scanner.cut(&log[begin..end])
        };
        if let Some(cut) = cut {
            scanner.scan(&log[begin..begin + cut], begin as u64, &mut gathered);
            begin += cut;
        }
    }
    gathered
}

/// Steele, Lea and Flood's `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ number >> 31) % end as u64).expect("is small")
    }
}

/// A log of entries that the prefix `%m [%p] %q%u@%d ` matches, of entries with other prefixes, and of lines that
/// continue either; some with the tab that servers write, some without.
fn mixed(random: &mut Random) -> (String, Counts) {
    let (mut log, mut expected) = (String::new(), Counts::default());
    let mut reads = false;
    for number in 0..random.below(60) {
        let time = format!("2026-01-01 00:00:{:02}.{number:03} UTC", number % 60);
        match random.below(9) {
            0..=2 => {
                let _ = writeln!(
                    log,
                    "{time} [7] u@d LOG:  duration: 1.000 ms  statement: SELECT 1,"
                );
                reads = true;
                (expected.entries, expected.heads) = (expected.entries + 1, expected.heads + 1);
            }
            3 => {
                let _ = writeln!(
                    log,
                    "{time} [8] u@d ERROR:  no\n{time} [8] u@d STATEMENT:  SELECT 2,"
                );
                reads = true;
                (expected.entries, expected.heads) = (expected.entries + 1, expected.heads + 2);
            }
            4 => {
                let head = [
                    format!("{time} [9] usr=u,db=d,appli=web LOG:  duration: 1.000 ms"),
                    format!("{time} 9 u d LOG:  duration: 1.000 ms"),
                    format!("{time} [9] u@d ФЕЛЕР:  x"),
                    "user=u,db=d LOG:  duration: 1.000 ms".to_owned(),
                    "FATAL:  x".to_owned(),
                    format!("< {time} > u LOG:  x"),
                    "1767225600.123 9 LOG:  x".to_owned(),
                    format!("{time},123 INFO: no action"),
                ];
                let _ = writeln!(log, "{}", head[number % head.len()]);
                reads = false;
                expected.rejected += 1;
            }
            what => {
                let line = [
                    "\tFROM t",
                    "FROM t",
                    "  WHERE id = '2026-01-01'",
                    "AND note = 'LOG:  x'",
                ];
                let _ = writeln!(log, "{}", line[what - 5]);
                if reads {
                    expected.continuations += 1;
                } else {
                    expected.rejected += 1;
                }
            }
        }
        if random.below(20) == 0 {
            log.push('\n');
            expected.continuations += 1;
        }
    }
    (log, expected)
}

#[test]
fn every_line_is_an_entry_s_or_goes_on_or_is_rejected() {
    let prefix = Prefix::parse("%m [%p] %q%u@%d ").expect("is a prefix");
    let dialect = Dialect::with_prefix(prefix);
    let mut random = Random(7);
    let mut seen = Counts::default();
    for round in 0..2_000 {
        let (log, expected) = mixed(&mut random);
        let size = 1 + random.below(1_000);
        let gathered = scan(&dialect, log.as_bytes(), size);
        assert_eq!(
            counts(&gathered),
            expected,
            "round {round}, {size} bytes: {log}"
        );
        let lines = log.lines().count() as u64;
        assert_eq!(
            expected.heads + expected.continuations + expected.rejected,
            lines
        );
        seen.rejected += expected.rejected;
        seen.continuations += expected.continuations;
    }
    assert!(
        seen.rejected > 5_000 && seen.continuations > 5_000,
        "{seen:?}"
    );
}

#[test]
fn no_entry_is_lost_whatever_its_application() {
    let mut log = String::new();
    for number in 0..1_000 {
        let application = if number % 5 < 2 { "psql" } else { "web" };
        let _ = writeln!(
            log,
            "2025-11-30 21:10:{:02}.{number:03} UTC [{}] usr=u,db=d,appli={application} LOG:  duration: 1.000 ms",
            number / 60,
            100 + number % 7,
        );
    }
    let dialect = Dialect::detect(log.as_bytes()).expect("is a log");
    let gathered = scan(&dialect, log.as_bytes(), 5_000);
    assert_eq!(
        counts(&gathered),
        Counts {
            entries: 1_000,
            heads: 1_000,
            ..Counts::default()
        }
    );
    assert_eq!(dialect.prefix(), Some("%m [%p] usr=%u,db=%d,appli=%a "));
    // A given prefix that fits only some lines: the others are rejected.
    let literal = Prefix::parse("%m [%p] usr=u,db=d,appli=psql ").expect("is a prefix");
    let gathered = scan(&Dialect::with_prefix(literal), log.as_bytes(), 5_000);
    assert_eq!(
        counts(&gathered),
        Counts {
            entries: 400,
            heads: 400,
            rejected: 600,
            ..Counts::default()
        }
    );
}

#[test]
fn a_prefix_that_changes_within_a_log_is_seen() {
    let mut log = String::new();
    for number in 0..300 {
        let head = if number < 200 {
            "[7] "
        } else {
            "[7] u@d/web: "
        };
        let _ = writeln!(
            log,
            "2025-11-30 21:10:{:02}.000 UTC {head}LOG:  duration: 1.000 ms  statement: SELECT 1,\n\t2",
            number / 10
        );
    }
    // The prefix is detected from the beginning.
    let dialect = Dialect::detect(&log.as_bytes()[..4_000]).expect("is a log");
    assert_eq!(
        counts(&scan(&dialect, log.as_bytes(), 777)),
        Counts {
            entries: 200,
            heads: 200,
            continuations: 200,
            rejected: 200
        }
    );
}

#[test]
fn lines_of_others_in_a_wrapped_log_are_rejected() {
    let syslog = "\
Nov 30 21:10:20 db1 postgres[55]: [3-1] u@d LOG:  duration: 1.000 ms  statement: SELECT 1,
Nov 30 21:10:20 db1 sshd[99]: Accepted publickey for ada
Nov 30 21:10:20 db1 postgres[55]: [3-2] #011 2
Nov 30 21:10:20 db1 kernel: nothing of ours
Nov 30 21:10:21 db1 postgres[55]: [4-1] usr=u,db=d LOG:  duration: 1.000 ms
Nov 30 21:10:21 db1 postgres[55]: [4-2] #011 3
Nov 30 21:10:21 db1 postgres[56]: [7-2] #011 of an entry before the log begins
Nov 30 21:10:22 db1 postgres[55]: [5-1] u@d LOG:  duration: 2.000 ms  statement: SELECT 2
";
    let container = "\
2025-11-30T21:10:20.1Z stderr F 2025-11-30 21:10:20.100 UTC [55] u@d LOG:  duration: 1.000 ms  statement: SELECT 1,
2025-11-30T21:10:20.1Z stderr F \t2
2025-11-30T21:10:20.1Z stderr F 2025-11-30 21:10:20,123 INFO: no action. I am the leader
no line of a container
2025-11-30T21:10:20.1Z stderr F 2025-11-30 21:10:21.100 UTC [55] u@d LOG:  duration: 1.000 ms  statement: SELECT 2
";
    for (log, expected) in [
        (
            syslog,
            Counts {
                entries: 2,
                heads: 2,
                continuations: 1,
                rejected: 5,
            },
        ),
        (
            container,
            Counts {
                entries: 2,
                heads: 2,
                continuations: 1,
                rejected: 2,
            },
        ),
    ] {
        let mut unwrapper = Unwrapper::detect(log.as_bytes(), Written::at(1_767_225_599), None)
            .expect("is wrapped");
        let mut out = Vec::new();
        unwrapper.feed(log.as_bytes(), &mut out);
        unwrapper.finish(&mut out);
        let gathered = scan(unwrapper.dialect(), &out, 100);
        assert_eq!(
            counts(&gathered),
            expected,
            "{}",
            String::from_utf8_lossy(&out)
        );
    }
}
