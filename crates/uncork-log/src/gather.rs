//! Gathers the entries of a log: counts, templates, errors and events.

pub(crate) mod activity;
pub(crate) mod background;
pub(crate) mod blocking;
pub(crate) mod entry_row;
pub(crate) mod errors;
pub(crate) mod event;
pub(crate) mod example;
pub(crate) mod filter;
pub(crate) mod histogram;
pub(crate) mod hours;
pub(crate) mod joining;
pub(crate) mod lock_waits;
pub(crate) mod loops;
pub(crate) mod own;
pub(crate) mod peak;
pub(crate) mod pool;
pub(crate) mod prepared;
pub(crate) mod replay;
pub(crate) mod sequence;
pub(crate) mod series;
pub(crate) mod sessions;
pub(crate) mod slowest;
pub(crate) mod templates;
pub(crate) mod times;

use std::borrow::Cow;

use crate::gather::activity::{Activity, Incident, When};
use crate::gather::background::Background;
use crate::gather::blocking::{Blocking, Party, holders};
use crate::gather::entry_row::{EntryRow, parameters};
use crate::gather::errors::{Errors, Kind};
use crate::gather::event::Event;
use crate::gather::example::{Execution, Explained, Place, rows_of};
use crate::gather::filter::{Filter, LeftOut, Sieve};
use crate::gather::hours::ServerHours;
use crate::gather::loops::{LoopOf, Loops};
use crate::gather::own::is_own;
use crate::gather::peak::Busiest;
use crate::gather::pool::Pool;
use crate::gather::prepared::prepared;
use crate::gather::sequence::{Repetitions, Transactions};
use crate::gather::series::{Scale, Series, ServerSeries, Span};
use crate::gather::sessions::{Sessions, origin};
use crate::gather::slowest::Slowest;
use crate::gather::templates::{Known, Templates};
use crate::gather::times::Times;
use crate::read::bouncer::Side;
use crate::read::entry::{Entry, Sink};
use crate::read::message::{LockState, Message, Step};
use crate::read::origin::Origins;
use crate::read::prefix::{Head, Severity};
use crate::read::time::Micros;
use crate::read::unwrap::FOREIGN;
use crate::routes::Routes;
use crate::template::control::Control;

/// How many rejected lines are kept as examples.
const REJECTED: usize = 100;
/// The template that stands for all statements whose own templates are not kept.
pub const RARE: &[u8] = b"(rare statements)";

/// The beginning of the message that the server has started.
const STARTED: &[u8] = b"database system is ready to accept";

/// What has been gathered from a log. Parts of a log can be gathered separately and merged, in any
/// order. What depends on the order of entries is left as [`Event`]s.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// The number of the file that is being read.
    file: u32,
    /// The number of the server that wrote it.
    server: u32,
    /// The range of time to gather: from the first, inclusive, to the second, exclusive.
    range: (Option<Micros>, Option<Micros>),
    /// Which entries to gather; `None` for all.
    sieve: Option<Sieve>,
    events: Vec<Event>,
    /// When the server's entries were logged, since [`Self::begin_file`].
    seen: Span,
    /// The bucket length of all series, and when the first and last entry was logged.
    pub scale: Scale,
    /// The same for series of templates and applications, which are many.
    pub coarse: Scale,
    /// Where statements came from: users, databases, applications, hosts.
    pub origins: Origins,
    /// Statements by template.
    pub templates: Templates,
    /// Warnings and errors by kind.
    pub errors: Errors,
    /// Other messages, which no other counts include, by kind: starts and stops, replication.
    pub notices: Errors,
    /// What the server logs about itself and about sessions.
    pub activity: Activity,
    /// The work of autovacuum.
    pub background: Background,
    /// Sessions by their origin.
    pub sessions: Sessions,
    /// What poolers log.
    pub pool: Pool,
    /// Executions over time.
    pub executions: ServerSeries,
    /// Executions by who sent them, as comments in statements name it.
    pub routes: Routes,
    /// Durations of executions by the hour.
    pub hours: ServerHours,
    /// The slowest executions.
    pub slowest: Slowest,
    /// When each server had most executions and sessions, by the server's number.
    pub busiest: Vec<(u32, Busiest)>,
    /// Executions over time by the number of the application, on the coarse scale.
    pub applications: Vec<Series>,
    /// Durations by step, in the order of [`Step`].
    pub steps: [Times; 8],
    /// Repeated executions, by the number of their template and of their server.
    pub repetitions: Vec<((u32, u32), Repetitions)>,
    /// Executions repeated with other statements in between, by the numbers of their templates and of their server.
    pub loops: Vec<((LoopOf<u32>, u32), Loops)>,
    /// Transactions, by the number of their origin.
    pub transactions: Vec<(u32, Transactions)>,
    /// Who waited for whom, by the numbers of templates and origins.
    pub blocking: Vec<Blocking>,
    /// Number of templates that were merged into [`RARE`] to limit memory.
    pub rare: u64,
    /// Number of entries, not counting additions.
    pub entries: u64,
    /// Number of entries outside of the requested range.
    pub outside: u64,
    /// Number of entries without a time, from which nothing is gathered because a range of time is requested.
    pub untimed: u64,
    /// Number of entries of uncork's own monitoring sessions, from which nothing is gathered.
    pub own: u64,
    /// Lines that begin an entry or an addition. Heads, continuations, foreign records and rejected lines add up to
    /// all lines.
    pub heads: u64,
    /// Lines that continue an entry, and empty lines.
    pub continuations: u64,
    /// Records of other programs.
    pub foreign: u64,
    /// Lines that could not be read.
    pub rejected: u64,
    /// The first rejected lines: file, place and text.
    pub rejected_lines: Vec<(u32, u64, Box<[u8]>)>,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            file: 0,
            server: 0,
            range: (None, None),
            sieve: None,
            events: Vec::new(),
            seen: Span::default(),
            scale: Scale::default(),
            coarse: Scale::coarse(),
            origins: Origins::default(),
            templates: Templates::default(),
            errors: Errors::default(),
            notices: Errors::default(),
            activity: Activity::default(),
            background: Background::default(),
            sessions: Sessions::default(),
            pool: Pool::default(),
            executions: ServerSeries::default(),
            routes: Routes::default(),
            hours: ServerHours::default(),
            slowest: Slowest::default(),
            busiest: Vec::new(),
            applications: Vec::new(),
            steps: [Times::default(); 8],
            repetitions: Vec::new(),
            loops: Vec::new(),
            transactions: Vec::new(),
            blocking: Vec::new(),
            rare: 0,
            entries: 0,
            outside: 0,
            untimed: 0,
            own: 0,
            heads: 0,
            continuations: 0,
            foreign: 0,
            rejected: 0,
            rejected_lines: Vec::new(),
        }
    }
}

impl Gathered {
    /// Gather only entries from one point in time, and before another.
    #[must_use]
    pub fn between(from: Option<Micros>, until: Option<Micros>) -> Self {
        Self {
            range: (from, until),
            ..Self::default()
        }
    }

    /// Gather only entries that pass a filter.
    #[must_use]
    pub fn filtered(mut self, filter: Option<&Filter>) -> Self {
        self.sieve = filter.map(|filter| Sieve::new(filter.clone()));
        self
    }

    /// Entries within the requested range that did not pass the filter, in no particular order.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        self.sieve.as_ref().map_or(&[], Sieve::left_out)
    }

    /// Set the file that the following entries belong to, and the server that wrote it. Servers have numbers from 0.
    pub fn begin_file(&mut self, file: u32, server: u32) {
        (self.file, self.server, self.seen) = (file, server, Span::default());
        self.origins.begin_server(server);
    }

    /// Return when the first and the last entry of a server was logged since [`Self::begin_file`]; poolers' entries do
    /// not count.
    #[must_use]
    pub fn seen(&self) -> Option<(Micros, Micros)> {
        self.seen.get()
    }

    /// Take the events since the last call, for [`crate::Replays`]. The next events go into the memory of `spare`,
    /// whose events are lost: new memory for each block would cost more than filling it.
    pub fn take_events(&mut self, mut spare: Vec<Event>) -> Vec<Event> {
        spare.clear();
        std::mem::replace(&mut self.events, spare)
    }

    /// Gather an execution of a statement; return its template's identity, and whether it begins or ends a
    /// transaction.
    pub(crate) fn execution(
        &mut self,
        execution: &Execution<'_>,
        statement: &[u8],
    ) -> (u64, Control) {
        self.took(execution.step, execution.micros);
        let coarse = execution.time.map(|time| self.coarse.see(time).0);
        let known = self.templates.add(execution, statement, &self.coarse);
        let bucket = execution.time.map(|time| self.scale.see(time).0);
        if let (Some(bucket), Some(coarse), true) = (bucket, coarse, execution.step.runs()) {
            let micros = execution.micros;
            let executions = self.executions.of(self.server);
            executions.add(&self.scale, bucket, micros);
            if let Some(time) = execution.time {
                self.hours.add(self.server, &self.scale, time, micros);
            }
            let application = self.origins.application_of(execution.origin);
            self.application(application, |own, scale| own.add(scale, coarse, micros));
        }
        if execution.step.runs() {
            self.slowest.add(execution, known.number);
        }
        self.tagged(execution, statement, known.number);
        (known.identity, known.control)
    }

    /// Count an execution for the sender that its comment names.
    fn tagged(&mut self, execution: &Execution<'_>, statement: &[u8], template: u32) {
        let (origin, all) = (execution.origin, self.origins.all());
        let Some(sender) = self.routes.sender(statement, self.server, origin, all) else {
            return;
        };
        if execution.step.runs() {
            self.routes.execute(sender, template, execution.micros);
        } else if execution.step == Step::Plan
            && let Some(rows) = rows_of(execution.text)
        {
            self.routes.returned(sender, template, rows);
        }
    }

    /// Change the series of an application.
    fn application(&mut self, number: u32, change: impl FnOnce(&mut Series, &Scale)) {
        let number = number as usize;
        if number >= self.applications.len() {
            self.applications.resize_with(number + 1, Series::default);
        }
        change(&mut self.applications[number], &self.coarse);
    }

    /// Count the duration of a step.
    pub(crate) fn took(&mut self, step: Step, micros: u64) {
        self.steps[step as usize].add(micros);
    }

    /// Add an addition to its error.
    pub(crate) fn add_to_error(
        &mut self,
        kind: &Kind,
        place: Place,
        severity: Severity,
        text: &[u8],
    ) {
        let template = (severity == Severity::Statement).then(|| self.templates.find(text).number);
        self.errors.add_to(kind, place, severity, text, template);
    }

    /// Gather an entry with a duration.
    fn duration(&mut self, entry: &Entry<'_>, place: Place, step: Step, micros: u64, text: &[u8]) {
        if step == Step::Unknown {
            self.events
                .push(Event::duration(&entry.head, place, micros));
            return;
        }
        let explained = (step == Step::Plan).then(|| Explained::read(text));
        // A prepared statement is shown with its EXECUTE as parameters.
        let (text, parameters) = match prepared(entry.detail) {
            Some(statement) => (statement, text),
            None => (text, parameters(entry.detail).0),
        };
        if step == Step::Statement && self.defers(entry, place, text, micros) {
            return;
        }
        let execution = Execution {
            step,
            micros,
            time: entry.head.time,
            origin: self.origins.number(&entry.head),
            place,
            text,
            parameters: match &explained {
                Some(explained) => &explained.parameters,
                None => parameters,
            },
            query_id: entry.query_id,
        };
        let statement = explained.as_ref().map_or(text, |one| &one.statement);
        let identity = self.execution(&execution, statement);
        if step.runs() {
            let origin = self.origins.identity(execution.origin);
            self.events
                .push(Event::ran(&entry.head, place, identity, origin, micros));
        } else if matches!(step, Step::Parse | Step::Bind) {
            self.events
                .push(Event::preparation(&entry.head, place, micros));
        }
    }

    /// Gather a warning or an error.
    fn error(&mut self, entry: &Entry<'_>, place: Place, bucket: Option<i64>) {
        let template = self.template_of(entry).map(|known| known.number);
        let when = When {
            server: self.server,
            scale: &self.scale,
            bucket,
            time: entry.head.time,
            place,
        };
        let kind = self.errors.add(entry, template, &when);
        if template.is_none() {
            self.events.push(Event::failed(&entry.head, place, kind));
        }
        match Message::read(entry.message) {
            Message::Cancelled { why } => self.activity.cancel(why, &when),
            Message::Deadlock => self.activity.deadlocks += 1,
            _ => {}
        }
    }

    /// Gather a message about the server or a session.
    fn message(
        &mut self,
        message: &Message<'_>,
        entry: &Entry<'_>,
        place: Place,
        bucket: Option<i64>,
    ) {
        let statement = self.template_of(entry);
        let template = statement.map(|known| known.number);
        let head = &entry.head;
        let when = When {
            server: self.server,
            scale: &self.scale,
            bucket,
            time: head.time,
            place,
        };
        let activity = &mut self.activity;
        match *message {
            Message::Statement { what, text } => {
                let (text, parameters) = match prepared(entry.detail) {
                    Some(statement) => (statement, text),
                    None => (text, parameters(entry.detail).0),
                };
                let event = Event::statement(head, place, what, text, parameters);
                self.events.push(event);
                self.note_prepared(entry, place, text);
            }
            Message::Received { host } => {
                activity.receive(host, &when);
                self.events.push(Event::boundary(head, place));
            }
            Message::Disconnected { micros } => {
                activity.end(micros);
                let origin = self.origins.number(&origin(head, entry.message));
                self.sessions.end(origin, micros);
                self.events.push(Event::ended(head, place, micros));
            }
            Message::TemporaryFile { bytes } => {
                activity.file(bytes, template, entry, &when);
            }
            Message::Lock {
                state,
                pid,
                what,
                micros,
            } => {
                activity.lock(state, what, micros, template, &when);
                let incident = Incident::wait(pid, what, micros, entry, &when);
                let event = if state == LockState::Waiting {
                    let origin = self.origins.number(head);
                    let party = Party {
                        template: statement.map(|known| known.identity),
                        origin: Some(self.origins.identity(origin)),
                    };
                    Event::waits(head, place, party, holders(entry.detail), incident)
                } else {
                    Event::waited(head, place, state == LockState::Acquired, incident)
                };
                self.events.push(event);
            }
            Message::CheckpointStarting { reason } => activity.checkpoint_begins(reason, &when),
            Message::CheckpointComplete {
                buffers,
                micros,
                distance,
            } => {
                activity.checkpoint_ends(buffers, micros, distance, entry.message, &when);
            }
            Message::Autovacuum {
                analyze,
                table,
                micros,
            } => {
                activity.vacuum(analyze, table, micros, &when);
                let server = self.server;
                self.background
                    .vacuum(server, analyze, table, entry.message);
            }
            Message::Cancelled { why } => activity.cancel(why, &when),
            Message::Deadlock => activity.deadlocks += 1,
            Message::Authorized => {
                let origin = self.origins.number(&origin(head, entry.message));
                self.sessions.begin(origin);
                self.events.push(Event::began(head, place));
            }
            Message::Duration { .. } => {}
            Message::Other => {
                if entry.message.starts_with(STARTED) {
                    self.events.push(Event::started(head, place));
                }
                self.notices.add(entry, template, &when);
            }
        }
    }

    /// Find the template of the statement that an entry belongs to.
    fn template_of(&mut self, entry: &Entry<'_>) -> Option<Known> {
        (!entry.statement.is_empty()).then(|| self.templates.find(entry.statement))
    }

    /// Return an identity for the template of an entry's statement that is the same in any collection, until templates
    /// are joined.
    pub fn statement_id(&mut self, row: &EntryRow<'_>) -> Option<u64> {
        let statement = match row.plan {
            b"" => Cow::Borrowed(prepared(row.detail).unwrap_or(row.statement)),
            plan => Explained::read(plan).statement,
        };
        if statement.is_empty() {
            return None;
        }
        Some(self.templates.find(&statement).identity)
    }

    /// Whether a point in time is outside of the requested range, or unknown although a range is requested.
    #[must_use]
    pub fn is_outside(&self, time: Option<Micros>) -> bool {
        let (from, until) = self.range;
        match time {
            Some(time) => {
                from.is_some_and(|from| time < from) || until.is_some_and(|until| time >= until)
            }
            None => from.is_some() || until.is_some(),
        }
    }

    /// Count an entry that is left out.
    fn leave_out(&mut self, time: Option<Micros>) {
        match time {
            Some(_) => self.outside += 1,
            None => self.untimed += 1,
        }
    }

    /// Whether an entry is outside of the requested range, or does not pass the filter.
    pub fn skips(&mut self, head: &Head<'_>) -> bool {
        self.is_outside(head.time) || self.sieve.as_mut().is_some_and(|sieve| !sieve.passes(head))
    }

    /// Count an entry that is skipped, unless it is only an addition.
    fn skip(&mut self, entry: &Entry<'_>) {
        if self.is_outside(entry.head.time) {
            self.leave_out(entry.head.time);
        } else if let Some(sieve) = self.sieve.as_mut().filter(|_| !entry.stands_alone()) {
            sieve.count(&entry.head);
        }
    }
}

impl Sink for Gathered {
    fn entry(&mut self, entry: &Entry<'_>) {
        if self.skips(&entry.head) {
            self.skip(entry);
            return;
        }
        let place = (self.file, entry.offset);
        if entry.stands_alone() {
            self.events
                .push(Event::addition(&entry.head, place, entry.message));
            return;
        }
        let is_error = entry.head.severity >= Severity::Warning;
        let message = if is_error {
            Message::Other
        } else {
            Message::read(entry.message)
        };
        if is_own(entry, &message) {
            self.own += 1;
            self.events.push(Event::own(&entry.head, place));
            return;
        }
        self.entries += 1;
        self.seen.see(entry.head.time);
        let bucket = entry.head.time.map(|time| self.scale.see(time).0);
        if is_error {
            self.error(entry, place, bucket);
        } else if let Message::Duration { micros, what, text } = message {
            self.duration(entry, place, what, micros, text);
        } else {
            self.message(&message, entry, place, bucket);
        }
    }

    fn rejected(&mut self, offset: u64, line: &[u8]) {
        self.rejected += 1;
        let line = line.strip_prefix(&[FOREIGN]).unwrap_or(line);
        if self.rejected_lines.len() < REJECTED {
            self.rejected_lines
                .push((self.file, offset, line[..line.len().min(200)].into()));
        }
    }

    fn lines(&mut self, heads: u64, continuations: u64) {
        self.heads += heads;
        self.continuations += continuations;
    }

    fn pooler(&mut self, entry: &Entry<'_>, side: Option<Side>) {
        if self.skips(&entry.head) {
            self.skip(entry);
            return;
        }
        self.entries += 1;
        let place = (self.file, entry.offset);
        let bucket = entry.head.time.map(|time| self.scale.see(time).0);
        let when = When {
            server: self.server,
            scale: &self.scale,
            bucket,
            time: entry.head.time,
            place,
        };
        if entry.head.severity >= Severity::Warning {
            self.errors.add(entry, None, &when);
        } else if !self.pool.add(entry, side, &when) {
            self.notices.add(entry, None, &when);
        }
    }

    fn foreign(&mut self) {
        self.foreign += 1;
    }
}

#[cfg(test)]
mod tests;
