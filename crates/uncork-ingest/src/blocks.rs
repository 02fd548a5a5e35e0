//! Cuts a log into blocks that can be scanned independently.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use memchr::memrchr;
use uncork_log::{Dialect, Prefix, Unwrapper, Written};

use crate::order::newest_first;
use crate::pool::Buffer;
use crate::unpack::fill_most;
use crate::unwrapped::Unwrapped;

/// Target size of a block in bytes, unless one entry is longer.
pub(crate) const BLOCK: usize = 1 << 20;
/// How much of a log's beginning shows the order of its entries.
pub(crate) const ORDER: usize = 64 << 10;
/// Longer entries are cut.
pub(crate) const LONGEST: usize = 64 << 20;

/// Part of a log: whole entries.
#[derive(Debug)]
pub(crate) struct Block {
    /// The number of its log.
    pub(crate) file: u32,
    /// The number of the server that wrote it.
    pub(crate) server: u32,
    /// The number of blocks before it, in all logs.
    pub(crate) turn: u64,
    /// Its offset in its log, in bytes.
    pub(crate) offset: u64,
    pub(crate) dialect: Arc<Dialect>,
    /// The block, followed by free space.
    pub(crate) buffer: Buffer,
    pub(crate) length: usize,
}

/// How a log ended.
#[derive(Debug)]
pub(crate) struct End {
    /// `None` if its format was not recognized.
    pub(crate) dialect: Option<Arc<Dialect>>,
    /// Its wrapper, if it is wrapped.
    pub(crate) wrapping: Option<&'static str>,
    /// Bytes read, after decompression.
    pub(crate) bytes: u64,
    /// Why it could not be read to its end.
    pub(crate) trouble: Option<io::Error>,
}

/// Provides buffers for blocks. Callers must follow the rules in `crate::pool`.
pub(crate) trait Exchange {
    /// Wait for a buffer; `None` once no scanner is left.
    fn take(&mut self) -> Option<Buffer>;
    /// Send a block; return false once no scanner is left.
    fn send(&mut self, block: Block) -> bool;
}

/// Cuts logs into blocks, one log after the other.
pub(crate) struct Cutter<'a> {
    /// The `log_line_prefix`, if it is given.
    pub(crate) prefix: Option<Prefix>,
    /// When the log was last written to.
    pub(crate) written: Written,
    /// The number of the server that wrote the log.
    pub(crate) server: u32,
    pub(crate) exchange: &'a mut dyn Exchange,
    pub(crate) turn: u64,
    /// A buffer that was taken but not used.
    pub(crate) spare: Option<Buffer>,
}

impl Cutter<'_> {
    /// Cut a log; `offset` is its reader's position in it.
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
        let told = dialect
            .as_ref()
            .and_then(|dialect| self.newest_first(dialect, sample));
        let begun = Cursor::new(sample.to_vec());
        self.spare = Some(buffer);
        if let Some(told) = told {
            return End {
                dialect: dialect.map(Arc::new),
                wrapping: unwrapper.map(|unwrapper| unwrapper.name()),
                bytes: filled as u64,
                trouble: Some(io::Error::other(told)),
            };
        }
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

    /// What to tell about a log that is written newest first, from its beginning; `None` if it is not.
    fn newest_first(&self, dialect: &Dialect, sample: &[u8]) -> Option<&'static str> {
        let sample = &sample[..sample.len().min(ORDER)];
        let text = &sample[..memrchr(b'\n', sample).map_or(0, |at| at + 1)];
        match Unwrapper::detect(text, self.written, self.prefix.as_ref()) {
            Some(mut unwrapper) => {
                let mut inner = Vec::new();
                unwrapper.feed(text, &mut inner);
                unwrapper.finish(&mut inner);
                newest_first(unwrapper.dialect().clone(), &inner)
            }
            None => newest_first(dialect.clone(), text),
        }
    }

    /// Cut a log whose format is known.
    pub(crate) fn cut_as(
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
            // Keep what could be read before the error.
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
                server: self.server,
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

    /// Return a buffer that begins with the rest of the last block; `None` once no scanner is left.
    fn over(&mut self, rest: &[u8]) -> Option<Buffer> {
        let mut next = self.buffer()?;
        if next.len() < rest.len() * 2 {
            next.resize(rest.len() * 2, 0);
        }
        next[..rest.len()].copy_from_slice(rest);
        Some(next)
    }

    /// Return an unused buffer; `None` once no scanner is left.
    fn buffer(&mut self) -> Option<Buffer> {
        self.spare.take().or_else(|| self.exchange.take())
    }
}

/// Fails once with the error that reading ended with.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
