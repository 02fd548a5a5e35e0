//! When a server had most to do, and the second in which most statements ended.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::form::{form, form_tuple};
use crate::read::time::Micros;

/// Beyond this many minutes, the half with the lowest peaks is dropped: logs are in order, so they grow no more.
const MINUTES: usize = 20_000;
const SECONDS: usize = 60;
const SECOND: Micros = 1_000_000;

/// When a server had most to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Busiest {
    /// The second in which most executions ended, since 1970, and their number.
    pub second: Option<(i64, u32)>,
    /// How many sessions were open at once at least, and since when.
    pub sessions: Option<(u64, Option<Micros>)>,
}

/// Counts statements by the second in which they ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rates {
    /// The second of the last statements: from when, until when, and their number. Logs are nearly in order.
    open: (Micros, Micros, u32),
    minutes: HashMap<i64, [u32; SECONDS]>,
}

impl Rates {
    pub(crate) fn add(&mut self, time: Micros) {
        if (self.open.0..self.open.1).contains(&time) {
            self.open.2 += 1;
            return;
        }
        self.close();
        let begin = time.div_euclid(SECOND) * SECOND;
        self.open = (begin, begin + SECOND, 1);
    }

    fn close(&mut self) {
        let (begin, _, count) = std::mem::take(&mut self.open);
        if count > 0 {
            let second = begin.div_euclid(SECOND);
            let place = usize::try_from(second.rem_euclid(60)).unwrap_or(0);
            let counts = self
                .minutes
                .entry(second.div_euclid(60))
                .or_insert([0; SECONDS]);
            counts[place] += count;
            self.bound();
        }
    }

    fn bound(&mut self) {
        if self.minutes.len() <= MINUTES {
            return;
        }
        let mut order: Vec<(Reverse<u32>, i64)> = self
            .minutes
            .iter()
            .map(|(minute, counts)| (Reverse(counts.iter().copied().max().unwrap_or(0)), *minute))
            .collect();
        order.sort_unstable();
        for (_, minute) in &order[MINUTES / 2..] {
            self.minutes.remove(minute);
        }
    }

    /// Return the second in which most statements ended, since 1970, and their number; the first of several.
    pub(crate) fn peak(mut self) -> Option<(i64, u32)> {
        self.close();
        let seconds = self.minutes.iter().flat_map(|(minute, counts)| {
            (minute * 60..)
                .zip(counts)
                .map(|(second, count)| (*count, Reverse(second)))
        });
        let (count, Reverse(second)) = seconds.max()?;
        Some((second, count))
    }
}

form!(Rates { open, minutes });
form_tuple!((Micros, Micros, u32) { 0, 1, 2 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_is_found_even_out_of_order() {
        let mut rates = Rates::default();
        assert_eq!(rates.clone().peak(), None);
        for milliseconds in [
            59_000, 59_999, 60_001, 59_998, 119_000, 119_100, 60_500, 60_600,
        ] {
            rates.add(milliseconds * 1_000);
        }
        assert_eq!(rates.clone().peak(), Some((59, 3)));
        rates.add(60_700_000);
        assert_eq!(rates.peak(), Some((60, 4)));
    }

    #[test]
    fn memory_is_bounded_and_the_peak_stays() {
        let mut rates = Rates::default();
        for minute in 0..50_000 {
            rates.add(minute * 60_000_000);
            if minute == 777 {
                rates.add(minute * 60_000_000);
            }
        }
        assert!(rates.minutes.len() <= MINUTES);
        assert_eq!(rates.peak(), Some((777 * 60, 2)));
    }
}
