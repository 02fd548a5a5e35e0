//! Counts what happened.
//!
//! The identities that hold at the end of every phase:
//! `started = succeeded + failed`; the operations' `executions = started` and `errors = failed`;
//! every histogram holds `executions - errors` values; the series adds up to the totals.

mod failures;

use std::collections::BTreeMap;

use uncork_model::{
    DriverKind, FailureTotals, HttpTotals, IntervalCounts, LoadPlan, StatementKind,
    StatementSummary,
};

use crate::board::{Board, IntervalShare, ScriptShare};
use crate::{Answers, Digest, Failure, Measure};
use failures::Failures;

/// The scripts and statements of a load.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// Names of the scripts.
    pub scripts: Vec<String>,
    /// All statements, those of the first script first.
    pub statements: Vec<StatementFacts>,
    /// Whether operations are HTTP requests.
    pub answers: bool,
    /// Names of the steps of a login.
    pub logins: Vec<String>,
}

/// The names of a statement.
#[derive(Debug, Clone)]
pub struct StatementFacts {
    /// The number of its script.
    pub script: usize,
    /// Its name in a plan, or its text in a script: used in results.
    pub name: String,
    /// Its name, or its script and line: used in messages.
    pub place: String,
    /// Its line in the script's text.
    pub line: Option<u64>,
}

impl Shape {
    /// The shape of a plan whose scripts consist of statements only.
    #[must_use]
    pub fn of(plan: &LoadPlan) -> Self {
        let statements = plan.scripts.iter().enumerate().flat_map(|(script, facts)| {
            facts
                .statements
                .iter()
                .map(move |statement| StatementFacts {
                    script,
                    name: statement.name.clone(),
                    place: statement.name.clone(),
                    line: None,
                })
        });
        Self {
            scripts: plan.scripts.iter().map(|it| it.name.clone()).collect(),
            statements: statements.collect(),
            answers: plan.driver == DriverKind::Http,
            logins: Vec::new(),
        }
    }
}

/// The counts of one thread; all threads' counts are merged at the end.
#[derive(Debug)]
pub struct Recorder {
    /// Operations begun.
    pub started: u64,
    /// Operations whose steps all succeeded.
    pub succeeded: u64,
    /// Operations that failed or were cancelled.
    pub failed: u64,
    /// Arrivals: intended starts that were due.
    pub arrivals: u64,
    /// Arrivals skipped because they were too late.
    pub skipped: u64,
    /// Arrivals never started.
    pub unsent: u64,
    /// Operations slower than the latency limit.
    pub late: u64,
    /// Operations tried more than once.
    pub retried: u64,
    /// Connections lost.
    pub lost: u64,
    /// Maximum number of connections open at once.
    pub most: u64,
    /// Errors by code.
    pub errors: BTreeMap<String, u64>,
    /// Connections that could not be opened, by code.
    pub connect_errors: BTreeMap<String, u64>,
    /// Retries by code.
    pub retries: BTreeMap<String, u64>,
    /// The first error's message.
    pub first_error: Option<String>,
    /// Statements answered.
    pub answered: u64,
    /// Number of waits for the server.
    pub round_trips: u64,
    /// Rows of all statements.
    pub rows: u64,
    /// The digest of all answers.
    pub digest: Digest,
    answers: Option<Box<Answers>>,
    failures: Failures,
    shape: Shape,
    statements: Vec<Measure>,
    scripts: Vec<Measure>,
    /// Open loop: latency from the real start. In a closed loop the scripts' latencies already
    /// count from it.
    service: Option<Measure>,
    /// Open loop: how late the generator started operations.
    lateness: Option<Measure>,
    connect: Measure,
    interval: Option<Interval>,
}

/// The current interval of the series.
#[derive(Debug)]
struct Interval {
    length_ns: u64,
    number: u64,
    ends_ns: u64,
    counts: Vec<IntervalCounts>,
    scripts: Vec<Measure>,
    lateness: Measure,
}

impl Recorder {
    /// Create empty counts.
    #[must_use]
    pub fn new(shape: &Shape, open_loop: bool, interval_ns: u64) -> Self {
        let scripts = shape.scripts.len();
        Self {
            started: 0,
            succeeded: 0,
            failed: 0,
            arrivals: 0,
            skipped: 0,
            unsent: 0,
            late: 0,
            retried: 0,
            lost: 0,
            most: 0,
            errors: BTreeMap::new(),
            connect_errors: BTreeMap::new(),
            retries: BTreeMap::new(),
            first_error: None,
            answered: 0,
            round_trips: 0,
            rows: 0,
            digest: Digest::default(),
            answers: None,
            failures: Failures::default(),
            statements: vec![Measure::default(); shape.statements.len()],
            scripts: vec![Measure::default(); scripts],
            service: open_loop.then(Measure::default),
            lateness: open_loop.then(Measure::default),
            connect: Measure::default(),
            interval: (interval_ns > 0).then(|| Interval {
                length_ns: interval_ns,
                number: 0,
                ends_ns: interval_ns,
                counts: vec![IntervalCounts::default(); scripts],
                scripts: vec![Measure::default(); scripts],
                lateness: Measure::default(),
            }),
            shape: shape.clone(),
        }
    }

    // ---- statements, counted by drivers ----

    /// Count a statement that succeeded.
    pub fn statement(&mut self, number: usize, latency_ns: u64, rows: u64) {
        self.answered += 1;
        self.rows += rows;
        self.statements[number].success(latency_ns, rows);
        if let Some(interval) = &mut self.interval {
            interval.counts[self.shape.statements[number].script].statements += 1;
        }
    }

    /// Count a statement that failed or was cancelled.
    pub fn statement_error(&mut self, number: usize) {
        self.statements[number].error();
    }

    /// Count a wait for the server.
    pub fn round_trip(&mut self) {
        self.round_trips += 1;
    }

    /// Count a retry of an operation.
    pub fn retry(&mut self, script: usize, code: &str) {
        count(&mut self.retries, code);
        if let Some(interval) = &mut self.interval {
            interval.counts[script].retries += 1;
        }
    }

    /// Count a connection that was opened.
    pub fn connected(&mut self, connect_ns: u64) {
        self.connect.success(connect_ns, 0);
    }

    /// Return the name of statement `number` for messages.
    #[must_use]
    pub fn place(&self, number: usize) -> &str {
        &self.shape.statements[number].place
    }

    // ---- operations, counted by workers ----

    /// Count an operation that began.
    pub fn start(&mut self, script: usize) {
        self.started += 1;
        if let Some(interval) = &mut self.interval {
            interval.counts[script].started += 1;
        }
    }

    /// Count an operation that succeeded, by its latencies from the intended and the real start.
    pub fn success(&mut self, script: usize, latency_ns: u64, service_ns: u64) {
        self.succeeded += 1;
        if let Some(service) = &mut self.service {
            service.success(service_ns, 0);
        }
        if let Some(interval) = &mut self.interval {
            interval.counts[script].succeeded += 1;
            interval.scripts[script].success(latency_ns, 0);
        } else {
            self.scripts[script].success(latency_ns, 0);
        }
    }

    /// Count an operation that failed; without a failure it was cancelled.
    pub fn failure(&mut self, script: usize, failure: Option<&Failure>) {
        self.failed += 1;
        if let Some(service) = &mut self.service {
            service.error();
        }
        if let Some(interval) = &mut self.interval {
            interval.counts[script].failed += 1;
            interval.scripts[script].error();
        } else {
            self.scripts[script].error();
        }
        if let Some(failure) = failure {
            count(&mut self.errors, &failure.code);
            self.remember(failure);
            if self.shape.answers {
                self.answers().failed(script, failure);
            } else {
                self.failures.add(script, failure);
            }
        }
    }

    /// Count a connection that could not be opened.
    pub fn not_opened(&mut self, failure: &Failure) {
        count(&mut self.connect_errors, &failure.code);
        self.remember(failure);
    }

    /// Count a skipped arrival.
    pub fn skip(&mut self, script: usize) {
        self.skipped += 1;
        if let Some(interval) = &mut self.interval {
            interval.counts[script].skipped += 1;
        }
    }

    /// Count how late an operation started that found a free connection.
    pub fn lateness(&mut self, lateness_ns: u64) {
        if let Some(interval) = &mut self.interval {
            interval.lateness.success(lateness_ns, 0);
        } else if let Some(lateness) = &mut self.lateness {
            lateness.success(lateness_ns, 0);
        }
    }

    fn remember(&mut self, failure: &Failure) {
        if self.first_error.is_none() {
            self.first_error = Some(failure.text());
        }
    }

    // ---- the series ----

    /// Publish the intervals that ended by `elapsed_ns` on the board. `last` also ends the current
    /// interval.
    pub fn turn(&mut self, thread: usize, elapsed_ns: u64, load: Load, board: &Board, last: bool) {
        let Some(interval) = &mut self.interval else {
            return;
        };
        if elapsed_ns < interval.ends_ns && !last {
            return;
        }
        let mut scripts = Vec::new();
        for (number, (measure, counts)) in interval
            .scripts
            .iter_mut()
            .zip(&mut interval.counts)
            .enumerate()
        {
            self.scripts[number].merge(measure);
            let counts = std::mem::take(counts);
            if !counts.is_empty() {
                scripts.push(ScriptShare {
                    script: number,
                    counts,
                    sum_ns: measure.sum_ns(),
                    sum_squares: measure.sum_squares(),
                    max_ns: measure.max_ns(),
                    histogram: measure.bytes(),
                });
            }
            measure.reset();
        }
        if let Some(lateness) = &mut self.lateness {
            lateness.merge(&interval.lateness);
        }
        let answers = self.answers.as_deref_mut();
        board.put(IntervalShare {
            thread,
            interval: interval.number,
            scripts,
            statuses: answers.map(Answers::turn).unwrap_or_default(),
            lateness_p99_ns: interval.lateness.quantile(0.99),
            load,
        });
        interval.lateness.reset();
        interval.number = elapsed_ns / interval.length_ns;
        interval.ends_ns = (interval.number + 1) * interval.length_ns;
        if last {
            board.finished(thread);
        }
    }

    // ---- all threads together ----

    /// Add another thread's counts.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.arrivals += other.arrivals;
        self.skipped += other.skipped;
        self.unsent += other.unsent;
        self.late += other.late;
        self.retried += other.retried;
        self.lost += other.lost;
        self.most += other.most;
        self.answered += other.answered;
        self.round_trips += other.round_trips;
        self.rows += other.rows;
        for (mine, theirs) in [
            (&mut self.errors, &other.errors),
            (&mut self.connect_errors, &other.connect_errors),
            (&mut self.retries, &other.retries),
        ] {
            for (code, number) in theirs {
                *mine.entry(code.clone()).or_default() += number;
            }
        }
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
        merge_all(&mut self.statements, &other.statements);
        merge_all(&mut self.scripts, &other.scripts);
        merge_all(self.service.as_mut_slice(), other.service.as_slice());
        merge_all(self.lateness.as_mut_slice(), other.lateness.as_slice());
        self.connect.merge(&other.connect);
        self.digest.merge(other.digest);
        self.failures.merge(&other.failures);
        if let Some(theirs) = &other.answers {
            self.answers().merge(theirs);
        }
    }

    /// Take over the durations of opening connections that stay in use.
    pub(crate) fn take_over_connections(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        if let Some(theirs) = &other.answers {
            self.answers().take_over(theirs);
        }
    }

    /// Return one row per statement, then one per script, then those of all operations and of
    /// connections.
    #[must_use]
    pub fn summaries(&self) -> Vec<StatementSummary> {
        let facts = self.statements.iter().zip(&self.shape.statements);
        let mut rows: Vec<_> = facts
            .map(|(measure, facts)| {
                let script = &self.shape.scripts[facts.script];
                let row = measure.summary(StatementKind::Statement, script, &facts.name);
                StatementSummary {
                    line: facts.line,
                    ..row
                }
            })
            .collect();
        let mut operation = Measure::default();
        for (measure, name) in self.scripts.iter().zip(&self.shape.scripts) {
            rows.push(measure.summary(StatementKind::Script, name, name));
            operation.merge(measure);
        }
        operation.add_rows(self.rows);
        let mut all = |kind: StatementKind, measure: &Measure| {
            rows.push(measure.summary(kind, "", kind.word()));
        };
        all(StatementKind::Operation, &operation);
        all(
            StatementKind::Service,
            self.service.as_ref().unwrap_or(&operation),
        );
        if let Some(lateness) = &self.lateness {
            all(StatementKind::Lateness, lateness);
        }
        all(StatementKind::Connect, &self.connect);
        if let Some(answers) = &self.answers {
            rows.extend(answers.summaries(&self.shape.logins));
        }
        rows
    }

    /// Return the sum of all operations' latencies, without the current interval.
    pub(crate) fn latencies_ns(&self) -> u64 {
        self.scripts.iter().map(Measure::sum_ns).sum()
    }

    /// The counts of an HTTP load only.
    pub fn answers(&mut self) -> &mut Answers {
        self.answers.get_or_insert_default()
    }

    /// Return the counts of an HTTP load for which `planned` operations were to begin.
    #[must_use]
    pub fn http_totals(&self, planned: Option<u64>) -> HttpTotals {
        let names = &self.shape.scripts;
        self.answers.as_ref().map_or_else(
            || Answers::default().totals(planned, names),
            |answers| answers.totals(planned, names),
        )
    }

    /// Return failed operations by statement and code, the most frequent first.
    pub(crate) fn failures(&self, shape: &Shape) -> Vec<FailureTotals> {
        self.failures.totals(shape)
    }

    /// The durations of opening connections.
    #[must_use]
    pub fn connect(&self) -> &Measure {
        &self.connect
    }
}

/// The state of a thread at the end of an interval.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Arrivals that wait for a free connection.
    pub backlog: u64,
    /// Open connections.
    pub clients: u64,
}

fn count(counts: &mut BTreeMap<String, u64>, code: &str) {
    // The key is copied only for the first of its kind.
    if let Some(number) = counts.get_mut(code) {
        *number += 1;
    } else {
        counts.insert(code.to_owned(), 1);
    }
}

fn merge_all(mine: &mut [Measure], theirs: &[Measure]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.merge(theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn recorder(interval_ns: u64) -> Recorder {
        Recorder::new(&Shape::default(), false, interval_ns)
    }

    fn answer(recorder: &mut Recorder, statuses: &[u16]) {
        for status in statuses {
            recorder.answers().head(*status, 5, 10, 30);
        }
    }

    #[test]
    fn answers_of_all_threads_and_intervals_add_up_to_the_totals() {
        let board = Board::default();
        board.begin(2, SECOND_NS);
        let turn = |recorder: &mut Recorder, thread, elapsed_ns, last| {
            recorder.turn(thread, elapsed_ns, Load::default(), &board, last);
        };
        let (mut one, mut other) = (recorder(SECOND_NS), recorder(SECOND_NS));
        answer(&mut one, &[200, 200, 503]);
        answer(&mut other, &[200]);
        turn(&mut one, 0, SECOND_NS / 2, false);
        answer(&mut one, &[503]);
        turn(&mut one, 0, SECOND_NS + 1, false);
        // Nothing arrived in the second interval; the thread checked only in the third.
        turn(&mut one, 0, 2 * SECOND_NS, false);
        turn(&mut other, 1, 2 * SECOND_NS + 5, false);
        answer(&mut one, &[404, 200]);
        answer(&mut other, &[404]);
        turn(&mut one, 0, 2 * SECOND_NS + 7, true);
        turn(&mut other, 1, 2 * SECOND_NS + 9, true);

        let rows = board.statuses(2 * SECOND_NS + 9);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.start_ns, row.length_ns, row.status, row.answers))
            .collect();
        assert_eq!(
            found,
            [
                (0, SECOND_NS, 200, 3),
                (0, SECOND_NS, 503, 2),
                (2 * SECOND_NS, 9, 200, 1),
                (2 * SECOND_NS, 9, 404, 2),
            ]
        );

        let mut all = recorder(SECOND_NS);
        let mut warmup = recorder(0);
        answer(&mut warmup, &[500]);
        all.merge(&one);
        all.merge(&other);
        all.take_over_connections(&warmup);
        let mut sums = BTreeMap::new();
        for row in rows {
            *sums.entry(row.status).or_default() += row.answers;
        }
        assert_eq!(all.http_totals(None).statuses, sums);
    }
}
