//! Finds the part of a plain file that a time range needs, without reading the rest.

mod quotes;

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Take};
use std::path::Path;

use uncork_log::{Dialect, Entry, Micros, Prefix, Side, Sink, Unwrapper, Written};

use crate::blocks::{BLOCK, ORDER};
use crate::order::newest_first;
use crate::range::quotes::record_points;
use crate::unpack::{fill, is_packed};

/// How much is read at a place to find an entry.
const PROBE: usize = 64 << 10;
/// How many places are sampled to check that a file is ordered by time.
const PLACES: u64 = 32;
/// How much entries of several sessions may be out of order.
const SLACK: Micros = 60_000_000;

/// Part of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Part {
    /// Open a file at this part.
    pub(crate) fn open(self, path: &Path) -> io::Result<Take<File>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.begin))?;
        Ok(file.take(self.end - self.begin))
    }
}

/// Find the part of a file that contains a time range. `None` if the file is compressed or wrapped, its format is
/// unknown, or its entries are not ordered by time: then all of it must be read.
pub(crate) fn find(
    path: &Path,
    prefix: Option<&Prefix>,
    from: Option<Micros>,
    until: Option<Micros>,
) -> io::Result<Option<Part>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut probe = Probe {
        buffer: vec![0; PROBE],
        dialect: match detect(&mut file, prefix)? {
            Some(dialect) => dialect,
            None => return Ok(None),
        },
    };
    if !probe.in_order(&mut file, size)? {
        return Ok(None);
    }
    let begin = match from {
        Some(from) => probe.before(&mut file, size, from.saturating_sub(SLACK))?,
        None => 0,
    };
    let end = match until {
        Some(until) => probe.from(&mut file, size, until.saturating_add(SLACK))?,
        None => size,
    };
    Ok(Some(Part {
        begin,
        end: end.max(begin),
    }))
}

/// Return where a plain file can be cut into parts of about `size` bytes, each of which begins with an entry, and the
/// prefix of its lines. Empty if the file is read as a whole: it is small, compressed, wrapped, written newest first, or
/// a damaged CSV file.
///
/// # Errors
///
/// If the file cannot be read.
pub fn cut_points(
    path: &Path,
    prefix: Option<&Prefix>,
    size: u64,
) -> io::Result<(Vec<u64>, Option<String>)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut points = Vec::new();
    if size == 0 || length < size * 2 {
        return Ok((points, None));
    }
    let Some(mut dialect) = detect(&mut file, prefix)? else {
        return Ok((points, None));
    };
    if is_newest_first(&mut file, &dialect)? {
        return Ok((points, None));
    }
    if matches!(dialect, Dialect::Csv(_)) {
        return Ok((record_points(path, size, length, 4 * PROBE)?, None));
    }
    let mut text = vec![0; 4 * PROBE];
    for number in 1..length / size {
        file.seek(SeekFrom::Start(number * size))?;
        let read = fill(&mut file, &mut text)?;
        // The first line may be the rest of a line.
        let Some(skipped) = memchr::memchr(b'\n', &text[..read]) else {
            continue;
        };
        let cut = dialect.cut(&text[skipped + 1..read]);
        points.extend(cut.map(|cut| number * size + (skipped + 1 + cut) as u64));
    }
    Ok((points, dialect.prefix().map(str::to_owned)))
}

/// Whether the beginning of a file shows that it is refused.
fn is_newest_first(file: &mut File, dialect: &Dialect) -> io::Result<bool> {
    let mut sample = vec![0; ORDER];
    file.seek(SeekFrom::Start(0))?;
    let length = fill(file, &mut sample)?;
    let end = memchr::memrchr(b'\n', &sample[..length]).map_or(0, |at| at + 1);
    Ok(newest_first(dialect.clone(), &sample[..end]).is_some())
}

/// Detect the format of a plain file as whoever reads it from its beginning does; `None` if it is compressed or wrapped.
pub(crate) fn detect(file: &mut File, prefix: Option<&Prefix>) -> io::Result<Option<Dialect>> {
    let mut sample = vec![0; BLOCK];
    let length = fill(file, &mut sample)?;
    let sample = &sample[..length];
    if is_packed(sample) || Unwrapper::detect(sample, Written::at(0), prefix).is_some() {
        return Ok(None);
    }
    Ok(match prefix {
        Some(prefix) => Some(Dialect::with_prefix(prefix.clone())),
        None => Dialect::detect(sample),
    })
}

/// Reads samples of a file.
struct Probe {
    dialect: Dialect,
    buffer: Vec<u8>,
}

/// The first two entries of a text that have a time.
#[derive(Default)]
struct First(Option<(u64, Micros)>);

impl Sink for First {
    fn entry(&mut self, entry: &Entry<'_>) {
        if let (None, Some(time), false) = (self.0, entry.head.time, entry.stands_alone()) {
            self.0 = Some((entry.offset, time));
        }
    }

    fn rejected(&mut self, _offset: u64, _line: &[u8]) {}

    fn pooler(&mut self, entry: &Entry<'_>, _side: Option<Side>) {
        self.entry(entry);
    }
}

impl Probe {
    /// Return the first entry that begins at or after a place, and its time.
    fn at(&mut self, file: &mut File, place: u64) -> io::Result<Option<(u64, Micros)>> {
        file.seek(SeekFrom::Start(place))?;
        let length = fill(file, &mut self.buffer)?;
        let text = &self.buffer[..length];
        let mut first = First::default();
        // A line that contains the place counts as an entry only if it begins there.
        let skipped = match place {
            0 => 0,
            _ => memchr::memchr(b'\n', text).map_or(length, |at| at + 1),
        };
        self.dialect
            .scan(&text[skipped..], place + skipped as u64, &mut first);
        Ok(first.0)
    }

    fn in_order(&mut self, file: &mut File, size: u64) -> io::Result<bool> {
        let mut last = Micros::MIN;
        for number in 0..PLACES {
            if let Some((_, time)) = self.at(file, size / PLACES * number)? {
                if time < last.saturating_sub(SLACK) {
                    return Ok(false);
                }
                last = last.max(time);
            }
        }
        Ok(last > Micros::MIN)
    }

    /// Return a place before all entries from a time on: the place of an entry before that time, or 0.
    fn before(&mut self, file: &mut File, size: u64, time: Micros) -> io::Result<u64> {
        let (mut low, mut high, mut best) = (0, size, 0);
        while high - low > PROBE as u64 {
            let middle = low + (high - low) / 2;
            match self.at(file, middle)? {
                Some((place, found)) if found < time => {
                    best = place;
                    low = middle;
                }
                _ => high = middle,
            }
        }
        Ok(best)
    }

    /// Return a place after all entries before a time.
    fn from(&mut self, file: &mut File, size: u64, time: Micros) -> io::Result<u64> {
        let (mut low, mut high, mut best) = (0, size, size);
        while high - low > PROBE as u64 {
            let middle = low + (high - low) / 2;
            match self.at(file, middle)? {
                Some((place, found)) if found >= time => {
                    best = place;
                    high = middle;
                }
                _ => low = middle,
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests;
