use std::fmt::Write;

use crate::Gathered;
use crate::gather::sequence;

/// A log of one session: each statement with the pause before it, in milliseconds. Every one takes a millisecond.
fn read(statements: &[(u32, &str)]) -> Gathered {
    let mut millis = 0;
    let mut log = String::new();
    for (pause, text) in statements {
        millis += pause + 1;
        let (minutes, seconds) = (millis / 60_000, millis / 1_000 % 60);
        writeln!(
            log,
            "2026-01-01 00:{minutes:02}:{seconds:02}.{:03} UTC [1] u@d app LOG:  duration: 1.000 ms  statement: {text}",
            millis % 1_000
        )
        .expect("a string takes any text");
    }
    sequence::tests::read(&log)
}

/// Loops by their texts: the parent's, the template's, stretches, executions, parents and the longest.
fn told(gathered: &Gathered) -> Vec<(bool, String, String, [u64; 4])> {
    let text = |number: u32| {
        let template = &gathered.templates.all()[number as usize];
        String::from_utf8_lossy(&template.more.text).into_owned()
    };
    gathered
        .loops
        .iter()
        .map(|((of, _), found)| {
            let parent = of.parent.map_or_else(String::new, text);
            let counts = [
                found.stretches,
                found.executions,
                found.parents,
                found.longest.into(),
            ];
            (of.in_transaction, parent, text(of.template), counts)
        })
        .collect()
}

/// A page: a query, then two statements for each of its rows.
fn page(log: &mut Vec<(u32, &'static str)>, before: u32, rows: usize) {
    log.push((before, "SELECT id FROM orders"));
    for _ in 0..rows {
        log.push((1, "SELECT 1 FROM items"));
        log.push((1, "SELECT 1 FROM prices"));
    }
}

#[test]
fn two_statements_in_turn_for_each_row_are_found_in_transactions_and_outside() {
    for in_transaction in [true, false] {
        let mut log = Vec::new();
        for rows in [20, 30] {
            if in_transaction {
                log.push((0, "BEGIN"));
            }
            page(&mut log, 100, rows);
            if in_transaction {
                log.push((0, "COMMIT"));
            }
        }
        let gathered = read(&log);
        let of = |table: &str| {
            (
                in_transaction,
                "select id from orders".to_owned(),
                format!("select ? from {table}"),
                [2, 50, 2, 30],
            )
        };
        assert_eq!(told(&gathered), [of("items"), of("prices")]);
        assert_eq!(gathered.repetitions, []);
        let (_, found) = gathered.loops[0];
        // Of each page all but the first took a millisecond, a millisecond after the statement before.
        assert_eq!((found.elapsed, found.micros), (96_000, 48_000));
        assert!((found.squares - 1_300.0).abs() < 1e-9);
        let waited = gathered.transactions.first().map(|(_, of)| of.repeated);
        assert_eq!(waited, in_transaction.then_some(96_000));
    }
}

#[test]
fn a_batch_of_several_statements_in_turn_is_found_within_a_transaction_only() {
    let mut log = vec![(0, "BEGIN")];
    for _ in 0..15 {
        log.extend([(0, "INSERT INTO a VALUES (1)"), (0, "UPDATE b SET c = 1")]);
    }
    log.push((0, "COMMIT"));
    let found = told(&read(&log));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|one| one.0 && one.1.is_empty()));
    assert_eq!(found[0].3, [1, 15, 0, 15]);
    let without = &log[1..log.len() - 1];
    assert_eq!(told(&read(without)), []);
}

#[test]
fn executions_in_a_row_are_counted_as_such_only() {
    let mut log = vec![(0, "BEGIN"), (0, "SELECT id FROM orders")];
    log.extend([(0, "SELECT 1 FROM items"); 12]);
    log.push((0, "SELECT 1 FROM prices"));
    log.extend([(0, "SELECT 1 FROM items"); 3]);
    log.push((0, "COMMIT"));
    let gathered = read(&log);
    assert_eq!(gathered.repetitions[0].1.executions, 12);
    assert_eq!(told(&gathered), []);
}

#[test]
fn requests_of_several_statements_are_no_loop() {
    // Outside of transactions, a pause between requests is longer than one between a request's statements.
    let mut log = vec![(0, "SELECT id FROM orders")];
    for _ in 0..40 {
        log.extend([(9, "SELECT 1 FROM items"), (1, "SELECT 1 FROM prices")]);
    }
    assert_eq!(told(&read(&log)), []);
    // Within a transaction, nine executions are few.
    let mut log = vec![(0, "BEGIN")];
    page(&mut log, 0, 9);
    log.push((0, "COMMIT"));
    assert_eq!(told(&read(&log)), []);
}
