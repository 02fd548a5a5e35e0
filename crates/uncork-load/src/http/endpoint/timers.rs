//! The timers of connections whose transport runs here: QUIC repeats lost packets, delays
//! acknowledgements, and paces what it sends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::HttpEndpoint;

/// When connections have something to do, the earliest first. A connection has one valid entry at
/// most, which may be too early: most timers move with every packet.
#[derive(Debug, Default)]
pub(super) struct Timers {
    entries: BinaryHeap<Reverse<(u64, usize)>>,
    /// The time of each connection's valid entry; `u64::MAX` if there is none.
    planned_ns: Vec<u64>,
}

impl Timers {
    /// When the next one may be due.
    pub(super) fn next_ns(&self) -> u64 {
        let next = self.entries.peek();
        next.map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns)
    }

    /// Remember that a connection has something to do at `at_ns`, unless it is looked after earlier.
    pub(super) fn plan(&mut self, connection: usize, at_ns: u64) {
        if self.planned_ns.len() <= connection {
            self.planned_ns.resize(connection + 1, u64::MAX);
        }
        if at_ns < self.planned_ns[connection] {
            self.planned_ns[connection] = at_ns;
            self.entries.push(Reverse((at_ns, connection)));
        }
    }

    /// Take a connection that may have something to do by now.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(&Reverse((at_ns, connection))) = self.entries.peek()
            && at_ns <= now_ns
        {
            self.entries.pop();
            if self.planned_ns[connection] == at_ns {
                self.planned_ns[connection] = u64::MAX;
                return Some(connection);
            }
        }
        None
    }
}

impl HttpEndpoint {
    /// Remember when a connection next has something to do.
    pub(super) fn plan_timer(&mut self, connection: usize) {
        if let Some(at_ns) = self.connections[connection].timer_ns(self.state.origin) {
            self.timers.plan(connection, at_ns);
        }
    }

    /// Let connections do what is due.
    pub(super) fn fire_timers(&mut self, now_ns: u64) {
        while let Some(connection) = self.timers.due(now_ns) {
            match self.connections[connection].timer_ns(self.state.origin) {
                Some(at_ns) if at_ns <= now_ns => self.ready.push_back(connection),
                _ => self.plan_timer(connection),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_looked_after_at_its_earliest_time_once() {
        let mut timers = Timers::default();
        assert_eq!((timers.next_ns(), timers.due(9)), (u64::MAX, None));
        timers.plan(2, 50);
        timers.plan(2, 70);
        timers.plan(0, 60);
        timers.plan(2, 40);
        assert_eq!((timers.next_ns(), timers.due(39)), (40, None));
        assert_eq!(timers.due(55), Some(2));
        assert_eq!(
            timers.due(55),
            None,
            "the later entry is not valid any more"
        );
        timers.plan(2, 80);
        assert_eq!((timers.due(100), timers.due(100)), (Some(0), Some(2)));
        assert_eq!(timers.due(u64::MAX), None);
    }
}
