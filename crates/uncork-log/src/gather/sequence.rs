//! What only the order of a session's entries tells: which statement a duration belongs to, statements that are
//! repeated one by one, transactions of many statements, additions that stand apart from their message.
//!
//! Scanners share a log out among them and leave behind events, in the order of their block's entries. Here they
//! are put together again in the order of the log.

use std::collections::HashMap;

use crate::gather::Gathered;
use crate::gather::blocking::Party;
use crate::gather::errors::Kind;
use crate::gather::example::{Execution, Place};
use crate::gather::histogram::Histogram;
use crate::hash::{Hash, HashedMap};
use crate::read::message::Step;
use crate::read::origin::Origin;
use crate::read::prefix::{Head, Severity};
use crate::read::time::Micros;
use crate::template::templates::Times;

/// From how many executions in a row on a repetition is told.
const REPETITION: u32 = 10;
/// A client that sends nothing for longer does something else meanwhile: it is no way to the server and back, and
/// what it sends then is no repetition. In microseconds; logs with `%t` tell whole seconds.
const PAUSE: u64 = 1_000_000;
/// How many sessions are followed at a time; more than any server has.
const SESSIONS: usize = 100_000;

/// Whether a statement begins or ends a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Control {
    /// Neither.
    #[default]
    None,
    /// `BEGIN`, `START TRANSACTION`.
    Begin,
    /// `COMMIT`, `END`, `ROLLBACK`, `ABORT`.
    End,
}

impl Control {
    /// What a template does.
    #[must_use]
    pub fn of(template: &[u8]) -> Self {
        let mut words = template.split(|byte| matches!(byte, b' ' | b';'));
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        match (first, second) {
            (b"begin", _) | (b"start", Some(b"transaction")) => Self::Begin,
            // Savepoints and prepared transactions are other things.
            (_, Some(b"to" | b"prepared")) => Self::None,
            (b"rollback" | b"commit" | b"end" | b"abort", _) => Self::End,
            _ => Self::None,
        }
    }
}

/// What happened in a session, as far as the order of its entries matters.
#[derive(Debug, Clone)]
pub struct Event {
    /// The session; 0 where the log does not tell sessions apart.
    session: u64,
    pid: u32,
    time: Option<Micros>,
    place: Place,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// A statement ran, and has been gathered.
    Ran(Ran),
    /// A statement will run: its duration may follow.
    Said(Box<Said>),
    /// Something took so long, in microseconds; what, an entry before it may have said.
    Took(u64),
    /// A step before an execution took so long, in microseconds.
    Spent(u64),
    /// An entry of uncork's own watching: a duration that follows is of it.
    Own,
    /// An error was gathered; additions may follow.
    Failed(Box<Kind>),
    /// An addition without its message.
    Added(Severity, Box<[u8]>),
    /// A statement waits for a lock.
    Waits(Box<Waits>),
    /// It has waited so long, in microseconds.
    Waited(u64),
    /// The session began or ended.
    Changed,
}

/// A wait for a lock: who waits, by template and origin, and which processes hold it.
#[derive(Debug, Clone)]
struct Waits {
    party: Party<u64>,
    holders: Vec<u32>,
}

/// A statement that ran.
#[derive(Debug, Clone, Copy)]
struct Ran {
    template: u64,
    origin: u64,
    micros: u64,
    control: Control,
}

/// A statement before it runs.
#[derive(Debug, Clone)]
struct Said {
    step: Step,
    origin: Origin,
    text: Box<[u8]>,
    parameters: Box<[u8]>,
}

impl Event {
    fn new(head: &Head<'_>, place: Place, what: What) -> Self {
        Self {
            session: session(head),
            pid: head.pid,
            time: head.time,
            place,
            what,
        }
    }

    pub(crate) fn ran(
        head: &Head<'_>,
        place: Place,
        (template, control): (u64, Control),
        origin: u64,
        micros: u64,
    ) -> Self {
        let ran = Ran {
            template,
            origin,
            micros,
            control,
        };
        Self::new(head, place, What::Ran(ran))
    }

    pub(crate) fn said(
        head: &Head<'_>,
        place: Place,
        step: Step,
        text: &[u8],
        parameters: &[u8],
    ) -> Self {
        let said = Said {
            step,
            origin: Origin::from(head),
            text: text.into(),
            parameters: parameters.into(),
        };
        Self::new(head, place, What::Said(Box::new(said)))
    }

    pub(crate) fn took(head: &Head<'_>, place: Place, micros: u64) -> Self {
        Self::new(head, place, What::Took(micros))
    }

    pub(crate) fn spent(head: &Head<'_>, place: Place, micros: u64) -> Self {
        Self::new(head, place, What::Spent(micros))
    }

    pub(crate) fn own(head: &Head<'_>, place: Place) -> Self {
        Self::new(head, place, What::Own)
    }

    pub(crate) fn failed(head: &Head<'_>, place: Place, kind: Kind) -> Self {
        Self::new(head, place, What::Failed(Box::new(kind)))
    }

    pub(crate) fn added(head: &Head<'_>, place: Place, text: &[u8]) -> Self {
        Self::new(head, place, What::Added(head.severity, text.into()))
    }

    pub(crate) fn waits(
        head: &Head<'_>,
        place: Place,
        party: Party<u64>,
        holders: Vec<u32>,
    ) -> Self {
        Self::new(head, place, What::Waits(Box::new(Waits { party, holders })))
    }

    pub(crate) fn waited(head: &Head<'_>, place: Place, micros: u64) -> Self {
        Self::new(head, place, What::Waited(micros))
    }

    pub(crate) fn changed(head: &Head<'_>, place: Place) -> Self {
        Self::new(head, place, What::Changed)
    }
}

/// A number for a line's session.
fn session(head: &Head<'_>) -> u64 {
    if head.session.is_empty() {
        return u64::from(head.pid);
    }
    let mut hash = Hash::new();
    hash.add(head.session, 1);
    hash.get()
}

/// One session, as far as it has been followed.
#[derive(Debug, Clone, Default)]
struct Session {
    pid: u32,
    /// The statement that has ended last.
    last: Option<Ran>,
    /// Which waits for a lock are not over.
    waits: Vec<(Party<u64>, Party<u64>)>,
    said: Option<Box<Said>>,
    /// Whether the last entry was of uncork's own watching.
    is_own: bool,
    /// How long steps have taken since the last execution, in microseconds.
    spent: u64,
    failed: Option<(Box<Kind>, Place)>,
    run: Option<Run>,
    transaction: Option<Open>,
}

/// Executions of one template in a row.
#[derive(Debug, Clone)]
struct Run {
    template: u64,
    executions: u32,
    /// Of all but the first: how long they took.
    micros: u64,
    first: Option<Micros>,
    last: Option<Micros>,
    place: Place,
}

/// A transaction that has not ended.
#[derive(Debug, Clone)]
struct Open {
    origin: u64,
    statements: u64,
    micros: u64,
    begin: Option<Micros>,
    /// When its last statement ended.
    last: Option<Micros>,
    pauses: Times,
    repeated: u64,
    place: Place,
}

/// Repetitions of one template: executions one after the other by one session, with no other statement in between and
/// no pause of over a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repetitions {
    /// How many rows of executions.
    pub rows: u64,
    /// How many executions they had in all.
    pub executions: u64,
    /// The longest of them.
    pub longest: u32,
    /// Where the longest began; of several the first.
    pub place: Place,
    /// From the end of each row's first execution to that of its last one, in microseconds.
    pub elapsed: u64,
    /// How long executions took in that time, with their parse and bind: the rest is the way to the client and back.
    pub micros: u64,
}

impl Repetitions {
    /// Adds those of another template that is really the same.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.longest > self.longest || other.longest == self.longest && other.place < self.place
        {
            (self.longest, self.place) = (other.longest, other.place);
        }
        self.rows += other.rows;
        self.executions += other.executions;
        self.elapsed += other.elapsed;
        self.micros += other.micros;
    }
}

/// Transactions of one origin that the log shows from `BEGIN` to `COMMIT` or `ROLLBACK`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transactions {
    /// How many, and how long they lasted in microseconds.
    pub elapsed: Times,
    /// How many statements they had between `BEGIN` and their end.
    pub statements: Times,
    /// The same, distributed.
    pub histogram: Histogram,
    /// How long statements took in them, with their parse and bind and what ended the transaction, in
    /// microseconds: the rest the server waited for the client.
    pub micros: u64,
    /// That part of the rest in which the client sent nothing for over a second at a time.
    pub pauses: Times,
    /// That part of the rest which lies between repeated executions ([`Repetitions`]), in microseconds.
    pub repeated: u64,
    /// Where the one of most statements began; of several the first.
    pub place: Place,
}

/// Events of all sessions, in the order of the log.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    sessions: HashedMap<Session>,
    found: Found,
}

/// What the order has told so far.
#[derive(Debug, Clone, Default)]
struct Found {
    /// By the identity of templates.
    repetitions: HashedMap<Repetitions>,
    /// By the identity of origins.
    transactions: HashedMap<Transactions>,
    /// By who waited and who held the lock.
    blocking: HashMap<(Party<u64>, Party<u64>), Times>,
    /// Statements whose duration stood in another entry, and additions that stood alone.
    late: Gathered,
}

impl Sequence {
    /// Takes what happened next.
    pub fn follow(&mut self, event: Event) {
        if event.session == 0 {
            if let What::Took(micros) = event.what {
                self.found.late.took(Step::Untold, micros);
            }
        } else if matches!(event.what, What::Changed) {
            if let Some(session) = self.sessions.remove(&event.session) {
                self.found.end(session);
            }
        } else {
            if self.sessions.len() > SESSIONS {
                self.end_all();
            }
            if let What::Waits(waits) = &event.what {
                let blocked = self.blocked(waits);
                self.found.blocked(&blocked);
                self.sessions.entry(event.session).or_default().waits = blocked;
                return;
            }
            let session = self.sessions.entry(event.session).or_default();
            session.pid = event.pid;
            let was_own = std::mem::take(&mut session.is_own);
            if was_own && matches!(event.what, What::Took(_)) {
                return;
            }
            self.found.follow(session, event);
        }
    }

    /// Who a wait is for.
    fn blocked(&self, waits: &Waits) -> Vec<(Party<u64>, Party<u64>)> {
        let holding = |pid: &u32| {
            let session = self.sessions.values().find(|session| session.pid == *pid);
            let last = session.and_then(|session| session.last);
            Party {
                // What has ended a transaction holds no lock any more: something else runs, not told of yet.
                template: last
                    .filter(|ran| ran.control != Control::End)
                    .map(|ran| ran.template),
                origin: last.map(|ran| ran.origin),
            }
        };
        let all = waits.holders.iter();
        all.map(|pid| (waits.party, holding(pid))).collect()
    }

    fn end_all(&mut self) {
        for (_, session) in self.sessions.drain() {
            self.found.end(session);
        }
    }

    /// Ends all sessions; adds what was gathered late to what was gathered.
    pub fn finish(mut self, gathered: &mut Gathered) {
        self.end_all();
        gathered.merge(std::mem::take(&mut self.found.late));
        let Found {
            repetitions,
            transactions,
            blocking,
            ..
        } = &self.found;
        gathered.order(repetitions, transactions, blocking);
    }
}

impl Found {
    fn follow(&mut self, session: &mut Session, event: Event) {
        let (time, place) = (event.time, event.place);
        match event.what {
            What::Ran(ran) => self.ran(session, ran, time, place),
            What::Said(said) => session.said = Some(said),
            What::Spent(micros) => session.spent += micros,
            What::Own => session.is_own = true,
            What::Took(micros) => match session.said.take() {
                None => self.late.took(Step::Untold, micros),
                Some(said) => {
                    let ran = self.tell(&said, micros, time, place);
                    self.ran(session, ran, time, place);
                }
            },
            What::Failed(kind) => session.failed = Some((kind, place)),
            What::Added(severity, text) => {
                if let Some((kind, of)) = &session.failed {
                    self.late.add_to_error(kind, *of, severity, &text);
                }
            }
            What::Waited(micros) => {
                for key in session.waits.drain(..) {
                    let times = self.blocking.entry(key).or_default();
                    times.micros += micros;
                    times.max = times.max.max(micros);
                }
            }
            What::Waits(_) | What::Changed => {}
        }
    }

    /// Counts waits.
    fn blocked(&mut self, all: &[(Party<u64>, Party<u64>)]) {
        for key in all {
            self.blocking.entry(*key).or_default().count += 1;
        }
    }

    /// Gathers a statement whose duration stood in another entry.
    fn tell(&mut self, said: &Said, micros: u64, time: Option<Micros>, place: Place) -> Ran {
        let execution = Execution {
            step: said.step,
            micros,
            time,
            origin: self.late.origins.adopt(&said.origin),
            place,
            text: &said.text,
            parameters: &said.parameters,
        };
        let (template, control) = self.late.execution(&execution, &said.text);
        Ran {
            template,
            origin: self.late.origins.identity(execution.origin),
            micros,
            control,
        }
    }

    fn ran(&mut self, session: &mut Session, ran: Ran, time: Option<Micros>, place: Place) {
        session.failed = None;
        session.last = Some(ran);
        // What was done for the execution before it belongs to it.
        let micros = ran.micros + std::mem::take(&mut session.spent);
        match &mut session.run {
            Some(run)
                if run.template == ran.template
                    && between(run.last, time).saturating_sub(micros) <= PAUSE =>
            {
                run.executions += 1;
                run.micros += micros;
                run.last = time;
            }
            other => {
                let run = Run {
                    template: ran.template,
                    executions: 1,
                    micros: 0,
                    first: time,
                    last: time,
                    place,
                };
                if let Some(before) = other.replace(run) {
                    let waited = repeated(&mut self.repetitions, &before);
                    if let Some(open) = &mut session.transaction {
                        open.repeated += waited;
                    }
                }
            }
        }
        if let Some(open) = &mut session.transaction
            && ran.control != Control::Begin
        {
            let pause = between(open.last, time).saturating_sub(micros);
            if pause > PAUSE {
                open.pauses.add(pause);
            }
            open.last = time;
            open.micros += micros;
            open.statements += u64::from(ran.control == Control::None);
        }
        match ran.control {
            Control::Begin => {
                session.transaction = Some(Open {
                    origin: ran.origin,
                    statements: 0,
                    micros: 0,
                    begin: time,
                    last: time,
                    pauses: Times::default(),
                    repeated: 0,
                    place,
                });
            }
            Control::End => {
                if let Some(open) = session.transaction.take() {
                    self.ended(&open, time);
                }
            }
            Control::None => {}
        }
    }

    fn ended(&mut self, open: &Open, time: Option<Micros>) {
        let of = self.transactions.entry(open.origin).or_default();
        if open.statements > of.statements.max || of.statements.count == 0 {
            of.place = open.place;
        }
        of.statements.add(open.statements);
        of.histogram.add(open.statements);
        of.elapsed.add(between(open.begin, time));
        of.micros += open.micros;
        of.pauses.merge(&open.pauses);
        of.repeated += open.repeated;
    }

    fn end(&mut self, session: Session) {
        if let Some(run) = session.run {
            repeated(&mut self.repetitions, &run);
        }
    }
}

/// Counts executions in a row, if they are enough; returns how long the server waited between them.
fn repeated(repetitions: &mut HashedMap<Repetitions>, run: &Run) -> u64 {
    if run.executions < REPETITION {
        return 0;
    }
    let elapsed = between(run.first, run.last);
    repetitions
        .entry(run.template)
        .or_default()
        .merge(&Repetitions {
            rows: 1,
            executions: run.executions.into(),
            longest: run.executions,
            place: run.place,
            elapsed,
            micros: run.micros,
        });
    elapsed.saturating_sub(run.micros)
}

fn between(first: Option<Micros>, last: Option<Micros>) -> u64 {
    match (first, last) {
        (Some(first), Some(last)) => u64::try_from(last - first).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
