//! Damaged logs: nothing may panic, and every line is counted exactly once: as the first one of an entry, as a
//! continuation, as a foreign record, or as rejected.
//!
//! The default is a few thousand logs; `UNCORK_MANGLE_LOGS=100000 cargo test --release -p uncork-log --test mangled`
//! reads that many, and `UNCORK_MANGLE_SECONDS=600` reads for ten minutes.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the long form looks at the clock, and tells whoever asked for it"
)]

use std::time::{Duration, Instant};

use uncork_log::{
    Dialect, Entry, EntryRow, Gathered, Prefix, Replays, Side, Sink, Texts, Unwrapper, Written,
};

/// The default number of logs.
const ROUNDS: u64 = 3_000;

const LINES: &str = "\
2026-01-01 00:00:00.000 UTC [7] u@d app LOG:  duration: 1.000 ms  statement: SELECT name FROM items WHERE id IN (1, 2, 3)\n\
2026-01-01 00:00:00.001 UTC [8] u@d app LOG:  duration: 0.100 ms  parse <unnamed>: SELECT $1::text, E'it''s \\' x'\n\
2026-01-01 00:00:00.002 UTC [8] u@d app LOG:  duration: 0.200 ms  execute S_1/C_2: INSERT INTO t VALUES ($1, $$a$$), (2, '{1,2}')\n\
2026-01-01 00:00:00.002 UTC [8] u@d app DETAIL:  parameters: $1 = '5', $2 = NULL\n\
2026-01-01 00:00:00.003 UTC [7] u@d app ERROR:  relation \"x\" does not exist at character 15\n\
2026-01-01 00:00:00.003 UTC [7] u@d app STATEMENT:  SELECT *\n\tFROM x -- why\n\
2026-01-01 00:00:00.004 UTC [7] u@d app LOG:  statement: BEGIN\n\
2026-01-01 00:00:00.004 UTC [7] u@d app LOG:  duration: 3 ms\n\
2026-01-01 00:00:00.005 UTC [9] LOG:  checkpoint complete: wrote 44 buffers (0.3%); write=4.327 s, sync=0.007 s, total=4.343 s; distance=260 kB, estimate=260 kB\n\
2026-01-01 00:00:00.006 UTC [7] u@d app LOG:  process 7 still waiting for ShareLock on transaction 9 after 1000.1 ms\n\
2026-01-01 00:00:00.006 UTC [7] u@d app DETAIL:  Processes holding the lock: 8, 9. Wait queue: 7.\n\
2026-01-01 00:00:00.007 UTC [7] u@d app LOG:  process 7 acquired ShareLock on transaction 9 after 2000.1 ms\n\
2026-01-01 00:00:00.007 UTC [7] u@d app LOG:  duration: 8 ms  plan:\n\tQuery Text: SELECT 1;\n\tResult  (cost=0.00..0.01 rows=1) (actual time=0.1..0.2 rows=5 loops=1)\n\
2026-01-01 00:00:00.008 UTC [7] u@d app LOG:  temporary file: path \"base/pgsql_tmp/pgsql_tmp7.0\", size 1073741824\n";

const CSV: &str = "\
2026-01-01 00:00:00.000 UTC,\"u\",\"d\",7,\"10.0.0.1:5432\",692cb2bb.37,1,\"SELECT\",2026-01-01 00:00:00 UTC,3/4,0,LOG,00000,\"duration: 1.000 ms  statement: SELECT \"\"a\"\",\n 2\",,,,,,,,,\"app\",\"client backend\",,0\n\
2026-01-01 00:00:00.001 UTC,,,8,,692cb2bb.38,1,,2026-01-01 00:00:00 UTC,,0,ERROR,42P01,\"no\",\"detail\",\"hint\",,,\"context\",\"SELECT 1\",7,,\"\",\"postmaster\",,0\n";

const JSON: &str = "\
{\"timestamp\":\"2026-01-01 00:00:00.000 UTC\",\"user\":\"u\",\"dbname\":\"d\",\"pid\":7,\"session_id\":\"692cb2bb.37\",\"error_severity\":\"LOG\",\"message\":\"duration: 1.000 ms  statement: SELECT \\\"\\u00e4\\ud83d\\ude00\\\"\",\"query_id\":0}\n\
{\"level\":\"info\",\"ts\":1.5,\"record\":{\"log_time\":\"2026-01-01 00:00:00 UTC\",\"error_severity\":\"ERROR\",\"message\":\"no\",\"list\":[1,[2,{}]]}}\n\
{\"log\":\"2026-01-01 00:00:00.000 UTC [7] LOG:  ready\\n\",\"stream\":\"stderr\"}\n";

const WRAPPED: &str = "\
Nov 30 21:10:20 db1 postgres[55]: [3-1] 2025-11-30 21:10:20.100 UTC [55] a@d LOG:  duration: 1.000 ms  statement: SELECT 1,\n\
<134>1 2019-03-14T00:22:56.123Z host postgres 4882 id [a b=\"]\"][c d=\"e\"] \u{feff}[15-1] LOG:  ready\n\
Nov 30 21:10:20 db1 postgres[55]: [3-2] #011 2 #012 3 #01\n\
2021-09-07T04:01:27+00:00 d.af28 app[postgres.5925] [AQUA] [9-1]  sql_error_code = 00000 LOG:  x\n\
2026-01-01T00:00:00.1Z stderr P 2026-01-01 00:00:00.000 UTC [7] LOG:  rea\n\
2026-01-01T00:00:00.1Z stderr F dy\n";

const BOUNCER: &str = "\
2018-09-12 16:09:05.313 3394 LOG C-0x562376c014e0: shop/ada@127.0.0.1:43866 login attempt: db=shop user=ada tls=no\n\
2026-05-31 08:00:00.123 UTC [55] WARNING C-0x5: (nodb)/(nouser)@unix(77):6432 pooler error: no more connections\n\
2026-05-31 08:00:00.123 CEST [55] LOG S-0x7: shop/ada@10.0.0.7:5432 closing because: server idle timeout (age=601s)\n\
2026-05-31 08:00:01.000 UTC [55] LOG stats: 281 xacts/s, 1967 queries/s, in 1 B/s, out 9 B/s, xact 17057 us, query 2360 us, wait time 8672 us\n";

/// What servers with other prefixes write before the severity.
const HEADS: [&str; 10] = [
    "2026-01-01 00:00:SS.000 UTC [7] ",
    "2026-01-01 00:00:SS UTC [8]: [3-1] user=u,db=d,app=web,client=10.0.0.7 ",
    "2026-01-01 00:00:SS CET:10.0.0.7(5432):u@d:[7]:",
    "[7] ",
    "",
    "22012: ",
    "42P01:u@d:",
    "[queryid=-77112233445566] u@d ",
    "-4611686018427387904 ",
    "user=u db=d pid=7 time=2026-01-01 00:00:SS.1 UTC ",
];

/// What they write after it, without the time.
const BODIES: [&str; 7] = [
    "LOG:  duration: 1.000 ms  statement: SELECT 1,\n\t2",
    "LOG:  duration: 12.345 ms  execute <unnamed>:",
    "LOG:  process 7 still waiting for ShareLock on transaction 9 after 1000.1 ms",
    "LOG:  process 7 acquired ShareLock on transaction 9 after 2000.1 ms",
    "ERROR:  division by zero",
    "STATEMENT:  SELECT 1 / 0",
    "LOG:  connection received: host=10.0.0.7 port=5432",
];

/// What collectors write around a line.
const WRAPPERS: [&str; 8] = [
    "TEXT",
    "Nov 30 21:10:SS db1 postgres[7]: [3-1] TEXT",
    "2026-01-01T00:00:SS+0000 db1 postgres[8]: TEXT",
    "<134>1 2026-01-01T00:00:SS.1Z host postgres 7 - - [15-1] TEXT",
    "2026-01-01T00:00:SS.1Z stderr F TEXT",
    "{\"log\":\"TEXT\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-01T00:00:SS.1Z\"}",
    "{\"timestamp\":\"2026-01-01T00:00:SS.1Z\",\"textPayload\":\"TEXT\"}",
    "{\"__REALTIME_TIMESTAMP\":\"17672256SS000000\",\"_PID\":\"7\",\"MESSAGE\":\"TEXT\"}",
];

/// Lines of other programs.
const NOISE: [&str; 5] = [
    "",
    "Nov 30 21:10:20 db1 sshd[99]: Accepted publickey for ada",
    "2026-01-01 00:00:00,123 INFO: no action. I am (node1), the leader with the lock",
    "{\"level\":\"info\",\"msg\":\"done\"}",
    "Traceback (most recent call last):",
];

const TOKENS: [&[u8]; 16] = [
    b"\0",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b"\t",
    b"'",
    b"\"",
    b"$$",
    b"/*",
    b"[",
    b"]: ",
    b"(",
    b"{",
    b",",
    b"\\",
    b" LOG:  ",
];

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
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }
}

/// Write a log of a few entries: one wrapper, but prefixes that change, and lines of others in between.
fn mixed(random: &mut Random) -> Vec<u8> {
    let mut log = String::new();
    let wrapper = WRAPPERS[random.below(WRAPPERS.len())];
    let mut head = HEADS[random.below(HEADS.len())];
    for number in 0..=random.below(24) {
        let second = format!("{number:02}");
        match random.below(12) {
            0 => log += NOISE[random.below(NOISE.len())],
            1 => head = HEADS[random.below(HEADS.len())],
            _ => {}
        }
        if log.ends_with(|last| last != '\n') {
            log.push('\n');
        }
        for (part, line) in BODIES[random.below(BODIES.len())].lines().enumerate() {
            let line = if part == 0 {
                format!("{head}{line}")
            } else {
                line.replace('\t', "\\t")
            };
            log += &wrapper.replace("TEXT", &line).replace("SS", &second);
            log.push('\n');
        }
    }
    log.into_bytes()
}

/// Return how many lines an unwrapped log has at least and at most, from the wrapped one.
fn inner_lines(wrapping: &str, log: &[u8]) -> (u64, u64) {
    let lines = log.split(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
        .collect();
    let count = lines.len() as u64;
    let of = |text: &[u8]| log.windows(text.len()).filter(|part| *part == text).count() as u64;
    match wrapping {
        // Escaped line ends become line ends.
        "syslog" => (count, count + of(b"#012")),
        "JSON" => (count, count + of(b"\\n") + of(b"\\u000a") + of(b"\\u000A")),
        // Incomplete lines are joined.
        _ => (count - of(b" P").min(count), count),
    }
}

fn count_lines(text: &[u8]) -> u64 {
    text.split_inclusive(|byte| *byte == b'\n').count() as u64
}

fn mangle(log: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(12) {
        let (at, length) = (random.below(log.len() + 1), random.below(60));
        let end = log.len().min(at + length);
        match random.below(7) {
            0 => drop(log.drain(at..end)),
            1 => log.truncate(at),
            2 => {
                let part = log[at..end].to_vec();
                let place = random.below(log.len() + 1);
                log.splice(place..place, part);
            }
            3 => {
                let token = TOKENS[random.below(TOKENS.len())];
                log.splice(at..at, token.iter().copied());
            }
            4 if at < log.len() => log[at] = random.next().to_le_bytes()[0],
            5 if at < log.len() => log[at] ^= 1 << random.below(8),
            _ => {
                let part = TOKENS[random.below(TOKENS.len())].repeat(random.below(300));
                log.splice(at..at, part);
            }
        }
    }
}

/// Gathers entries, and formats their texts as reports and events do.
struct Showing(Gathered);

impl Sink for Showing {
    fn entry(&mut self, entry: &Entry<'_>) {
        let row = EntryRow::read(entry);
        for texts in [Texts::default(), Texts::anonymous(7)] {
            let shown =
                texts.statement(row.statement, true).len() + texts.plan(row.plan, true).len();
            assert!(shown <= (row.statement.len() + row.plan.len()) * 4 + 64);
            let _ = texts.message(row.message, true);
        }
        self.0.statement_id(&row);
        self.0.entry(entry);
    }

    fn rejected(&mut self, offset: u64, line: &[u8]) {
        self.0.rejected(offset, line);
    }

    fn lines(&mut self, heads: u64, continuations: u64) {
        self.0.lines(heads, continuations);
    }

    fn pooler(&mut self, entry: &Entry<'_>, side: Option<Side>) {
        self.0.pooler(entry, side);
    }

    fn foreign(&mut self) {
        self.0.foreign();
    }
}

/// Read a log in blocks of random sizes with one dialect; return the number of entries and rejected lines.
fn read(dialect: &Dialect, log: &[u8], random: &mut Random) -> u64 {
    let mut showing = Showing(Gathered::default());
    let mut replays = Replays::default();
    let (mut begin, mut end) = (0, 0);
    let mut scanner = dialect.clone();
    while begin < log.len() {
        end = log.len().min(end + 1 + random.below(400));
        let cut = if end == log.len() {
            Some(end - begin)
        } else {
            scanner.cut(&log[begin..end])
        };
        if let Some(cut) = cut {
            assert!(cut <= end - begin);
            scanner.scan(&log[begin..begin + cut], begin as u64, &mut showing);
            for event in showing.0.take_events(Vec::new()) {
                replays.of(0).follow(event);
            }
            begin += cut;
        }
    }
    let mut gathered = showing.0;
    replays.finish(&mut gathered);
    let lines = count_lines(log);
    assert_eq!(
        gathered.heads + gathered.continuations + gathered.foreign + gathered.rejected,
        lines,
        "{}",
        String::from_utf8_lossy(log)
    );
    let counted = gathered.entries + gathered.rejected + gathered.foreign;
    let groups: Vec<u32> = gathered.templates.all().iter().map(|_| 0).collect();
    let joined = gathered.join(&groups);
    assert!(joined.templates.all().len() <= 1);
    for template in joined.templates.all() {
        assert_eq!(template.histogram.count(), template.executions.count);
    }
    counted
}

#[test]
fn nothing_panics_on_damaged_logs() {
    let asked = |name: &str| std::env::var(name).ok()?.parse().ok();
    let end =
        asked("UNCORK_MANGLE_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let most = asked("UNCORK_MANGLE_LOGS");
    let is_long = end.is_some() || most.is_some();
    // The short form always uses the same logs, the long one new ones.
    let mut random = Random(if is_long {
        std::process::id().into()
    } else {
        1
    });
    let prefix = Prefix::parse("%m [%p] %q%u@%d %a ").expect("is a prefix");
    let known = [
        Dialect::with_prefix(prefix.clone()),
        Dialect::detect(CSV.as_bytes()).expect("is a log"),
        Dialect::detect(JSON.as_bytes()).expect("is a log"),
        Dialect::detect(BOUNCER.as_bytes()).expect("is a log"),
    ];
    let (mut rounds, mut counted, mut wrapped) = (0_u64, 0, 0_u64);
    let rest = |rounds| end.map_or(rounds < most.unwrap_or(ROUNDS), |end| Instant::now() < end);
    while rest(rounds) {
        rounds += 1;
        let logs = [LINES, CSV, JSON, WRAPPED, BOUNCER];
        let mut log = match random.below(2) {
            0 => mixed(&mut random),
            _ => logs[random.below(logs.len())].as_bytes().to_vec(),
        };
        if random.below(4) == 0 {
            log.extend_from_slice(logs[random.below(logs.len())].as_bytes());
        }
        if random.below(4) > 0 {
            mangle(&mut log, &mut random);
        }
        let given = (random.below(2) == 0).then_some(&prefix);
        if let Some(mut unwrapper) = Unwrapper::detect(&log, Written::at(1_780_000_000), given) {
            let (mut inner, middle) = (Vec::new(), random.below(log.len() + 1));
            let middle = log[..middle].iter().rposition(|byte| *byte == b'\n');
            let middle = middle.map_or(0, |at| at + 1);
            unwrapper.feed(&log[..middle], &mut inner);
            unwrapper.feed(&log[middle..], &mut inner);
            unwrapper.finish(&mut inner);
            assert!(inner.len() <= log.len() * 4 + 64);
            let (least, greatest) = inner_lines(unwrapper.name(), &log);
            assert!(
                (least..=greatest).contains(&count_lines(&inner)),
                "{}",
                String::from_utf8_lossy(&log)
            );
            wrapped += 1;
            counted += read(unwrapper.dialect(), &inner, &mut random);
        }
        if let Some(dialect) = Dialect::detect(&log) {
            counted += read(&dialect, &log, &mut random);
        }
        counted += read(&known[random.below(known.len())], &log, &mut random);
    }
    assert!(counted > rounds, "{counted} in {rounds}");
    assert!(wrapped * 10 > rounds, "{wrapped} in {rounds}");
    if is_long {
        // Only the long form prints.
        eprintln!("{rounds} logs, {wrapped} of them wrapped, {counted} entries and lines");
    }
}
