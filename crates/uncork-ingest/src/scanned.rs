//! Scanned blocks, and the evaluation of their order.

use std::collections::BTreeMap;

use memchr::memchr_iter;
use uncork_log::{Dialect, EventLog, Gathered, Micros, Replays};

use crate::blocks::Block;
use crate::crew::FileReport;
use crate::events::{Events, Recording};
use crate::pool::Buffer;

/// The counts of one log so far.
#[derive(Debug, Clone, Default)]
struct Counts {
    entries: u64,
    /// Lines by kind; their total number is counted separately.
    kinds: LineKinds,
    lines: u64,
    /// The line numbers of rejected lines by their offset.
    numbers: BTreeMap<u64, u64>,
    /// When its first and its last entry was logged.
    seen: Option<(Micros, Micros)>,
}

/// Return a span of time that includes both spans.
pub(crate) fn span(
    one: Option<(Micros, Micros)>,
    other: Option<(Micros, Micros)>,
) -> Option<(Micros, Micros)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// Number of lines by kind. These add up to all lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineKinds {
    /// Lines that begin an entry or an addition.
    pub heads: u64,
    /// Lines that continue an entry, and empty lines.
    pub continuations: u64,
    /// Records of other programs.
    pub foreign: u64,
    /// Lines that could not be read.
    pub rejected: u64,
}

impl LineKinds {
    fn of(gathered: &Gathered) -> Self {
        Self {
            heads: gathered.heads,
            continuations: gathered.continuations,
            foreign: gathered.foreign,
            rejected: gathered.rejected,
        }
    }

    pub(crate) fn add(&mut self, before: &Self, after: &Self) {
        self.heads += after.heads - before.heads;
        self.continuations += after.continuations - before.continuations;
        self.foreign += after.foreign - before.foreign;
        self.rejected += after.rejected - before.rejected;
    }
}

/// The result of scanning a block.
pub(crate) struct Scanned {
    file: u32,
    server: u32,
    pub(crate) turn: u64,
    pub(crate) entries: u64,
    /// When its first and its last entry was logged.
    seen: Option<(Micros, Micros)>,
    kinds: LineKinds,
    /// Offsets of rejected lines, and how many lines precede each in the block.
    lines: Vec<(u64, u64)>,
    /// Number of lines in the block.
    count: u64,
    /// The block's buffer with its events, kept until its turn has come, which limits how many blocks can wait.
    buffer: Buffer,
}

/// Evaluates blocks in order, and counts by file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ordered {
    replays: Replays,
    /// The events of each server, if they are kept for later instead of being replayed.
    kept: Option<BTreeMap<u32, EventLog>>,
    counts: BTreeMap<u32, Counts>,
}

impl Ordered {
    /// Keep the events for later, instead of replaying them.
    pub(crate) fn keeping() -> Self {
        Self {
            kept: Some(BTreeMap::new()),
            ..Self::default()
        }
    }

    /// Process the next block; its buffer returns to the pool.
    pub(crate) fn put(&mut self, mut next: Scanned) {
        let count = self.counts.entry(next.file).or_default();
        count.entries += next.entries;
        count.seen = span(count.seen, next.seen);
        count.kinds.add(&LineKinds::default(), &next.kinds);
        for (offset, before) in next.lines {
            count.numbers.insert(offset, count.lines + before + 1);
        }
        count.lines += next.count;
        let events = next.buffer.events.drain(..);
        if let Some(kept) = &mut self.kept {
            let log = kept.entry(next.server).or_default();
            events.for_each(|event| log.add(&event));
        } else {
            let replay = self.replays.of(next.server);
            events.for_each(|event| replay.follow(event));
        }
    }

    /// Add the results to what was gathered, and the counts to the files.
    pub(crate) fn finish(self, gathered: &mut Gathered, files: &mut [FileReport]) {
        Self::report(self.counts, files);
        self.replays.finish(gathered);
    }

    /// Add the counts to the files, and return the events that were kept.
    pub(crate) fn into_events(self, files: &mut [FileReport]) -> BTreeMap<u32, EventLog> {
        Self::report(self.counts, files);
        self.kept.unwrap_or_default()
    }

    fn report(counts: BTreeMap<u32, Counts>, files: &mut [FileReport]) {
        for (number, count) in counts {
            if let Some(file) = files.get_mut(number as usize) {
                (file.entries, file.lines, file.kinds) = (count.entries, count.lines, count.kinds);
                (file.rejected_lines, file.seen) = (count.numbers, count.seen);
            }
        }
    }
}

/// Scan a block; `server` is the name of the server that wrote it.
pub(crate) fn scan_block(
    dialect: &mut Dialect,
    mut block: Block,
    server: &str,
    gathered: &mut Gathered,
    events: Option<&mut Events>,
) -> Scanned {
    gathered.begin_file(block.file, block.server);
    let (entries, before) = (gathered.entries, LineKinds::of(gathered));
    let kept = gathered.rejected_lines.len();
    let text = &block.buffer[..block.length];
    match events {
        None => dialect.scan(text, block.offset, gathered),
        Some(events) => {
            let mut recording = Recording {
                lines: dialect.prefix().is_some(),
                file: block.file,
                server,
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
    let mut kinds = LineKinds::default();
    kinds.add(&before, &LineKinds::of(gathered));
    let unended = text.last().is_some_and(|last| *last != b'\n');
    let lines = lines.collect();
    let count = memchr_iter(b'\n', text).count() as u64 + u64::from(unended);
    let spare = std::mem::take(&mut block.buffer.events);
    block.buffer.events = gathered.take_events(spare);
    Scanned {
        lines,
        count,
        kinds,
        file: block.file,
        server: block.server,
        turn: block.turn,
        entries: gathered.entries - entries,
        seen: gathered.seen(),
        buffer: block.buffer,
    }
}
