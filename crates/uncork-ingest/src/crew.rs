//! Threads that share logs out among them: one reads and cuts, the others scan and gather, and who asked puts
//! together what only the order tells.
//!
//! The reader sends blocks to the scanners, these send what they found to the collector, and the collector gives
//! buffers back to the reader. `crate::pool` says by which rules no thread waits for ever.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

use crossbeam_channel::{Receiver, Sender, bounded};

use uncork_log::{Dialect, Gathered, Micros, Prefix, Texts, Written};

use crate::blocks::{BLOCK, Block, Cutter, Exchange};
use crate::control::Control;
use crate::error::Error;
use crate::events::Events;
use crate::pool::{Buffer, Closing, Pool};
use crate::range;
use crate::scanned::{LineKinds, Ordered, Scanned, scan_block};
use crate::unpack::{self, Visit};

/// Buffers for each scanning thread: one that is scanned, one that waits, one that is filled.
const BUFFERS: usize = 3;
/// Templates that a thread keeps; beyond, those of least time are put together.
pub(crate) const TEMPLATES: usize = 50_000;
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
    /// Lines, without what wraps them.
    pub lines: u64,
    /// What they were; together these are all lines.
    pub kinds: LineKinds,
    /// Where reading began, in bytes.
    pub begin: u64,
    /// Of the first rejected lines, by the byte at which they begin, the number; lines are counted from where
    /// reading began.
    pub rejected_lines: BTreeMap<u64, u64>,
    /// Why it could not be read to its end.
    pub trouble: Option<String>,
}

impl FileReport {
    /// The number in its file of a rejected line by the byte at which it begins. None if it is not known: lines before
    /// it were not read, or syslog has put them in another order.
    #[must_use]
    pub fn line_number(&self, offset: u64) -> Option<u64> {
        let is_counted = self.begin == 0 && self.dialect != Some("syslog");
        let number = self.rejected_lines.get(&offset).copied();
        number.filter(|_| is_counted)
    }

    /// Says what it is written in, or wrapped in.
    pub(crate) fn name_dialect(&mut self, wrapping: Option<&'static str>, dialect: &Dialect) {
        self.dialect = wrapping.or(Some(dialect.name()));
        self.prefix = dialect.prefix().map(str::to_owned);
    }
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
    let pool = Pool::new(threads * BUFFERS, BLOCK);
    gather_with(request, control, threads, &pool)
}

/// Reads logs with as many scanners, and these buffers.
fn gather_with(
    request: &Request,
    control: &Control,
    threads: usize,
    pool: &Pool,
) -> Result<Report, Error> {
    // Room for all buffers, and for the failure of each scanner: nobody waits for room.
    let (blocks_in, blocks_out) = bounded(pool.count());
    let (scanned_in, scanned_out) = bounded(pool.count() + threads);
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
        // Also if a thread cannot be started: the scope waits for the started ones.
        let closing = Closing(pool);
        let reader = scope.spawn(move || {
            let mut queues = Queues {
                pool,
                blocks: blocks_in,
            };
            read(request, control, &mut queues)
        });
        let scanners: Vec<_> = writers
            .into_iter()
            .map(|events| {
                let (blocks, scanned) = (blocks_out.clone(), scanned_in.clone());
                scope.spawn(move || scan(request, control, events, &blocks, &scanned))
            })
            .collect();
        drop((blocks_out, scanned_in));
        let ordered = put_in_order(&scanned_out, control);
        // Now the reader ends, and without blocks the scanners do.
        drop(closing);
        let mut files = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        let ordered = ordered.unwrap_or_else(|panic| resume_unwind(panic));
        let mut gathered: Option<Gathered> = None;
        for scanner in scanners {
            let (part, written) = scanner.join().unwrap_or_else(|panic| resume_unwind(panic));
            written.map_err(|source| broken(request, source))?;
            gathered = Some(match gathered {
                None => part,
                Some(mut before) => {
                    before.merge(part);
                    before.bound(TEMPLATES);
                    before
                }
            });
        }
        let mut gathered = gathered.unwrap_or_default();
        ordered.finish(&mut gathered, &mut files);
        Ok(Report {
            files,
            gathered,
            stopped: control.is_stopped(),
        })
    })
}

pub(crate) fn broken(request: &Request, source: io::Error) -> Error {
    let path = request.events.clone().unwrap_or_default();
    Error::Events { path, source }
}

/// Reads all logs one after the other and cuts them into blocks.
pub(crate) fn read(
    request: &Request,
    control: &Control,
    exchange: &mut dyn Exchange,
) -> Vec<FileReport> {
    let mut reading = Reading {
        cutter: Cutter {
            prefix: request.prefix.clone(),
            written: written(None),
            exchange,
            turn: 0,
            spare: None,
        },
        files: Vec::new(),
    };
    for path in &request.paths {
        if control.is_stopped() {
            break;
        }
        reading.cutter.written = written(std::fs::metadata(path).ok().as_ref());
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

/// The buffers that the reader takes, and the queue that it sends blocks to.
struct Queues<'a> {
    pool: &'a Pool,
    blocks: Sender<Block>,
}

impl Exchange for Queues<'_> {
    fn take(&mut self) -> Option<Buffer> {
        self.pool.take()
    }

    fn send(&mut self, block: Block) -> bool {
        self.blocks.send(block).is_ok()
    }
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
            begin: offset,
            ..FileReport::default()
        });
        if let (Some(file), Some(dialect)) = (self.files.last_mut(), end.dialect) {
            file.name_dialect(end.wrapping, &dialect);
        }
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
            let done = scan_block(dialect, block, &mut gathered, events.as_mut());
            gathered.bound(TEMPLATES);
            done
        }));
        let mut broken = done.is_err();
        if events.as_ref().is_some_and(Events::is_broken) {
            control.stop();
            broken = true;
        }
        if scanned.send(done).is_err() || broken {
            break;
        }
    }
    (gathered, events.map_or(Ok(()), Events::finish))
}

/// Follows all sessions in the order of the logs.
fn put_in_order(
    scanned: &Receiver<Result<Scanned, Panic>>,
    control: &Control,
) -> Result<Ordered, Panic> {
    let mut ordered = Ordered::default();
    let mut early: BTreeMap<u64, Scanned> = BTreeMap::new();
    let mut turn = 0;
    for done in scanned {
        let done = done?;
        early.insert(done.turn, done);
        while let Some(next) = early.remove(&turn) {
            turn += 1;
            control.add_entries(next.entries);
            ordered.put(next);
        }
    }
    Ok(ordered)
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

/// When a log was last written to; of a stream it is now.
pub(crate) fn written(file: Option<&Metadata>) -> Written {
    let time = file
        .filter(|found| found.is_file())
        .and_then(|found| found.modified().ok())
        .unwrap_or_else(SystemTime::now);
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = seconds.map_or(0, |since| since.as_secs());
    Written::at(i64::try_from(seconds).unwrap_or(0))
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

#[cfg(test)]
mod tests;
