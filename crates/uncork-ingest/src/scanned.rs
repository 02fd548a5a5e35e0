//! A block that has been scanned, and what the order of blocks tells.

use std::collections::BTreeMap;

use memchr::memchr_iter;
use uncork_log::{Dialect, Event, Gathered, Sequence};

use crate::blocks::Block;
use crate::crew::FileReport;
use crate::events::{Events, Recording};
use crate::pool::Buffer;

/// What a log has had so far.
#[derive(Debug, Clone, Default)]
struct Counts {
    entries: u64,
    rejected: u64,
    /// Lines that have ended.
    lines: u64,
    /// The numbers of rejected lines by where they begin.
    numbers: BTreeMap<u64, u64>,
}

/// What became of a block.
pub(crate) struct Scanned {
    file: u32,
    pub(crate) turn: u64,
    pub(crate) entries: u64,
    rejected: u64,
    /// Where rejected lines begin, and how many lines come before each in the block.
    lines: Vec<(u64, u64)>,
    /// How many lines end in the block.
    ends: u64,
    events: Vec<Event>,
    /// Held until its turn has come: so what waits for its turn is bounded.
    _buffer: Buffer,
}

/// What the order tells, and counts by file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ordered {
    sequence: Sequence,
    counts: BTreeMap<u32, Counts>,
}

impl Ordered {
    /// Takes the next block; its buffer returns to the pool.
    pub(crate) fn put(&mut self, next: Scanned) {
        let count = self.counts.entry(next.file).or_default();
        count.entries += next.entries;
        count.rejected += next.rejected;
        for (offset, before) in next.lines {
            count.numbers.insert(offset, count.lines + before + 1);
        }
        count.lines += next.ends;
        for event in next.events {
            self.sequence.follow(event);
        }
    }

    /// Adds what the order has told to what was gathered, and counts to files.
    pub(crate) fn finish(self, gathered: &mut Gathered, files: &mut [FileReport]) {
        self.sequence.finish(gathered);
        for (number, count) in self.counts {
            if let Some(file) = files.get_mut(number as usize) {
                (file.entries, file.rejected) = (count.entries, count.rejected);
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
        _buffer: block.buffer,
    }
}
