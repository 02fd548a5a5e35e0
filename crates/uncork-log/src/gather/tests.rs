use super::*;
use crate::{Lines, Prefix};

fn log() -> String {
    use std::fmt::Write as _;
    let mut log = String::new();
    for number in 0..600 {
        let (pid, second) = (10 + number % 7, number / 10);
        let head = format!(
            "2025-11-30 21:{:02}:{:02}.{:03} UTC [{pid}] u{}@d a ",
            second / 60,
            second % 60,
            number % 10,
            pid % 2
        );
        let _ = match number % 5 {
            0 => writeln!(
                log,
                "{head}ERROR:  relation \"t{number}\" does not exist\n{head}STATEMENT:  SELECT {number}"
            ),
            1 => writeln!(
                log,
                "{head}LOG:  duration: {number}.5 ms  execute <unnamed>: SELECT *\n\tFROM t WHERE id = $1\n{head}DETAIL:  parameters: $1 = '{number}'"
            ),
            2 => writeln!(
                log,
                "{head}LOG:  duration: 0.{number:03} ms  parse S_1: SELECT * FROM t WHERE id = $1"
            ),
            3 => writeln!(
                log,
                "{head}LOG:  duration: 7 ms  statement: INSERT INTO t VALUES {}",
                vec!["(1)"; 1 + number % 4].join(",")
            ),
            _ => writeln!(log, "{head}LOG:  connection received: host=[local]"),
        };
    }
    log
}

fn scanner() -> Lines {
    Lines::new(Prefix::parse("%m [%p] %q%u@%d %a ").expect("is a prefix"))
}

fn told(gathered: &Gathered) -> String {
    let mut gathered = gathered.clone();
    gathered.settle();
    let origins = gathered.origins.all();
    let mut rows: Vec<String> = gathered
        .templates
        .all()
        .iter()
        .map(|one| {
            let mut by: Vec<_> = one
                .origins()
                .into_iter()
                .map(|(number, times)| (&origins[number as usize], times))
                .collect();
            by.sort_by(|one, other| one.0.cmp(other.0));
            format!(
                "{:?} {:?} {:?} {:?} {:?} {:?} {by:?} {:?} {:?} {:?} {:?}",
                String::from_utf8_lossy(&one.more.text),
                one.executions,
                one.more.parses,
                one.histogram.buckets(),
                one.seen,
                one.series.points(&gathered.coarse),
                one.more.elements,
                one.more.slowest,
                one.more.newest,
                one.more.by_duration,
            )
        })
        .collect();
    let templates = gathered.templates.all();
    rows.extend(gathered.errors.all().map(|(kind, facts)| {
        let mut by: Vec<_> = facts
            .templates
            .iter()
            .map(|(number, count)| (&templates[*number as usize].more.text, count))
            .collect();
        by.sort_by_key(|one| one.0);
        format!(
            "{kind:?} {} {:?} {:?} {by:?} {:?}",
            facts.count,
            facts.seen,
            facts.series.points(&gathered.scale),
            facts.example
        )
    }));
    rows.sort();
    rows.push(format!(
        "{:?} {} {:?}",
        gathered.steps,
        gathered.entries,
        gathered
            .executions
            .all()
            .map(|(server, series)| (server, series.points(&gathered.scale)))
            .collect::<Vec<_>>()
    ));
    rows.join("\n")
}

fn whole(log: &str) -> Gathered {
    let mut gathered = Gathered::default();
    scanner().scan(log.as_bytes(), 0, &mut gathered);
    gathered
}

#[test]
fn counts_are_the_truth() {
    let mut gathered = whole(&log());
    gathered.settle();
    assert_eq!(gathered.entries, 600);
    assert_eq!(gathered.rejected, 0);
    let find = |text: &str| {
        let found = gathered
            .templates
            .all()
            .iter()
            .find(|one| *one.more.text == *text.as_bytes());
        found.expect("is there")
    };
    let select = find("select * from t where id = ?");
    assert_eq!(select.executions.count, 120);
    assert_eq!(
        select.executions.micros,
        (0..120)
            .map(|turn| (turn * 5 + 1) * 1_000 + 500)
            .sum::<u64>()
    );
    assert_eq!(select.more.parses.count, 120);
    let slowest = select.more.slowest.as_ref().expect("is there");
    assert_eq!(
        (slowest.micros, &slowest.parameters[..]),
        (596_500, &b"$1 = '596'"[..])
    );
    let insert = find("insert into t values (?)");
    assert_eq!(
        (
            insert.more.elements.count,
            insert.more.elements.min,
            insert.more.elements.max
        ),
        (120, 1, 4)
    );
    let (kind, facts) = gathered.errors.all().next().expect("is there");
    assert_eq!(
        String::from_utf8_lossy(&kind.message),
        "relation \"…\" does not exist"
    );
    assert_eq!((facts.count, facts.templates.len()), (120, 1));
    assert_eq!(gathered.origins.all().len(), 2);
}

#[test]
fn cut_and_shared_out_in_any_way_it_is_the_same() {
    let log = log();
    let expected = told(&whole(&log));
    for (size, workers) in [(300, 1), (1_000, 2), (5_000, 3), (17_000, 5)] {
        let mut parts: Vec<Gathered> = (0..workers).map(|_| Gathered::default()).collect();
        let (mut begin, mut end, mut turn) = (0, 0, 0);
        while begin < log.len() {
            end = log.len().min(end + size);
            let block = &log.as_bytes()[begin..end];
            let cut = if end == log.len() {
                Some(block.len())
            } else {
                scanner().cut(block)
            };
            if let Some(cut) = cut {
                scanner().scan(&block[..cut], begin as u64, &mut parts[turn % workers]);
                (begin, turn) = (begin + cut, turn + 1);
            }
        }
        let mut sum = Gathered::default();
        for part in parts.into_iter().rev() {
            sum.merge(part);
        }
        assert_eq!(told(&sum), expected, "{size} bytes, {workers} workers");
    }
}
