//! Finds servers whose logs overlap in time: read one after the other, they do not show the order of entries.

use std::collections::{BTreeMap, BTreeSet};

use uncork_log::Micros;

use crate::crew::FileReport;

/// Entries of several sessions may be out of order by this much.
const SLACK: Micros = 1_000_000;
/// A busy server logs by this much late, also where it begins its next file. Each session's entries are in order then.
const LATE: Micros = 60_000_000;
/// A shorter overlap still counts if it is at least this part of the shorter file.
const PART: Micros = 10;

/// Return the numbers of servers of which two files overlap by more than the end of one and the beginning of the next.
pub(crate) fn interleaved(files: &[FileReport]) -> BTreeSet<u32> {
    let mut servers: BTreeMap<u32, Vec<(Micros, Micros)>> = BTreeMap::new();
    for file in files {
        if let Some(seen) = file.seen {
            servers.entry(file.server).or_default().push(seen);
        }
    }
    let overlaps = |mut spans: Vec<(Micros, Micros)>| {
        spans.sort_unstable();
        // The file that ends last shares most with the next one.
        let mut latest: Option<(Micros, Micros)> = None;
        spans.iter().any(|span| {
            let is_shared = latest.is_some_and(|before| shares(before, *span));
            latest = latest.filter(|before| before.1 >= span.1).or(Some(*span));
            is_shared
        })
    };
    let found = servers.into_iter();
    let found = found.filter_map(|(server, spans)| overlaps(spans).then_some(server));
    found.collect()
}

/// Whether two spans of time, of which the first begins first, share too much.
fn shares(one: (Micros, Micros), other: (Micros, Micros)) -> bool {
    let shared = one.1.min(other.1) - other.0;
    let shorter = (one.1 - one.0).min(other.1 - other.0);
    shared > SLACK && (shared > LATE || shared.saturating_mul(PART) >= shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(spans: &[(u32, i64, i64)]) -> Vec<u32> {
        let file = |(server, begin, end): &(u32, i64, i64)| FileReport {
            server: *server,
            seen: Some((begin * 1_000_000, end * 1_000_000)),
            ..FileReport::default()
        };
        let mut files: Vec<FileReport> = spans.iter().map(file).collect();
        files.push(FileReport::default());
        interleaved(&files).into_iter().collect()
    }

    #[test]
    fn only_files_that_share_more_than_a_rotation_overlap() {
        assert_eq!(found(&[]), [0; 0]);
        assert_eq!(found(&[(0, 0, 3_600), (0, 3_599, 7_200)]), [0; 0]);
        // A busy server that logs late.
        assert_eq!(found(&[(0, 0, 3_600), (0, 3_570, 7_200)]), [0; 0]);
        assert_eq!(found(&[(0, 3_570, 7_200), (0, 0, 3_631)]), [0]);
        // Two collectors, for some seconds.
        assert_eq!(found(&[(0, 0, 20), (0, 5, 20)]), [0]);
        // A short file within a long one, which others follow.
        assert_eq!(
            found(&[(0, 0, 9_000), (0, 9_000, 9_100), (0, 100, 103), (1, 0, 9)]),
            [0]
        );
        // Another server's files do not matter.
        assert_eq!(
            found(&[(0, 0, 100), (1, 0, 100), (2, 0, 100), (2, 50, 100)]),
            [2]
        );
    }
}
