//! Events: what a scanner leaves for [`super::sequence`], because its meaning depends on the order of entries.

pub(crate) mod log;

use crate::form::form;
use crate::gather::activity::Incident;
use crate::gather::blocking::Party;
use crate::gather::errors::Kind;
use crate::gather::example::Place;
use crate::hash::Hash;
use crate::read::entry::Entry;
use crate::read::message::Step;
use crate::read::origin::Origin;
use crate::read::prefix::{Head, Severity};
use crate::read::time::Micros;
use crate::template::control::Control;

/// What happened in a session, as far as the order of its entries matters.
#[derive(Debug, Clone)]
pub struct Event {
    /// The session; 0 if the log does not identify sessions.
    pub(super) session: u64,
    pub(super) pid: u32,
    pub(super) time: Option<Micros>,
    pub(super) place: Place,
    pub(super) what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    /// A statement ran and has been gathered.
    Ran(Ran),
    /// A statement is about to run: its duration may follow.
    Statement(Box<Statement>),
    /// An `EXECUTE` ran whose statement is not logged with it, and its duration in microseconds.
    Executed(Box<Statement>, u64),
    /// A `PREPARE`: the name, and the statement.
    Prepared(Box<[u8]>, Box<[u8]>),
    /// A duration without a statement, in microseconds; an earlier entry may have logged the statement.
    Duration(u64),
    /// Duration of a parse or bind before an execution, in microseconds.
    Preparation(u64),
    /// A statement of uncork's own monitoring: a duration that follows belongs to it.
    Own,
    /// An error was gathered; additions may follow.
    Failed(Box<Kind>),
    /// An addition that does not follow its message directly.
    Addition(Severity, Box<[u8]>),
    /// A statement waits for a lock.
    Waits(Box<Waits>),
    /// A wait for a lock ended.
    Waited(Box<Waited>),
    /// A client has connected: a session of the same process has ended.
    Boundary,
    /// The session began.
    Began,
    /// The session ended, after so many microseconds.
    Ended(u64),
    /// The server has started.
    Started,
}

/// A wait for a lock that goes on: who waits, by template and origin, and which processes hold the lock.
#[derive(Debug, Clone)]
pub(crate) struct Waits {
    pub(super) party: Party<u64>,
    pub(super) holders: Vec<u32>,
    pub(super) incident: Incident,
}

/// A wait for a lock that ended.
#[derive(Debug, Clone)]
pub(crate) struct Waited {
    /// Whether the session has the lock now.
    pub(super) acquired: bool,
    pub(super) incident: Incident,
}

/// A statement that ran, by the identities of its template and origin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub(super) template: u64,
    pub(super) origin: u64,
    pub(super) micros: u64,
    pub(super) control: Control,
}

/// A statement that was logged before it ran (`log_statement`), or an `EXECUTE`.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) step: Step,
    pub(super) origin: Origin,
    pub(super) text: Box<[u8]>,
    pub(super) parameters: Box<[u8]>,
    /// The server's query ID; 0 if it is not logged.
    pub(super) query_id: i64,
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

    pub(crate) fn statement(
        head: &Head<'_>,
        place: Place,
        step: Step,
        text: &[u8],
        parameters: &[u8],
    ) -> Self {
        let statement = Statement::new(head, step, text, parameters);
        Self::new(head, place, What::Statement(Box::new(statement)))
    }

    pub(crate) fn executed(entry: &Entry<'_>, place: Place, text: &[u8], micros: u64) -> Self {
        let mut statement = Statement::new(&entry.head, Step::Statement, text, b"");
        statement.query_id = entry.query_id;
        let what = What::Executed(Box::new(statement), micros);
        Self::new(&entry.head, place, what)
    }

    pub(crate) fn prepared(head: &Head<'_>, place: Place, name: &[u8], statement: &[u8]) -> Self {
        Self::new(head, place, What::Prepared(name.into(), statement.into()))
    }

    pub(crate) fn duration(head: &Head<'_>, place: Place, micros: u64) -> Self {
        Self::new(head, place, What::Duration(micros))
    }

    pub(crate) fn preparation(head: &Head<'_>, place: Place, micros: u64) -> Self {
        Self::new(head, place, What::Preparation(micros))
    }

    pub(crate) fn own(head: &Head<'_>, place: Place) -> Self {
        Self::new(head, place, What::Own)
    }

    pub(crate) fn failed(head: &Head<'_>, place: Place, kind: Kind) -> Self {
        Self::new(head, place, What::Failed(Box::new(kind)))
    }

    pub(crate) fn addition(head: &Head<'_>, place: Place, text: &[u8]) -> Self {
        Self::new(head, place, What::Addition(head.severity, text.into()))
    }

    pub(crate) fn waits(
        head: &Head<'_>,
        place: Place,
        party: Party<u64>,
        holders: Vec<u32>,
        incident: Incident,
    ) -> Self {
        let waits = Waits {
            party,
            holders,
            incident,
        };
        Self::new(head, place, What::Waits(Box::new(waits)))
    }

    pub(crate) fn waited(
        head: &Head<'_>,
        place: Place,
        acquired: bool,
        incident: Incident,
    ) -> Self {
        let waited = Waited { acquired, incident };
        Self::new(head, place, What::Waited(Box::new(waited)))
    }

    pub(crate) fn began(head: &Head<'_>, place: Place) -> Self {
        Self::new(head, place, What::Began)
    }

    pub(crate) fn ended(head: &Head<'_>, place: Place, micros: u64) -> Self {
        Self::new(head, place, What::Ended(micros))
    }

    pub(crate) fn started(head: &Head<'_>, place: Place) -> Self {
        Self::new(head, place, What::Started)
    }

    pub(crate) fn boundary(head: &Head<'_>, place: Place) -> Self {
        Self::new(head, place, What::Boundary)
    }
}

impl Statement {
    fn new(head: &Head<'_>, step: Step, text: &[u8], parameters: &[u8]) -> Self {
        Self {
            step,
            origin: Origin::from(head),
            text: text.into(),
            parameters: parameters.into(),
            query_id: 0,
        }
    }
}

/// Identify a line's session, by its session ID or else its process.
pub(super) fn session(head: &Head<'_>) -> u64 {
    if head.session.is_empty() {
        return u64::from(head.pid);
    }
    let mut hash = Hash::new();
    hash.add(head.session, 1);
    hash.get()
}

form!(Ran {
    template,
    origin,
    micros,
    control
});
form!(Statement {
    step,
    origin,
    text,
    parameters,
    query_id
});
