//! A Poisson process, thinned over threads.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// One thread's share of a Poisson process.
///
/// Each thread has its own process of rate `rate / threads`; several independent Poisson
/// processes together are one of the sum of their rates (Kingman, *Poisson Processes*, 1993,
/// section 2.2). Threads draw from one generator (xoshiro256++, Blackman and Vigna, 2021) 2^128
/// numbers apart, so their streams never overlap.
#[derive(Debug, Clone)]
pub(crate) struct Poisson {
    random: Xoshiro256PlusPlus,
    mean_gap_ns: f64,
    /// The last arrival: `whole_ns + fraction_ns`, `fraction_ns` in [0, 1). A sum in `f64` alone
    /// would round each gap to the sum's precision, more coarsely the longer the trial lasts;
    /// whole nanoseconds alone would cut half a nanosecond off each gap, 0.05 % at 10^6 a second.
    /// This way the sum's error is that of the gaps, 10^-16 of each. `None` after the end of time.
    whole_ns: Option<u64>,
    fraction_ns: f64,
}

impl Poisson {
    /// The share of `thread` out of `threads`.
    pub(crate) fn new(rate: f64, seed: u64, thread: usize, threads: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..thread {
            random.jump();
        }
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 threads")]
        let threads = threads as f64;
        Self {
            random,
            mean_gap_ns: 1e9 * threads / rate,
            whole_ns: Some(0),
            fraction_ns: 0.0,
        }
    }

    /// A gap to the next arrival, in nanoseconds, at least 0.
    fn gap_ns(&mut self) -> f64 {
        // 1 to 2^53 steps of 2^-53: never 0, whose logarithm is infinite.
        const STEP: f64 = f64::EPSILON / 2.0;
        #[expect(clippy::cast_precision_loss, reason = "at most 2^53, which is exact")]
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 * STEP;
        -libm::log(uniform) * self.mean_gap_ns
    }
}

impl Iterator for Poisson {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let sum = self.fraction_ns + self.gap_ns();
        let whole = sum.trunc();
        self.fraction_ns = sum - whole;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number of at least 0; the cast stops at u64::MAX, the end of time"
        )]
        let whole = whole as u64;
        self.whole_ns = self.whole_ns.and_then(|before| before.checked_add(whole));
        self.whole_ns
    }
}
