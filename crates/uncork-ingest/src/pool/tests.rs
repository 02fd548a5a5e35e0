//! Explores every order in which threads can run, for the steps that the reader really takes.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt::Write as _;
use std::io::Write as _;

use uncork_log::Prefix;

use super::*;
use crate::blocks::{Block, Exchange};
use crate::control::Control;
use crate::crew::{Request, read};

/// Bytes of a block: small, so that small logs have several.
const BYTES: usize = 256;

/// What the reader does with buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Waits for a buffer.
    Take,
    /// Sends one as a block.
    Send,
    /// Drops one.
    Return,
}

/// Records the steps of the real reader, which depend only on the logs. Blocks are kept, so that every other buffer
/// that returns to the pool was dropped by the reader.
struct Recorder {
    pool: Pool,
    sent: Vec<Block>,
    held: usize,
    steps: Vec<Step>,
}

impl Recorder {
    fn note_returned(&mut self) {
        let held = self.pool.count() - self.pool.free() - self.sent.len();
        for _ in held..self.held {
            self.steps.push(Step::Return);
        }
        self.held = held;
    }
}

impl Exchange for Recorder {
    fn take(&mut self) -> Option<Buffer> {
        self.note_returned();
        self.steps.push(Step::Take);
        self.held += 1;
        self.pool.take()
    }

    fn send(&mut self, block: Block) -> bool {
        self.note_returned();
        self.steps.push(Step::Send);
        self.held -= 1;
        self.sent.push(block);
        true
    }
}

/// The reader's steps for these logs.
fn steps_of(logs: &[&[u8]], prefix: Option<&str>) -> Vec<Step> {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = (0..logs.len()).map(|number| folder.path().join(number.to_string()));
    let paths: Vec<_> = paths.collect();
    for (path, log) in paths.iter().zip(logs) {
        std::fs::write(path, log).expect("is written");
    }
    let mut recorder = Recorder {
        pool: Pool::new(100, BYTES),
        sent: Vec::new(),
        held: 0,
        steps: Vec::new(),
    };
    let request = Request {
        paths,
        prefix: prefix.map(|text| Prefix::parse(text).expect("a prefix")),
        ..Request::default()
    };
    let files = read(&request, &Control::default(), &mut recorder);
    assert_eq!(files.len(), logs.len());
    recorder.note_returned();
    assert_eq!(recorder.held, 0, "the reader keeps nothing");
    recorder.steps
}

/// The state of all threads and buffers. Scanners are alike, so only scanners with a block are
/// stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Model {
    step: usize,
    held: usize,
    free: usize,
    closed: bool,
    /// How many blocks were sent, which is the number of the next one.
    sent: u64,
    queued: VecDeque<u64>,
    idle: usize,
    scanning: BTreeSet<u64>,
    /// `None` is the failure of a scanner.
    scanned: VecDeque<Option<u64>>,
    early: BTreeSet<u64>,
    turn: u64,
    collecting: bool,
    reading: bool,
}

/// The constant parameters of a model run.
struct Explored<'a> {
    steps: &'a [Step],
    buffers: usize,
    threads: usize,
    /// How many scanners may fail.
    failures: usize,
}

impl Explored<'_> {
    fn start(&self) -> Model {
        Model {
            step: 0,
            held: 0,
            free: self.buffers,
            closed: false,
            sent: 0,
            queued: VecDeque::new(),
            idle: self.threads,
            scanning: BTreeSet::new(),
            scanned: VecDeque::new(),
            early: BTreeSet::new(),
            turn: 0,
            collecting: true,
            reading: true,
        }
    }

    fn living(now: &Model) -> usize {
        now.idle + now.scanning.len()
    }

    fn failed(&self, now: &Model) -> usize {
        // Idle scanners also end after the reader has ended, without failing.
        if now.reading || !now.queued.is_empty() {
            self.threads - Self::living(now)
        } else {
            self.failures
        }
    }

    /// All states that one thread's next step can lead to.
    fn next(&self, now: &Model) -> Vec<Model> {
        let mut found = Vec::new();
        found.extend(self.reader(now));
        self.scanners(now, &mut found);
        found.extend(Self::collector(now));
        found
    }

    fn reader(&self, now: &Model) -> Option<Model> {
        if !now.reading {
            return None;
        }
        let mut next = now.clone();
        next.step += 1;
        match self.steps.get(now.step) {
            Some(Step::Take) if now.closed => end_reading(&mut next),
            Some(Step::Take) => {
                next.free = now.free.checked_sub(1)?;
                next.held += 1;
            }
            Some(Step::Send) if Self::living(now) == 0 => end_reading(&mut next),
            Some(Step::Send) => {
                assert!(now.queued.len() < self.buffers, "there is room: {now:?}");
                next.held -= 1;
                next.queued.push_back(now.sent);
                next.sent += 1;
            }
            Some(Step::Return) => {
                next.held -= 1;
                next.free += 1;
            }
            None => end_reading(&mut next),
        }
        Some(next)
    }

    fn scanners(&self, now: &Model, found: &mut Vec<Model>) {
        if now.idle > 0 {
            let mut next = now.clone();
            if let Some(block) = next.queued.pop_front() {
                next.idle -= 1;
                next.scanning.insert(block);
                found.push(next);
            } else if !now.reading {
                next.idle -= 1;
                found.push(next);
            }
        }
        for block in &now.scanning {
            assert!(now.scanned.len() < self.buffers + self.threads);
            let mut next = now.clone();
            next.scanning.remove(block);
            if self.failed(now) < self.failures {
                // Its buffer returns while the panic unwinds. Queued blocks are dropped with the last scanner.
                let mut failed = next.clone();
                failed.free += 1;
                failed.scanned.push_back(None);
                if Self::living(&failed) == 0 {
                    failed.free += failed.queued.len();
                    failed.queued.clear();
                }
                found.push(failed);
            }
            next.scanned.push_back(Some(*block));
            next.idle += 1;
            found.push(next);
        }
    }

    fn collector(now: &Model) -> Option<Model> {
        if !now.collecting {
            return None;
        }
        let mut next = now.clone();
        match next.scanned.pop_front() {
            Some(Some(block)) => {
                next.early.insert(block);
                while next.early.remove(&next.turn) {
                    next.turn += 1;
                    next.free += 1;
                }
            }
            None if Self::living(now) > 0 => return None,
            Some(None) | None => {
                next.collecting = false;
                next.closed = true;
                next.free += next.early.len();
                next.early.clear();
            }
        }
        Some(next)
    }

    /// The number of states, if every state leads to the end of all threads; otherwise a state that does not.
    fn explore(&self) -> Result<usize, Box<Model>> {
        let mut seen = HashSet::from([self.start()]);
        let mut left = vec![self.start()];
        while let Some(now) = left.pop() {
            let scanned = now.scanned.iter().flatten().count();
            let busy = now.queued.len() + now.scanning.len() + scanned + now.early.len();
            assert_eq!(now.free + now.held + busy, self.buffers, "{now:?}");
            let next = self.next(&now);
            let ended = !now.reading && Self::living(&now) == 0 && !now.collecting;
            if next.is_empty() && !ended {
                return Err(Box::new(now));
            }
            if ended && self.failures == 0 {
                assert_eq!(now.turn, now.sent, "every block is collected");
            }
            left.extend(next.into_iter().filter(|one| seen.insert(one.clone())));
        }
        Ok(seen.len())
    }
}

fn end_reading(next: &mut Model) {
    next.reading = false;
    next.free += next.held;
    next.held = 0;
}

/// A log of as many lines of 64 bytes.
fn log(lines: usize) -> Vec<u8> {
    let mut log = String::new();
    for number in 0..lines {
        let line = format!(
            "2026-01-01 00:00:{:02}.000 UTC [1] LOG:  {number}",
            number % 60
        );
        let _ = writeln!(log, "{line:63}");
    }
    log.into_bytes()
}

fn wrapped(lines: usize) -> Vec<u8> {
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(&log(lines)).expect("is packed");
    zipped.finish().expect("is packed")
}

/// Every kind of end of a log, repeatedly.
fn many(count: usize) -> Vec<Vec<u8>> {
    let kinds = [
        log(2),
        log(9),
        Vec::new(),
        b"Dear Sir or Madam,\nno log is this.\n".to_vec(),
        // An entry that is longer than two blocks.
        [log(1), b"\tx".repeat(BYTES + 7), log(1)].concat(),
        wrapped(5),
    ];
    kinds.into_iter().cycle().take(count).collect()
}

#[test]
fn no_order_of_steps_ends_in_a_deadlock() {
    let mut states = 0;
    for files in 1..=7 {
        let logs = many(files);
        let logs: Vec<_> = logs.iter().map(Vec::as_slice).collect();
        for prefix in [None, Some("%m [%p] ")] {
            let steps = steps_of(&logs, prefix);
            for (buffers, threads) in (LEAST..=6).flat_map(|one| (1..=3).map(move |two| (one, two)))
            {
                // With failures there are many more states, and few files show all of them.
                for failures in 0..=if files < 4 { threads } else { 0 } {
                    let explored = Explored {
                        steps: &steps,
                        buffers,
                        threads,
                        failures,
                    };
                    states += explored.explore().unwrap_or_else(|stuck| {
                        panic!("{files} files, {buffers} buffers, {threads} threads: {stuck:?}")
                    });
                }
            }
        }
    }
    assert!(states > 100_000, "{states}");
}

#[test]
fn the_model_finds_a_reader_that_loses_a_buffer_with_each_log() {
    // It took a buffer for the rest of the last block, which is empty, and never returned it.
    for (files, threads) in (1..=7).flat_map(|one| [(one, 1), (one, 2)]) {
        let logs = vec![log(2); files];
        let logs: Vec<_> = logs.iter().map(Vec::as_slice).collect();
        let steps = steps_of(&logs, Some("%m [%p] "));
        assert_eq!(steps, [Step::Take, Step::Send].repeat(files));
        let losing = [Step::Take, Step::Take, Step::Send].repeat(files);
        for (steps, hangs) in [(steps, false), (losing, files >= 3 * threads)] {
            let explored = Explored {
                steps: &steps,
                buffers: 3 * threads,
                threads,
                failures: 0,
            };
            assert_eq!(explored.explore().is_err(), hangs, "{files} {threads}");
        }
    }
}

#[test]
fn one_buffer_would_be_too_few() {
    let logs = [&log(9)[..]];
    let explored = Explored {
        steps: &steps_of(&logs, Some("%m [%p] ")),
        buffers: 1,
        threads: 1,
        failures: 0,
    };
    assert!(explored.explore().is_err());
}

#[test]
fn a_buffer_returns_whoever_drops_it() {
    let pool = Pool::new(0, 10);
    assert_eq!((pool.count(), pool.free()), (LEAST, LEAST));
    let taken = pool.take();
    assert_eq!(pool.free(), LEAST - 1);
    let kept = pool.clone();
    let failed = std::thread::spawn(move || {
        let _held = (taken, kept.take());
        panic!("with two buffers");
    });
    assert!(failed.join().is_err());
    assert_eq!(pool.free(), LEAST);
    drop(Buffer::from(vec![1]));
    assert_eq!(pool.free(), LEAST, "of no pool");
}

#[test]
fn a_pool_that_is_closed_wakes_who_waits() {
    let pool = Pool::new(LEAST, 10);
    let held = [pool.take(), pool.take()];
    let waiting = pool.clone();
    let waiter = std::thread::spawn(move || waiting.take().is_none());
    drop(Closing(&pool));
    assert!(waiter.join().expect("ends"));
    drop(held);
    assert!(pool.take().is_none());
}
