//! The work of checkpoints and of autovacuum, from the details of their messages.

use std::collections::HashMap;

use crate::form::{form, form_tuple};

/// The names of a checkpoint's details, in order: the share of shared buffers that it wrote, in tenths of a percent;
/// WAL files; files that it synced; its longest sync in microseconds; the expected distance in kibibytes.
pub const CHECKPOINT: [&str; 7] = [
    "buffers_permille",
    "wal_added",
    "wal_removed",
    "wal_recycled",
    "sync_files",
    "longest_sync",
    "estimate_kib",
];

/// The names of autovacuum's details, in order: passes over indexes; pages and tuples removed; dead tuples that could
/// not be removed; buffers; WAL.
pub const VACUUM: [&str; 10] = [
    "index_scans",
    "pages_removed",
    "tuples_removed",
    "tuples_dead",
    "buffer_hits",
    "buffer_misses",
    "buffers_dirtied",
    "wal_records",
    "wal_images",
    "wal_bytes",
];

/// A server, by its number, whether it only analysed, and a table.
pub type Vacuumed = (u32, bool, Box<[u8]>);

/// The work of autovacuum.
#[derive(Debug, Clone, Default)]
pub struct Background {
    /// Details by server and table, in the order of [`VACUUM`], summed up.
    pub vacuums: HashMap<Vacuumed, [u64; VACUUM.len()]>,
}

impl Background {
    pub(crate) fn vacuum(&mut self, server: u32, analyze: bool, table: &[u8], message: &[u8]) {
        let which = (server, analyze, table.into());
        let of = self.vacuums.entry(which).or_default();
        for (sum, value) in of.iter_mut().zip(vacuum(message)) {
            *sum += value;
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (table, theirs) in other.vacuums {
            let of = self.vacuums.entry(table).or_default();
            for (sum, value) in of.iter_mut().zip(theirs) {
                *sum += value;
            }
        }
    }
}

/// Parse `checkpoint complete: wrote 44 buffers (0.3%), wrote 1 SLRU buffers; 0 WAL file(s) added, 0 removed, 0
/// recycled; write=4.327 s, sync=0.007 s, total=4.343 s; sync files=11, longest=0.004 s, average=0.001 s; distance=260
/// kB, estimate=260 kB`, and the same of older versions.
pub(crate) fn checkpoint(message: &[u8]) -> [Option<u64>; CHECKPOINT.len()] {
    let mut found = [None; CHECKPOINT.len()];
    for clause in message.split(|byte| matches!(byte, b',' | b';')) {
        let clause = clause.trim_ascii();
        if let Some(open) = memchr::memmem::find(clause, b" buffers (") {
            found[0] = scaled(&clause[open + 10..], 1);
        } else if clause.ends_with(b" added") {
            found[1] = scaled(clause, 0);
        } else if clause.ends_with(b" removed") {
            found[2] = scaled(clause, 0);
        } else if clause.ends_with(b" recycled") {
            found[3] = scaled(clause, 0);
        } else if let Some(rest) = clause.strip_prefix(b"sync files=") {
            found[4] = scaled(rest, 0);
        } else if let Some(rest) = clause.strip_prefix(b"longest=") {
            found[5] = scaled(rest, 6);
        } else if let Some(rest) = clause.strip_prefix(b"estimate=") {
            found[6] = scaled(rest, 0);
        }
    }
    found
}

/// Parse the lines after `automatic vacuum of table "d.s.t": index scans: 1`. The lines of indexes begin differently.
fn vacuum(message: &[u8]) -> [u64; VACUUM.len()] {
    let mut found = [0; VACUUM.len()];
    for line in message.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if let Some(at) = memchr::memmem::find(line, b"index scans: ") {
            found[0] = scaled(&line[at + 13..], 0).unwrap_or(0);
        } else if let Some(rest) = line.strip_prefix(b"pages: ") {
            found[1] = named(rest, b"removed");
        } else if let Some(rest) = line.strip_prefix(b"tuples: ") {
            found[2] = named(rest, b"removed");
            found[3] = named(rest, b"are dead but not yet removable");
        } else if let Some(rest) = line.strip_prefix(b"buffer usage: ") {
            found[4] = named(rest, b"hits");
            // "reads" since version 18.
            found[5] = named(rest, b"misses") + named(rest, b"reads");
            found[6] = named(rest, b"dirtied");
        } else if let Some(rest) = line.strip_prefix(b"WAL usage: ") {
            found[7] = named(rest, b"records");
            found[8] = named(rest, b"full page images");
            found[9] = named(rest, b"bytes");
        }
    }
    found
}

/// Return the number before a name in `1741 hits, 3 misses, 5 dirtied`; 0 if there is none.
fn named(text: &[u8], name: &[u8]) -> u64 {
    let mut clauses = text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let found = clauses.find_map(|clause| {
        let space = memchr::memchr(b' ', clause)?;
        (&clause[space + 1..] == name).then(|| scaled(clause, 0))?
    });
    found.unwrap_or(0)
}

/// Parse the decimal number at the beginning of a text, times ten to the power of `places`.
fn scaled(text: &[u8], places: usize) -> Option<u64> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = digits(text);
    let whole = std::str::from_utf8(&text[..length]).ok()?.parse().ok()?;
    let fraction = text[length..].strip_prefix(b".").unwrap_or_default();
    let fraction = &fraction[..digits(fraction)];
    (0..places).try_fold(whole, |number: u64, place| {
        let digit = fraction.get(place).map_or(0, |byte| u64::from(byte - b'0'));
        number.checked_mul(10)?.checked_add(digit)
    })
}

form!(Background { vacuums });
form_tuple!(Vacuumed { 0, 1, 2 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_of_all_versions_are_read() {
        for (message, expected) in [
            (
                "checkpoint complete: wrote 44 buffers (0.3%), wrote 1 SLRU buffers; 1 WAL file(s) added, 2 removed, 33 recycled; write=4.327 s, sync=0.007 s, total=4.343 s; sync files=11, longest=0.004 s, average=0.001 s; distance=260 kB, estimate=270 kB; lsn=0/1, redo lsn=0/1",
                [
                    Some(3),
                    Some(1),
                    Some(2),
                    Some(33),
                    Some(11),
                    Some(4_000),
                    Some(270),
                ],
            ),
            (
                "checkpoint complete: wrote 16384 buffers (100.0%); 0 transaction log file(s) added, 0 removed, 64 recycled; write=29.1 s, sync=1.2 s, total=31 s; sync files=9, longest=0.8 s, average=0.1 s",
                [
                    Some(1_000),
                    Some(0),
                    Some(0),
                    Some(64),
                    Some(9),
                    Some(800_000),
                    None,
                ],
            ),
        ] {
            assert_eq!(checkpoint(message.as_bytes()), expected);
        }
    }

    #[test]
    fn vacuums_of_all_versions_are_read() {
        let new = "automatic vacuum of table \"d.s.t\": index scans: 1\n\
            \tpages: 3 removed, 440 remain, 443 scanned (100.00% of total)\n\
            \ttuples: 10000 removed, 90000 remain, 7 are dead but not yet removable\n\
            \tindex scan needed: 443 pages from table (100.00% of total) had 10000 dead item identifiers removed\n\
            \tindex \"t_pkey\": pages: 276 in total, 0 newly deleted, 0 currently deleted, 0 reusable\n\
            \tavg read rate: 0.500 MB/s, avg write rate: 1.000 MB/s\n\
            \tbuffer usage: 1741 hits, 4 reads, 5 dirtied\n\
            \tWAL usage: 1062 records, 2 full page images, 245637 bytes, 0 buffers full\n\
            \tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 0.03 s";
        let expected = [1, 3, 10_000, 7, 1_741, 4, 5, 1_062, 2, 245_637];
        assert_eq!(vacuum(new.as_bytes()), expected);
        let old = "automatic vacuum of table \"d.s.t\": index scans: 0\n\
            \tpages: 0 removed, 1 remain, 0 skipped due to pins, 0 skipped frozen\n\
            \ttuples: 60 removed, 60 remain, 0 are dead but not yet removable, oldest xmin: 500\n\
            \tbuffer usage: 49 hits, 1 misses, 2 dirtied\n\
            \tsystem usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.00 s";
        assert_eq!(vacuum(old.as_bytes()), [0, 0, 60, 0, 49, 1, 2, 0, 0, 0]);
        let analyze = "automatic analyze of table \"d.s.t\"\n\
            \tbuffer usage: 100 hits, 1 misses, 2 dirtied\n\
            \tsystem usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.00 s";
        assert_eq!(vacuum(analyze.as_bytes())[4..7], [100, 1, 2]);
        assert_eq!(
            vacuum(b"automatic analyze of table \"d.s.t\" system usage: CPU: user: 0.00 s"),
            [0; 10]
        );
    }
}
