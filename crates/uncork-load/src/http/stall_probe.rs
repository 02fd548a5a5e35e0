//! Detects answers that stall because the server waits for our acknowledgement. Pure.
//!
//! A server that uses Nagle's algorithm and writes the head of an answer and then its body keeps the body back until
//! the head is acknowledged. The receiving kernel delays the acknowledgement by 40 ms, in the hope of sending it along
//! with data. So the rest arrives about 40 ms after the beginning. The same happens with a service that works for 40
//! ms between the two. An experiment tells them apart: in a few such silences, chosen at random, the received bytes
//! are acknowledged after 10 ms (`TCP_QUICKACK`). If the rest then arrives at once, it had waited for the
//! acknowledgement. The experiment begins only after answers have stalled, and shortens at most a few of them.

use std::ops::Range;

use uncork_script::Prng;

/// The shortest silence in the middle of an answer that may take part in the experiment.
pub(crate) const SILENCE_NS: u64 = 10_000_000;
/// The range of silences that look like a delayed acknowledgement: Linux delays by 40 ms, and its
/// clock counts in steps of up to 4 ms.
pub(crate) const STALL_NS: Range<u64> = 35_000_000..50_000_000;
/// How many answers must have stalled before the experiment begins.
const FIRST: u32 = 4;
/// The most silences of a thread that take part.
const MOST_DRAWN: u64 = 16;

/// The experiment of one thread.
#[derive(Debug)]
pub(crate) struct StallProbe {
    stalls: u32,
    /// Number of silences that may still take part, and how many of them are to be shortened.
    left: u64,
    hasten: u64,
    random: Prng,
    /// The connection that is in the middle of an answer, and takes part if it stays silent.
    pub(crate) watched: Option<usize>,
}

impl StallProbe {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            stalls: 0,
            left: MOST_DRAWN,
            hasten: MOST_DRAWN / 2,
            random: Prng::new(seed),
            watched: None,
        }
    }

    /// Count an answer that has stalled.
    pub(crate) fn stalled(&mut self) {
        self.stalls = self.stalls.saturating_add(1);
    }

    /// Whether the experiment needs another connection.
    pub(crate) fn wants(&self) -> bool {
        self.watched.is_none() && self.stalls >= FIRST && self.left > 0
    }

    /// Decide whether a silence is shortened. Half of all are, in random order, so that neither a drift nor a rhythm
    /// of the server can look like an effect.
    pub(crate) fn draw(&mut self) -> bool {
        let hastens = self.random.up_to(self.left.saturating_sub(1)) < self.hasten;
        self.left = self.left.saturating_sub(1);
        self.hasten -= u64::from(hastens);
        hastens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_waits_for_stalls_and_hastens_half_of_a_few() {
        let mut first = 0;
        for seed in 0..400 {
            let mut probe = StallProbe::new(seed);
            for _ in 0..FIRST {
                assert!(!probe.wants());
                probe.stalled();
            }
            let mut drawn = Vec::new();
            while probe.wants() {
                drawn.push(probe.draw());
            }
            assert_eq!(drawn.len() as u64, MOST_DRAWN);
            assert_eq!(
                drawn.iter().filter(|&&it| it).count() as u64,
                MOST_DRAWN / 2
            );
            first += u32::from(drawn[0] && drawn[15]);
        }
        // 8 / 16 × 7 / 15 of 400, by three standard deviations.
        assert!((93 - 26..93 + 26).contains(&first), "{first}");
    }

    #[test]
    fn one_connection_is_watched_at_a_time() {
        let mut probe = StallProbe::new(1);
        (0..FIRST).for_each(|_| probe.stalled());
        probe.watched = Some(3);
        assert!(!probe.wants());
    }
}
