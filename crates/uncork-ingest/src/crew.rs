//! Threads that share logs out among them: one reads and cuts, the others scan and gather, and who asked puts
//! together what only the order tells.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

use crossbeam_channel::{Receiver, Sender, unbounded};
use memchr::memchr_iter;
use uncork_log::{Dialect, Event, Gathered, Micros, Prefix, Sequence, Texts};

use crate::blocks::{BLOCK, Block, Cutter};
use crate::control::Control;
use crate::error::Error;
use crate::events::{Events, Recording};
use crate::range;
use crate::unpack::{self, Visit};

/// Buffers for each scanning thread: one that is scanned, one that waits, one that is filled.
const BUFFERS: usize = 3;
/// Templates that a thread keeps; beyond, those of least time are put together.
const TEMPLATES: usize = 50_000;
/// The path that stands for standard input.
const STDIN: &str = "-";

/// Which logs to read, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Files, in the order in which they were written; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// What stands before each line's message; else it is found out for each log.
    pub prefix: Option<Prefix>,
    /// How many threads scan; 0 for as many as there are processors.
    pub threads: usize,
    /// Only entries from here on.
    pub from: Option<Micros>,
    /// Only entries before there.
    pub until: Option<Micros>,
    /// An empty folder for all entries as Parquet files.
    pub events: Option<PathBuf>,
    /// How texts are shown in them.
    pub texts: Texts,
}

/// What was read of one log.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    /// Its path; in an archive with the member's name.
    pub name: String,
    /// Bytes, unpacked.
    pub bytes: u64,
    /// The name of the dialect, or of what it is wrapped in; None if it was not found out.
    pub dialect: Option<&'static str>,
    /// What stands before each line's message.
    pub prefix: Option<String>,
    /// Entries gathered.
    pub entries: u64,
    /// Lines that belong to nothing.
    pub rejected: u64,
    /// Of the first of them, by the byte at which they begin, the number; lines are counted from where
    /// reading began.
    pub rejected_lines: BTreeMap<u64, u64>,
    /// Why it could not be read to its end.
    pub trouble: Option<String>,
}

/// What logs tell.
#[derive(Debug, Default)]
pub struct Report {
    /// In the order in which they were read; their numbers are those of places.
    pub files: Vec<FileReport>,
    /// All of them together.
    pub gathered: Gathered,
    /// Whether it was stopped before the end.
    pub stopped: bool,
}

/// What a scanner panicked with.
type Panic = Box<dyn Any + Send>;

/// What the order tells, and counts by file.
type Ordered = (Sequence, BTreeMap<u32, Counts>);

/// What a log has had so far.
#[derive(Debug, Default)]
struct Counts {
    entries: u64,
    rejected: u64,
    /// Lines that have ended.
    lines: u64,
    /// The numbers of rejected lines by where they begin.
    numbers: BTreeMap<u64, u64>,
}

/// What became of a block.
struct Scanned {
    file: u32,
    turn: u64,
    entries: u64,
    rejected: u64,
    /// Where rejected lines begin, and how many lines come before each in the block.
    lines: Vec<(u64, u64)>,
    /// How many lines end in the block.
    ends: u64,
    events: Vec<Event>,
    buffer: Vec<u8>,
}

/// Reads logs and gathers what they tell.
///
/// # Errors
///
/// [`Error::Open`] when one of the files cannot be opened; then none is read. [`Error::Events`] when events
/// cannot be written.
pub fn gather(request: &Request, control: &Control) -> Result<Report, Error> {
    for path in request.paths.iter().filter(|path| !is_stdin(path)) {
        readable(path).map_err(|source| Error::Open {
            path: path.clone(),
            source,
        })?;
    }
    let threads = match request.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let (empty_in, empty_out) = unbounded();
    let (blocks_in, blocks_out) = unbounded();
    let (scanned_in, scanned_out) = unbounded();
    for _ in 0..threads * BUFFERS {
        let _ = empty_in.send(vec![0; BLOCK]);
    }
    let mut writers = Vec::new();
    for part in 0..threads {
        let folder = request.events.as_deref();
        let writer = folder.map(|folder| Events::create(folder, part, request.texts));
        writers.push(
            writer
                .transpose()
                .map_err(|source| broken(request, source))?,
        );
    }
    thread::scope(|scope| {
        let reader = scope.spawn(move || read(request, control, &empty_out, &blocks_in));
        let scanners: Vec<_> = writers
            .into_iter()
            .map(|events| {
                let (blocks, scanned) = (blocks_out.clone(), scanned_in.clone());
                scope.spawn(move || scan(request, control, events, &blocks, &scanned))
            })
            .collect();
        drop((blocks_out, scanned_in));
        // Without buffers the reader ends, and without blocks the scanners do.
        let ordered = put_in_order(&scanned_out, empty_in, control);
        let mut files = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        let (sequence, counts) = ordered.unwrap_or_else(|panic| resume_unwind(panic));
        let mut gathered = Gathered::default();
        for scanner in scanners {
            let (part, written) = scanner.join().unwrap_or_else(|panic| resume_unwind(panic));
            written.map_err(|source| broken(request, source))?;
            gathered.merge(part);
            gathered.bound(TEMPLATES);
        }
        sequence.finish(&mut gathered);
        for (number, count) in counts {
            if let Some(file) = files.get_mut(number as usize) {
                (file.entries, file.rejected) = (count.entries, count.rejected);
                file.rejected_lines = count.numbers;
            }
        }
        Ok(Report {
            files,
            gathered,
            stopped: control.is_stopped(),
        })
    })
}

fn broken(request: &Request, source: io::Error) -> Error {
    let path = request.events.clone().unwrap_or_default();
    Error::Events { path, source }
}

/// Reads all logs one after the other and cuts them into blocks.
fn read(
    request: &Request,
    control: &Control,
    empty: &Receiver<Vec<u8>>,
    blocks: &Sender<Block>,
) -> Vec<FileReport> {
    let mut reading = Reading {
        cutter: Cutter {
            prefix: request.prefix.clone(),
            year: this_year(),
            empty,
            blocks,
            turn: 0,
            spare: None,
        },
        files: Vec::new(),
    };
    for path in &request.paths {
        if control.is_stopped() {
            break;
        }
        let before = reading.files.len();
        let read = if is_stdin(path) {
            unpack::stream("standard input", io::stdin(), control, &mut reading)
        } else if (request.from.is_some() || request.until.is_some()) && path.is_file() {
            reading.range(path, request, control)
        } else {
            unpack::file(path, control, &mut reading)
        };
        if let Err(error) = read {
            reading.trouble(before, path, &error);
        }
    }
    reading.files
}

/// Reading one log after the other.
struct Reading<'a> {
    cutter: Cutter<'a>,
    files: Vec<FileReport>,
}

impl Reading<'_> {
    /// Reads that part of a file that a range of time needs, if it is a plain one in order of time.
    fn range(&mut self, path: &Path, request: &Request, control: &Control) -> io::Result<()> {
        let part = range::find(
            path,
            self.cutter.prefix.as_ref(),
            request.from,
            request.until,
        )?;
        match part {
            None => unpack::file(path, control, self),
            Some(part) => {
                let name = path.to_string_lossy();
                self.add(&name, part.begin, &mut part.open(path)?)
            }
        }
    }

    fn add(&mut self, name: &str, offset: u64, reader: &mut dyn Read) -> io::Result<()> {
        let number = u32::try_from(self.files.len()).map_err(io::Error::other)?;
        let end = self.cutter.cut(number, offset, reader);
        self.files.push(FileReport {
            name: name.to_owned(),
            bytes: end.bytes,
            dialect: end
                .wrapping
                .or(end.dialect.as_ref().map(|dialect| dialect.name())),
            prefix: end
                .dialect
                .as_ref()
                .and_then(|dialect| dialect.prefix())
                .map(str::to_owned),
            ..FileReport::default()
        });
        end.trouble.map_or(Ok(()), Err)
    }

    /// Tells trouble with the last log that was read of a file.
    fn trouble(&mut self, before: usize, path: &Path, error: &io::Error) {
        if self.files.len() == before {
            self.files.push(FileReport {
                name: path.to_string_lossy().into_owned(),
                ..FileReport::default()
            });
        }
        if let Some(file) = self.files.last_mut() {
            file.trouble = Some(error.to_string());
        }
    }
}

impl Visit for Reading<'_> {
    fn log(&mut self, name: &str, reader: &mut dyn Read) -> io::Result<()> {
        self.add(name, 0, reader)
    }
}

/// Scans blocks as long as there are any.
fn scan(
    request: &Request,
    control: &Control,
    mut events: Option<Events>,
    blocks: &Receiver<Block>,
    scanned: &Sender<Result<Scanned, Panic>>,
) -> (Gathered, io::Result<()>) {
    let mut gathered = Gathered::between(request.from, request.until);
    let mut own: Option<(u32, Dialect)> = None;
    for block in blocks {
        let dialect = match &mut own {
            Some((file, dialect)) if *file == block.file => dialect,
            other => &mut other.insert((block.file, (*block.dialect).clone())).1,
        };
        let done = catch_unwind(AssertUnwindSafe(|| {
            scan_block(dialect, block, &mut gathered, events.as_mut())
        }));
        let mut broken = done.is_err();
        if events.as_ref().is_some_and(Events::is_broken) {
            control.stop();
            broken = true;
        }
        gathered.bound(TEMPLATES);
        if scanned.send(done).is_err() || broken {
            break;
        }
    }
    (gathered, events.map_or(Ok(()), Events::finish))
}

fn scan_block(
    dialect: &mut Dialect,
    block: Block,
    gathered: &mut Gathered,
    events: Option<&mut Events>,
) -> Scanned {
    gathered.begin_file(block.file);
    let (entries, rejected) = (gathered.entries, gathered.rejected);
    let kept = gathered.rejected_lines.len();
    let text = &block.buffer[..block.length];
    match events {
        None => dialect.scan(text, block.offset, gathered),
        Some(events) => {
            let mut recording = Recording {
                lines: dialect.prefix().is_some(),
                file: block.file,
                gathered,
                events,
            };
            dialect.scan(text, block.offset, &mut recording);
        }
    }
    let lines = gathered.rejected_lines[kept..]
        .iter()
        .map(|(_, offset, _)| {
            let within = usize::try_from(offset - block.offset).unwrap_or(0);
            (*offset, memchr_iter(b'\n', &text[..within]).count() as u64)
        });
    Scanned {
        lines: lines.collect(),
        ends: memchr_iter(b'\n', text).count() as u64,
        file: block.file,
        turn: block.turn,
        entries: gathered.entries - entries,
        rejected: gathered.rejected - rejected,
        events: gathered.take_events(),
        buffer: block.buffer,
    }
}

/// Follows all sessions in the order of the logs.
fn put_in_order(
    scanned: &Receiver<Result<Scanned, Panic>>,
    empty: Sender<Vec<u8>>,
    control: &Control,
) -> Result<Ordered, Panic> {
    let mut sequence = Sequence::default();
    let mut counts: BTreeMap<u32, Counts> = BTreeMap::new();
    let mut early: BTreeMap<u64, Scanned> = BTreeMap::new();
    let mut turn = 0;
    for done in scanned {
        let done = done?;
        early.insert(done.turn, done);
        while let Some(next) = early.remove(&turn) {
            turn += 1;
            let count = counts.entry(next.file).or_default();
            count.entries += next.entries;
            count.rejected += next.rejected;
            for (offset, before) in next.lines {
                count.numbers.insert(offset, count.lines + before + 1);
            }
            count.lines += next.ends;
            control.add_entries(next.entries);
            for event in next.events {
                sequence.follow(event);
            }
            // The reader may have ended already.
            let _ = empty.send(next.buffer);
        }
    }
    drop(empty);
    Ok((sequence, counts))
}

/// Refuses what cannot be read. A pipe is not opened for that: whoever writes to it would see it closed.
fn readable(path: &Path) -> io::Result<()> {
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if kind.is_file() {
        File::open(path)?;
    }
    Ok(())
}

/// The year, in UTC, to a day.
fn this_year() -> i32 {
    const DAY: u64 = 86_400;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = now.map_or(0, |since| since.as_secs() / DAY);
    // A mean year of the Gregorian calendar has 365.2425 days.
    i32::try_from(1_970 + days * 10_000 / 3_652_425).unwrap_or(1_970)
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

#[cfg(test)]
mod tests;
