//! Recognises logs that are written newest first, as some consoles and exports do.

use uncork_log::{Dialect, Entry, Micros, Side, Sink};

/// The fewest entries in descending order that count.
const LEAST: u64 = 3;
/// Entries of several sessions may be out of order by this much.
const SLACK: Micros = 1_000_000;

/// What to tell about a log that is written newest first; `None` if it is not.
///
/// `text` is its beginning, unwrapped and up to the end of a line.
pub(crate) fn newest_first(mut dialect: Dialect, text: &[u8]) -> Option<&'static str> {
    let mut order = Order::default();
    dialect.scan(text, 0, &mut order);
    if !order.is_descending() {
        return None;
    }
    Some(if order.continuations == 0 {
        "its entries are newest first, and logs are read oldest first; reverse it: \
         tac FILE | uncork profile logs -"
    } else {
        "its entries are newest first, and logs are read oldest first; export it in ascending order of time"
    })
}

/// The order of entries by time.
#[derive(Debug, Default)]
struct Order {
    /// The times of the first and of the last entry.
    times: Option<(Micros, Micros)>,
    up: u64,
    down: u64,
    continuations: u64,
}

impl Order {
    fn is_descending(&self) -> bool {
        let fallen = self.times.map_or(0, |(first, last)| first - last);
        self.down >= LEAST && self.up * 10 <= self.down && fallen > SLACK
    }
}

impl Sink for Order {
    fn entry(&mut self, entry: &Entry<'_>) {
        let Some(time) = entry.head.time else {
            return;
        };
        let (first, last) = self.times.unwrap_or((time, time));
        self.up += u64::from(time > last);
        self.down += u64::from(time < last);
        self.times = Some((first, time));
    }

    fn rejected(&mut self, _offset: u64, _line: &[u8]) {}

    fn lines(&mut self, _heads: u64, continuations: u64) {
        self.continuations += continuations;
    }

    fn pooler(&mut self, entry: &Entry<'_>, _side: Option<Side>) {
        self.entry(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seconds: &[i64], further: &str) -> Option<&'static str> {
        let lines = seconds.iter().map(|second| {
            format!(
                "2026-05-31 08:{:02}:{:02} UTC [7] LOG:  x\n{further}",
                second / 60,
                second % 60
            )
        });
        let log: String = lines.collect();
        newest_first(
            Dialect::detect(log.as_bytes()).expect("is a log"),
            log.as_bytes(),
        )
    }

    #[test]
    fn only_logs_whose_times_fall_are_newest_first() {
        let falling: Vec<i64> = (0..100).rev().collect();
        assert!(told(&falling, "").is_some_and(|text| text.contains("tac FILE")));
        assert!(told(&falling, "\tmore\n").is_some_and(|text| !text.contains("tac")));
        for rising in [
            &[5, 4][..],
            &[0, 0, 0, 0],
            &[3, 2, 2, 3, 2, 3, 4],
            &[100, 1, 2, 3, 4, 5, 6],
        ] {
            assert_eq!(told(rising, ""), None, "{rising:?}");
        }
        let rising: Vec<i64> = (0..100).collect();
        assert_eq!(told(&rising, ""), None);
    }
}
