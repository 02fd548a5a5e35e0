//! Cuts a log into blocks that can be scanned on their own.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use memchr::memrchr;
use uncork_log::{Dialect, Prefix, Unwrapper, Written};

use crate::pool::Buffer;
use crate::unpack::fill_most;
use crate::unwrapped::Unwrapped;

/// How many bytes a block has, unless one entry is longer.
pub(crate) const BLOCK: usize = 1 << 20;
/// An entry that is longer is cut.
pub(crate) const LONGEST: usize = 64 << 20;

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
    pub(crate) buffer: Buffer,
    pub(crate) length: usize,
}

/// How a log ended.
#[derive(Debug)]
pub(crate) struct End {
    /// None if its dialect was not found out.
    pub(crate) dialect: Option<Arc<Dialect>>,
    /// What it is wrapped in.
    pub(crate) wrapping: Option<&'static str>,
    /// Bytes read, unpacked.
    pub(crate) bytes: u64,
    /// Why it could not be read to its end.
    pub(crate) trouble: Option<io::Error>,
}

/// Gives buffers for blocks. The rules of `crate::pool` hold for who uses it.
pub(crate) trait Exchange {
    /// Waits for a buffer; None when nobody scans any more.
    fn take(&mut self) -> Option<Buffer>;
    /// Passes a block on; false when nobody scans any more.
    fn send(&mut self, block: Block) -> bool;
}

/// Cuts logs into blocks, one log after the other.
pub(crate) struct Cutter<'a> {
    /// What stands before each line's message, if it is given.
    pub(crate) prefix: Option<Prefix>,
    /// When the log was last written to.
    pub(crate) written: Written,
    pub(crate) exchange: &'a mut dyn Exchange,
    pub(crate) turn: u64,
    /// A buffer that was taken and not used.
    pub(crate) spare: Option<Buffer>,
}

impl Cutter<'_> {
    /// Cuts a log; `offset` is where its reader stands in it.
    pub(crate) fn cut(&mut self, file: u32, offset: u64, reader: &mut dyn Read) -> End {
        let Some(mut buffer) = self.buffer() else {
            return self.cut_as(None, file, offset, reader);
        };
        let (filled, trouble) = fill_most(reader, &mut buffer);
        let sample = &buffer[..filled];
        let unwrapper = Unwrapper::detect(sample, self.written, self.prefix.as_ref());
        let dialect = match (&unwrapper, &self.prefix) {
            (Some(unwrapper), _) => Some(unwrapper.dialect().clone()),
            (None, Some(prefix)) => Some(Dialect::with_prefix(prefix.clone())),
            (None, None) => Dialect::detect(sample),
        };
        let begun = Cursor::new(sample.to_vec());
        self.spare = Some(buffer);
        let mut whole = begun.chain(Failing(trouble)).chain(reader);
        let Some(unwrapper) = unwrapper else {
            return self.cut_as(dialect, file, offset, &mut whole);
        };
        let wrapping = Some(unwrapper.name());
        let mut inside = Unwrapped::new(&mut whole, unwrapper);
        End {
            wrapping,
            ..self.cut_as(dialect, file, 0, &mut inside)
        }
    }

    /// Cuts a log whose dialect is known.
    fn cut_as(
        &mut self,
        finder: Option<Dialect>,
        file: u32,
        mut offset: u64,
        reader: &mut dyn Read,
    ) -> End {
        let mut end = End {
            dialect: finder.clone().map(Arc::new),
            wrapping: None,
            bytes: 0,
            trouble: None,
        };
        let Some(mut buffer) = self.buffer() else {
            return end;
        };
        let (mut filled, mut finder) = (0, finder);
        loop {
            // What could be read before trouble is not lost.
            let (more, trouble) = fill_most(reader, &mut buffer[filled..]);
            let last = more < buffer.len() - filled || trouble.is_some();
            end.trouble = trouble;
            filled += more;
            end.bytes += more as u64;
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
                let doubled = buffer.len() * 2;
                buffer.resize(doubled, 0);
                continue;
            } else {
                memrchr(b'\n', text).map_or(filled, |at| at + 1)
            };
            let rest = filled - cut;
            let next = if last {
                None
            } else {
                self.over(&buffer[cut..filled])
            };
            let block = Block {
                file,
                turn: self.turn,
                offset,
                dialect: shared.clone(),
                buffer,
                length: cut,
            };
            self.turn += 1;
            let (true, Some(next)) = (self.exchange.send(block), next) else {
                return end;
            };
            buffer = next;
            filled = rest;
            offset += cut as u64;
        }
    }

    /// A buffer that begins with what a block leaves over; None when nobody scans any more.
    fn over(&mut self, rest: &[u8]) -> Option<Buffer> {
        let mut next = self.buffer()?;
        if next.len() < rest.len() * 2 {
            next.resize(rest.len() * 2, 0);
        }
        next[..rest.len()].copy_from_slice(rest);
        Some(next)
    }

    /// A buffer that nobody uses; None when nobody scans any more.
    fn buffer(&mut self) -> Option<Buffer> {
        self.spare.take().or_else(|| self.exchange.take())
    }
}

/// Fails once, where reading has failed.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
