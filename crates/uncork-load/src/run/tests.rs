use uncork_model::StatementKind;

use super::*;

/// A plan for the fake driver: three statements, of 1, 2 and 3 ns.
fn plan(transaction: bool, changes: &str) -> LoadPlan {
    let text = format!(
        r#"{{"driver": "fake", "protocol": "simple", "deadline_ns": 1000000, {changes},
        "scripts": [{{"name": "all", "weight": 1, "transaction": {transaction},
        "statements": [{{"name": "a", "sql": ""}}, {{"name": "b", "sql": ""}},
        {{"name": "c", "sql": ""}}]}}]}}"#
    );
    LoadPlan::parse(text.as_bytes()).expect("valid")
}

fn trial(plan: &LoadPlan) -> Report {
    run(plan, &Parameters::default(), &Control::default()).expect("runs")
}

fn rows(report: &Report, kind: StatementKind) -> Vec<&StatementSummary> {
    let rows = report.statements.iter();
    rows.filter(|row| row.kind == kind).collect()
}

/// Check what must hold for every trial, and return its totals.
fn checked(report: &Report) -> &Totals {
    let totals = &report.totals;
    assert_eq!(totals.started, totals.succeeded + totals.failed);
    for kind in [StatementKind::Script, StatementKind::Operation] {
        let row = rows(report, kind)[0];
        assert_eq!(
            (row.executions, row.errors),
            (totals.started, totals.failed)
        );
    }
    assert_eq!(rows(report, StatementKind::Operation)[0].rows, totals.rows);
    let statements = rows(report, StatementKind::Statement);
    assert_eq!(
        statements.iter().map(|row| row.rows).sum::<u64>(),
        totals.rows
    );
    let errors: u64 = totals.errors.values().sum();
    assert!(errors <= totals.failed);
    if totals.outcome == Outcome::Complete {
        assert_eq!(errors, totals.failed);
        assert_eq!(totals.message, None);
    }
    for row in &report.statements {
        let points = crate::merge([row.histogram.as_slice()]).expect("valid");
        let recorded = points.last().map_or(0, |point| point.cumulative_count);
        assert_eq!(recorded, row.executions - row.errors);
        assert_eq!(row.latency.is_some(), recorded > 0);
    }
    totals
}

#[test]
fn counts_add_up_however_a_trial_goes() {
    let mut outcomes = Vec::new();
    for clients in [1, 2, 7] {
        for threads in [1, 3] {
            for transaction in [false, true] {
                for stop in [r#"{"operations": 50}"#, r#"{"duration_ns": 100}"#] {
                    for fate in ["", r#", "fail_every": 3"#, r#", "lose_at": 9"#] {
                        let changes = format!(
                            r#""clients": {clients}, "threads": {threads}, "stop": {stop},
                            "warmup_operations": 4,
                            "fake": {{"latencies_ns": [1, 2, 3]{fate}}}"#
                        );
                        let report = trial(&plan(transaction, &changes));
                        outcomes.push(checked(&report).outcome);
                    }
                }
            }
        }
    }
    assert!(outcomes.contains(&Outcome::Complete));
    assert!(outcomes.contains(&Outcome::ConnectionLost));
}

#[test]
fn statements_add_up_to_the_operation() {
    let plan = plan(
        false,
        r#""clients": 1, "threads": 1, "stop": {"operations": 10},
        "fake": {"latencies_ns": [1, 2, 3]}"#,
    );
    let report = trial(&plan);
    let totals = checked(&report);
    let sums: Vec<u64> = report.statements.iter().map(|row| row.sum_ns).collect();
    // Three statements, the script, all operations from their intended and from their real start,
    // and no connections.
    assert_eq!(sums, [10, 20, 30, 60, 60, 60, 0]);
    assert_eq!((totals.elapsed_ns, totals.rows), (60, 30));
}

#[test]
fn a_missed_deadline_gives_up_what_is_under_way() {
    let plan = plan(
        false,
        r#""clients": 2, "threads": 1, "stop": {"operations": 1000000000},
        "fake": {"latencies_ns": [300000]}"#,
    );
    let report = trial(&plan);
    let totals = checked(&report);
    assert_eq!(totals.outcome, Outcome::Deadline);
    assert_eq!(
        (totals.started, totals.failed, totals.elapsed_ns),
        (4, 2, 1_000_000)
    );
}

#[test]
fn only_a_client_that_aborts_ends_a_trial_early() {
    let with = |fate: &str| {
        let changes = format!(
            r#""clients": 2, "threads": 1, "stop": {{"operations": 50}}, "exit_on_abort": true,
            "on_lost": "reconnect", "fake": {{"latencies_ns": [1, 2, 3]{fate}}}"#
        );
        let report = trial(&plan(false, &changes));
        checked(&report);
        report.totals
    };
    // The declared failures are serialization failures, after which a client continues.
    let conflicts = with(r#", "fail_every": 3"#);
    assert_eq!(
        (conflicts.outcome, conflicts.started),
        (Outcome::Complete, 50)
    );
    assert_eq!(conflicts.failures[0].code, "40001");
    assert_eq!(
        conflicts.failures.iter().map(|one| one.number).sum::<u64>(),
        conflicts.failed
    );
    let lost = with(r#", "lose_at": 9"#);
    assert_eq!(lost.outcome, Outcome::ClientAborted);
    assert!(lost.started < 50 && lost.message.expect("why").contains(" aborted: "));
}

#[test]
fn an_interrupt_ends_a_trial() {
    let plan = plan(
        false,
        r#""clients": 1, "threads": 1, "stop": {"operations": 1},
        "fake": {"latencies_ns": [1]}"#,
    );
    let control = Control::default();
    control.interrupt.request();
    let error = run(&plan, &Parameters::default(), &control).expect_err("interrupted");
    assert!(matches!(error, LoadError::Interrupted));
}

/// A replay by the fake driver: two scripts, one client with long operations and one with short ones.
fn replay(threads: usize, changes: &str) -> LoadPlan {
    let text = format!(
        r#"{{"driver": "fake", "protocol": "simple", "deadline_ns": 1000000, "clients": 2,
        "threads": {threads}, "interval_ns": 1000, {changes},
        "scripts": [{{"name": "long", "weight": 1, "statements": [{{"name": "a", "sql": ""}}]}},
            {{"name": "short", "weight": 1, "statements": [{{"name": "b", "sql": ""}}]}}],
        "arrivals": {{"kind": "trace", "offsets_ns": [0, 10, 20, 30, 200, 210]}},
        "recorded": {{"scripts": [0, 1, 0, 1, 0, 1], "clients": [0, 1, 0, 1, 0, 1]}},
        "fake": {{"latencies_ns": [50, 2]}}}}"#
    );
    LoadPlan::parse(text.as_bytes()).expect("valid")
}

#[test]
fn a_replayed_client_sends_its_own_operations_in_their_order() {
    for threads in [1, 2] {
        let report = trial(&replay(threads, r#""stop": {"operations": 6}"#));
        let totals = &report.totals;
        assert_eq!((totals.arrivals, totals.unsent), (Some(6), 0));
        assert_eq!((totals.started, totals.succeeded), (6, 6));
        let scripts = rows(&report, StatementKind::Script);
        // The second operation of client 0 waits until 50 and ends at 100, 80 after it was due.
        let latency = |script: usize| scripts[script].latency.as_ref().expect("succeeded");
        assert_eq!((scripts[0].executions, latency(0).max_ns), (3, 80));
        assert_eq!((scripts[1].executions, latency(1).max_ns), (3, 2));
    }
}

#[test]
fn a_replay_counts_what_it_skips_and_does_not_send() {
    let report = trial(&replay(
        1,
        r#""stop": {"operations": 6}, "latency_limit_ns": 20"#,
    ));
    assert_eq!((report.totals.started, report.totals.skipped), (5, 1));
    assert_eq!(report.totals.late, 2);
    let report = trial(&replay(2, r#""stop": {"duration_ns": 40}"#));
    let totals = &report.totals;
    assert_eq!((totals.arrivals, totals.started), (Some(4), 3));
    assert_eq!(totals.unsent, 1);
}

#[test]
fn recorded_operations_come_in_turn_for_any_client() {
    let text = r#"{"driver": "fake", "deadline_ns": 1000000, "clients": 2, "threads": 2,
        "scripts": [{"name": "x", "weight": 1, "statements": [{"name": "a", "sql": ""}]},
            {"name": "y", "weight": 1, "statements": [{"name": "b", "sql": ""}]}],
        "stop": {"operations": 8}, "recorded": {"scripts": [0, 1, 1, 1]},
        "fake": {"latencies_ns": [5]}}"#;
    let report = trial(&LoadPlan::parse(text.as_bytes()).expect("valid"));
    let scripts = rows(&report, StatementKind::Script);
    assert_eq!((scripts[0].executions, scripts[1].executions), (2, 6));
}
