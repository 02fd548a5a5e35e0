//! Tells pipelines from loops that wait for each answer. In a pipeline the next statement has arrived when one ends, so the
//! server executes many at a stretch, although the client may send them more slowly than the server executes them.
//! Over some executions the pauses between them are then hardly longer than the pauses within them, between bind and
//! execution. A single pause cannot be measured, because the log's clock has milliseconds; pauses within are therefore
//! averaged over all executions so far.

use crate::form::form;
use crate::read::time::Micros;

/// How many executions are judged together. With fewer, the clock hides the round trips of a local client; with more,
/// each group has a pause of a client that sends slowly.
pub(in crate::gather) const GROUP: u32 = 32;
/// How many executions show how long the pauses within them are; groups before that are not judged.
const KNOWN: i64 = 256;
/// The resolution of the log's clock, in microseconds.
const CLOCK: i64 = 1_000;
const SECOND: i64 = 1_000_000;

/// Groups of [`GROUP`] executions in a row whose binds are logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Number of groups.
    pub groups: u64,
    /// Number of groups that the server executed without waiting for the client.
    pub at_once: u64,
}

impl Bursts {
    pub(in crate::gather) fn merge(&mut self, other: Self) {
        self.groups += other.groups;
        self.at_once += other.at_once;
    }
}

/// An execution of the extended protocol.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::gather) struct Step {
    /// Duration of parse, bind and execution, in microseconds.
    pub(in crate::gather) micros: u64,
    /// Time from the end of the bind to the beginning of the execution; `None` if the bind is not logged.
    pub(in crate::gather) pause: Option<i64>,
}

/// Counts groups while executions follow each other.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::gather) struct Pace {
    /// When the execution before the group ended.
    begin: Option<Micros>,
    executions: u32,
    micros: i64,
    /// Executions of all groups so far, and the pauses within them.
    all: i64,
    pauses: i64,
    pub(in crate::gather) found: Bursts,
}

impl Pace {
    /// Begin a group after an execution that ended at `time`.
    pub(in crate::gather) fn begin(&mut self, time: Option<Micros>) {
        *self = Self {
            begin: time,
            all: self.all,
            pauses: self.pauses,
            found: self.found,
            ..Self::default()
        };
    }

    /// Add an execution that ended at `time`.
    pub(in crate::gather) fn add(&mut self, step: Step, time: Option<Micros>) {
        let (Some(begin), Some(end), Some(pause)) = (self.begin, time, step.pause) else {
            self.begin(time);
            return;
        };
        self.executions += 1;
        self.all += 1;
        self.micros += i64::try_from(step.micros).unwrap_or(i64::MAX / 2);
        // On a busy machine the server itself is interrupted for milliseconds, in a loop as in a pipeline.
        self.pauses += pause.clamp(-CLOCK, CLOCK);
        if self.executions < GROUP {
            return;
        }
        // A clock of whole seconds shows nothing.
        if self.all > KNOWN && (begin % SECOND != 0 || end % SECOND != 0) {
            let waited = end - begin - self.micros;
            let within = self.pauses.max(0) / self.all * i64::from(GROUP);
            self.found.groups += 1;
            // The fastest loops over a local socket pause for 40 us, pipelines for 10 to 30.
            self.found.at_once += u64::from(waited <= (2 * within + CLOCK / 2).min(CLOCK));
        }
        self.begin(time);
    }
}

form!(Bursts { groups, at_once });
form!(Pace {
    begin,
    executions,
    micros,
    all,
    pauses,
    found
});

#[cfg(test)]
mod tests;
