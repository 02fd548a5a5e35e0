//! A block that has been scanned, and what the order of blocks tells.

use std::collections::BTreeMap;

use memchr::memchr_iter;
use uncork_log::{Dialect, Event, Gathered, Replay};

use crate::blocks::Block;
use crate::crew::FileReport;
use crate::events::{Events, Recording};
use crate::pool::Buffer;

/// What a log has had so far.
#[derive(Debug, Clone, Default)]
struct Counts {
    entries: u64,
    /// What lines were; how many there were in all is counted apart.
    kinds: LineKinds,
    lines: u64,
    /// The numbers of rejected lines by where they begin.
    numbers: BTreeMap<u64, u64>,
}

/// How many lines were of each kind. Together these are all lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineKinds {
    /// The first lines of entries and of their additions.
    pub heads: u64,
    /// Lines that go on with an entry, and empty ones.
    pub continuations: u64,
    /// Records of other programs.
    pub foreign: u64,
    /// Lines that belong to nothing.
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

    fn add(&mut self, before: &Self, after: &Self) {
        self.heads += after.heads - before.heads;
        self.continuations += after.continuations - before.continuations;
        self.foreign += after.foreign - before.foreign;
        self.rejected += after.rejected - before.rejected;
    }
}

/// What became of a block.
pub(crate) struct Scanned {
    file: u32,
    pub(crate) turn: u64,
    pub(crate) entries: u64,
    kinds: LineKinds,
    /// Where rejected lines begin, and how many lines come before each in the block.
    lines: Vec<(u64, u64)>,
    /// How many lines the block has.
    count: u64,
    events: Vec<Event>,
    /// Held until its turn has come: so what waits for its turn is bounded.
    _buffer: Buffer,
}

/// What the order tells, and counts by file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ordered {
    replay: Replay,
    counts: BTreeMap<u32, Counts>,
}

impl Ordered {
    /// Takes the next block; its buffer returns to the pool.
    pub(crate) fn put(&mut self, next: Scanned) {
        let count = self.counts.entry(next.file).or_default();
        count.entries += next.entries;
        count.kinds.add(&LineKinds::default(), &next.kinds);
        for (offset, before) in next.lines {
            count.numbers.insert(offset, count.lines + before + 1);
        }
        count.lines += next.count;
        for event in next.events {
            self.replay.follow(event);
        }
    }

    /// Adds what the order has told to what was gathered, and counts to files.
    pub(crate) fn finish(self, gathered: &mut Gathered, files: &mut [FileReport]) {
        self.replay.finish(gathered);
        for (number, count) in self.counts {
            if let Some(file) = files.get_mut(number as usize) {
                (file.entries, file.lines, file.kinds) = (count.entries, count.lines, count.kinds);
                file.rejected_lines = count.numbers;
            }
        }
    }
}

/// Scans a block.
pub(crate) fn scan_block(
    dialect: &mut Dialect,
    block: Block,
    gathered: &mut Gathered,
    events: Option<&mut Events>,
) -> Scanned {
    gathered.begin_file(block.file);
    let (entries, before) = (gathered.entries, LineKinds::of(gathered));
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
    let mut kinds = LineKinds::default();
    kinds.add(&before, &LineKinds::of(gathered));
    let unended = text.last().is_some_and(|last| *last != b'\n');
    Scanned {
        lines: lines.collect(),
        count: memchr_iter(b'\n', text).count() as u64 + u64::from(unended),
        kinds,
        file: block.file,
        turn: block.turn,
        entries: gathered.entries - entries,
        events: gathered.take_events(),
        _buffer: block.buffer,
    }
}
