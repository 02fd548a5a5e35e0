//! Parts of a load, in virtual time: together they are the load of one process.

use std::io;
use std::sync::Mutex;

use uncork_model::{Connections, StatementKind};

use super::warm_up::WARM_UP_NUMBERS;
use super::*;
use crate::lease::monotonic_ns;
use crate::{Event, FakeEndpoint, Task};

/// Who began which operation when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Begun {
    thread: usize,
    client: usize,
    number: u64,
    script: usize,
    at_ns: u64,
}

/// The fake driver, which notes what begins.
struct Noting {
    driver: FakeDriver,
    depth: usize,
    begun: Mutex<Vec<Begun>>,
}

struct NotingEndpoint<'a> {
    endpoint: FakeEndpoint,
    share: Share,
    depth: usize,
    begun: &'a Mutex<Vec<Begun>>,
}

impl<'a> Driver for &'a Noting {
    type Endpoint = NotingEndpoint<'a>;

    fn open(&self, share: Share, interrupt: &Interrupt) -> Result<NotingEndpoint<'a>, LoadError> {
        Ok(NotingEndpoint {
            endpoint: self.driver.open(share, interrupt)?,
            share,
            depth: self.depth,
            begun: &self.begun,
        })
    }
}

impl Endpoint for NotingEndpoint<'_> {
    fn slots(&self) -> usize {
        self.endpoint.slots()
    }

    fn now_ns(&self) -> u64 {
        self.endpoint.now_ns()
    }

    fn begin(&mut self, slot: usize, task: Task, recorder: &mut Recorder) {
        self.begun.lock().expect("whole").push(Begun {
            thread: self.share.thread,
            client: self.share.client(slot / self.depth),
            number: task.number,
            script: task.script,
            at_ns: task.at_ns,
        });
        self.endpoint.begin(slot, task, recorder);
    }

    fn next(&mut self, until_ns: u64, recorder: &mut Recorder) -> io::Result<Option<Event>> {
        self.endpoint.next(until_ns, recorder)
    }

    fn reopen(&mut self, slot: usize, not_before_ns: u64) {
        self.endpoint.reopen(slot, not_before_ns);
    }

    fn grow(&mut self) {
        self.endpoint.grow();
    }

    fn cancel(&mut self, slot: usize) -> bool {
        self.endpoint.cancel(slot)
    }

    fn traffic(&self) -> Traffic {
        self.endpoint.traffic()
    }

    fn connections(&self) -> Connections {
        self.endpoint.connections()
    }

    fn close(self) -> (u64, u64) {
        self.endpoint.close()
    }
}

/// A plan of two scripts on the fake driver, for eight clients.
fn plan(threads: usize, part: &str, changes: &str) -> LoadPlan {
    let text = format!(
        r#"{{"driver": "fake", "clients": 8, "threads": {threads}, "seed": 7,
        "deadline_ns": 3600000000000, "part": {{{part}}}, {changes},
        "fake": {{"latencies_ns": [1000000, 9000000, 400000, 70000000, 2000000]}},
        "scripts": [{{"name": "a", "weight": 2, "statements": [{{"name": "a", "sql": ""}}]}},
        {{"name": "b", "weight": 1, "statements": [{{"name": "b", "sql": ""}}]}}]}}"#
    );
    LoadPlan::parse(text.as_bytes()).expect("valid")
}

/// What began, and the report.
type Noted = (Vec<Begun>, Report);

fn noted(plan: &LoadPlan) -> Noted {
    let shape = Shape::of(plan);
    let fake = plan.fake.clone().expect("given");
    let driver = Noting {
        driver: FakeDriver::new(fake, &shape, plan.digest, plan.pipeline_depth),
        depth: plan.pipeline_depth,
        begun: Mutex::default(),
    };
    let report = run_with(plan, &&driver, &shape, &Control::default()).expect("runs");
    let mut begun = driver.begun.into_inner().expect("whole");
    begun.sort_unstable();
    (begun, report)
}

/// What one process with four threads does, and what four processes with a thread each do.
fn whole_and_parts(changes: &str) -> (Noted, (Vec<Begun>, Vec<Report>)) {
    let whole = noted(&plan(4, "", changes));
    let (mut begun, mut reports) = (Vec::new(), Vec::new());
    for index in 0..4 {
        let part = format!(r#""index": {index}, "count": 4"#);
        let (one, report) = noted(&plan(1, &part, changes));
        begun.extend(one);
        reports.push(report);
    }
    begun.sort_unstable();
    (whole, (begun, reports))
}

const ARRIVALS: [&str; 4] = [
    r#"{"kind": "poisson", "rate": 500}"#,
    r#"{"kind": "constant", "rate": 500}"#,
    r#"{"kind": "bursts", "rate": 500, "size": 3}"#,
    r#"{"kind": "trace", "offsets_ns": [0, 0, 5, 900, 900, 70000, 5000000, 6000000, 7000000]}"#,
];

#[test]
fn in_an_open_loop_four_parts_begin_what_one_process_with_four_threads_begins() {
    for arrivals in ARRIVALS {
        for stop in [r#"{"duration_ns": 3000000000}"#, r#"{"operations": 1001}"#] {
            for more in [
                "",
                r#", "latency_limit_ns": 20000000"#,
                r#", "warmup_operations": 6"#,
            ] {
                let changes = format!(r#""arrivals": {arrivals}, "stop": {stop}{more}"#);
                let ((whole, one), (parts, reports)) = whole_and_parts(&changes);
                assert!(whole.len() > 5, "{changes}");
                if more.contains("warmup") {
                    // Threads of one process take the operations of the warm-up in any order.
                    let measured = |all: &[Begun]| -> Vec<Begun> {
                        all.iter().filter(|one| one.number >= 8).copied().collect()
                    };
                    let numbers = |all: &[Begun]| -> Vec<u64> {
                        let mut numbers: Vec<_> = all.iter().map(|one| one.number).collect();
                        numbers.sort_unstable();
                        numbers
                    };
                    assert_eq!(numbers(&measured(&whole)), numbers(&measured(&parts)));
                    continue;
                }
                assert_eq!(whole, parts, "{changes}");
                let sum = |get: fn(&Totals) -> u64| -> u64 {
                    reports.iter().map(|report| get(&report.totals)).sum()
                };
                assert_eq!(sum(|totals| totals.started), one.totals.started);
                assert_eq!(sum(|totals| totals.skipped), one.totals.skipped);
                assert_eq!(
                    sum(|totals| totals.arrivals.unwrap_or(0)),
                    one.totals.arrivals.unwrap_or(0)
                );
            }
        }
    }
}

#[test]
fn the_warm_up_of_an_open_loop_changes_nothing_in_the_measured_part() {
    for arrivals in &ARRIVALS[..3] {
        let plain = format!(r#""arrivals": {arrivals}, "stop": {{"operations": 301}}"#);
        let warmed = format!(r#"{plain}, "warmup_ns": 400000000"#);
        let sent = |all: &[Begun]| {
            let mut sent: Vec<_> = all
                .iter()
                .map(|one| (one.number, one.thread, one.script))
                .collect();
            sent.sort_unstable();
            sent
        };
        let ((whole, one), (parts, _)) = whole_and_parts(&plain);
        let ((warm_whole, warm_one), (warm_parts, reports)) = whole_and_parts(&warmed);
        for (cold, warm) in [(whole, warm_whole), (parts, warm_parts)] {
            let (measured, before): (Vec<_>, Vec<_>) = warm
                .into_iter()
                .partition(|one| one.number < WARM_UP_NUMBERS);
            assert_eq!(sent(&measured), sent(&cold), "{arrivals}");
            assert!((100..300).contains(&before.len()), "{}", before.len());
            let last_ns = before.iter().map(|one| one.at_ns).max();
            assert!(
                last_ns < Some(500_000_000),
                "200 are due on average in 400 ms"
            );
        }
        assert_eq!(warm_one.totals.arrivals, one.totals.arrivals);
        let started: u64 = reports.iter().map(|report| report.totals.started).sum();
        assert_eq!(started, one.totals.started);
    }
}

#[test]
fn added_histograms_equal_the_histogram_of_the_same_recordings() {
    let changes =
        r#""arrivals": {"kind": "poisson", "rate": 900}, "stop": {"duration_ns": 9000000000}"#;
    let ((_, one), (_, reports)) = whole_and_parts(changes);
    let histogram = |report: &Report, kind: StatementKind| -> Vec<u8> {
        let row = report.statements.iter().find(|row| row.kind == kind);
        row.expect("there").histogram.clone()
    };
    for kind in [
        StatementKind::Operation,
        StatementKind::Service,
        StatementKind::Script,
    ] {
        let parts: Vec<_> = reports
            .iter()
            .map(|report| histogram(report, kind))
            .collect();
        let parts = parts.iter().map(Vec::as_slice);
        let (sum, values) = crate::add_up(parts, &[0.5, 0.999]).expect("valid");
        assert_eq!(sum, histogram(&one, kind));
        assert!(values[0] > 0 && values[1] > values[0], "{values:?}");
    }
}

#[test]
fn in_a_closed_loop_parts_share_operations_numbers_and_clients() {
    for stop in [r#"{"operations": 1002}"#, r#"{"operations_each": 33}"#] {
        let ((whole, _), (parts, _)) = whole_and_parts(&format!(r#""stop": {stop}"#));
        let numbers = |all: &[Begun]| {
            let mut numbers: Vec<_> = all.iter().map(|one| one.number).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(numbers(&whole), (0..whole.len() as u64).collect::<Vec<_>>());
        if stop.contains("each") {
            // What each client does, in order, apart from its numbers.
            let clients = |all: &[Begun]| {
                let mut clients: BTreeMap<usize, Vec<(u64, usize)>> = BTreeMap::new();
                for one in all {
                    clients
                        .entry(one.client)
                        .or_default()
                        .push((one.number, one.script));
                }
                for begun in clients.values_mut() {
                    begun.sort_unstable();
                }
                let scripts = clients.into_iter().map(|(client, begun)| {
                    (
                        client,
                        begun
                            .into_iter()
                            .map(|(_, script)| script)
                            .collect::<Vec<_>>(),
                    )
                });
                scripts.collect::<BTreeMap<_, _>>()
            };
            assert_eq!(clients(&whole), clients(&parts));
        } else {
            assert_eq!(numbers(&whole), numbers(&parts));
        }
    }
}

#[test]
fn what_is_planned_is_what_is_begun() {
    for index in 0..3 {
        let part = format!(r#""index": {index}, "count": 3"#);
        for changes in [
            r#""stop": {"operations": 1000}"#,
            r#""stop": {"operations_each": 7}"#,
            r#""arrivals": {"kind": "poisson", "rate": 50}, "stop": {"duration_ns": 2000000000}"#,
            r#""arrivals": {"kind": "constant", "rate": 50}, "stop": {"operations": 100}"#,
            r#""arrivals": {"kind": "trace", "offsets_ns": [1, 2, 3, 4]}, "stop": {"operations": 9}"#,
        ] {
            let plan = plan(2, &part, changes);
            let (begun, _) = noted(&plan);
            let planned = crate::planned(&plan).expect("valid");
            assert_eq!(planned, Some(begun.len() as u64), "{changes}");
        }
    }
    let timed = plan(1, "", r#""stop": {"duration_ns": 5}"#);
    assert_eq!(crate::planned(&timed).expect("valid"), None);
}

#[test]
fn a_lease_that_is_not_renewed_ends_a_load() {
    const SECOND_NS: u64 = 1_000_000_000;
    for loops in [
        r#""stop": {"duration_ns": 30000000000}"#,
        r#""stop": {"duration_ns": 30000000000}, "arrivals": {"kind": "constant", "rate": 500}"#,
    ] {
        let (begun, report) = noted(&plan(2, r#""lease_ns": 5000000000"#, loops));
        let last_ns = begun.iter().map(|one| one.at_ns).max().expect("some");
        assert!(
            (4 * SECOND_NS..6 * SECOND_NS).contains(&last_ns),
            "{last_ns}"
        );
        assert_eq!(report.totals.outcome, Outcome::LeaseEnded);
        assert_eq!(
            report.totals.message.as_deref(),
            Some("the lease was not renewed for 5 s")
        );
        // Without a lease, the same load goes on to its end.
        let (begun, report) = noted(&plan(2, "", loops));
        let last_ns = begun.iter().map(|one| one.at_ns).max().expect("some");
        assert!(last_ns > 29 * SECOND_NS, "{last_ns}");
        assert_eq!(report.totals.outcome, Outcome::Complete);
    }
}

#[test]
fn a_lease_is_needed_before_the_start_too() {
    let start_at_ns = monotonic_ns() + 60_000_000_000;
    let part = format!(r#""lease_ns": 100000000, "start_at_ns": {start_at_ns}"#);
    let (begun, report) = noted(&plan(2, &part, r#""stop": {"operations": 5}"#));
    assert_eq!(
        (begun.len(), report.totals.outcome),
        (0, Outcome::LeaseEnded)
    );
}

#[test]
fn a_load_starts_at_its_time_and_reserves_what_it_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("reservations");
    let start_at_ns = monotonic_ns() + 80_000_000;
    let part = format!(
        r#""start_at_ns": {start_at_ns}, "reservations": "{}""#,
        path.display()
    );
    let (begun, report) = noted(&plan(2, &part, r#""stop": {"operations": 500}"#));
    assert!(monotonic_ns() >= start_at_ns);
    assert!(report.totals.start_late_ns.is_some());
    let reserved: u64 = std::fs::read(&path)
        .expect("written")
        .as_chunks()
        .0
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .sum();
    assert_eq!((begun.len(), reserved), (500, 500));
}
