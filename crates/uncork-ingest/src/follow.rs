//! Follows logs while they grow and are rotated.

use std::fs::{File, Metadata};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use memchr::memrchr;
use uncork_log::{Dialect, Gathered, Unwrapper};

use crate::blocks::{BLOCK, Block, LONGEST};
use crate::control::Control;
use crate::crew::{FileReport, Report, Request, TEMPLATES, written};
use crate::error::Error;
use crate::events::Events;
use crate::range;
use crate::scanned::{Ordered, scan_block};
use crate::unpack::{fill_most, is_packed};

/// How much of a log is needed to detect its format; with less, the follower waits for more.
const SAMPLE: usize = 256 << 10;
/// How much is read from a log before the others have their turn.
const MOST: u64 = 64 << 20;

/// The followed logs, and what was gathered from them so far.
#[derive(Debug)]
pub struct Follower {
    request: Request,
    logs: Vec<Log>,
    reading: Reading,
}

/// One path; the file at it may be replaced.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// The number of the server that writes it.
    server: u32,
    open: Option<Open>,
}

/// An open file.
#[derive(Debug)]
struct Open {
    file: File,
    /// Its device and inode, which do not change when it is renamed.
    identity: (u64, u64),
    number: u32,
    server: u32,
    read: u64,
    /// Bytes that were read but not parsed yet: an incomplete line, or too little to detect the
    /// format.
    raw: Vec<u8>,
    dialect: Option<(Dialect, Arc<Dialect>)>,
    unwrapper: Option<Unwrapper>,
    /// The text of entries, from the first one that has not been scanned.
    text: Vec<u8>,
    /// Its offset.
    offset: u64,
    /// Whether the file is not a log that can be followed.
    refused: bool,
}

/// What was gathered from all files.
#[derive(Debug)]
struct Reading {
    files: Vec<FileReport>,
    /// The names of the servers, by number.
    servers: Vec<String>,
    gathered: Gathered,
    ordered: Ordered,
    events: Option<Events>,
    turn: u64,
}

impl Follower {
    /// Begin to follow logs; a file may be created later. Servers are named with [`Self::add`].
    ///
    /// # Errors
    ///
    /// [`Error::Events`] if events cannot be written.
    pub fn new(request: Request) -> Result<Self, Error> {
        let events = request.events.as_deref();
        let events = events.map(|files| Events::create(files, 0, request.texts));
        let events = events.transpose().map_err(Error::Events)?;
        let mut follower = Self {
            reading: Reading {
                files: Vec::new(),
                servers: Vec::new(),
                gathered: Gathered::between(request.from, request.until)
                    .filtered(request.filter.as_ref()),
                ordered: Ordered::default(),
                events,
                turn: 0,
            },
            logs: Vec::new(),
            request,
        };
        for path in std::mem::take(&mut follower.request.paths) {
            follower.add(path, "");
        }
        Ok(follower)
    }

    /// Follow another path too, which a server writes; ignored if it is followed already.
    pub fn add(&mut self, path: PathBuf, server: &str) {
        if self.logs.iter().any(|log| log.path == path) {
            return;
        }
        let servers = &mut self.reading.servers;
        let known = servers.iter().position(|name| name == server);
        let place = known.unwrap_or_else(|| {
            servers.push(server.to_owned());
            servers.len() - 1
        });
        self.logs.push(Log {
            path,
            server: u32::try_from(place).unwrap_or(u32::MAX),
            open: None,
        });
    }

    /// Read what has been written since. Returns whether there may be more already.
    pub fn poll(&mut self, control: &Control) -> bool {
        let mut more = false;
        for log in &mut self.logs {
            if control.is_stopped() {
                break;
            }
            more |= log.poll(&self.request, &mut self.reading, control);
        }
        more
    }

    /// Return what was gathered so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut files = self.reading.files.clone();
        let mut gathered = self.reading.gathered.clone();
        self.reading
            .ordered
            .clone()
            .finish(&mut gathered, &mut files);
        Report::new(files, self.reading.servers.clone(), gathered, false)
    }

    /// End: what is still open counts as complete.
    ///
    /// # Errors
    ///
    /// [`Error::Events`] if events could not be written.
    pub fn finish(mut self) -> Result<Report, Error> {
        for log in &mut self.logs {
            if let Some(open) = log.open.take() {
                open.end(&self.request, &mut self.reading);
            }
        }
        if let Some(events) = self.reading.events.take() {
            events.finish().map_err(Error::Events)?;
        }
        Ok(self.report())
    }
}

impl Log {
    fn poll(&mut self, request: &Request, reading: &mut Reading, control: &Control) -> bool {
        let mut read = 0;
        loop {
            let open = match self.open.take() {
                Some(open) => open,
                None => match self.begin(request, reading) {
                    Ok(open) => open,
                    // During a rotation there may be no file for a moment.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
                    Err(error) => {
                        reading.trouble(&self.path, &error);
                        return false;
                    }
                },
            };
            let open = self.open.insert(open);
            let rotated = open.is_replaced(std::fs::metadata(&self.path).ok().as_ref());
            let before = read;
            while read < MOST && !control.is_stopped() {
                match open.read(request, reading, control) {
                    Ok(0) => break,
                    Ok(length) => read += length as u64,
                    Err(error) => {
                        reading.trouble(&self.path, &error);
                        break;
                    }
                }
            }
            if read >= MOST || control.is_stopped() {
                return true;
            }
            if rotated {
                if let Some(open) = self.open.take() {
                    open.end(request, reading);
                }
                continue;
            }
            if read == before {
                // Nothing was written for a while, so the text is complete.
                open.settle(request, reading);
            }
            return false;
        }
    }

    /// Open the file that is at the path now.
    fn begin(&self, request: &Request, reading: &mut Reading) -> io::Result<Open> {
        let mut file = File::open(&self.path)?;
        let found = file.metadata()?;
        if found.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let mut begin = 0;
        if request.from.is_some() {
            let part = range::find(&self.path, request.prefix.as_ref(), request.from, None);
            begin = part.ok().flatten().map_or(0, |part| part.begin);
            file.seek(SeekFrom::Start(begin))?;
        }
        let number = u32::try_from(reading.files.len()).map_err(io::Error::other)?;
        reading.files.push(FileReport {
            name: self.path.to_string_lossy().into_owned(),
            server: self.server,
            begin,
            ..FileReport::default()
        });
        Ok(Open {
            file,
            identity: (found.dev(), found.ino()),
            number,
            server: self.server,
            read: begin,
            raw: Vec::new(),
            dialect: None,
            unwrapper: None,
            text: Vec::new(),
            offset: begin,
            refused: false,
        })
    }
}

impl Open {
    /// Whether another file has taken its place, or it was truncated. As long as the other file is empty, the server
    /// still writes to this one.
    fn is_replaced(&self, now: Option<&Metadata>) -> bool {
        now.is_some_and(|now| {
            if (now.dev(), now.ino()) == self.identity {
                now.len() < self.read
            } else {
                now.len() > 0
            }
        })
    }

    /// Read and scan the next bytes.
    fn read(
        &mut self,
        request: &Request,
        reading: &mut Reading,
        control: &Control,
    ) -> io::Result<usize> {
        let begin = self.raw.len();
        self.raw.resize(begin + BLOCK, 0);
        let (length, trouble) = fill_most(&mut self.file, &mut self.raw[begin..]);
        self.raw.truncate(begin + length);
        self.read += length as u64;
        control.add_bytes(length);
        reading.files[self.number as usize].bytes += length as u64;
        let before = reading.gathered.entries;
        if length > 0 {
            self.take(request, reading, false);
        }
        control.add_entries(reading.gathered.entries - before);
        trouble.map_or(Ok(length), Err)
    }

    /// Scan the complete part of what has been read; at the end of the file, all of it.
    fn take(&mut self, request: &Request, reading: &mut Reading, ends: bool) {
        if self.dialect.is_none() && !self.refused {
            self.find_out(request, reading, ends);
        }
        if self.refused {
            self.raw.clear();
        }
        if self.dialect.is_none() {
            return;
        }
        match &mut self.unwrapper {
            None => self.text.append(&mut self.raw),
            Some(unwrapper) => {
                let whole = match memrchr(b'\n', &self.raw) {
                    Some(at) if !ends => at + 1,
                    None if !ends => 0,
                    _ => self.raw.len(),
                };
                unwrapper.feed(&self.raw[..whole], &mut self.text);
                self.raw.drain(..whole);
                if ends {
                    unwrapper.finish(&mut self.text);
                }
            }
        }
        self.scan(reading, ends);
    }

    fn scan(&mut self, reading: &mut Reading, ends: bool) {
        let Some((dialect, shared)) = &mut self.dialect else {
            return;
        };
        let cut = if ends {
            self.text.len()
        } else {
            match dialect.cut(&self.text) {
                Some(cut) => cut,
                None if self.text.len() > LONGEST => self.text.len(),
                None => 0,
            }
        };
        if cut == 0 {
            return;
        }
        let rest = self.text.split_off(cut);
        let block = Block {
            file: self.number,
            server: self.server,
            turn: reading.turn,
            offset: self.offset,
            dialect: shared.clone(),
            length: cut,
            buffer: std::mem::replace(&mut self.text, rest).into(),
        };
        self.offset += cut as u64;
        reading.turn += 1;
        let gathered = &mut reading.gathered;
        let server = &reading.servers[self.server as usize];
        let scanned = scan_block(dialect, block, server, gathered, reading.events.as_mut());
        gathered.bound(TEMPLATES);
        reading.ordered.put(scanned);
    }

    /// Detect the format, as soon as there is enough text.
    fn find_out(&mut self, request: &Request, reading: &mut Reading, ends: bool) {
        let file = &mut reading.files[self.number as usize];
        if is_packed(&self.raw) {
            file.trouble =
                Some("a compressed file cannot be followed, because it does not grow".to_owned());
            self.refused = true;
            return;
        }
        if memrchr(b'\n', &self.raw).is_none() && !ends {
            return;
        }
        let written = written(self.file.metadata().ok().as_ref());
        let prefix = request.prefix.as_ref();
        self.unwrapper = Unwrapper::detect(&self.raw, written, prefix);
        let dialect = match (&self.unwrapper, prefix) {
            (Some(unwrapper), _) => Some(unwrapper.dialect().clone()),
            (None, Some(prefix)) => Some(Dialect::with_prefix(prefix.clone())),
            (None, None) => Dialect::detect(&self.raw),
        };
        match dialect {
            Some(dialect) => {
                file.name_dialect(self.unwrapper.as_ref().map(Unwrapper::name), &dialect);
                self.dialect = Some((dialect.clone(), Arc::new(dialect)));
                if self.unwrapper.is_some() {
                    self.offset = 0;
                }
            }
            None => self.refused = ends || self.raw.len() >= SAMPLE,
        }
    }

    /// Scan what was held back in case more of it arrived.
    fn settle(&mut self, request: &Request, reading: &mut Reading) {
        if self.text.ends_with(b"\n") {
            self.scan(reading, true);
        } else if self.unwrapper.is_some() && self.raw.is_empty() {
            self.take(request, reading, true);
        }
    }

    fn end(mut self, request: &Request, reading: &mut Reading) {
        self.take(request, reading, true);
    }
}

impl Reading {
    /// Report an error of a path, once.
    fn trouble(&mut self, path: &std::path::Path, error: &io::Error) {
        let name = path.to_string_lossy();
        let found = self.files.iter_mut().rev().find(|file| file.name == name);
        let message = Some(error.to_string());
        match found {
            Some(file) => file.trouble = message,
            None => self.files.push(FileReport {
                name: name.into_owned(),
                trouble: message,
                ..FileReport::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests;
