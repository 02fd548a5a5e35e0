//! Replays events in the order of the log, and gathers entries whose meaning only that order shows.

mod withheld;

use std::collections::BTreeMap;

use crate::form::{Form, FormError, Reader};
use crate::gather::Gathered;
use crate::gather::blocking::{Blocking, Party};
use crate::gather::event::{Event, Ran, Statement, What};
use crate::gather::example::{Execution, Place};
use crate::gather::lock_waits::LockWaits;
use crate::gather::loops::LoopOf;
use crate::gather::peak::{Busiest, Rates};
use crate::gather::sequence::holders::{Holder, Holders};
use crate::gather::sequence::{Found, Resolved, Sequence};
use crate::gather::sessions::OpenSessions;
use crate::hash::HashedMap;
use crate::read::message::Step;
use crate::read::prefix::Severity;
use crate::read::time::Micros;

/// Joins what scanners gathered apart: put in the events of all blocks of each server in the order of its log, then
/// finish. Nothing that a server logs continues or ends what another one logged, although their processes have the same
/// numbers.
#[derive(Debug, Clone, Default)]
pub struct Replays(BTreeMap<u32, Replay>);

impl Replays {
    /// Return the replay of a server.
    pub fn of(&mut self, server: u32) -> &mut Replay {
        self.0.entry(server).or_insert_with(|| Replay::new(server))
    }

    /// Whether nothing has been put in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Return how many servers there must be for the numbers of servers here.
    #[must_use]
    pub fn servers(&self) -> usize {
        let all = self.0.iter();
        all.map(|(server, replay)| replay.late.servers().max(*server as usize + 1))
            .max()
            .unwrap_or(0)
    }

    /// End all sessions of all servers, and add the results to `gathered`.
    pub fn finish(self, gathered: &mut Gathered) {
        gathered.settle();
        let mut all = Vec::new();
        let mut busiest = Vec::new();
        for (server, replay) in self.0 {
            let (found, most) = replay.finish(gathered);
            all.push((server, found));
            busiest.push((server, most));
        }
        gathered.busiest = busiest;
        gathered.order(all);
    }
}

impl Form for Replays {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.len().write(out);
        for (server, replay) in &self.0 {
            server.write(out);
            replay.sequence.write(out);
            replay.lock_waits.write(out);
            replay.rates.write(out);
            replay.sessions.write(out);
            replay.late.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut all = Self::default();
        for _ in 0..from.count()? {
            let server = u32::read(from)?;
            let mut replay = Replay {
                sequence: Form::read(from)?,
                lock_waits: Form::read(from)?,
                rates: Form::read(from)?,
                sessions: Form::read(from)?,
                late: Form::read(from)?,
            };
            replay.late.begin_file(0, server);
            all.0.insert(server, replay);
        }
        Ok(all)
    }
}

/// Replays the log of one server.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    sequence: Sequence,
    lock_waits: LockWaits,
    rates: Rates,
    sessions: OpenSessions,
    /// Statements whose duration stood in another entry, and additions that stood alone.
    late: Gathered,
}

impl Replay {
    fn new(server: u32) -> Self {
        let mut replay = Self::default();
        replay.late.begin_file(0, server);
        replay
    }

    /// Process the next event.
    pub fn follow(&mut self, mut event: Event) {
        match &mut event.what {
            What::Waits(waits) => {
                let wait = std::mem::take(&mut waits.incident);
                let keep = |wait| self.late.activity.waited(wait);
                self.lock_waits.waits(wait, keep);
            }
            What::Waited(waited) => {
                let keep = |wait| self.late.activity.waited(wait);
                self.lock_waits.ended(waited.incident.clone(), keep);
            }
            _ => {}
        }
        let (session, time, place) = (event.session, event.time, event.place);
        let process = if event.pid == 0 {
            session
        } else {
            event.pid.into()
        };
        match &event.what {
            What::Ran(_) => self.count(time),
            What::Began => self.sessions.begin(process, time),
            What::Ended(micros) => self.sessions.end(process, time, *micros),
            What::Started => self.sessions.restart(),
            What::Failed(kind) if kind.severity >= Severity::Fatal => self.sessions.fail(process),
            _ => {}
        }
        match self.sequence.follow(event) {
            None => {}
            Some(Resolved::Duration(micros)) => self.late.took(Step::Unknown, micros),
            Some(Resolved::Statement(statement, micros)) => {
                let ran = self.gather(&statement, micros, time, place);
                if statement.step.runs() {
                    self.count(time);
                }
                self.sequence.ran(session, ran, time, place);
            }
            Some(Resolved::Addition {
                kind,
                place,
                severity,
                text,
            }) => self.late.add_to_error(kind, place, severity, &text),
        }
    }

    /// Count the statements that wait to be counted.
    pub fn settle(&mut self) {
        self.late.settle();
    }

    fn count(&mut self, time: Option<Micros>) {
        if let Some(time) = time {
            self.rates.add(time);
        }
    }

    /// Gather a statement whose duration stood in another entry.
    fn gather(
        &mut self,
        statement: &Statement,
        micros: u64,
        time: Option<Micros>,
        place: Place,
    ) -> Ran {
        let execution = Execution {
            step: statement.step,
            micros,
            time,
            origin: self.late.origins.number(&statement.origin.head()),
            place,
            text: &statement.text,
            parameters: &statement.parameters,
            query_id: statement.query_id,
        };
        let (template, control) = self.late.execution(&execution, &statement.text);
        Ran {
            template,
            origin: self.late.origins.identity(execution.origin),
            micros,
            control,
        }
    }

    /// End all sessions, and add the statements to `gathered`.
    fn finish(mut self, gathered: &mut Gathered) -> (Found, Busiest) {
        for wait in self.lock_waits.finish() {
            self.late.activity.waited(wait);
        }
        let found = self.sequence.finish();
        gathered.merge(self.late);
        let busiest = Busiest {
            second: self.rates.peak(),
            sessions: self.sessions.most(),
        };
        (found, busiest)
    }
}

impl Gathered {
    /// Keep what the order of entries has shown, by the numbers of templates and origins.
    fn order(&mut self, servers: Vec<(u32, Found)>) {
        let mut found = Found::default();
        let is_repeated = |one: &Found| !one.repetitions.is_empty() || !one.loops.is_empty();
        if servers.iter().any(|(_, one)| is_repeated(one)) {
            self.order_repeated(&servers);
        }
        for (_, one) in servers {
            found.merge(one);
        }
        let origins = (0..).zip(self.origins.all());
        self.transactions = origins
            .filter_map(|(number, _)| {
                let of = found.transactions.get(&self.origins.identity(number))?;
                Some((number, of.clone()))
            })
            .collect();
        if !found.blocking.is_empty() {
            self.order_blocking(&found);
            self.name_holders(&found.holders);
        }
    }

    /// Keep what the sessions of each server repeat.
    fn order_repeated(&mut self, servers: &[(u32, Found)]) {
        let templates: HashedMap<u32> = self.templates.identities().zip(0..).collect();
        let (mut repetitions, mut loops) = (Vec::new(), Vec::new());
        for (server, found) in servers {
            let numbered = found
                .repetitions
                .iter()
                .filter_map(|(id, one)| Some(((*templates.get(id)?, *server), *one)));
            repetitions.extend(numbered);
            let numbered = found.loops.iter().filter_map(|(of, loops)| {
                let parent = of.parent.map(|id| templates.get(&id).copied());
                let of = LoopOf {
                    in_transaction: of.in_transaction,
                    parent: parent.flatten(),
                    template: *templates.get(&of.template)?,
                };
                Some(((of, *server), *loops))
            });
            loops.extend(numbered);
        }
        repetitions.sort_unstable_by_key(|(of, _)| *of);
        loops.sort_unstable_by_key(|(of, _)| *of);
        (self.repetitions, self.loops) = (repetitions, loops);
    }

    fn name_holders(&mut self, holders: &Holders) {
        let all = self.templates.all();
        let texts: HashedMap<&[u8]> = self
            .templates
            .identities()
            .zip(all.iter().map(|template| &*template.more.text))
            .collect();
        let holder = |place| match holders.get(place)? {
            Holder::Template(id) => texts.get(id).copied(),
            Holder::Text(text) => Some(&**text),
        };
        self.activity.longest_waits.name_holders(holder);
    }

    fn order_blocking(&mut self, found: &Found) {
        let templates: HashedMap<u32> = self.templates.identities().zip(0..).collect();
        let origins: HashedMap<u32> = (0..)
            .zip(self.origins.all())
            .map(|(number, _)| (self.origins.identity(number), number))
            .collect();
        let party = |of: Party<u64>| Party {
            template: of.template.and_then(|id| templates.get(&id).copied()),
            origin: of.origin.and_then(|id| origins.get(&id).copied()),
        };
        let all = found
            .blocking
            .iter()
            .map(|((waiting, holding), waits)| Blocking {
                waiting: party(*waiting),
                holding: party(*holding),
                waits: *waits,
            });
        self.blocking = all.collect();
        self.blocking
            .sort_unstable_by_key(|one| (one.waiting, one.holding));
    }
}
