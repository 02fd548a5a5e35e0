//! Cuts a log into blocks that can be scanned on their own.

use std::io::{self, Read};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use memchr::memrchr;
use uncork_log::Dialect;

use crate::unpack::fill;

/// How many bytes a block has, unless one entry is longer.
pub(crate) const BLOCK: usize = 1 << 20;
/// An entry that is longer is cut.
const LONGEST: usize = 64 << 20;

/// Part of a log: whole entries.
#[derive(Debug)]
pub(crate) struct Block {
    /// The number of its log.
    pub(crate) file: u32,
    /// How many blocks of all logs come before it.
    pub(crate) turn: u64,
    /// Where it begins in its log, in bytes.
    pub(crate) offset: u64,
    pub(crate) dialect: Arc<Dialect>,
    /// The block, and space behind it.
    pub(crate) buffer: Vec<u8>,
    pub(crate) length: usize,
}

/// How a log ended.
#[derive(Debug)]
pub(crate) struct End {
    /// None if its dialect was not found out.
    pub(crate) dialect: Option<Arc<Dialect>>,
    /// Bytes read, unpacked.
    pub(crate) bytes: u64,
    /// Why it could not be read to its end.
    pub(crate) trouble: Option<io::Error>,
}

/// Cuts logs into blocks, one log after the other.
pub(crate) struct Cutter<'a> {
    /// The dialect of all of them, if it is given.
    pub(crate) dialect: Option<Dialect>,
    /// Buffers to use again.
    pub(crate) empty: &'a Receiver<Vec<u8>>,
    /// Where blocks go.
    pub(crate) blocks: &'a Sender<Block>,
    pub(crate) turn: u64,
}

impl Cutter<'_> {
    /// Cuts a log; `offset` is where its reader stands in it.
    pub(crate) fn cut(&mut self, file: u32, mut offset: u64, reader: &mut dyn Read) -> End {
        let mut end = End {
            dialect: None,
            bytes: 0,
            trouble: None,
        };
        let Some(mut buffer) = self.buffer() else {
            return end;
        };
        let mut filled = 0;
        let mut finder: Option<Dialect> = None;
        loop {
            let more = match fill(reader, &mut buffer[filled..]) {
                Ok(length) => length,
                Err(error) => {
                    // What could be read before it is not lost.
                    end.trouble = Some(error);
                    0
                }
            };
            let last = more < buffer.len() - filled;
            filled += more;
            end.bytes += more as u64;
            if finder.is_none() {
                finder = self
                    .dialect
                    .clone()
                    .or_else(|| Dialect::detect(&buffer[..filled]));
                end.dialect = finder.clone().map(Arc::new);
            }
            let (Some(dialect), Some(shared)) = (&mut finder, &end.dialect) else {
                if filled > 0 {
                    end.bytes += io::copy(reader, &mut io::sink()).unwrap_or(0);
                }
                return end;
            };
            let text = &buffer[..filled];
            let cut = if last {
                filled
            } else if let Some(cut) = dialect.cut(text).filter(|cut| *cut > 0) {
                cut
            } else if buffer.len() < LONGEST {
                buffer.resize(buffer.len() * 2, 0);
                continue;
            } else {
                memrchr(b'\n', text).map_or(filled, |at| at + 1)
            };
            let Some(mut next) = self.buffer() else {
                return end;
            };
            let rest = filled - cut;
            if next.len() < rest * 2 {
                next.resize(rest * 2, 0);
            }
            next[..rest].copy_from_slice(&buffer[cut..filled]);
            let block = Block {
                file,
                turn: self.turn,
                offset,
                dialect: shared.clone(),
                buffer: std::mem::replace(&mut buffer, next),
                length: cut,
            };
            self.turn += 1;
            if self.blocks.send(block).is_err() || last {
                return end;
            }
            filled = rest;
            offset += cut as u64;
        }
    }

    /// A buffer that nobody uses; None when nobody scans any more.
    fn buffer(&self) -> Option<Vec<u8>> {
        self.empty.recv().ok()
    }
}
