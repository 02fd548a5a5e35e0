//! Reads logs with several threads: one reads and cuts, others scan and gather, and the calling thread evaluates the
//! order of entries.
//!
//! The reader sends blocks to the scanners, these send their results to the collector, and the collector returns
//! buffers to the reader. `crate::pool` explains why no thread can wait for ever.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use crossbeam_channel::{Receiver, Sender, bounded};

use uncork_log::{Dialect, Filter, Gathered, Micros, Prefix, Texts, Written};

use crate::blocks::{BLOCK, Block, Cutter, End, Exchange};
use crate::control::Control;
use crate::error::Error;
use crate::events::{EventFiles, Events, WriteError};
use crate::objects::{Object, Objects};
use crate::overlap::interleaved;
use crate::pool::{Buffer, Closing, Pool};
use crate::range;
use crate::scanned::{LineKinds, Ordered, Scanned, scan_block, span};
use crate::unpack::{self, Visit};

/// Buffers for each scanning thread: one being scanned, one waiting, one being filled.
const BUFFERS: usize = 3;
/// How many templates a thread keeps; beyond, templates with the least time are merged.
pub(crate) const TEMPLATES: usize = 50_000;
/// The path that stands for standard input.
const STDIN: &str = "-";

/// Which logs to read, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Files and objects, in the order in which they were written; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// The server that wrote each path. Empty if all were written by one server without a name.
    pub servers: Vec<String>,
    /// The names of all servers by number. Empty if the servers of these paths are all that there are.
    pub all_servers: Vec<String>,
    /// The part of the only path, a plain file, to read: from the first byte to before the second. Both must be
    /// places where an entry begins, see [`crate::cut_points`].
    pub range: Option<(u64, u64)>,
    /// The objects among the paths.
    pub objects: Option<Arc<dyn Objects>>,
    /// The `log_line_prefix`; otherwise it is detected for each log.
    pub prefix: Option<Prefix>,
    /// Number of scanning threads; 0 for one per processor.
    pub threads: usize,
    /// Only entries from this time on.
    pub from: Option<Micros>,
    /// Only entries before this time.
    pub until: Option<Micros>,
    /// Only entries that pass.
    pub filter: Option<Filter>,
    /// Where all entries go, if anywhere.
    pub events: Option<Arc<dyn EventFiles>>,
    /// How their texts are prepared.
    pub texts: Texts,
}

impl Request {
    /// Return the names of all servers, in alphabetical order unless they have numbers already, and the number of each
    /// path's server.
    pub(crate) fn servers(&self) -> (Vec<String>, Vec<u32>) {
        let new: BTreeSet<&String> = self.servers.iter().collect();
        let new = new
            .into_iter()
            .filter(|name| !self.all_servers.contains(name));
        let names: Vec<String> = self.all_servers.iter().chain(new).cloned().collect();
        let number = |at| {
            let name = self.servers.get(at)?;
            u32::try_from(names.iter().position(|one| one == name)?).ok()
        };
        let numbers = (0..self.paths.len()).map(|at| number(at).unwrap_or(0));
        let numbers = numbers.collect();
        if names.is_empty() {
            return (vec![String::new()], numbers);
        }
        (names, numbers)
    }

    /// Return the objects that a path is one of, and when it was written; `None` for a file.
    fn object(&self, path: &Path) -> Option<(&dyn Objects, Written)> {
        let objects = self.objects.as_deref()?;
        Some((objects, Written::at(objects.written(path)?)))
    }
}

/// What was read from one log.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    /// Its path; in an archive followed by the member's name.
    pub name: String,
    /// The number of the server that wrote it.
    pub server: u32,
    /// Bytes, after decompression.
    pub bytes: u64,
    /// The name of the format or the wrapper; `None` if it was not recognized.
    pub dialect: Option<&'static str>,
    /// The prefix of lines.
    pub prefix: Option<String>,
    /// Entries gathered.
    pub entries: u64,
    /// Number of lines, after unwrapping.
    pub lines: u64,
    /// Number of lines by kind; these add up to all lines.
    pub kinds: LineKinds,
    /// When the first and the last entry of a server was logged that counts; poolers' entries do not.
    pub seen: Option<(Micros, Micros)>,
    /// Where reading began, in bytes.
    pub begin: u64,
    /// Line numbers of the first rejected lines, by their byte offset. Lines are counted from where reading began.
    pub rejected_lines: BTreeMap<u64, u64>,
    /// Why it could not be read to its end.
    pub trouble: Option<String>,
}

impl FileReport {
    /// Return the line number of a rejected line by its byte offset. `None` if it is unknown: lines before it were not
    /// read, or syslog has changed their order.
    #[must_use]
    pub fn line_number(&self, offset: u64) -> Option<u64> {
        let is_counted = self.begin == 0 && self.dialect != Some("syslog");
        let number = self.rejected_lines.get(&offset).copied();
        number.filter(|_| is_counted)
    }

    /// Add the next part of the same file.
    pub(crate) fn continue_with(&mut self, next: Self) {
        let numbers = next.rejected_lines.into_iter();
        self.rejected_lines
            .extend(numbers.map(|(offset, number)| (offset, number + self.lines)));
        self.bytes += next.bytes;
        self.entries += next.entries;
        self.lines += next.lines;
        self.kinds.add(&LineKinds::default(), &next.kinds);
        self.seen = span(self.seen, next.seen);
        self.dialect = self.dialect.or(next.dialect);
        self.prefix = self.prefix.take().or(next.prefix);
        self.trouble = self.trouble.take().or(next.trouble);
    }

    /// Set the format or wrapper.
    pub(crate) fn name_dialect(&mut self, wrapping: Option<&'static str>, dialect: &Dialect) {
        self.dialect = wrapping.or(Some(dialect.name()));
        self.prefix = dialect.prefix().map(str::to_owned);
    }
}

/// The result of reading logs.
#[derive(Debug, Default)]
pub struct Report {
    /// The files in the order in which they were read; places refer to them by number.
    pub files: Vec<FileReport>,
    /// The names of the servers, by number.
    pub servers: Vec<String>,
    /// The entries of all files.
    pub gathered: Gathered,
    /// Whether it was stopped before the end.
    pub stopped: bool,
    /// The numbers of the servers of which two files overlap in time: what follows from the order of entries is withheld.
    pub withheld: BTreeSet<u32>,
}

impl Report {
    /// Report what was gathered, without what the order of files does not show.
    pub(crate) fn new(
        files: Vec<FileReport>,
        servers: Vec<String>,
        mut gathered: Gathered,
        stopped: bool,
    ) -> Self {
        let withheld = interleaved(&files);
        gathered.withhold(&withheld, |file| {
            files.get(file as usize).map(|one| one.server)
        });
        Self {
            files,
            servers,
            gathered,
            stopped,
            withheld,
        }
    }
}

/// A scanner's panic.
type Panic = Box<dyn Any + Send>;

/// Read logs and gather their entries.
///
/// # Errors
///
/// [`Error::Open`] if one of the files cannot be opened; then none is read. [`Error::Events`] if events cannot be
/// written.
pub fn gather(request: &Request, control: &Control) -> Result<Report, Error> {
    let parts = gather_parts(request, control, Ordered::default())?;
    Ok(report(parts, control))
}

/// What was gathered, before the order of entries is evaluated: files, servers, what depends on no order, and the rest.
pub(crate) type Parts = (Vec<FileReport>, Vec<String>, Gathered, Ordered);

fn report((mut files, servers, mut gathered, ordered): Parts, control: &Control) -> Report {
    ordered.finish(&mut gathered, &mut files);
    Report::new(files, servers, gathered, control.is_stopped())
}

/// Read logs, and gather their entries; `ordered` receives what depends on their order.
pub(crate) fn gather_parts(
    request: &Request,
    control: &Control,
    ordered: Ordered,
) -> Result<Parts, Error> {
    let files = request.paths.iter().filter(|path| !is_stdin(path));
    for path in files.filter(|path| request.object(path).is_none()) {
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
    parts_with(request, control, threads, &pool, ordered)
}

/// Read logs with so many scanners, and these buffers.
fn parts_with(
    request: &Request,
    control: &Control,
    threads: usize,
    pool: &Pool,
    ordered: Ordered,
) -> Result<Parts, Error> {
    // Space for all buffers, and for the failure of each scanner: sending never blocks.
    let (blocks_in, blocks_out) = bounded(pool.count());
    let (scanned_in, scanned_out) = bounded(pool.count() + threads);
    let (servers, _) = &request.servers();
    let mut writers = Vec::new();
    for part in 0..threads {
        let files = request.events.as_deref();
        let writer = files.map(|files| Events::create(files, part, request.texts));
        writers.push(writer.transpose().map_err(Error::Events)?);
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
                scope.spawn(move || scan(request, servers, control, events, &blocks, &scanned))
            })
            .collect();
        drop((blocks_out, scanned_in));
        let ordered = put_in_order(&scanned_out, control, ordered);
        // Now the reader ends, and without blocks the scanners end too.
        drop(closing);
        let files = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        let ordered = ordered.unwrap_or_else(|panic| resume_unwind(panic));
        let mut gathered: Option<Gathered> = None;
        for scanner in scanners {
            let (part, written) = scanner.join().unwrap_or_else(|panic| resume_unwind(panic));
            written.map_err(Error::Events)?;
            gathered = Some(match gathered {
                None => part,
                Some(mut before) => {
                    before.merge(part);
                    before.bound(TEMPLATES);
                    before
                }
            });
        }
        let gathered = gathered.unwrap_or_default();
        Ok((files, servers.clone(), gathered, ordered))
    })
}

/// Read all logs one after the other and cut them into blocks.
pub(crate) fn read(
    request: &Request,
    control: &Control,
    exchange: &mut dyn Exchange,
) -> Vec<FileReport> {
    let mut reading = Reading {
        cutter: Cutter {
            prefix: request.prefix.clone(),
            written: written(None),
            server: 0,
            exchange,
            turn: 0,
            spare: None,
        },
        files: Vec::new(),
    };
    let (_, servers) = request.servers();
    for (path, server) in request.paths.iter().zip(servers) {
        if control.is_stopped() {
            break;
        }
        reading.cutter.server = server;
        let object = request.object(path);
        reading.cutter.written = match object {
            Some((_, written)) => written,
            None => written(std::fs::metadata(path).ok().as_ref()),
        };
        let before = reading.files.len();
        let read = if let Some((objects, _)) = object {
            let object = Object {
                objects,
                path,
                control,
            };
            unpack::stream(&path.to_string_lossy(), object, control, &mut reading)
        } else if is_stdin(path) {
            unpack::stream("standard input", io::stdin(), control, &mut reading)
        } else if let Some((begin, end)) = request.range {
            reading.part(path, range::Part { begin, end })
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

/// The pool that the reader takes buffers from, and the queue that it sends blocks to.
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

/// The state of reading one log after the other.
struct Reading<'a> {
    cutter: Cutter<'a>,
    files: Vec<FileReport>,
}

impl Reading<'_> {
    /// Read the part of a file that a time range needs, if it is a plain file ordered by time.
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

    /// Read a part of a plain file, in the format that the beginning of the file shows.
    fn part(&mut self, path: &Path, part: range::Part) -> io::Result<()> {
        let dialect = range::detect(&mut File::open(path)?, self.cutter.prefix.as_ref())?;
        let name = path.to_string_lossy();
        let reader = &mut part.open(path)?;
        self.add_with(&name, part.begin, |cutter, number| {
            cutter.cut_as(dialect, number, part.begin, reader)
        })
    }

    fn add(&mut self, name: &str, offset: u64, reader: &mut dyn Read) -> io::Result<()> {
        self.add_with(name, offset, |cutter, number| {
            cutter.cut(number, offset, reader)
        })
    }

    fn add_with(
        &mut self,
        name: &str,
        offset: u64,
        cut: impl FnOnce(&mut Cutter<'_>, u32) -> End,
    ) -> io::Result<()> {
        let number = u32::try_from(self.files.len()).map_err(io::Error::other)?;
        let end = cut(&mut self.cutter, number);
        self.files.push(FileReport {
            name: name.to_owned(),
            server: self.cutter.server,
            bytes: end.bytes,
            begin: offset,
            ..FileReport::default()
        });
        if let (Some(file), Some(dialect)) = (self.files.last_mut(), end.dialect) {
            file.name_dialect(end.wrapping, &dialect);
        }
        end.trouble.map_or(Ok(()), Err)
    }

    /// Report an error in the last log that was read from a file.
    fn trouble(&mut self, before: usize, path: &Path, error: &io::Error) {
        if self.files.len() == before {
            self.files.push(FileReport {
                name: path.to_string_lossy().into_owned(),
                server: self.cutter.server,
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

/// Scan blocks until there are no more.
fn scan(
    request: &Request,
    servers: &[String],
    control: &Control,
    mut events: Option<Events>,
    blocks: &Receiver<Block>,
    scanned: &Sender<Result<Scanned, Panic>>,
) -> (Gathered, Result<(), WriteError>) {
    let mut gathered =
        Gathered::between(request.from, request.until).filtered(request.filter.as_ref());
    let mut own: Option<(u32, Dialect)> = None;
    for block in blocks {
        let dialect = match &mut own {
            Some((file, dialect)) if *file == block.file => dialect,
            other => &mut other.insert((block.file, (*block.dialect).clone())).1,
        };
        let done = catch_unwind(AssertUnwindSafe(|| {
            let server = &servers[block.server as usize];
            let done = scan_block(dialect, block, server, &mut gathered, events.as_mut());
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
    gathered.settle(); // all threads at once
    (gathered, events.map_or(Ok(()), Events::finish))
}

/// Follow all sessions in the order of the logs.
fn put_in_order(
    scanned: &Receiver<Result<Scanned, Panic>>,
    control: &Control,
    mut ordered: Ordered,
) -> Result<Ordered, Panic> {
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

/// Fail if a file cannot be read. A pipe is not opened here, because closing it again would end its writer.
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

/// When a log was last written; now for a stream.
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
