//! Writes down, before operations begin, how many a thread may have begun.
//!
//! If the process is killed, the file tells that no more were begun. A reservation covers several
//! operations, so that a thread writes at most every few milliseconds.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::LoadError;

/// The fewest and the most operations of a reservation.
const FEWEST: u64 = 16;
const MOST: u64 = 256;
/// A thread that uses up a reservation in less time gets a larger one next.
const SHORT_NS: u64 = 5_000_000;

/// One thread's reservation.
pub(crate) struct Reservations {
    file: File,
    offset: u64,
    begun: u64,
    reserved: u64,
    size: u64,
    written_ns: u64,
}

impl Reservations {
    /// Open the file, in which this thread has the number `thread`. Nothing is reserved yet.
    pub(crate) fn open(path: &Path, thread: usize) -> io::Result<Self> {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let reservations = Self {
            file,
            offset: thread as u64 * 8,
            begun: 0,
            reserved: 0,
            size: FEWEST,
            written_ns: 0,
        };
        reservations.write()?;
        Ok(reservations)
    }

    /// Count an operation that is about to begin.
    pub(crate) fn begin(&mut self, now_ns: u64) -> io::Result<()> {
        self.begun += 1;
        if self.begun <= self.reserved {
            return Ok(());
        }
        self.size = if now_ns.saturating_sub(self.written_ns) < SHORT_NS {
            (self.size * 2).min(MOST)
        } else {
            (self.size / 2).max(FEWEST)
        };
        self.written_ns = now_ns;
        self.reserved = self.begun - 1 + self.size;
        self.write()
    }

    /// Give back what was not used: no operation begins any more.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.reserved = self.begun;
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        self.file
            .write_all_at(&self.reserved.to_le_bytes(), self.offset)
    }
}

/// The error of a file of reservations that cannot be written.
pub(crate) fn reservations_error(source: io::Error) -> LoadError {
    LoadError::System {
        action: "write down how many operations it begins",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path) -> Vec<u64> {
        let bytes = std::fs::read(path).expect("readable");
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .collect()
    }

    #[test]
    fn what_is_written_is_never_below_what_was_begun() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("reservations");
        let mut second = Reservations::open(&path, 1).expect("opens");
        let mut first = Reservations::open(&path, 0).expect("opens");
        assert_eq!(written(&path), [0, 0]);
        for begun in 1..2_000_u64 {
            // The first thread is fast, the second one slow.
            first.begin(begun * 1_000).expect("written");
            second.begin(begun * 1_000_000).expect("written");
            let found = written(&path);
            assert!(
                (begun..begun + MOST).contains(&found[0]),
                "{begun} {found:?}"
            );
            assert!(
                (begun..begun + 2 * FEWEST).contains(&found[1]),
                "{begun} {found:?}"
            );
        }
        first.finish().expect("written");
        assert_eq!(written(&path)[0], 1_999);
    }
}
