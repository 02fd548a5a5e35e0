//! Limits the share of time that the sampler spends on costlier readings. Pure.

/// A budget that grows with time, up to one second's share. Overspending makes it negative until
/// enough time has passed, so that in the long run no more than the share is spent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeBudget {
    /// Nanoseconds that may be spent per million.
    share_ppm: u64,
    left_ns: i64,
}

impl TimeBudget {
    pub(crate) fn new(share_ppm: u64) -> Self {
        Self {
            share_ppm,
            left_ns: 0,
        }
    }

    /// Let time pass.
    pub(crate) fn grow(&mut self, passed_ns: u64) {
        let grown = i64::try_from(passed_ns * self.share_ppm / 1_000_000).unwrap_or(i64::MAX);
        let most = i64::try_from(self.share_ppm * 1_000).unwrap_or(i64::MAX);
        self.left_ns = self.left_ns.saturating_add(grown).min(most);
    }

    /// Whether anything may be spent.
    pub(crate) fn allows(&self) -> bool {
        self.left_ns > 0
    }

    pub(crate) fn spend(&mut self, cost_ns: u64) {
        let cost = i64::try_from(cost_ns).unwrap_or(i64::MAX);
        self.left_ns = self.left_ns.saturating_sub(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_share_is_spent_in_the_long_run() {
        let mut budget = TimeBudget::new(3_000);
        let mut spent_ns = 0;
        for _ in 0..1_000 {
            budget.grow(100_000_000);
            while budget.allows() {
                budget.spend(700_000);
                spent_ns += 700_000;
            }
        }
        let passed_ns = 1_000 * 100_000_000_u64;
        assert!(spent_ns <= passed_ns * 3_000 / 1_000_000 + 700_000);
        assert!(spent_ns > passed_ns * 2_900 / 1_000_000);
    }

    #[test]
    fn what_was_not_spent_for_long_does_not_pile_up() {
        let mut budget = TimeBudget::new(1_000);
        assert!(!budget.allows());
        budget.grow(3_600_000_000_000);
        budget.spend(1_000_000);
        assert!(!budget.allows());
    }
}
