//! Answers that stand still half-way, and whether they wait for us. Pure.
//!
//! A server with Nagle's algorithm on that writes the head of an answer and then its body keeps the body back
//! until the head is acknowledged, and the receiving kernel delays that by 40 ms, in the hope of something to
//! send it with. So the rest comes about 40 ms after the beginning. That of a service which works as long
//! between the two does as well; a trial tells them apart. In a few such silences, drawn by lot, what was
//! received is acknowledged after 10 ms (`TCP_QUICKACK`): where the rest then comes at once, it had waited for
//! that. The trial begins only where answers have stalled, and shortens at most a few of them.

use std::ops::Range;

use uncork_script::Prng;

/// A silence in the middle of an answer from which on it may take part in the trial.
pub(crate) const SILENCE_NS: u64 = 10_000_000;
/// A silence that looks like a delayed acknowledgement: Linux delays by 40 ms, and its clock counts
/// in steps of up to 4.
pub(crate) const STALL_NS: Range<u64> = 35_000_000..50_000_000;
/// Answers that must have stalled before anything is tried.
const FIRST: u32 = 4;
/// Silences of a thread that take part at most.
const MOST_DRAWN: u64 = 16;

/// One thread's trial.
#[derive(Debug)]
pub(crate) struct StallProbe {
    stalls: u32,
    /// Lots that are left, and those of them that hasten.
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

    /// An answer has stalled.
    pub(crate) fn stalled(&mut self) {
        self.stalls = self.stalls.saturating_add(1);
    }

    /// Whether another connection is wanted.
    pub(crate) fn wants(&self) -> bool {
        self.watched.is_none() && self.stalls >= FIRST && self.left > 0
    }

    /// Draws a lot that was not drawn yet: whether a silence is hastened. Half of all are, in an order
    /// by chance, so that neither a drift nor a rhythm of the server can pass for an effect.
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
