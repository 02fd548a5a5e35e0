use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use super::*;

const PREFIX: &str = "%m [%p] %q%u@%d %a ";

/// A log of several blocks; each session repeats a look-up ten times between its transactions' ends.
fn log(entries: u64) -> String {
    let mut log = String::new();
    for number in 0..entries {
        let (pid, second) = (100 + number % 7, number / 100);
        let head = format!(
            "2026-01-{:02} {:02}:{:02}:{:02}.{:03} UTC [{pid}] u@d app{} ",
            1 + second / 86_400,
            second / 3_600 % 24,
            second / 60 % 60,
            second % 60,
            number % 100 * 10,
            pid % 3
        );
        let turn = number / 7 % 12;
        let _ = match turn {
            0 => writeln!(log, "{head}LOG:  duration: 0.010 ms  statement: BEGIN"),
            11 => writeln!(log, "{head}LOG:  duration: 0.100 ms  statement: COMMIT"),
            5 if number % 11 == 0 => writeln!(
                log,
                "{head}ERROR:  relation \"t{number}\" does not exist\n{head}STATEMENT:  SELECT {number} FROM t{number}"
            ),
            _ => writeln!(
                log,
                "{head}LOG:  duration: 0.{:03} ms  statement: SELECT *\n\tFROM shop.items WHERE id = {number}",
                number % 1_000
            ),
        };
    }
    log
}

fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("is written");
    file
}

fn read(request: &Request) -> Report {
    gather(request, &Control::default()).expect("can be read")
}

fn only(file: &tempfile::NamedTempFile, threads: usize) -> Request {
    Request {
        paths: vec![file.path().to_owned()],
        threads,
        ..Request::default()
    }
}

/// The results that must not depend on how a log is divided.
fn told(report: &Report) -> String {
    let gathered = &report.gathered;
    let mut rows: Vec<String> = gathered
        .templates
        .all()
        .iter()
        .map(|one| {
            format!(
                "{:?} {:?} {:?} {:?} {:?} {:?}",
                String::from_utf8_lossy(&one.more.text),
                one.executions,
                one.histogram.buckets(),
                one.seen,
                one.more.slowest,
                one.more.newest
            )
        })
        .collect();
    for ((number, _), repetition) in &gathered.repetitions {
        let text = &gathered.templates.all()[*number as usize].more.text;
        rows.push(format!(
            "{:?} {repetition:?}",
            String::from_utf8_lossy(text)
        ));
    }
    for (number, transactions) in &gathered.transactions {
        let origin = &gathered.origins.all()[*number as usize];
        rows.push(format!("{origin:?} {transactions:?}"));
    }
    for (kind, facts) in gathered.errors.all() {
        rows.push(format!("{kind:?} {} {:?}", facts.count, facts.example));
    }
    rows.sort();
    format!(
        "{} {:?}\n{}",
        gathered.entries,
        gathered.steps,
        rows.join("\n")
    )
}

#[test]
fn any_number_of_threads_reads_the_same() {
    let file = written(log(60_000).as_bytes());
    let one = read(&only(&file, 1));
    assert!(file.as_file().metadata().expect("has a size").len() > 4 * BLOCK as u64);
    assert_eq!(one.gathered.entries, 60_000);
    assert_eq!(one.files[0].entries, 60_000);
    assert_eq!(
        (one.files[0].dialect, one.files[0].prefix.as_deref()),
        (Some("stderr"), Some(PREFIX))
    );
    // Ten look-ups in each transaction, except where an error took the place of one.
    assert!(
        one.gathered
            .repetitions
            .iter()
            .any(|(_, of)| of.longest == 10 && of.rows > 1_000)
    );
    let transactions: u64 = one
        .gathered
        .transactions
        .iter()
        .map(|(_, of)| of.elapsed.count)
        .sum();
    assert!(transactions > 4_000, "{transactions}");
    for threads in [2, 3, 5] {
        assert_eq!(
            told(&read(&only(&file, threads))),
            told(&one),
            "{threads} threads"
        );
    }
}

#[test]
fn several_files_are_one_log() {
    let log = log(20_000);
    let half = log[..log.len() / 2].rfind("\n2026").expect("an entry") + 1;
    let (first, second) = (
        written(&log.as_bytes()[..half]),
        written(&log.as_bytes()[half..]),
    );
    let both = Request {
        paths: vec![first.path().to_owned(), second.path().to_owned()],
        ..Request::default()
    };
    let (parts, whole) = (read(&both), read(&only(&written(log.as_bytes()), 2)));
    assert_eq!(parts.files.len(), 2);
    assert_eq!(parts.files[0].entries + parts.files[1].entries, 20_000);
    assert_eq!(parts.gathered.steps, whole.gathered.steps);
    // A session goes on in the second file.
    let rows = |report: &Report| -> u64 {
        report
            .gathered
            .repetitions
            .iter()
            .map(|(_, of)| of.rows)
            .sum()
    };
    assert_eq!(rows(&parts), rows(&whole));
}

#[test]
fn what_is_missing_or_no_log_is_told() {
    let missing = Request {
        paths: vec!["/no/such.log".into()],
        ..Request::default()
    };
    let error = gather(&missing, &Control::default()).expect_err("is missing");
    assert_eq!(error.to_string(), "/no/such.log: No such file or directory");
    let folder = Request {
        paths: vec!["/".into()],
        ..Request::default()
    };
    assert!(gather(&folder, &Control::default()).is_err());
    for text in ["", "Dear Sir or Madam,\nno log is this.\n"] {
        let report = read(&only(&written(text.as_bytes()), 2));
        assert_eq!(report.files[0].dialect, None);
        assert_eq!(report.files[0].bytes, text.len() as u64);
        assert_eq!(report.gathered.entries, 0);
    }
}

#[test]
fn a_request_to_stop_keeps_what_was_read() {
    let file = written(log(20_000).as_bytes());
    let control = Control::default();
    control.stop();
    let report = gather(&only(&file, 2), &control).expect("ends");
    assert!(report.stopped);
    assert_eq!(report.gathered.entries, 0);
}

#[test]
fn an_entry_longer_than_a_block_is_whole() {
    let long = "x, ".repeat(BLOCK);
    let text = format!(
        "2026-01-01 00:00:00.000 UTC [1] LOG:  duration: 1.000 ms  statement: SELECT 1\n\
         2026-01-01 00:00:00.000 UTC [1] LOG:  duration: 2.000 ms  statement: SELECT {long}\n\t, y\n\
         2026-01-01 00:00:00.000 UTC [1] LOG:  duration: 3.000 ms  statement: SELECT 2\n"
    );
    let report = read(&only(&written(text.as_bytes()), 2));
    assert_eq!(report.gathered.entries, 3);
    assert_eq!(report.gathered.templates.all().len(), 2);
    assert_eq!(report.gathered.rejected, 0);
}

#[test]
fn a_range_of_time_is_sought_and_counts_the_same() {
    let text = log(120_000);
    let file = written(text.as_bytes());
    let second = 1_000_000;
    let begin = 1_767_225_600 * second; // 2026-01-01 in UTC
    let all = read(&only(&file, 2)).files[0].bytes;
    for (from, until) in [(300, 400), (0, 1), (1_199, 2_000), (500, 500)] {
        let request = Request {
            from: Some(begin + from * second),
            until: Some(begin + until * second),
            ..only(&file, 2)
        };
        let report = read(&request);
        let expected = (until.min(1_200) - from) * 100;
        assert_eq!(
            report.gathered.entries,
            u64::try_from(expected).expect("counts"),
            "{from} {until}"
        );
        assert!(
            report.files[0].bytes < all / 2,
            "{from} {until}: {}",
            report.files[0].bytes
        );
    }
}

/// Small logs in a folder: 200 of them, some empty, some no logs.
fn many_files() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder");
    let paths: Vec<_> = (0..200)
        .map(|number| folder.path().join(format!("{number:03}.log")))
        .collect();
    for (number, path) in paths.iter().enumerate() {
        let text = match number % 10 {
            3 => String::new(),
            7 => "Dear Sir or Madam,\nno log is this.\n".to_owned(),
            rest => log(1 + rest as u64),
        };
        std::fs::write(path, text).expect("is written");
    }
    (folder, paths)
}

/// Read files; fail if that does not end.
fn read_in_time(paths: &[PathBuf], threads: usize, pool: Pool, what: &str) -> Report {
    let request = Request {
        paths: paths.to_vec(),
        // Detecting the prefix takes longer than all else here, so only some cases do it.
        prefix: (!paths.len().is_multiple_of(29)).then(|| Prefix::parse(PREFIX).expect("a prefix")),
        ..Request::default()
    };
    let (sender, receiver) = bounded(1);
    thread::spawn(move || {
        let control = Control::default();
        let parts = parts_with(&request, &control, threads, &pool, Ordered::default());
        let _ = sender.send(parts.map(|parts| report(parts, &control)));
    });
    let report = receiver.recv_timeout(Duration::from_mins(1));
    report
        .unwrap_or_else(|_| panic!("{what}: still not read after a minute"))
        .expect("can be read")
}

#[test]
fn any_number_of_files_is_read_by_any_number_of_threads() {
    let (_folder, paths) = many_files();
    let entries: Vec<u64> = (0..paths.len())
        .map(|number| match number % 10 {
            3 | 7 => 0,
            rest => 1 + rest as u64,
        })
        .collect();
    for threads in 1..=8 {
        for files in 1..=paths.len() {
            let pool = Pool::new(threads * BUFFERS, 4096);
            let what = format!("{files} files, {threads} threads");
            let report = read_in_time(&paths[..files], threads, pool, &what);
            assert_eq!(report.files.len(), files, "{what}");
            let expected: u64 = entries[..files].iter().sum();
            assert_eq!(report.gathered.entries, expected, "{what}");
        }
    }
}

/// `UNCORK_INGEST_ROUNDS` sets the number of rounds, `UNCORK_INGEST_SEED` the seed.
#[test]
fn random_numbers_of_files_threads_and_buffers_never_hang() {
    let number =
        |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (rounds, seed) = (
        number("UNCORK_INGEST_ROUNDS", 200),
        number("UNCORK_INGEST_SEED", 1),
    );
    let (_folder, paths) = many_files();
    let mut state: u64 = seed;
    let mut draw = |least: usize, most: usize| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let span = (most - least + 1) as u64;
        least + usize::try_from((mixed ^ (mixed >> 31)) % span).expect("is small")
    };
    for round in 0..rounds {
        let (files, threads) = (draw(1, 200), draw(1, 8));
        let begin = draw(0, 200 - files);
        let buffers = draw(2, 3 * threads);
        let pool = Pool::new(buffers, 512 << draw(0, 5));
        let what = format!(
            "seed {seed}, round {round}: {files} files, {threads} threads, {buffers} buffers"
        );
        let report = read_in_time(&paths[begin..begin + files], threads, pool, &what);
        assert_eq!(report.files.len(), files, "{what}");
    }
}

#[test]
fn a_log_that_is_newest_first_is_refused_with_what_to_do() {
    let mut lines: Vec<String> = log(500).split_inclusive('\n').map(str::to_owned).collect();
    lines.retain(|line| line.starts_with('2'));
    lines.reverse();
    let mut wrapped = String::new();
    for line in &lines {
        let text = line.trim_end().replace('"', "");
        let _ = writeln!(wrapped, "{{\"log\":\"{text}\\n\"}}");
    }
    for reversed in [lines.concat(), wrapped] {
        let report = read(&only(&written(reversed.as_bytes()), 2));
        let trouble = report.files[0].trouble.as_deref();
        assert!(
            trouble.is_some_and(|text| text.contains("newest first")),
            "{trouble:?}"
        );
        assert_eq!(report.gathered.entries, 0);
        assert!(report.files[0].dialect.is_some());
    }
}

#[test]
fn entries_without_a_time_are_in_no_range() {
    let text = "[7] LOG:  duration: 1.000 ms  statement: SELECT 1\n".repeat(5);
    let file = written(text.as_bytes());
    let all = read(&only(&file, 1));
    assert_eq!((all.gathered.entries, all.gathered.untimed), (5, 0));
    let request = Request {
        from: Some(0),
        ..only(&file, 1)
    };
    let none = read(&request);
    assert_eq!((none.gathered.entries, none.gathered.untimed), (0, 5));
}

/// A log of one session that begins a transaction, repeats a look-up nine times, waits for a lock, and commits: too
/// few look-ups in a row, unless the sessions of two servers with the same process number are mixed.
fn short_log(table: &str, turns: u32) -> String {
    let mut log = String::new();
    for turn in 0..turns {
        for step in 0..12 {
            let head = format!(
                "2026-01-01 00:{:02}:{:02}.{:03} UTC [7] u@d app ",
                turn / 60,
                turn % 60,
                step * 10
            );
            let _ = match step {
                0 => writeln!(log, "{head}LOG:  duration: 0.010 ms  statement: BEGIN"),
                11 => writeln!(log, "{head}LOG:  duration: 0.010 ms  statement: COMMIT"),
                10 => writeln!(
                    log,
                    "{head}LOG:  process 7 still waiting for ShareLock on transaction 5 after 1000.000 ms\n\
                     {head}DETAIL:  Process holding the lock: 8. Wait queue: 7.\n\
                     {head}STATEMENT:  UPDATE {table} SET a = 1"
                ),
                _ => writeln!(
                    log,
                    "{head}LOG:  duration: 0.200 ms  statement: SELECT 1 FROM items"
                ),
            };
        }
    }
    log
}

#[test]
fn sessions_of_two_servers_with_equal_numbers_are_not_mixed() {
    let logs = ["a", "b"].map(|name| short_log(name, 1_000));
    // Files of both by turns, which end within transactions.
    let mut paths = Vec::new();
    let mut servers = Vec::new();
    let mut files = Vec::new();
    for turn in 0..9 {
        for (name, log) in ["one", "two"].into_iter().zip(&logs) {
            let lines: Vec<&str> = log.split_inclusive('\n').collect();
            let part = lines.chunks(lines.len().div_ceil(9)).nth(turn);
            let file = written(part.expect("a part").concat().as_bytes());
            paths.push(file.path().to_owned());
            servers.push(name.to_owned());
            files.push(file);
        }
    }
    let mixed = Request {
        paths,
        threads: 3,
        ..Request::default()
    };
    let apart = read(&Request {
        servers,
        ..mixed.clone()
    });
    assert_eq!(apart.servers, ["one", "two"]);
    let numbers: Vec<u32> = apart.files.iter().map(|file| file.server).collect();
    assert_eq!(numbers, [0, 1].repeat(9));
    assert!(apart.gathered.repetitions.is_empty());
    let counted = |report: &Report| -> Vec<(u32, u64, u64)> {
        let of = report.gathered.transactions.iter();
        let origin = |number: u32| &report.gathered.origins.all()[number as usize];
        let mut rows: Vec<_> = of
            .map(|(number, found)| {
                let statements = found.statements.max;
                (origin(*number).server, found.elapsed.count, statements)
            })
            .collect();
        rows.sort_unstable(); // origins are numbered as the scanners find them
        rows
    };
    assert_eq!(counted(&apart), [(0, 1_000, 9), (1, 1_000, 9)]);
    // Nobody held a lock whose statement another server logged.
    assert!(apart.gathered.blocking.iter().all(|one| {
        let origins = apart.gathered.origins.all();
        let server = |party: uncork_log::Party<u32>| {
            party.origin.map(|number| origins[number as usize].server)
        };
        server(one.holding).is_none() && server(one.waiting).is_some()
    }));
    let waits: u64 = apart
        .gathered
        .blocking
        .iter()
        .map(|one| one.waits.count)
        .sum();
    assert_eq!(waits, 2_000);
    assert!(apart.withheld.is_empty() && !apart.gathered.activity.longest_waits.all().is_empty());
    // Read as files of one server, they overlap in time, so its transactions and lock waits are withheld.
    let mixed = read(&mixed);
    assert_eq!(mixed.withheld, BTreeSet::from([0]));
    let of = &mixed.gathered;
    assert_eq!(counted(&mixed), []);
    assert!(of.repetitions.is_empty() && of.loops.is_empty() && of.blocking.is_empty());
    assert!(of.activity.longest_waits.all().is_empty());
    assert!(of.busiest.iter().all(|(_, most)| most.sessions.is_none()));
    assert_eq!(of.entries, apart.gathered.entries);
    assert_eq!(of.steps, apart.gathered.steps);
}
