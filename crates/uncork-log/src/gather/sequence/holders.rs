//! Finds the statement of the session that held a lock. Often it is logged only after the wait began, because it ran
//! until it released the lock.

use std::collections::HashMap;

use crate::form::{Form, FormError, Reader, form, form_inner};
use crate::gather::blocking::Party;
use crate::gather::event::Ran;
use crate::gather::example::Place;
use crate::read::time::Micros;

/// How many waits are followed at once, and of how many the holder's statement is kept; more than a report shows.
const MOST: usize = 100_000;
/// Times are logged in milliseconds and rounded, so a statement can seem to begin this much too late, in microseconds.
const ROUNDING: Micros = 1_000;

/// The statement of a session that held a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gather) enum Holder {
    /// The identity of its template.
    Template(u64),
    /// Its text, because it was logged before it ran.
    Text(Box<[u8]>),
}

/// A wait for a session whose statement is not logged yet.
#[derive(Debug, Clone, Copy)]
pub(in crate::gather) struct OpenWait {
    /// The session that waits.
    pub(in crate::gather) session: u64,
    pub(in crate::gather) waiting: Party<u64>,
    /// What is known of the session that holds the lock.
    pub(in crate::gather) holding: Party<u64>,
    /// When the wait was logged for the first time, and where.
    pub(in crate::gather) since: Option<Micros>,
    pub(in crate::gather) place: Place,
    /// How long it took, in microseconds, once it has ended.
    pub(in crate::gather) micros: Option<u64>,
}

/// Waits whose holder's statement is not known yet, by the holder's process.
#[derive(Debug, Clone, Default)]
pub(in crate::gather) struct OpenWaits(HashMap<u32, Vec<OpenWait>>);

impl OpenWaits {
    pub(in crate::gather) fn add(&mut self, holder: u32, wait: OpenWait) {
        if self.0.len() < MOST {
            self.0.entry(holder).or_default().push(wait);
        }
    }

    /// Whether there are none, as nearly always.
    pub(in crate::gather) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remember how long a session waited.
    pub(in crate::gather) fn ended(&mut self, session: u64, micros: u64) {
        let all = self.0.values_mut().flatten();
        for wait in all.filter(|wait| wait.session == session && wait.micros.is_none()) {
            wait.micros = Some(micros);
        }
    }

    /// Return the waits for a process that has ended a statement. They name this statement as the holder's if it was
    /// already running when the wait was logged; otherwise the holder's statement is not in the log.
    pub(in crate::gather) fn resolve(
        &mut self,
        pid: u32,
        ran: &Ran,
        time: Option<Micros>,
    ) -> Vec<OpenWait> {
        let mut found = self.0.remove(&pid).unwrap_or_default();
        let begun = time.map(|time| time - Micros::try_from(ran.micros).unwrap_or(0) - ROUNDING);
        for wait in &mut found {
            if begun
                .zip(wait.since)
                .is_none_or(|(begun, since)| begun <= since)
            {
                wait.holding = Party {
                    template: Some(ran.template),
                    origin: Some(ran.origin),
                };
            }
        }
        found
    }

    /// Return all others.
    pub(in crate::gather) fn drain(&mut self) -> impl Iterator<Item = OpenWait> {
        std::mem::take(&mut self.0).into_values().flatten()
    }
}

/// The holders' statements, by the place of the entry that first logged the wait.
#[derive(Debug, Clone, Default)]
pub(in crate::gather) struct Holders(HashMap<Place, Holder>);

impl Holders {
    pub(in crate::gather) fn add(&mut self, place: Place, holder: Holder) {
        if self.0.len() < MOST {
            self.0.entry(place).or_insert(holder);
        }
    }

    pub(in crate::gather) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(in crate::gather) fn get(&self, place: Place) -> Option<&Holder> {
        self.0.get(&place)
    }
}

form!(OpenWait {
    session,
    waiting,
    holding,
    since,
    place,
    micros
});
form_inner!(OpenWaits);
form_inner!(Holders);

impl Form for Holder {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Template(identity) => {
                false.write(out);
                identity.write(out);
            }
            Self::Text(text) => {
                true.write(out);
                text.write(out);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        Ok(if bool::read(from)? {
            Self::Text(Form::read(from)?)
        } else {
            Self::Template(u64::read(from)?)
        })
    }
}
