//! PostgreSQL's random number generator, and pgbench's distributions.

use crate::value::{to_double, truncate};

/// The least parameter of a Gaussian distribution.
pub(crate) const LEAST_GAUSSIAN: f64 = 2.0;
/// The least parameter of a Zipfian distribution.
pub(crate) const LEAST_ZIPFIAN: f64 = 1.001;
/// The greatest parameter of a Zipfian distribution.
pub(crate) const GREATEST_ZIPFIAN: f64 = 1000.0;

/// xoroshiro128** (Blackman and Vigna), seeded by splitmix64: the generator of PostgreSQL 15 and
/// later. The same seed draws the same numbers as pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prng {
    low: u64,
    high: u64,
}

impl Prng {
    /// Create the generator for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let low = splitmix(&mut state);
        let high = splitmix(&mut state);
        if low == 0 && high == 0 {
            // All zeros would stay all zeros; PostgreSQL replaces them with Knuth's constants.
            return Self {
                low: 0x5851_F42D_4C95_7F2D,
                high: 0x1405_7B7E_F767_814F,
            };
        }
        Self { low, high }
    }

    /// A number of 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let low = self.low;
        let mixed = self.high ^ low;
        self.low = low.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.high = mixed.rotate_left(37);
        low.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// Return a number from 0 to `greatest`, uniformly: bits are drawn until they fit. Nothing is
    /// drawn if `greatest` is 0.
    #[inline]
    pub fn up_to(&mut self, greatest: u64) -> u64 {
        if greatest == 0 {
            return 0;
        }
        let shift = greatest.leading_zeros();
        loop {
            let number = self.bits() >> shift;
            if number <= greatest {
                return number;
            }
        }
    }

    /// Return a double in [0, 1), from 52 random bits.
    #[inline]
    pub fn double(&mut self) -> f64 {
        const STEP: f64 = 1.0 / 4_503_599_627_370_496.0;
        // 52 bits are exact as a double, and stay exact when divided by a power of two.
        #[allow(clippy::cast_precision_loss)]
        let numerator = (self.bits() >> 12) as f64;
        numerator * STEP
    }

    /// Choose an index in proportion to `weights`, as pgbench chooses a script: nothing is drawn if there is only one.
    /// 0 if all weights are 0.
    pub fn pick(&mut self, weights: &[u32]) -> usize {
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        if weights.len() < 2 || total == 0 {
            return 0;
        }
        let mut drawn = self.up_to(total - 1);
        for (index, &weight) in weights.iter().enumerate() {
            match drawn.checked_sub(u64::from(weight)) {
                Some(rest) => drawn = rest,
                None => return index,
            }
        }
        0
    }

    /// Return an integer from `least` to `greatest`, uniformly.
    #[inline]
    pub(crate) fn uniform(&mut self, least: i64, greatest: i64) -> i64 {
        least.wrapping_add_unsigned(self.up_to(greatest.abs_diff(least)))
    }

    /// Return an integer from `least` to `greatest`, exponentially distributed with the most near `least`; `parameter`
    /// > 0.
    pub(crate) fn exponential(&mut self, least: i64, greatest: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.double();
        let fraction = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        place(least, greatest, fraction)
    }

    /// Return an integer from `least` to `greatest`, normally distributed around their middle; `parameter` is the
    /// number of standard deviations on each side of it, at least [`LEAST_GAUSSIAN`].
    pub(crate) fn gaussian(&mut self, least: i64, greatest: i64, parameter: f64) -> i64 {
        let deviation = loop {
            // The Box-Muller transform.
            let radius = 1.0 - self.double();
            let angle = 1.0 - self.double();
            let normal = (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).sin();
            let outside = normal < -parameter || normal >= parameter;
            if !outside {
                break normal;
            }
        };
        place(least, greatest, (deviation + parameter) / (parameter * 2.0))
    }

    /// Return an integer from `least` to `greatest`, Zipf-distributed: the k-th has a probability
    /// proportional to `1 / k ** parameter`, [`LEAST_ZIPFIAN`] to [`GREATEST_ZIPFIAN`]. By
    /// rejection (Devroye, "Non-Uniform Random Variate Generation", 1986, p. 550).
    pub(crate) fn zipfian(&mut self, least: i64, greatest: i64, parameter: f64) -> i64 {
        let count = greatest.wrapping_sub(least).wrapping_add(1);
        let rank = if count <= 1 {
            1
        } else {
            self.zipfian_rank(to_double(count), parameter)
        };
        least.wrapping_sub(1).wrapping_add(rank)
    }

    fn zipfian_rank(&mut self, count: f64, parameter: f64) -> i64 {
        let power = parameter - 1.0;
        let base = 2.0_f64.powf(power);
        loop {
            let first = self.double();
            let second = self.double();
            let rank = first.powf(-1.0 / power).floor();
            let step = (1.0 + 1.0 / rank).powf(power);
            if second * rank * (step - 1.0) / (base - 1.0) <= step / base && rank <= count {
                return truncate(rank);
            }
        }
    }
}

/// Return the integer at a `fraction` from 0 to 1 of the way from `least` to `greatest`.
fn place(least: i64, greatest: i64, fraction: f64) -> i64 {
    let count = to_double(greatest.wrapping_sub(least).wrapping_add(1));
    least.wrapping_add(truncate(count * fraction))
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = *state;
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_one_draws_nothing() {
        let mut prng = Prng::new(1);
        assert_eq!(prng.pick(&[7]), 0);
        assert_eq!(prng.pick(&[]), 0);
        assert_eq!(prng, Prng::new(1));
    }

    #[test]
    fn a_choice_follows_the_weights() {
        let mut prng = Prng::new(42);
        let mut chosen = [0_u32; 3];
        for _ in 0..40_000 {
            chosen[prng.pick(&[3, 0, 1])] += 1;
        }
        assert_eq!(chosen[1], 0);
        assert!((29_000..31_000).contains(&chosen[0]), "{chosen:?}");
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut prng = Prng::new(7);
        for _ in 0..10_000 {
            assert!((-3..=5).contains(&prng.uniform(-3, 5)));
            assert!((10..=20).contains(&prng.exponential(10, 20, 0.5)));
            assert!((10..=20).contains(&prng.gaussian(10, 20, 2.0)));
            assert!((10..=20).contains(&prng.zipfian(10, 20, 1.2)));
            assert!((0.0..1.0).contains(&prng.double()));
        }
        assert_eq!(prng.uniform(4, 4), 4);
        assert_eq!(prng.zipfian(4, 4, 1.5), 4);
    }
}
