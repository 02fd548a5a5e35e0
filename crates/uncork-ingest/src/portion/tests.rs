mod damaged;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Seek as _, Write as _};

use uncork_log::{Dialect, Prefix};

use super::*;

/// Steele, Lea and Flood's `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("is small")
    }
}

/// The first or second file of a server, in which much of what it logs occurs; what sessions do goes on across any place.
#[expect(clippy::too_many_lines, reason = "a case for each kind of entry")]
fn log(random: &mut Random, entries: usize, number: usize, with_sessions: bool) -> String {
    let (mut log, server, hour) = (String::new(), number / 2, 8 + number % 2);
    let mut doing = [0_usize; 6];
    let mut micros = 0;
    for number in 0..entries {
        let pid = random.below(6);
        micros += 1 + random.below(30_000);
        if random.below(60) == 0 {
            micros += 1_500_000;
        }
        let second = micros / 1_000_000;
        let session = if with_sessions {
            format!("6565.{pid:x} ")
        } else {
            String::new()
        };
        let head = format!(
            "2026-01-01 {:02}:{:02}:{:02}.{:03} UTC [{}] {session}u{}@d app{server} ",
            hour + second / 3_600,
            second / 60 % 60,
            second % 60,
            micros / 1_000 % 1_000,
            100 + pid,
            pid % 2,
        );
        let turn = doing[pid];
        doing[pid] += 1;
        let length = 12 + pid * 3;
        let _ = match random.below(40) {
            0 => writeln!(
                log,
                "{head}ERROR:  relation \"t{number}\" does not exist\n{head}DETAIL:  no {number}\n{head}STATEMENT:  SELECT {number} FROM t{number}"
            ),
            1 => writeln!(
                log,
                "{head}LOG:  process {} still waiting for ShareLock on transaction 7 after 1000.{number} ms\n{head}DETAIL:  Process holding the lock: {}. Wait queue: {}.\n{head}STATEMENT:  UPDATE t SET a = {number}",
                100 + pid,
                100 + (pid + 1) % 6,
                100 + pid
            ),
            2 => writeln!(
                log,
                "{head}LOG:  process {} acquired ShareLock on transaction 7 after 2000.{number} ms\n{head}STATEMENT:  UPDATE t SET a = {number}",
                100 + pid
            ),
            3 => writeln!(
                log,
                "{head}LOG:  statement: DELETE FROM t WHERE a = {number}"
            ),
            4..=6 => writeln!(log, "{head}LOG:  duration: {number}.25 ms"),
            7 => writeln!(
                log,
                "{head}LOG:  statement: PREPARE p{} AS SELECT {}",
                number % 3,
                number % 5
            ),
            8 => writeln!(
                log,
                "{head}LOG:  duration: 1.5 ms  statement: EXECUTE p{}",
                number % 3
            ),
            9 => writeln!(
                log,
                "{head}LOG:  connection received: host=10.0.0.{pid} port=7"
            ),
            10 => writeln!(
                log,
                "{head}LOG:  connection authorized: user=u{} database=d",
                pid % 2
            ),
            11 => writeln!(
                log,
                "{head}LOG:  disconnection: session time: 0:00:0{}.500 user=u{} database=d host=10.0.0.{pid}",
                number % 10,
                pid % 2
            ),
            12 => writeln!(log, "{head}FATAL:  terminating connection"),
            13 if number % 7 == 0 => writeln!(
                log,
                "{head}LOG:  database system is ready to accept connections"
            ),
            14 => writeln!(log, "what line is this {number}?"),
            15 => writeln!(
                log,
                "{head}LOG:  temporary file: path \"base/7\", size {number}\n{head}STATEMENT:  SELECT {number} ORDER BY 1"
            ),
            16 => writeln!(
                log,
                "{head}LOG:  duration: 0.2 ms  parse <unnamed>: SELECT a\n\tFROM child WHERE parent = {number}"
            ),
            _ => match turn % length {
                0 => writeln!(log, "{head}LOG:  duration: 0.010 ms  statement: BEGIN"),
                1 => writeln!(
                    log,
                    "{head}LOG:  duration: 0.500 ms  statement: SELECT a FROM parent LIMIT {number} /*route='%2F{pid}',traceparent='00-{number:032x}-{number:016x}-01'*/"
                ),
                last if last == length - 1 => {
                    writeln!(log, "{head}LOG:  duration: 0.100 ms  statement: COMMIT")
                }
                odd if pid > 2 && odd % 2 == 1 => writeln!(
                    log,
                    "{head}LOG:  duration: 0.{:03} ms  statement: SELECT b FROM other WHERE id = {number}",
                    number % 1_000
                ),
                _ => writeln!(
                    log,
                    "{head}LOG:  duration: 0.{:03} ms  execute <unnamed>: SELECT a\n\tFROM child WHERE parent = $1\n{head}DETAIL:  parameters: $1 = '{number}'",
                    number % 1_000
                ),
            },
        };
    }
    log
}

/// All results by name, so that two are equal only if they have the same tables.
fn told(report: Report) -> Vec<(&'static str, String)> {
    let mut all = Gathered::default();
    let of = &report.gathered;
    let mut told = vec![
        ("repetitions", format!("{:?}", of.repetitions)),
        ("loops", format!("{:?}", of.loops)),
        ("transactions", {
            let mut form = Vec::new();
            for (number, transactions) in &of.transactions {
                number.write(&mut form);
                transactions.write(&mut form);
            }
            format!("{form:?}")
        }),
        ("blocking", format!("{:?}", of.blocking)),
        ("busiest", format!("{:?}", of.busiest)),
        ("waits", format!("{:?}", of.activity.longest_waits)),
        ("files", format!("{:?}", report.files)),
        ("servers", format!("{:?}", report.servers)),
    ];
    all.merge(report.gathered);
    let form = |one: &dyn Fn(&mut Vec<u8>)| {
        let mut form = Vec::new();
        one(&mut form);
        String::from_utf8_lossy(&form).into_owned()
    };
    told.extend([
        ("origins", form(&|out| all.origins.write(out))),
        ("templates", form(&|out| all.templates.write(out))),
        ("errors", form(&|out| all.errors.write(out))),
        ("activity", form(&|out| all.activity.write(out))),
        ("hours", form(&|out| all.hours.write(out))),
        ("all", form(&|out| all.write(out))),
    ]);
    told
}

/// Fail if two results differ, and say where.
fn compare(found: Report, expected: &[(&'static str, String)], what: &str) {
    for ((name, found), (_, expected)) in told(found).iter().zip(expected) {
        if found != expected {
            let same = found.bytes().zip(expected.bytes());
            let at = same.take_while(|(one, other)| one == other).count();
            let near = |text: &str| {
                let text = text.as_bytes();
                let part =
                    &text[at.saturating_sub(300).min(text.len())..(at + 100).min(text.len())];
                String::from_utf8_lossy(part).into_owned()
            };
            panic!(
                "{what}, {name} at {at}:\n{}\nexpected:\n{}",
                near(found),
                near(expected)
            );
        }
    }
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("is written");
    file
}

fn gathered(request: &Request) -> Vec<u8> {
    gather_portion(request, &Control::default()).expect("can be read")
}

/// The places at or before random ones where an entry begins.
fn cuts(random: &mut Random, prefix: &Prefix, text: &str, count: usize) -> Vec<u64> {
    let mut dialect = Dialect::with_prefix(prefix.clone());
    let mut cuts: Vec<u64> = (0..count)
        .filter_map(|_| {
            let end = random.below(text.len());
            dialect.cut(&text.as_bytes()[..end]).map(|cut| cut as u64)
        })
        .filter(|cut| *cut > 0)
        .collect();
    cuts.push(text.len() as u64);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Requests for the parts of three servers' logs, and the request for all of them.
struct Cut {
    whole: Request,
    parts: Vec<Request>,
    _files: Vec<tempfile::NamedTempFile>,
}

impl Cut {
    fn new(random: &mut Random, entries: usize, with_sessions: bool) -> Self {
        let texts: Vec<String> = (0..6)
            .map(|number| log(random, entries, number, with_sessions))
            .collect();
        let files: Vec<_> = texts.iter().map(|text| file(text)).collect();
        let prefix = if with_sessions {
            "%m [%p] %c %u@%d %a "
        } else {
            "%m [%p] %u@%d %a "
        };
        let prefix = Prefix::parse(prefix).expect("is a prefix");
        let whole = Request {
            paths: files.iter().map(|file| file.path().to_owned()).collect(),
            servers: ["a", "a", "b", "b", "c", "c"].map(str::to_owned).to_vec(),
            prefix: Some(prefix.clone()),
            threads: 1,
            ..Request::default()
        };
        let mut parts = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let mut begin = 0;
            let count = random.below(8);
            for end in cuts(random, &prefix, text, count) {
                parts.push(Request {
                    paths: vec![whole.paths[number].clone()],
                    servers: vec![whole.servers[number].clone()],
                    all_servers: ["a", "b", "c"].map(str::to_owned).to_vec(),
                    range: Some((begin, end)),
                    ..whole.clone()
                });
                begin = end;
            }
        }
        Self {
            whole,
            parts,
            _files: files,
        }
    }
}

fn settled(portions: &[Vec<u8>]) -> Portion {
    let mut all = Portion::new(None);
    for portion in portions {
        all.add(portion).expect("is a portion");
    }
    all.settle().expect("has events");
    all
}

#[test]
fn however_logs_are_cut_all_tables_are_the_same() {
    let mut random = Random(7);
    for turn in 0..10 {
        let cut = Cut::new(&mut random, 3_000, turn % 2 == 0);
        let report = crate::gather(&cut.whole, &Control::default()).expect("can be read");
        let servers = |all: &mut dyn Iterator<Item = u32>| all.collect::<BTreeSet<_>>().len();
        let of = &report.gathered;
        assert_eq!(
            servers(&mut of.repetitions.iter().map(|((_, of), _)| *of)),
            3
        );
        assert_eq!(servers(&mut of.loops.iter().map(|((_, of), _)| *of)), 3);
        let hours = of.hours.all().filter(|(_, one)| one.sum().count() > 0);
        assert_eq!(servers(&mut hours.map(|(of, _)| of)), 3);
        assert!(report.gathered.transactions.len() > 1);
        assert!(report.gathered.blocking.len() > 5);
        let expected = told(report);
        let portions: Vec<Vec<u8>> = cut.parts.iter().map(gathered).collect();
        compare(
            settled(&portions).report(),
            &expected,
            &format!("turn {turn}"),
        );
        // Joined in groups first, and settled and stored in between: as on several days.
        let mut groups = Vec::new();
        let mut rest = &portions[..];
        while !rest.is_empty() {
            let (group, others) = rest.split_at(1 + random.below(rest.len()));
            let mut one = Portion::new(None);
            for portion in group {
                one.add(portion).expect("is a portion");
            }
            if groups.is_empty() {
                one.settle().expect("has events");
                assert_eq!(one.events(), 0);
            }
            groups.push(one.store());
            rest = others;
        }
        compare(
            settled(&groups).report(),
            &expected,
            &format!("groups of turn {turn}"),
        );
    }
}

/// A CSV log, or a JSON log of the same entries, whose statements have line ends, quotation marks and whole records.
fn nasty_log(random: &mut Random, entries: usize, is_csv: bool) -> String {
    let record = |pid: usize, number: usize, message: &str, statement: &str| {
        let time = format!(
            "2026-01-01 08:{:02}:{:02}.{:03} UTC",
            number / 60_000 % 60,
            number / 1_000 % 60,
            number % 1_000
        );
        if is_csv {
            let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            format!(
                "{time},\"u\",\"d\",{pid},\"[local]\",69.{pid},4,\"SELECT\",2025-11-30 21:10:20 UTC,0/0,0,LOG,00000,{},,,,,,{},,,\"psql\",\"client backend\",,0",
                quoted(message),
                quoted(statement)
            )
        } else {
            let escaped = |text: &str| format!("{text:?}");
            format!(
                "{{\"timestamp\":\"{time}\",\"user\":\"u\",\"dbname\":\"d\",\"pid\":{pid},\"error_severity\":\"LOG\",\"message\":{},\"statement\":{},\"application_name\":\"psql\"}}",
                escaped(message),
                escaped(statement)
            )
        }
    };
    let mut log = String::new();
    for number in 0..entries {
        let pid = 7 + random.below(5);
        let inner = record(pid, number, "duration: 7.0 ms  statement: SELECT 'no'", "");
        let text = match random.below(9) {
            0 => format!("SELECT \"a\" FROM t WHERE b = '\n{inner}\n{inner}\n'"),
            1 => "SELECT '\"'\n\n\"\n\"".to_owned(),
            2 => format!(
                "SELECT ',\"{}\"\",\n' || \"c\"",
                "\"".repeat(random.below(4))
            ),
            3 => format!("SELECT {}", "a,\n".repeat(random.below(200))),
            4 => "BEGIN".to_owned(),
            5 => "COMMIT".to_owned(),
            _ => format!("SELECT {number} FROM child"),
        };
        let message = format!("duration: 0.{:03} ms  statement: {text}", number % 1_000);
        log += &record(
            pid,
            number * 10,
            &message,
            if number % 7 == 0 { &text } else { "" },
        );
        log.push('\n');
    }
    log
}

fn parts_of(file: &tempfile::NamedTempFile, points: &[u64], end: u64) -> Vec<Vec<u8>> {
    let begins = [0].into_iter().chain(points.iter().copied());
    let ends = points.iter().copied().chain([end]);
    let part = |range| Request {
        range: Some(range),
        ..whole_file(file)
    };
    begins
        .zip(ends)
        .map(|range| gathered(&part(range)))
        .collect()
}

fn whole_file(file: &tempfile::NamedTempFile) -> Request {
    Request {
        paths: vec![file.path().to_owned()],
        threads: 1,
        ..Request::default()
    }
}

#[test]
fn records_with_line_ends_and_quotation_marks_are_cut_between_them() {
    let mut random = Random(3);
    for turn in 0..6 {
        let is_csv = turn % 3 < 2;
        let text = nasty_log(&mut random, 1_500, is_csv);
        let file = file(&text);
        let report = crate::gather(&whole_file(&file), &Control::default()).expect("can be read");
        assert_eq!(report.gathered.entries, 1_500);
        let expected = told(report);
        for _ in 0..4 {
            let size = 500 + random.below(text.len() / 3) as u64;
            let (points, _) = crate::cut_points(file.path(), None, size).expect("can be read");
            assert!(points.len() as u64 > text.len() as u64 / size / 3, "{size}");
            let portions = parts_of(&file, &points, text.len() as u64);
            compare(
                settled(&portions).report(),
                &expected,
                &format!("turn {turn}, {size}"),
            );
        }
    }
}

#[test]
fn a_csv_log_with_lines_that_were_cut_short_is_read_as_a_whole() {
    let text = nasty_log(&mut Random(5), 1_500, true);
    let line = text.lines().next().expect("has lines").len() + 1;
    let odd = (40..line).find(|end| text[..*end].matches('"').count() % 2 == 1);
    let damage = format!("{}\n", &text[..odd.expect("has fields")]);
    let last = text.rfind("\n2026").expect("has records") + 1;
    // Two of them make an even number of quotation marks.
    for damaged in [
        format!("{damage}{text}"),
        format!("{text}{damage}"),
        format!("{damage}{}{damage}{}", &text[..last], &text[last..]),
    ] {
        let file = file(&damaged);
        let (points, _) = crate::cut_points(file.path(), None, 20_000).expect("can be read");
        assert_eq!(points, [0; 0]);
    }
}

#[test]
fn a_portion_of_a_log_that_was_not_read_to_its_end_is_not_complete() {
    let log = log(&mut Random(2), 100, 0, true);
    let mut file = file(&log);
    let stored = gathered(&whole_file(&file));
    assert!(is_complete(&stored) && !is_complete(&stored[1..]) && !is_complete(b""));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(log.as_bytes()).expect("is packed");
    let packed = packed.finish().expect("is packed");
    file.as_file().set_len(0).expect("is emptied");
    file.rewind().expect("can be written again");
    file.write_all(&packed[..packed.len() / 2])
        .expect("is written");
    assert!(!is_complete(&gathered(&whole_file(&file))));
}

#[test]
fn a_damaged_portion_is_refused_without_a_panic() {
    let mut random = Random(11);
    let cut = Cut::new(&mut random, 150, true);
    let stored = gathered(&cut.whole);
    for _ in 0..300 {
        let mut damaged = stored.clone();
        match random.below(3) {
            0 => damaged.truncate(random.below(stored.len())),
            1 => damaged[random.below(stored.len())] ^= 1 << random.below(8),
            _ => damaged.push(0),
        }
        assert!(Portion::new(None).add(&damaged).is_err());
    }
    assert_eq!(
        Portion::new(None).add(b"something else"),
        Err(FormError::Foreign)
    );
}
