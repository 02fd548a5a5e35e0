//! One operation under way on a connection: its position in the script, and what it waits for.

use uncork_script::{EvaluationError, Session, Symbols};

use super::captured::Captured;
use crate::{End, FailedAt, Failure, Task};

/// The code of errors in a script itself, such as a division by zero in `\set` or no row for
/// `\gset`.
pub(crate) const SCRIPT_ERROR: &str = "script";

/// A place for one operation at a time.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent: a pipeline may sleep, a failure may come in either"
)]
pub(crate) struct Slot {
    pub(crate) task: Task,
    /// Whether an operation is under way.
    pub(crate) active: bool,
    /// The next instruction.
    pub(crate) at: usize,
    /// How often the statement there was executed.
    pub(crate) execution: usize,
    /// Number of outstanding answers.
    pub(crate) outstanding: usize,
    /// Whether it is inside a pipeline of the script.
    pub(crate) piped: bool,
    /// Whether it sleeps.
    pub(crate) sleeping: bool,
    /// After a failure: whether a rollback was attempted.
    pub(crate) rolled_back: bool,
    pub(crate) retries: u32,
    pub(crate) failure: Option<Box<Failure>>,
    pub(crate) hash: u128,
    /// The script's variables and random numbers, which persist across operations.
    pub(crate) variables: Session,
}

/// The state of an operation after a step.
#[derive(Debug)]
pub(crate) enum Step {
    /// It waits for answers.
    Waiting,
    /// It sleeps.
    Sleeping {
        /// Duration, in nanoseconds.
        for_ns: u64,
    },
    /// It ended.
    Ended(End),
}

impl Slot {
    pub(crate) fn new(variables: Session) -> Self {
        Self {
            task: Task::default(),
            active: false,
            at: 0,
            execution: 0,
            outstanding: 0,
            piped: false,
            sleeping: false,
            rolled_back: false,
            retries: 0,
            failure: None,
            hash: 0,
            variables,
        }
    }

    /// Begin an operation.
    pub(crate) fn take(&mut self, task: Task) {
        self.task = task;
        self.active = true;
        self.retries = 0;
        self.hash = 0;
        self.rewind();
    }

    /// Return to the script's beginning.
    pub(crate) fn rewind(&mut self) {
        self.at = 0;
        self.execution = 0;
        self.outstanding = 0;
        self.piped = false;
        self.sleeping = false;
        self.rolled_back = false;
        self.failure = None;
    }

    /// End the operation.
    pub(crate) fn end(&mut self) -> Step {
        self.active = false;
        Step::Ended(End {
            failure: self.failure.take(),
            retries: self.retries,
            hash: self.hash,
            connection_failure: None,
        })
    }

    /// Record the first failure, with its place in the script.
    pub(crate) fn fail(&mut self, place: &str, at: FailedAt, mut failure: Box<Failure>) {
        if self.failure.is_none() {
            failure.message = format!("{place}: {}", failure.message);
            failure.place = Some(at);
            self.failure = Some(failure);
        }
    }

    /// Record a failure of the script itself, whose message already names the place.
    pub(crate) fn fail_script(&mut self, at: FailedAt, message: String) {
        self.failure.get_or_insert_with(|| {
            Box::new(Failure {
                code: SCRIPT_ERROR.to_owned(),
                message,
                place: Some(at),
            })
        });
    }

    /// Set variables from the rows that a statement returned.
    pub(crate) fn capture(
        &mut self,
        capture: &uncork_script::Capture,
        captured: &Captured,
        symbols: &Symbols,
    ) -> Result<(), String> {
        let results = captured.results.as_slice();
        let wanted = if capture.all {
            results
        } else {
            let last = results.len().saturating_sub(1);
            let rows = results.get(last).map_or(0, |rows| rows.count);
            if rows != 1 {
                return Err(format!("\\gset: expected one row, the answer has {rows}"));
            }
            &results[last..]
        };
        for rows in wanted {
            for (name, value) in rows.names.iter().zip(&rows.last) {
                let slot = capture
                    .slot(symbols, name)
                    .map_err(|error: EvaluationError| error.to_string())?;
                if let Some(slot) = slot {
                    self.variables
                        .set_text(slot, value.as_deref().unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}
