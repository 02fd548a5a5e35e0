//! Equal gaps without drift.

const NANOSECONDS: u128 = 1_000_000_000;

/// The times of a constant rate, each computed from its number alone.
///
/// A rate is a fraction of two whole numbers (every finite `f64` is), so arrival `k` is at
/// `k * 10^9 / rate` nanoseconds exactly, rounded to the nearest one: adding up rounded gaps would
/// drift by up to half a nanosecond an arrival, half a second in 10^9 arrivals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spaced {
    /// The rate's numerator, below 2^53.
    numerator: u128,
    /// The gap is `whole_ns + remainder / numerator`, with `remainder < numerator`.
    whole_ns: u128,
    remainder: u128,
}

impl Spaced {
    /// The times of `rate` arrivals a second; `rate` lies within the bounds of
    /// [`Pattern::check`](crate::Pattern::check).
    pub(crate) fn new(rate: f64) -> Self {
        const FRACTION_BITS: u32 = 52;
        // What makes the fraction of an f64 a whole number: its exponent is biased by 1023.
        const BIAS: u64 = 1023 + FRACTION_BITS as u64;
        let bits = rate.to_bits();
        let numerator = u128::from(bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS);
        // rate = numerator / 2^shift. Between 1e-9 and 1e9 the shift lies between 23 and 82, so
        // that 10^9 * 2^shift has at most 112 bits.
        let shift = BIAS - (bits >> FRACTION_BITS);
        let gap = NANOSECONDS << shift;
        Self {
            numerator,
            whole_ns: gap / numerator,
            remainder: gap % numerator,
        }
    }

    /// When arrival `index` (from 0, which is at 0) is due, in nanoseconds; `None` beyond what 64
    /// bits hold (584 years).
    pub(crate) fn at(&self, index: u64) -> Option<u64> {
        // At most 64 + 60 and 64 + 53 bits.
        let index = u128::from(index);
        let fraction = (index * self.remainder + self.numerator / 2) / self.numerator;
        u64::try_from(index * self.whole_ns + fraction).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_three_is_rounded_each_time_anew() {
        let thirds = Spaced::new(3.0);
        let times: Vec<_> = (0..4).map(|index| thirds.at(index)).collect();
        assert_eq!(
            times,
            [0, 333_333_333, 666_666_667, 1_000_000_000].map(Some)
        );
    }

    #[test]
    fn the_thousand_millionth_arrival_has_not_drifted() {
        for (rate, index, expected_ns) in [
            (3.0, 3_000_000_000, 1_000_000_000_000_000_000),
            (7.0, 1_000_000_001, 142_857_143_000_000_000),
            (1000.0, 1_000_000_000, 1_000_000_000_000_000),
            (1e6, 36_000_000_000, 36_000_000_000_000),
            (1e9, u64::MAX, u64::MAX),
            (0.5, 9_000_000_000, 18_000_000_000_000_000_000),
            (1024.0, 1_000_000_000, 976_562_500_000_000),
        ] {
            assert_eq!(Spaced::new(rate).at(index), Some(expected_ns), "{rate}");
        }
    }

    #[test]
    fn times_beyond_64_bits_do_not_exist() {
        assert_eq!(Spaced::new(0.5).at(10_000_000_000), None);
        assert!(Spaced::new(1e-9).at(18).is_some());
        assert_eq!(Spaced::new(1e-9).at(19), None);
        assert_eq!(Spaced::new(1e-9).at(u64::MAX), None);
    }
}
