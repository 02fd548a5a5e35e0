//! Follows sessions in the order of the log. Only that order shows which statement a duration belongs to, which
//! statements a client repeats one by one, which belong to one transaction, and which error an addition belongs to.
//!
//! Scanners read blocks of a log in parallel and leave events, in the order of their block's entries. A [`Sequence`]
//! takes the events of all blocks in the order of the log. It gathers nothing itself: it returns what it has
//! resolved, and [`super::replay`] gathers that.

pub(in crate::gather) mod bursts;
pub(in crate::gather) mod holders;
mod stored;

use std::collections::HashMap;

use crate::gather::blocking::Party;
use crate::gather::errors::Kind;
use crate::gather::event::{Event, Ran, Statement, Waits, What};
use crate::gather::example::Place;
use crate::gather::histogram::Histogram;
use crate::gather::loops::{LoopOf, Loops, REPETITION, Stretch};
use crate::gather::prepared::Prepared;
use crate::gather::sequence::bursts::{Bursts, Pace, Step};
use crate::gather::sequence::holders::{Holder, Holders, OpenWait, OpenWaits};
use crate::gather::times::Times;
use crate::hash::HashedMap;
use crate::read::prefix::Severity;
use crate::read::time::Micros;
use crate::template::control::Control;

/// A longer pause is not a network round trip: the client did something else, and its next statement is no
/// repetition. In microseconds; a whole second, because `%t` logs no fractions.
const PAUSE: u64 = 1_000_000;
/// How many sessions are followed at once; more than any server has.
const SESSIONS: usize = 100_000;

/// The state of one session.
#[derive(Debug, Clone, Default)]
struct Session {
    pid: u32,
    /// Its last event: of two sessions of one process, the later one runs.
    seen: Place,
    /// The statement that ended last.
    last: Option<Ran>,
    /// Waits for locks that are not over: who waits, and who holds the lock.
    waits: Vec<(Party<u64>, Party<u64>)>,
    /// The statement that was logged last, until its duration follows.
    statement: Option<Box<Statement>>,
    /// The statements that it has prepared by name; `None` if there are none, as usual.
    prepared: Option<Box<Prepared>>,
    /// Whether the last entry was of uncork's own monitoring.
    is_own: bool,
    /// Duration of parses and binds since the last execution, in microseconds.
    preparation: u64,
    /// When the last of these parses and binds ended; `None` if there were none.
    prepared_at: Option<Micros>,
    failed: Option<(Box<Kind>, Place)>,
    run: Option<Run>,
    stretch: Stretch,
    transaction: Option<Open>,
}

impl Session {
    fn prepare(&mut self, name: Box<[u8]>, statement: Box<[u8]>) {
        self.prepared.get_or_insert_default().add(name, statement);
    }

    /// Replace an `EXECUTE` by its statement, if the log shows how that was prepared. The `EXECUTE` becomes its
    /// parameters.
    fn look_up(&self, statement: &mut Statement) {
        let prepared = self.prepared.as_ref();
        if let Some(text) = prepared.and_then(|prepared| prepared.get(&statement.text)) {
            let execute = std::mem::replace(&mut statement.text, text.into());
            statement.parameters = execute;
        }
    }
}

/// Executions of one template in a row.
#[derive(Debug, Clone)]
struct Run {
    template: u64,
    executions: u32,
    /// Duration of all executions but the first.
    micros: u64,
    pace: Pace,
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

/// Repetitions of one template: consecutive executions by one session, without another statement in between and
/// without a pause of more than a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repetitions {
    /// Number of rows, that is, of uninterrupted repetitions.
    pub rows: u64,
    /// Number of executions in all rows.
    pub executions: u64,
    /// Number of executions in the longest row.
    pub longest: u32,
    /// Where the longest row began; the first of several equally long ones.
    pub place: Place,
    /// Time from the end of each row's first execution to the end of its last one, in microseconds.
    pub elapsed: u64,
    /// Duration of executions in that time, with their parse and bind. The rest is round trips to the client, unless
    /// `bursts` show that the client did not wait.
    pub micros: u64,
    /// Groups of these executions.
    pub bursts: Bursts,
}

impl Repetitions {
    /// Add the repetitions of another server, or of another template that turned out to be the same.
    pub fn merge(&mut self, other: &Self) {
        if other.longest > self.longest || other.longest == self.longest && other.place < self.place
        {
            (self.longest, self.place) = (other.longest, other.place);
        }
        self.rows += other.rows;
        self.executions += other.executions;
        self.elapsed += other.elapsed;
        self.micros += other.micros;
        self.bursts.merge(other.bursts);
    }
}

/// Transactions of one origin that the log shows from `BEGIN` to `COMMIT` or `ROLLBACK`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transactions {
    /// Number of transactions, and how long they lasted in microseconds.
    pub elapsed: Times,
    /// Number of statements between `BEGIN` and the end of each transaction.
    pub statements: Times,
    /// Distribution of the number of statements.
    pub histogram: Histogram,
    /// Duration of statements, with their parse and bind and with the `COMMIT`, in microseconds. For the rest of
    /// the time the server waited for the client.
    pub micros: u64,
    /// The part of that wait in which the client sent nothing for more than a second at a time.
    pub pauses: Times,
    /// The part of that wait between repeated executions ([`Repetitions`], [`Loops`]), in microseconds.
    pub repeated: u64,
    /// Where the transaction with the most statements began; the first of several.
    pub place: Place,
}

/// What the order of entries has resolved, and is still to be gathered.
pub(super) enum Resolved<'a> {
    /// A duration whose statement is not in the log, in microseconds.
    Duration(u64),
    /// A statement with its duration, in microseconds. Once it is gathered, report it with [`Sequence::ran`].
    Statement(Box<Statement>, u64),
    /// An addition to an error.
    Addition {
        kind: &'a Kind,
        /// Where the error stands.
        place: Place,
        severity: Severity,
        text: Box<[u8]>,
    },
}

/// Follows all sessions in the order of the log.
#[derive(Debug, Clone, Default)]
pub(super) struct Sequence {
    sessions: HashedMap<Session>,
    open_waits: OpenWaits,
    found: Found,
}

/// What the order of entries has shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// By the identity of templates.
    pub(super) repetitions: HashedMap<Repetitions>,
    /// By the identities of templates.
    pub(super) loops: HashMap<LoopOf<u64>, Loops>,
    /// By the identity of origins.
    pub(super) transactions: HashedMap<Transactions>,
    /// By who waited and who held the lock.
    pub(super) blocking: HashMap<(Party<u64>, Party<u64>), Times>,
    /// The statements of those who held the locks.
    pub(super) holders: Holders,
}

impl Sequence {
    /// Process the next event.
    pub(super) fn follow(&mut self, event: Event) -> Option<Resolved<'_>> {
        if event.session == 0 {
            return match event.what {
                What::Duration(micros) => Some(Resolved::Duration(micros)),
                _ => None,
            };
        }
        if matches!(event.what, What::Began | What::Started) {
            return None;
        }
        if matches!(event.what, What::Boundary | What::Ended(_)) {
            if let Some(session) = self.sessions.remove(&event.session) {
                self.found.end(session);
            }
            return None;
        }
        if self.sessions.len() > SESSIONS {
            self.end_all();
        }
        match &event.what {
            What::Waits(waits) => {
                let blocked = self.blocked(waits, &event);
                self.found.blocked(&blocked);
                self.sessions.entry(event.session).or_default().waits = blocked;
                return None;
            }
            What::Waited(waited) if waited.acquired => {
                self.open_waits.ended(event.session, waited.incident.amount);
            }
            What::Ran(ran) => self.released(event.pid, ran, event.time),
            _ => {}
        }
        let session = self.sessions.entry(event.session).or_default();
        (session.pid, session.seen) = (event.pid, event.place);
        let was_own = std::mem::take(&mut session.is_own);
        if was_own && matches!(event.what, What::Duration(_)) {
            return None;
        }
        self.found.follow(session, event)
    }

    /// Report a statement that [`Resolved::Statement`] returned as gathered.
    pub(super) fn ran(&mut self, session: u64, ran: Ran, time: Option<Micros>, place: Place) {
        let pid = self.sessions.entry(session).or_default().pid;
        self.released(pid, &ran, time);
        let session = self.sessions.entry(session).or_default();
        self.found.ran(session, ran, time, place);
    }

    /// Pair who waits with each session that holds the lock. If the statement of such a session is not logged yet, the
    /// wait is left open.
    fn blocked(&mut self, waits: &Waits, event: &Event) -> Vec<(Party<u64>, Party<u64>)> {
        let mut known = Vec::new();
        for pid in &waits.holders {
            let of = self.sessions.values().filter(|one| one.pid == *pid);
            let session = of.max_by_key(|one| one.seen);
            let last = session.and_then(|session| session.last);
            let holding = Party {
                // After COMMIT the session holds no locks: a later statement does, which is not logged yet.
                template: last
                    .filter(|ran| ran.control != Control::End)
                    .map(|ran| ran.template),
                origin: last.map(|ran| ran.origin),
            };
            let running = session.and_then(|session| session.statement.as_ref());
            if let Some(running) = running {
                let text = Holder::Text(running.text.clone());
                self.found.holders.add(event.place, text);
            }
            if let Some(template) = holding.template {
                let template = Holder::Template(template);
                self.found.holders.add(event.place, template);
                known.push((waits.party, holding));
            } else {
                let wait = OpenWait {
                    session: event.session,
                    waiting: waits.party,
                    holding,
                    since: event.time,
                    place: event.place,
                    micros: None,
                };
                self.open_waits.add(*pid, wait);
            }
        }
        known
    }

    /// Count the waits for a process that has ended a statement.
    fn released(&mut self, pid: u32, ran: &Ran, time: Option<Micros>) {
        if self.open_waits.is_empty() {
            return;
        }
        for wait in self.open_waits.resolve(pid, ran, time) {
            self.found.was_open(&wait);
            if wait.micros.is_none() {
                let waiting = self.sessions.entry(wait.session).or_default();
                waiting.waits.push((wait.waiting, wait.holding));
            }
        }
    }

    fn end_all(&mut self) {
        for (_, session) in self.sessions.drain() {
            self.found.end(session);
        }
        for wait in self.open_waits.drain() {
            self.found.was_open(&wait);
        }
    }

    /// End all sessions, and return what their order has shown.
    pub(super) fn finish(mut self) -> Found {
        self.end_all();
        self.found
    }
}

impl Found {
    /// Add what the order of another server's entries has shown, except repetitions and loops, which are of one server.
    pub(super) fn merge(&mut self, other: Self) {
        for (parties, times) in &other.blocking {
            self.blocking.entry(*parties).or_default().merge(times);
        }
        // Origins and places belong to one server.
        self.transactions.extend(other.transactions);
        self.holders.extend(other.holders);
    }

    fn follow<'a>(&mut self, session: &'a mut Session, event: Event) -> Option<Resolved<'a>> {
        let (time, place) = (event.time, event.place);
        match event.what {
            What::Ran(ran) => self.ran(session, ran, time, place),
            What::Statement(mut statement) => {
                session.look_up(&mut statement);
                session.statement = Some(statement);
            }
            What::Executed(mut statement, micros) => {
                session.look_up(&mut statement);
                return Some(Resolved::Statement(statement, micros));
            }
            What::Prepared(name, statement) => session.prepare(name, statement),
            What::Preparation(micros) => {
                session.preparation += micros;
                session.prepared_at = time;
            }
            What::Own => session.is_own = true,
            What::Duration(micros) => {
                return Some(match session.statement.take() {
                    None => Resolved::Duration(micros),
                    Some(statement) => Resolved::Statement(statement, micros),
                });
            }
            What::Failed(kind) => session.failed = Some((kind, place)),
            What::Addition(severity, text) => {
                let (kind, place) = session.failed.as_ref()?;
                return Some(Resolved::Addition {
                    kind,
                    place: *place,
                    severity,
                    text,
                });
            }
            What::Waited(waited) if waited.acquired => {
                let micros = waited.incident.amount;
                for key in session.waits.drain(..) {
                    let times = self.blocking.entry(key).or_default();
                    times.micros += micros;
                    times.max = times.max.max(micros);
                }
            }
            What::Waited(_)
            | What::Waits(_)
            | What::Boundary
            | What::Began
            | What::Ended(_)
            | What::Started => {}
        }
        None
    }

    /// Count a wait whose holder's statement was not known when it began.
    fn was_open(&mut self, wait: &OpenWait) {
        let times = self
            .blocking
            .entry((wait.waiting, wait.holding))
            .or_default();
        times.count += 1;
        if let Some(micros) = wait.micros {
            times.micros += micros;
            times.max = times.max.max(micros);
        }
        if let Some(template) = wait.holding.template {
            self.holders.add(wait.place, Holder::Template(template));
        }
    }

    /// Count the beginning of waits.
    fn blocked(&mut self, all: &[(Party<u64>, Party<u64>)]) {
        for key in all {
            self.blocking.entry(*key).or_default().count += 1;
        }
    }

    fn ran(&mut self, session: &mut Session, ran: Ran, time: Option<Micros>, place: Place) {
        session.failed = None;
        session.last = Some(ran);
        // Parse and bind belong to the execution that follows them.
        let micros = ran.micros + std::mem::take(&mut session.preparation);
        let bound = session.prepared_at.take().zip(time);
        let pause = bound.and_then(|(bound, end)| {
            i64::try_from(ran.micros)
                .ok()
                .map(|micros| end - bound - micros)
        });
        let step = Step { micros, pause };
        match &mut session.run {
            Some(run)
                if run.template == ran.template
                    && between(run.last, time).saturating_sub(micros) <= PAUSE =>
            {
                run.executions += 1;
                run.micros += micros;
                run.pace.add(step, time);
                run.last = time;
            }
            other => {
                let run = Run {
                    template: ran.template,
                    executions: 1,
                    micros: 0,
                    pace: Pace::default(),
                    first: time,
                    last: time,
                    place,
                };
                let before = other.replace(run);
                if let Some(run) = other {
                    run.pace.begin(time);
                }
                if let Some(before) = before {
                    let waited = repeated(&mut self.repetitions, &before);
                    if let Some(open) = &mut session.transaction {
                        open.repeated += waited;
                    }
                }
            }
        }
        let waited = self.repeats(&mut session.stretch, ran, step, time, place);
        if let Some(open) = &mut session.transaction {
            open.repeated += waited;
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

    /// Follow what a session repeats; return how long the server waited for the client within loops that ended.
    fn repeats(
        &mut self,
        stretch: &mut Stretch,
        ran: Ran,
        step: Step,
        time: Option<Micros>,
        place: Place,
    ) -> u64 {
        let gap = between(stretch.ended(), time).saturating_sub(step.micros);
        let mut waited = 0;
        if ran.control != Control::None || stretch.is_over(gap) {
            waited = stretch.end(&mut self.loops);
            stretch.begin(ran.control == Control::Begin, time, place);
        }
        if ran.control == Control::None {
            let gap = if gap > PAUSE { 0 } else { gap };
            stretch.add(ran.template, step, gap, time, place);
        }
        waited
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

    fn end(&mut self, mut session: Session) {
        if let Some(run) = session.run {
            repeated(&mut self.repetitions, &run);
        }
        session.stretch.end(&mut self.loops);
    }
}

/// Count a row of executions if it is long enough; return how long the server waited for the client between them.
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
            bursts: run.pace.found,
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
pub(super) mod tests;
