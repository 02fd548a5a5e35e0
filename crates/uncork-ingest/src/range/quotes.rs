//! Finds where records of a CSV log begin: a quoted field may have line ends, and lines that look like records.
//!
//! Within a record, a line end is outside of quoted fields exactly after an even number of quotation marks: a mark within
//! a field is doubled. So the marks of all parts of a file are counted, by several threads, and the numbers added up.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::thread;

use memchr::{memchr_iter, memchr2_iter};
use uncork_log::Csv;

use crate::unpack::fill;

/// How much is read at once.
const PIECE: usize = 1 << 20;

/// Return where records begin at or after each multiple of `size`, in a file of `length` bytes that begins with one.
/// Empty if the quotation marks of the file do not show it, as after a line that was cut short. A place where no record
/// begins within `most` bytes is left out.
pub(super) fn record_points(
    path: &Path,
    size: u64,
    length: u64,
    most: usize,
) -> io::Result<Vec<u64>> {
    let counts = counts(path, size, length.div_ceil(size))?;
    if counts.iter().sum::<u64>() % 2 == 1 {
        return Ok(Vec::new());
    }
    let (mut file, mut text) = (File::open(path)?, vec![0; most]);
    let (mut points, mut quotes) = (Vec::new(), 0);
    for (number, count) in (1..length / size).zip(counts) {
        quotes += count;
        let place = number * size;
        file.seek(SeekFrom::Start(place))?;
        let read = fill(&mut file, &mut text)?;
        let Some(begin) = record(&text[..read], quotes % 2 == 1) else {
            continue;
        };
        let rest = &text[begin..read];
        let line = memchr::memchr(b'\n', rest).map_or(rest, |end| &rest[..end]);
        if !Csv::fits(line) {
            return Ok(Vec::new());
        }
        points.push(place + begin as u64);
    }
    points.dedup();
    Ok(points)
}

/// Return where the first record of a text begins, after a line end; `quoted` is whether the text begins within quotes.
fn record(text: &[u8], mut quoted: bool) -> Option<usize> {
    for at in memchr2_iter(b'"', b'\n', text) {
        match text[at] {
            b'"' => quoted = !quoted,
            _ if !quoted && at + 1 < text.len() => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Count the quotation marks of each part of a file.
fn counts(path: &Path, size: u64, parts: u64) -> io::Result<Vec<u64>> {
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    let each = parts.div_ceil(threads).max(1);
    thread::scope(|scope| {
        let counting: Vec<_> = (0..parts)
            .step_by(usize::try_from(each).unwrap_or(usize::MAX))
            .map(|first| {
                let end = parts.min(first + each);
                scope.spawn(move || {
                    (first..end)
                        .map(|part| count(path, part * size, size))
                        .collect()
                })
            })
            .collect();
        let mut all = Vec::new();
        for one in counting {
            let found: io::Result<Vec<u64>> = one
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.extend(found?);
        }
        Ok(all)
    })
}

fn count(path: &Path, begin: u64, size: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(begin))?;
    let (mut part, mut piece, mut found) = (file.take(size), vec![0; PIECE], 0);
    loop {
        match fill(&mut part, &mut piece)? {
            0 => return Ok(found),
            read => found += memchr_iter(b'"', &piece[..read]).count() as u64,
        }
    }
}
