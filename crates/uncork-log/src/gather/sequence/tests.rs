use super::*;
use crate::read::message::Step;
use crate::{Gathered, Lines, Prefix, Replays};

/// Read the log of sessions, and replay it in its order.
pub(in crate::gather) fn read(log: &str) -> Gathered {
    let mut gathered = Gathered::default();
    let prefix = Prefix::parse("%m [%p] %q%u@%d %a ").expect("is a prefix");
    Lines::new(prefix).scan(log.as_bytes(), 0, &mut gathered);
    let mut replays = Replays::default();
    for event in gathered.take_events(Vec::new()) {
        replays.of(0).follow(event);
    }
    replays.finish(&mut gathered);
    gathered
}

/// A line of a session, `millis` after midnight.
pub(in crate::gather) fn line(millis: u32, pid: u32, rest: &str) -> String {
    format!(
        "2026-01-01 00:{:02}:{:02}.{:03} UTC [{pid}] u@d app {rest}\n",
        millis / 60_000,
        millis / 1_000 % 60,
        millis % 1_000
    )
}

fn number_of(gathered: &Gathered, text: &str) -> u32 {
    let all = gathered.templates.all();
    let found = all
        .iter()
        .position(|one| *one.more.text == *text.as_bytes());
    u32::try_from(found.unwrap_or_else(|| panic!("{text}"))).expect("is small")
}

#[test]
fn a_duration_belongs_to_the_statement_that_its_session_logged_before_it() {
    let log = [
        line(0, 1, "LOG:  statement: SELECT 1 FROM a"),
        line(
            1,
            2,
            "LOG:  execute <unnamed>: SELECT 1 FROM b WHERE c = $1",
        ),
        line(1, 2, "DETAIL:  parameters: $1 = '7'"),
        line(2, 2, "LOG:  duration: 0.200 ms"),
        line(3, 1, "LOG:  duration: 3.000 ms"),
        line(4, 1, "LOG:  duration: 5.000 ms"),
        line(5, 3, "LOG:  duration: 7.000 ms"),
    ]
    .concat();
    let gathered = read(&log);
    let of = |text: &str| &gathered.templates.all()[number_of(&gathered, text) as usize];
    assert_eq!(of("select ? from a").executions.micros, 3_000);
    let told = of("select ? from b where c = ?");
    assert_eq!((told.executions.count, told.executions.micros), (1, 200));
    let slowest = told.more.slowest.as_ref().expect("is there");
    assert_eq!(&slowest.parameters[..], b"$1 = '7'");
    let untold = gathered.steps[Step::Unknown as usize];
    assert_eq!((untold.count, untold.micros), (2, 12_000));
    assert_eq!(gathered.steps[Step::Statement as usize].count, 1);
    assert_eq!(gathered.steps[Step::Execute as usize].count, 1);
}

#[test]
fn an_addition_finds_its_error_though_other_sessions_wrote_in_between() {
    let log = [
        line(0, 1, "ERROR:  relation \"x\" does not exist"),
        line(0, 2, "LOG:  duration: 1.000 ms  statement: SELECT 2"),
        line(0, 1, "STATEMENT:  SELECT * FROM x"),
        line(0, 2, "STATEMENT:  SELECT 3"),
    ]
    .concat();
    let gathered = read(&log);
    let (_, facts) = gathered.errors.all().next().expect("is there");
    assert_eq!(facts.count, 1);
    let number = number_of(&gathered, "select * from x");
    assert_eq!(facts.templates.iter().collect::<Vec<_>>(), [(&number, &1)]);
    let (_, parts) = facts.example.as_ref().expect("is there");
    assert_eq!(&*parts[4], b"SELECT * FROM x");
    assert_eq!(gathered.entries, 2);
}

#[test]
fn executions_in_a_row_are_told_from_ten_on() {
    let mut log = String::new();
    for turn in 0..12 {
        // Session 2 runs something else in between, which breaks no row of session 1.
        let text = format!("LOG:  duration: 1.000 ms  statement: SELECT {turn} FROM items");
        log += &line(turn * 10, 1, &text);
        log += &line(
            turn * 10,
            2,
            &format!("LOG:  duration: 1.000 ms  statement: SELECT {turn}, 1"),
        );
        if turn % 5 == 4 {
            log += &line(
                turn * 10,
                2,
                "LOG:  duration: 1.000 ms  statement: SELECT now()",
            );
        }
    }
    let gathered = read(&log);
    let number = number_of(&gathered, "select ? from items");
    assert_eq!(gathered.repetitions.len(), 1);
    let ((of, _), repetitions) = gathered.repetitions[0];
    assert_eq!(of, number);
    assert_eq!(
        (
            repetitions.rows,
            repetitions.executions,
            repetitions.longest
        ),
        (1, 12, 12)
    );
    // From the end of the first one to that of the last one, 11 of them ran for a millisecond.
    assert_eq!((repetitions.elapsed, repetitions.micros), (110_000, 11_000));
}

#[test]
fn a_session_that_ends_ends_its_row() {
    let mut log = String::new();
    for pass in 0..2 {
        for turn in 0..6 {
            let text = format!("LOG:  duration: 1.000 ms  statement: SELECT {turn} FROM items");
            log += &line(pass * 100 + turn, 1, &text);
        }
        let end = "LOG:  disconnection: session time: 0:00:01.000 user=u database=d host=[local]";
        log += &line(pass * 100 + 50, 1, end);
    }
    let gathered = read(&log);
    assert_eq!(gathered.repetitions, []);
    assert_eq!(gathered.activity.ended.count, 2);
}

#[test]
fn transactions_last_from_begin_to_their_end() {
    let statements = [
        (0, "BEGIN"),
        (10, "SELECT 1"),
        (30, "UPDATE t SET a = 1"),
        (90, "COMMIT"),
        (95, "SELECT 1"),
        (100, "begin"),
        (103, "ROLLBACK"),
    ];
    let log: String = statements
        .iter()
        .map(|(millis, text)| {
            line(
                *millis,
                1,
                &format!("LOG:  duration: 2.000 ms  statement: {text}"),
            )
        })
        .collect();
    let gathered = read(&log);
    let (origin, transactions) = &gathered.transactions[0];
    assert_eq!(
        &*gathered.origins.all()[*origin as usize].application,
        b"app"
    );
    assert_eq!(
        (transactions.elapsed.count, transactions.elapsed.micros),
        (2, 93_000)
    );
    assert_eq!(
        (transactions.statements.micros, transactions.statements.max),
        (2, 2)
    );
    // What ends a transaction is work too, not waiting for the client.
    assert_eq!(transactions.micros, 8_000);
    assert_eq!(transactions.pauses, Times::default());
    assert_eq!(transactions.place, (0, 0));
}

#[test]
fn executions_with_pauses_between_them_are_no_row() {
    let text = "LOG:  duration: 1.000 ms  statement: SELECT 1";
    let of = |gap: u32| {
        (0..30)
            .map(|turn| line(turn * gap, 1, text))
            .collect::<String>()
    };
    // A pool that looks now and then whether its connection lives; and a row in a log of whole seconds.
    assert_eq!(read(&of(1_500)).repetitions.len(), 0);
    assert_eq!(read(&of(1_000)).repetitions[0].1.executions, 30);
}

#[test]
fn parse_and_bind_are_no_waiting_for_the_client() {
    let mut log = line(0, 1, "LOG:  duration: 0.100 ms  statement: BEGIN");
    let mut now = 0;
    for _ in 0..12 {
        for (millis, step) in [(2, "parse"), (3, "bind"), (4, "execute")] {
            now += millis;
            log += &line(
                now,
                1,
                &format!("LOG:  duration: {millis}.000 ms  {step} <unnamed>: SELECT $1 FROM t"),
            );
        }
        now += 1;
    }
    log += &line(
        now + 5,
        1,
        "LOG:  duration: 5.000 ms  execute <unnamed>: COMMIT",
    );
    let gathered = read(&log);
    let (_, transactions) = &gathered.transactions[0];
    assert_eq!(transactions.elapsed.micros, 12 * 10_000 + 5_000);
    assert_eq!(transactions.micros, 12 * 9_000 + 5_000);
    let (_, repetition) = gathered.repetitions[0];
    assert_eq!(
        (repetition.elapsed, repetition.micros),
        (11 * 10_000, 11 * 9_000)
    );
    assert_eq!(transactions.repeated, 11_000);
}

#[test]
fn pauses_are_told_from_ways_to_the_server_and_back() {
    let mut log = line(0, 1, "LOG:  duration: 0.100 ms  statement: BEGIN");
    for turn in 1..=200 {
        // Two templates in turn: no row of one, but a loop.
        let table = ["a", "b"][turn as usize % 2];
        let text = format!("LOG:  duration: 1.000 ms  statement: SELECT {turn} FROM {table}");
        log += &line(turn * 20, 1, &text);
    }
    log += &line(9_000, 1, "LOG:  duration: 0.000 ms  statement: COMMIT");
    let gathered = read(&log);
    let (_, transactions) = &gathered.transactions[0];
    assert_eq!(
        (transactions.elapsed.micros, transactions.micros),
        (9_000_000, 200_000)
    );
    assert_eq!(
        (transactions.pauses.count, transactions.pauses.micros),
        (1, 5_000_000)
    );
    assert_eq!(gathered.repetitions.len(), 0);
    assert_eq!(transactions.repeated, 2 * 99 * 19_000);
}

#[test]
fn sessions_with_which_uncork_watches_are_counted_and_left_out() {
    let mut log = String::new();
    for turn in 0..50 {
        // By the mark in the statement, in every form of it.
        log += &line(
            turn,
            1,
            "LOG:  duration: 1.000 ms  statement: SELECT /* uncork */ 1",
        );
        log += &line(
            turn,
            2,
            "LOG:  execute <unnamed>: \n\tSELECT /* uncork */ 1",
        );
        log += &line(turn, 2, "LOG:  duration: 1.000 ms");
        log += &line(turn, 1, "ERROR:  no");
        log += &line(turn, 1, "STATEMENT:  SELECT /* uncork */ 2");
        log += &line(
            turn,
            1,
            "LOG:  duration: 1.000 ms  plan:\n\tQuery Text: SELECT /* uncork */ 1\n\tResult  (cost=0.00..0.01 rows=1)",
        );
        // By the application's name, whatever the session writes.
        log += &line(turn, 3, "LOG:  duration: 1.000 ms  statement: BEGIN")
            .replace("u@d app", "u@d uncork watch");
    }
    // What uncork sends as a load is none of it.
    log += &line(
        60,
        4,
        "LOG:  duration: 1.000 ms  statement: SELECT 1 FROM t",
    )
    .replace("u@d app", "u@d uncork");
    let gathered = read(&log);
    assert_eq!((gathered.own, gathered.repetitions.len()), (5 * 50, 0));
    assert_eq!(gathered.steps.iter().map(|step| step.count).sum::<u64>(), 1);
    assert_eq!(gathered.templates.all().len(), 1);
    assert_eq!(gathered.errors.all().count(), 0);
}

#[test]
fn the_rare_tail_is_put_together_and_counted() {
    let mut log = String::new();
    for turn in 0..300 {
        let text = format!("LOG:  duration: 1.000 ms  statement: SELECT a{turn} FROM t");
        log += &line(turn, 1, &text);
    }
    for turn in 0..20 {
        let text = format!(
            "LOG:  duration: {}.000 ms  statement: SELECT b{turn} FROM t",
            10 + turn
        );
        log += &line(turn, 1, &text);
    }
    log += &line(0, 1, "ERROR:  no\n");
    log = log.trim_end().to_owned() + "\n" + &line(0, 1, "STATEMENT:  SELECT a7 FROM t");
    let mut gathered = read(&log);
    let before = gathered.steps;
    for _ in 0..3 {
        gathered.bound(100);
    }
    assert_eq!(gathered.templates.all().len(), 51);
    assert_eq!(gathered.steps, before);
    let rare = &gathered.templates.all()[number_of(&gathered, "(rare statements)") as usize];
    assert_eq!(rare.executions.count, 270);
    assert_eq!(rare.histogram.count(), 270);
    assert_eq!(gathered.rare, 270);
    for turn in 0..20 {
        number_of(&gathered, &format!("select b{turn} from t"));
    }
    let (_, facts) = gathered.errors.all().next().expect("is there");
    assert_eq!(facts.templates.values().sum::<u64>(), 1);
}

#[test]
fn many_origins_are_told_apart() {
    let mut log = String::new();
    for turn in 0..2_000_u32 {
        log += &line(turn, 1, "LOG:  duration: 1.000 ms  statement: SELECT 1")
            .replace("u@d", &format!("u{}@d", turn * 7 % 500));
    }
    let gathered = read(&log);
    let origins = &gathered.templates.all()[0].origins();
    assert_eq!(origins.len(), 500);
    assert!(origins.iter().all(|(_, times)| times.count == 4));
}

#[test]
fn templates_that_are_really_one_are_put_together() {
    let mut log = String::new();
    for turn in 0..20 {
        let text = match turn % 2 {
            0 => format!("LOG:  duration: 1.000 ms  statement: SELECT {turn} FROM items i"),
            _ => format!("LOG:  duration: 2.000 ms  statement: SELECT {turn} FROM items AS i"),
        };
        log += &line(turn, 1 + turn % 2, &text);
    }
    log += &line(99, 1, "ERROR:  no\n");
    log = log.trim_end().to_owned() + "\n" + &line(99, 1, "STATEMENT:  SELECT 1 FROM items i");
    let gathered = read(&log);
    assert_eq!(gathered.templates.all().len(), 2);
    assert_eq!(gathered.repetitions.len(), 2);
    let joined = gathered.join(&[0, 0]);
    let all = joined.templates.all();
    assert_eq!(
        (all.len(), all[0].executions.count, all[0].executions.micros),
        (1, 20, 30_000)
    );
    assert_eq!(all[0].histogram.count(), 20);
    let ((number, _), repetitions) = joined.repetitions[0];
    assert_eq!(
        (number, repetitions.rows, repetitions.executions),
        (0, 2, 20)
    );
    let (_, facts) = joined.errors.all().next().expect("is there");
    assert_eq!(facts.templates.iter().collect::<Vec<_>>(), [(&0, &1)]);
    assert_eq!(joined.entries, 21);
}

#[test]
fn who_waited_for_whom_is_told_by_statements() {
    let log = [
        line(0, 7, "LOG:  duration: 0.010 ms  statement: BEGIN"),
        line(
            1,
            7,
            "LOG:  duration: 1.000 ms  statement: UPDATE stock SET n = 1 WHERE id = 5",
        ),
        line(
            1_002,
            8,
            "LOG:  process 8 still waiting for ShareLock on transaction 9 after 1000.100 ms",
        ),
        line(
            1_002,
            8,
            "DETAIL:  Process holding the lock: 7. Wait queue: 8.",
        ),
        line(1_002, 8, "STATEMENT:  UPDATE stock SET n = 2 WHERE id = 5"),
        line(3_000, 7, "LOG:  duration: 0.100 ms  statement: COMMIT"),
        line(
            3_001,
            8,
            "LOG:  process 8 acquired ShareLock on transaction 9 after 3000.500 ms",
        ),
        line(3_001, 8, "STATEMENT:  UPDATE stock SET n = 2 WHERE id = 5"),
        // What holds this one has not ended yet, and nothing of its session is known.
        line(
            5_000,
            8,
            "LOG:  process 8 still waiting for ShareLock on transaction 11 after 1000.100 ms",
        ),
        line(
            5_000,
            8,
            "DETAIL:  Process holding the lock: 4. Wait queue: 8.",
        ),
        line(5_000, 8, "STATEMENT:  UPDATE stock SET n = 2 WHERE id = 6"),
    ]
    .concat();
    let gathered = read(&log);
    let number = Some(number_of(&gathered, "update stock set n = ? where id = ?"));
    let told: Vec<_> = gathered
        .blocking
        .iter()
        .map(|one| {
            (
                one.waiting.template,
                one.holding.template,
                one.waits.count,
                one.waits.micros,
            )
        })
        .collect();
    assert_eq!(told, [(number, None, 1, 0), (number, number, 1, 3_000_500)]);
}

#[test]
fn the_holder_of_a_lock_is_found_though_its_statement_is_logged_later() {
    let waits = |millis: u32, pid: u32, holder: u32| {
        [
            line(
                millis,
                pid,
                &format!(
                    "LOG:  process {pid} still waiting for ShareLock on transaction 7 after 1000.1 ms"
                ),
            ),
            line(
                millis,
                pid,
                &format!("DETAIL:  Process holding the lock: {holder}. Wait queue: {pid}."),
            ),
            line(
                millis,
                pid,
                "CONTEXT:  while updating tuple (0,1) in relation \"items\"",
            ),
            line(millis, pid, "STATEMENT:  UPDATE items SET a = 1 WHERE b = 2"),
        ]
        .concat()
    };
    let acquired = |millis: u32, pid: u32, waited: u32| {
        line(
            millis,
            pid,
            &format!("LOG:  process {pid} acquired ShareLock on transaction 7 after {waited}.0 ms"),
        )
    };
    let ran = |millis: u32, pid: u32, took: u32, sql: &str| {
        line(
            millis,
            pid,
            &format!("LOG:  duration: {took}.000 ms  statement: {sql}"),
        )
    };
    let log = [
        // 1 has committed; then it runs the statement that holds the lock, which is logged after the lock is acquired.
        ran(0, 1, 1, "COMMIT"),
        waits(2_000, 2, 1),
        acquired(3_000, 2, 2_000),
        ran(3_001, 1, 2_500, "SELECT slow(1)"),
        // The same, logged before.
        waits(12_000, 3, 4),
        ran(13_000, 4, 2_500, "SELECT slow(2)"),
        acquired(13_001, 3, 2_001),
        // The next statement of 5 begins after the wait: the holder's statement is not in the log.
        waits(22_000, 6, 5),
        acquired(22_500, 6, 1_500),
        ran(23_000, 5, 100, "SELECT other(3)"),
        // The holder's statement was logged before it ran.
        line(30_000, 7, "LOG:  statement: DELETE FROM items"),
        waits(32_000, 8, 7),
        acquired(32_500, 8, 1_400),
    ]
    .concat();
    let gathered = read(&log);
    let waits: Vec<_> = gathered
        .activity
        .longest_waits
        .all()
        .iter()
        .map(|one| {
            let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            (one.amount, text(&one.relation), text(&one.holder))
        })
        .collect();
    let expected = |amount: u64, holder: &str| (amount, "items".to_owned(), holder.to_owned());
    assert_eq!(
        waits,
        [
            expected(2_001_000, "select slow(?)"),
            expected(2_000_000, "select slow(?)"),
            expected(1_500_000, ""),
            expected(1_400_000, "DELETE FROM items"),
        ]
    );
    let slow = number_of(&gathered, "select slow(?)");
    let held: Vec<_> = gathered
        .blocking
        .iter()
        .map(|one| (one.holding.template, one.waits.count, one.waits.micros))
        .collect();
    assert_eq!(held, [(None, 2, 2_900_000), (Some(slow), 2, 4_001_000),]);
}

#[test]
fn an_execute_without_details_runs_what_its_session_prepared() {
    let ran = |pid: u32, sql: &str| {
        line(
            pid,
            pid,
            &format!("LOG:  duration: 2.000 ms  statement: {sql}"),
        )
    };
    let log = [
        ran(1, "PREPARE p (int) AS SELECT a FROM b WHERE c = $1"),
        ran(2, "EXECUTE P(7);"),
        ran(1, "EXECUTE P(5);"),
        line(9, 1, "LOG:  statement: EXECUTE p(6);"),
        line(9, 1, "LOG:  duration: 4.000 ms"),
    ]
    .concat();
    let gathered = read(&log);
    let of = |text: &str| &gathered.templates.all()[number_of(&gathered, text) as usize];
    let found = of("select a from b where c = ?");
    assert_eq!(
        (found.executions.count, found.executions.micros),
        (2, 6_000)
    );
    let slowest = found.more.slowest.as_ref().expect("is there");
    assert_eq!(&slowest.parameters[..], b"EXECUTE p(6);");
    // Another session did not prepare it, as far as the log shows.
    assert_eq!(of("execute p(?)").executions.count, 1);
    assert_eq!(gathered.steps[Step::Statement as usize].count, 4);
}
