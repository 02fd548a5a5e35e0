use uncork_model::{BlockPlan, Outcome, Parameters, StatementKind, Totals};

use super::{BlockReport, run_block};
use crate::Control;

/// A block of arms on the fake driver, in virtual time. Each arm uses its latencies in turn.
fn block(arms: &[&str], slices: &str, cycles: &str) -> BlockReport {
    let arms: Vec<_> = arms
        .iter()
        .map(|fake| {
            format!(
                r#"{{"driver": "fake", "clients": 2, "threads": 1, "deadline_ns": 1000000,
                "scripts": [{{"name": "s", "weight": 1, "statements": [{{"name": "a", "sql": ""}}]}}],
                "stop": {{"operations": 1}}, "warmup_operations": 3, "fake": {fake}}}"#
            )
        })
        .collect();
    let text = format!(
        r#"{{"arms": [{}], "slices": {slices}, "cycles": {cycles}}}"#,
        arms.join(",")
    );
    let plan = BlockPlan::parse(text.as_bytes()).expect("valid");
    let parameters = vec![Parameters::default(); plan.arms.len()];
    run_block(&plan, &parameters, &Control::default()).expect("runs")
}

const TWO: [&str; 2] = [r#"{"latencies_ns": [10]}"#, r#"{"latencies_ns": [1000]}"#];

/// The slices of an arm add up to its totals.
fn checked(report: &BlockReport, arm: usize) -> &Totals {
    let totals = &report.arms[arm].totals;
    let slices = || report.slices.iter().filter(|slice| slice.arm == arm);
    assert_eq!(slices().map(|one| one.started).sum::<u64>(), totals.started);
    assert_eq!(
        slices().map(|one| one.succeeded).sum::<u64>(),
        totals.succeeded
    );
    assert_eq!(
        slices().map(|one| one.elapsed_ns).sum::<u64>(),
        totals.elapsed_ns
    );
    let rows = &report.arms[arm].statements;
    let operation = rows
        .iter()
        .find(|row| row.kind == StatementKind::Operation)
        .expect("there is one");
    assert_eq!(operation.executions, totals.started);
    assert_eq!(
        slices().map(|one| one.sum_ns).sum::<u64>(),
        operation.sum_ns
    );
    totals
}

#[test]
fn slices_are_run_in_the_order_of_their_cycles_and_add_up() {
    let slices = r#"[{"stop": {"operations": 4}},
        {"stop": {"duration_ns": 5000}, "settle": {"operations": 2}}]"#;
    let report = block(&TWO, slices, "[[0, 1], [1, 0], [1], [0, 1]]");
    let order: Vec<_> = report
        .slices
        .iter()
        .map(|slice| (slice.cycle, slice.arm))
        .collect();
    let expected = [(0, 0), (0, 1), (1, 1), (1, 0), (2, 1), (3, 0), (3, 1)];
    assert_eq!(order, expected);
    let fast = checked(&report, 0);
    assert_eq!((fast.started, fast.warmup_failed), (12, 0));
    // Two clients for 5 µs at 1 µs per operation; settling operations are counted apart.
    let slow = checked(&report, 1);
    assert_eq!((slow.started, slow.elapsed_ns), (40, 20_000));
    assert_eq!((fast.settling, slow.settling), (0, 8));
    assert!(report.slices.iter().all(|slice| slice.started > 0));
}

#[test]
fn an_arm_draws_the_same_positions_in_every_slice_whoever_else_runs() {
    // The tenth operation fails: three warm up, four per slice.
    let failing = r#"{"latencies_ns": [10], "fail_every": 10}"#;
    let slices = r#"[{"stop": {"operations": 4}}, {"stop": {"operations": 4}}]"#;
    let report = block(&[failing, failing], slices, "[[0, 1], [1, 0], [0, 1]]");
    let failed = |arm| {
        let slices = report.slices.iter().filter(move |slice| slice.arm == arm);
        slices
            .map(|slice| slice.started - slice.succeeded)
            .collect::<Vec<_>>()
    };
    assert_eq!(failed(0), [0, 1, 0]);
    assert_eq!(failed(1), failed(0));
    assert_eq!(checked(&report, 0).errors.values().sum::<u64>(), 1);
}

#[test]
fn a_lost_server_ends_the_block_and_keeps_what_was_measured() {
    let lost = r#"{"latencies_ns": [10], "lose_at": 9}"#;
    let slices = r#"[{"stop": {"operations": 4}}, {"stop": {"operations": 4}}]"#;
    let report = block(&[TWO[0], lost], slices, "[[0, 1], [1, 0], [0, 1]]");
    assert_eq!(report.arms[0].totals.outcome, Outcome::Complete);
    assert_eq!(checked(&report, 0).started, 4);
    assert_eq!(report.arms[1].totals.outcome, Outcome::ConnectionLost);
    assert_eq!(checked(&report, 1).failed, 2); // one was lost, the other client's was under way
}

#[test]
fn an_arm_past_its_deadline_has_no_further_slices_and_the_others_go_on() {
    let slow = r#"{"latencies_ns": [600000]}"#;
    let slices = r#"[{"stop": {"operations": 1}}, {"stop": {"operations": 1}}]"#;
    let report = block(&[slow, TWO[0]], slices, "[[0, 1], [0, 1], [0, 1]]");
    assert_eq!(report.arms[0].totals.outcome, Outcome::Deadline);
    assert_eq!(checked(&report, 1).started, 3);
}

#[test]
fn a_block_ends_by_time_between_cycles_that_belong_together() {
    let arm = r#"{"driver": "fake", "clients": 1, "threads": 1, "deadline_ns": 1000000,
        "scripts": [{"name": "s", "weight": 1, "statements": [{"name": "a", "sql": ""}]}],
        "stop": {"operations": 1}, "fake": {"latencies_ns": [1]}}"#;
    let text = format!(
        r#"{{"arms": [{arm}], "slices": [{{"stop": {{"operations": 1}}}}],
        "cycles": [[0], [0], [0], [0], [0], [0]], "cycles_together": 2, "limit_ns": 1}}"#
    );
    let plan = BlockPlan::parse(text.as_bytes()).expect("valid");
    let report = run_block(&plan, &[Parameters::default()], &Control::default()).expect("runs");
    assert_eq!(report.slices.len(), 2);
}

#[test]
fn an_interrupted_block_is_an_error() {
    let control = Control::default();
    control.interrupt.request();
    let text = r#"{"arms": [{"driver": "fake", "clients": 1, "threads": 1, "deadline_ns": 1000000,
        "scripts": [{"name": "s", "weight": 1, "statements": [{"name": "a", "sql": ""}]}],
        "stop": {"operations": 1}, "fake": {"latencies_ns": [1]}}],
        "slices": [{"stop": {"operations": 1}}], "cycles": [[0]]}"#;
    let plan = BlockPlan::parse(text.as_bytes()).expect("valid");
    assert!(run_block(&plan, &[Parameters::default()], &control).is_err());
}
