//! What was gathered from a portion of logs, as bytes that other processes and other days can continue.
//!
//! Most of it can be added up in any order. What only the order of entries shows cannot: which statement a client
//! repeats, which statements are one transaction, who waits for whom. For that, a portion keeps the events of each
//! server as they are, in about a dozen bytes each. Whoever joins portions replays the events in the order of the
//! portions, so that it makes no difference where the logs were cut. A joined portion can be *settled*: its
//! events are replaced by the state of the sessions that they lead to, whose size does not grow with the log.

use std::collections::BTreeMap;
use std::io::Read as _;

use uncork_log::form::{Form, FormError, Reader, seal, unseal};
use uncork_log::{Filter, Gathered, Replays, replay_events};

use crate::control::Control;
use crate::crew::{FileReport, Report, Request, TEMPLATES, gather_parts};
use crate::error::Error;
use crate::scanned::{LineKinds, Ordered};

/// The level of compression: higher ones take longer, and save little.
const LEVEL: i32 = 3;
/// How much of a portion has what it says of its files, in bytes; of an archive with thousands of files it is more.
const BEGINNING: u64 = 1 << 20;
/// The names of formats and wrappers.
const NAMES: [&str; 7] = [
    "stderr",
    "csvlog",
    "jsonlog",
    "pgbouncer",
    "syslog",
    "container",
    "JSON",
];

/// What was gathered from a portion of logs.
#[derive(Debug, Default)]
pub struct Portion {
    /// Whether its first file is continued from the portion before.
    continues: bool,
    stopped: bool,
    servers: Vec<String>,
    files: Vec<FileReport>,
    gathered: Gathered,
    /// The state of all sessions at its beginning; none if nothing is known of it.
    before: Replays,
    /// The rest of the events, in order.
    segments: Vec<Segment>,
}

/// Events of one server, in order.
#[derive(Debug)]
struct Segment {
    server: u32,
    /// Added to the numbers of files in the events.
    files: u32,
    count: u64,
    events: Vec<u8>,
}

/// Read the logs of a request, and return what was gathered as bytes.
///
/// # Errors
///
/// [`Error::Open`] if one of the files cannot be opened; then none is read.
pub fn gather_portion(request: &Request, control: &Control) -> Result<Vec<u8>, Error> {
    let parts = gather_parts(request, control, Ordered::keeping())?;
    let (files, servers, gathered, ordered) = parts;
    let mut portion = Portion {
        continues: request.range.is_some_and(|(begin, _)| begin > 0),
        stopped: control.is_stopped(),
        servers,
        files,
        gathered,
        ..Portion::default()
    };
    for (server, log) in ordered.into_events(&mut portion.files) {
        let (count, events) = log.finish();
        portion.segments.push(Segment {
            server,
            files: 0,
            count,
            events,
        });
    }
    Ok(portion.store())
}

/// Whether the logs of a stored portion were read to their ends. False if these bytes are no portion.
#[must_use]
pub fn is_complete(stored: &[u8]) -> bool {
    let beginning = || {
        let sealed = unseal(stored).ok()?;
        let mut body = Vec::new();
        let decoder = zstd::stream::read::Decoder::new(sealed).ok()?;
        decoder.take(BEGINNING).read_to_end(&mut body).ok()?;
        let mut from = Reader::new(&body, 0);
        bool::read(&mut from).ok()?;
        let stopped = bool::read(&mut from).ok()?;
        Vec::<String>::read(&mut from).ok()?;
        let files = Vec::<FileReport>::read(&mut from).ok()?;
        Some((stopped, files))
    };
    beginning()
        .is_some_and(|(stopped, files)| !stopped && files.iter().all(|file| file.trouble.is_none()))
}

impl Portion {
    /// Begin with nothing, to add portions of these servers' logs.
    #[must_use]
    pub fn new(filter: Option<&Filter>) -> Self {
        Self {
            gathered: Gathered::default().filtered(filter),
            ..Self::default()
        }
    }

    /// Add the portion that follows.
    ///
    /// # Errors
    ///
    /// Why the bytes are no portion; then nothing is added.
    pub fn add(&mut self, stored: &[u8]) -> Result<(), FormError> {
        let sealed = unseal(stored)?;
        let body = zstd::stream::decode_all(sealed).map_err(|_| FormError::Damaged)?;
        let continues = body.first() == Some(&1) && !self.files.is_empty();
        let base = self.files.len() - usize::from(continues);
        let base = u32::try_from(base).map_err(|_| FormError::Damaged)?;
        let later = Self::read(&mut Reader::new(&body, base))?;
        self.join(later, continues)
    }

    fn join(&mut self, mut later: Self, continues: bool) -> Result<(), FormError> {
        // Servers have the same numbers in all portions; later portions may have more of them.
        let shared = self.servers.len().min(later.servers.len());
        let is_first = self.files.is_empty() && self.segments.is_empty();
        if self.servers[..shared] != later.servers[..shared]
            || !is_first && !later.before.is_empty()
        {
            return Err(FormError::Damaged);
        }
        if later.servers.len() > shared {
            self.servers = later.servers;
        }
        if is_first {
            (self.before, self.continues) = (later.before, later.continues);
        }
        let mut files = later.files.drain(..);
        if continues && let (Some(last), Some(next)) = (self.files.last_mut(), files.next()) {
            last.continue_with(next);
        }
        self.files.extend(files);
        self.gathered.merge(later.gathered);
        self.gathered.bound(TEMPLATES);
        self.segments.append(&mut later.segments);
        self.stopped |= later.stopped;
        Ok(())
    }

    /// Replace the events by the state of sessions that they lead to. Only what begins where the logs begin can be
    /// settled; later portions can still be added.
    ///
    /// # Errors
    ///
    /// [`FormError::Damaged`] if they are no events.
    pub fn settle(&mut self) -> Result<(), FormError> {
        for segment in std::mem::take(&mut self.segments) {
            let replay = self.before.of(segment.server);
            let mut count = 0;
            let replayed = replay_events(&segment.events, segment.files, |event| {
                count += 1;
                replay.follow(event);
            });
            replay.settle();
            replayed?;
            if count != segment.count {
                return Err(FormError::Damaged);
            }
        }
        Ok(())
    }

    /// Return what was gathered in all, after [`Self::settle`].
    #[must_use]
    pub fn report(self) -> Report {
        let mut gathered = self.gathered;
        self.before.finish(&mut gathered);
        Report::new(self.files, self.servers, gathered, self.stopped)
    }

    /// Return the names of the servers, by number.
    #[must_use]
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// Return the stored form.
    #[must_use]
    pub fn store(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.write(&mut body);
        seal(&zstd::stream::encode_all(&body[..], LEVEL).unwrap_or_default())
    }

    /// Return the number of events that are not settled.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.segments.iter().map(|segment| segment.count).sum()
    }
}

impl Form for Portion {
    fn write(&self, out: &mut Vec<u8>) {
        self.continues.write(out);
        self.stopped.write(out);
        self.servers.write(out);
        self.files.write(out);
        self.gathered.write(out);
        self.before.write(out);
        self.segments.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let portion = Self {
            continues: bool::read(from)?,
            stopped: bool::read(from)?,
            servers: Vec::read(from)?,
            files: Vec::read(from)?,
            gathered: Gathered::read(from)?,
            before: Replays::read(from)?,
            segments: Vec::read(from)?,
        };
        let servers = portion.servers.len();
        let known = |server: u32| (server as usize) < servers;
        let is_whole = from.is_empty()
            && portion.gathered.servers() <= servers
            && portion.before.servers() <= servers
            && portion.files.iter().all(|file| known(file.server))
            && portion.segments.iter().all(|one| known(one.server));
        is_whole.then_some(portion).ok_or(FormError::Damaged)
    }
}

impl Form for Segment {
    fn write(&self, out: &mut Vec<u8>) {
        self.server.write(out);
        self.files.write(out);
        self.count.write(out);
        self.events.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let server = u32::read(from)?;
        let number = u32::read(from)?;
        Ok(Self {
            server,
            files: from.file(number)?,
            count: u64::read(from)?,
            events: Vec::read(from)?,
        })
    }
}

impl Form for FileReport {
    fn write(&self, out: &mut Vec<u8>) {
        self.name.write(out);
        self.server.write(out);
        self.bytes.write(out);
        self.dialect.map(str::to_owned).write(out);
        self.prefix.write(out);
        self.entries.write(out);
        self.lines.write(out);
        for count in [
            self.kinds.heads,
            self.kinds.continuations,
            self.kinds.foreign,
            self.kinds.rejected,
        ] {
            count.write(out);
        }
        self.seen.write(out);
        self.begin.write(out);
        self.rejected_lines.write(out);
        self.trouble.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        Ok(Self {
            name: Form::read(from)?,
            server: Form::read(from)?,
            bytes: Form::read(from)?,
            dialect: Option::<String>::read(from)?
                .and_then(|name| NAMES.into_iter().find(|known| *known == name)),
            prefix: Form::read(from)?,
            entries: Form::read(from)?,
            lines: Form::read(from)?,
            kinds: LineKinds {
                heads: Form::read(from)?,
                continuations: Form::read(from)?,
                foreign: Form::read(from)?,
                rejected: Form::read(from)?,
            },
            seen: Form::read(from)?,
            begin: Form::read(from)?,
            rejected_lines: BTreeMap::read(from)?,
            trouble: Form::read(from)?,
        })
    }
}

#[cfg(test)]
mod tests;
