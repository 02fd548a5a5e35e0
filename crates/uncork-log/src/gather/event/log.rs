//! Events of one server in the order of its log, in about a dozen bytes each: for whoever replays them later, after the
//! events of what that server wrote before.
//!
//! Sessions, templates and origins are numbered as they appear; times and places are stored as differences.

use crate::form::{Form, FormError, Reader, form};
use crate::gather::event::{Event, Ran, Waited, Waits, What};
use crate::gather::example::Place;
use crate::hash::HashedMap;
use crate::read::time::Micros;
use crate::template::control::Control;

/// Bits of an event's first byte: what it is, how it controls a transaction, and what follows.
const KIND: u8 = 0b1111;
const CONTROL: u32 = 4;
const TIMED: u8 = 0b0100_0000;
const SAME_FILE: u8 = 0b1000_0000;

/// Events in a compact form.
#[derive(Debug, Clone, Default)]
pub struct EventLog {
    bytes: Vec<u8>,
    count: u64,
    /// The number and the process of each session.
    sessions: HashedMap<(usize, u32)>,
    known_sessions: usize,
    templates: HashedMap<usize>,
    origins: HashedMap<usize>,
    time: Micros,
    place: Place,
}

form!(Waits {
    party,
    holders,
    incident
});
form!(Waited { acquired, incident });

impl EventLog {
    /// Add the next event.
    pub fn add(&mut self, event: &Event) {
        self.count += 1;
        let (kind, control) = kind_of(&event.what);
        let same = event.place.0 == self.place.0;
        let mut first = kind | (control as u8) << CONTROL;
        if event.time.is_some() {
            first |= TIMED;
        }
        if same {
            first |= SAME_FILE;
        }
        self.bytes.push(first);
        self.add_session(event.session, event.pid);
        if let Some(time) = event.time {
            time.wrapping_sub(self.time).write(&mut self.bytes);
            self.time = time;
        }
        if same {
            let forward = event.place.1.wrapping_sub(self.place.1).cast_signed();
            forward.write(&mut self.bytes);
        } else {
            event.place.write(&mut self.bytes);
        }
        self.place = event.place;
        self.add_what(&event.what);
    }

    fn add_session(&mut self, session: u64, pid: u32) {
        if let Some((number, known)) = self.sessions.get(&session)
            && *known == pid
        {
            number.write(&mut self.bytes);
            return;
        }
        self.known_sessions += 1;
        self.sessions.insert(session, (self.known_sessions, pid));
        0_usize.write(&mut self.bytes);
        session.write(&mut self.bytes);
        pid.write(&mut self.bytes);
    }

    fn add_what(&mut self, what: &What) {
        let out = &mut self.bytes;
        match what {
            What::Ran(ran) => {
                add_identity(&mut self.templates, ran.template, out);
                add_identity(&mut self.origins, ran.origin, out);
                ran.micros.write(out);
            }
            What::Statement(statement) => statement.write(out),
            What::Executed(statement, micros) => {
                statement.write(out);
                micros.write(out);
            }
            What::Prepared(name, statement) => {
                name.write(out);
                statement.write(out);
            }
            What::Duration(micros) | What::Preparation(micros) | What::Ended(micros) => {
                micros.write(out);
            }
            What::Failed(kind) => kind.write(out),
            What::Addition(severity, text) => {
                severity.write(out);
                text.write(out);
            }
            What::Waits(waits) => waits.write(out),
            What::Waited(waited) => waited.write(out),
            What::Own | What::Boundary | What::Began | What::Started => {}
        }
    }

    /// Return the number of events, and their form.
    #[must_use]
    pub fn finish(self) -> (u64, Vec<u8>) {
        (self.count, self.bytes)
    }
}

/// Read the events of an [`EventLog`]; `files` is added to the number of each file.
///
/// # Errors
///
/// [`FormError::Damaged`] if they are not such events.
pub fn replay_events(
    bytes: &[u8],
    files: u32,
    mut follow: impl FnMut(Event),
) -> Result<(), FormError> {
    let mut from = Reader::new(bytes, files);
    let (mut sessions, mut templates, mut origins) = (Vec::new(), Vec::new(), Vec::new());
    let mut time: Micros = 0;
    let mut place: Place = (files, 0);
    while !from.is_empty() {
        let first = u8::read(&mut from)?;
        let (session, pid) = match usize::read(&mut from)? {
            0 => {
                let new = (u64::read(&mut from)?, u32::read(&mut from)?);
                sessions.push(new);
                new
            }
            number => *sessions.get(number - 1).ok_or(FormError::Damaged)?,
        };
        let timed = first & TIMED != 0;
        if timed {
            time = time.wrapping_add(i64::read(&mut from)?);
        }
        place = if first & SAME_FILE == 0 {
            Place::read(&mut from)?
        } else {
            let forward = i64::read(&mut from)?.cast_unsigned();
            (place.0, place.1.wrapping_add(forward))
        };
        let what = match first & KIND {
            0 => What::Ran(Ran {
                template: identity(&mut templates, &mut from)?,
                origin: identity(&mut origins, &mut from)?,
                micros: Form::read(&mut from)?,
                control: Control::read(&mut Reader::new(&[first >> CONTROL & 0b11], 0))?,
            }),
            1 => What::Statement(Form::read(&mut from)?),
            2 => What::Executed(Form::read(&mut from)?, Form::read(&mut from)?),
            3 => What::Prepared(Form::read(&mut from)?, Form::read(&mut from)?),
            4 => What::Duration(Form::read(&mut from)?),
            5 => What::Preparation(Form::read(&mut from)?),
            6 => What::Own,
            7 => What::Failed(Form::read(&mut from)?),
            8 => What::Addition(Form::read(&mut from)?, Form::read(&mut from)?),
            9 => What::Waits(Form::read(&mut from)?),
            10 => What::Waited(Form::read(&mut from)?),
            11 => What::Boundary,
            12 => What::Began,
            13 => What::Ended(Form::read(&mut from)?),
            14 => What::Started,
            _ => return Err(FormError::Damaged),
        };
        follow(Event {
            session,
            pid,
            time: timed.then_some(time),
            place,
            what,
        });
    }
    Ok(())
}

fn kind_of(what: &What) -> (u8, Control) {
    let kind = match what {
        What::Ran(ran) => return (0, ran.control),
        What::Statement(_) => 1,
        What::Executed(..) => 2,
        What::Prepared(..) => 3,
        What::Duration(_) => 4,
        What::Preparation(_) => 5,
        What::Own => 6,
        What::Failed(_) => 7,
        What::Addition(..) => 8,
        What::Waits(_) => 9,
        What::Waited(_) => 10,
        What::Boundary => 11,
        What::Began => 12,
        What::Ended(_) => 13,
        What::Started => 14,
    };
    (kind, Control::None)
}

/// Write the number of an identity; a new one is 0, followed by the identity.
fn add_identity(known: &mut HashedMap<usize>, identity: u64, out: &mut Vec<u8>) {
    let next = known.len() + 1;
    let number = *known.entry(identity).or_insert(next);
    if number == next {
        0_usize.write(out);
        out.extend_from_slice(&identity.to_le_bytes());
    } else {
        number.write(out);
    }
}

fn identity(known: &mut Vec<u64>, from: &mut Reader<'_>) -> Result<u64, FormError> {
    let number = usize::read(from)?;
    if number > 0 {
        return known.get(number - 1).copied().ok_or(FormError::Damaged);
    }
    let bytes = from.take(8)?.try_into().map_err(|_| FormError::Damaged)?;
    let new = u64::from_le_bytes(bytes);
    known.push(new);
    Ok(new)
}
