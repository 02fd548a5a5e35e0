//! Closed loops: a free client starts its next operation at once, until the stop rule says no.

use uncork_model::Stop;

/// What a free client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Start the operation now.
    Start,
    /// The stop rule is fulfilled: start nothing more, complete what is under way.
    Finished,
    /// The deadline has passed: start nothing more, abandon what is under way.
    OverDeadline,
}

/// Decides what a free client does next.
pub trait Schedule: Sync {
    /// Decide about operation `index` of this phase (0-based, over all clients), `elapsed_ns`
    /// after the phase began.
    fn decide(&self, index: u64, elapsed_ns: u64) -> Decision;

    /// When everything is abandoned, from the phase's beginning.
    fn deadline_ns(&self) -> u64;
}

/// Every client starts its next operation as soon as its last one has ended.
#[derive(Debug, Clone, Copy)]
pub struct ClosedLoop {
    stop: Stop,
    deadline_ns: u64,
}

impl ClosedLoop {
    /// Create a closed loop that ends by `stop`, and in any case `deadline_ns` after it began.
    ///
    /// A stop rule that counts each client's operations is up to the caller, who knows them; here
    /// it is never fulfilled.
    #[must_use]
    pub fn new(stop: Stop, deadline_ns: u64) -> Self {
        Self { stop, deadline_ns }
    }
}

impl Schedule for ClosedLoop {
    fn decide(&self, index: u64, elapsed_ns: u64) -> Decision {
        let finished = if let Stop::Operations(operations) = self.stop {
            index >= operations
        } else if let Stop::DurationNs(duration_ns) = self.stop {
            elapsed_ns >= duration_ns
        } else {
            false
        };
        if finished {
            Decision::Finished
        } else if elapsed_ns >= self.deadline_ns {
            Decision::OverDeadline
        } else {
            Decision::Start
        }
    }

    fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_operations_is_exact() {
        let schedule = ClosedLoop::new(Stop::Operations(2), 100);
        assert_eq!(schedule.decide(0, 0), Decision::Start);
        assert_eq!(schedule.decide(1, 99), Decision::Start);
        assert_eq!(schedule.decide(2, 0), Decision::Finished);
    }

    #[test]
    fn a_duration_ends_at_its_end() {
        let schedule = ClosedLoop::new(Stop::DurationNs(50), 100);
        assert_eq!(schedule.decide(u64::MAX, 49), Decision::Start);
        assert_eq!(schedule.decide(0, 50), Decision::Finished);
    }

    #[test]
    fn the_deadline_stops_what_is_not_finished() {
        let schedule = ClosedLoop::new(Stop::Operations(2), 100);
        assert_eq!(schedule.decide(1, 100), Decision::OverDeadline);
        assert_eq!(schedule.decide(2, 100), Decision::Finished);
        assert_eq!(schedule.deadline_ns(), 100);
    }
}
