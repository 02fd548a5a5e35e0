//! How a process takes part in a load that several processes send together.

use std::path::PathBuf;

use serde::Deserialize;

use crate::Stop;

/// One process's part of a load. Clients, rates and counts of the plan are those of the whole load;
/// threads are those of each process.
///
/// All processes together number threads, clients and operations as one process with `count` times
/// as many threads would. The default is the whole load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartPlan {
    /// Which part, from 0.
    pub index: usize,
    /// How many parts there are, at least 1.
    pub count: usize,
    /// When the measured part starts, on this machine's monotonic clock; `null` is as soon as all
    /// threads are ready.
    pub start_at_ns: Option<u64>,
    /// The load stops when its lease was not renewed for this long; `null` needs no lease.
    pub lease_ns: Option<u64>,
    /// A file with one 64-bit little-endian number for each thread: an upper bound of the operations
    /// that it has begun, written before they begin. It outlives a process that is killed.
    pub reservations: Option<PathBuf>,
}

impl Default for PartPlan {
    fn default() -> Self {
        Self {
            index: 0,
            count: 1,
            start_at_ns: None,
            lease_ns: None,
            reservations: None,
        }
    }
}

impl PartPlan {
    /// This part's share of a number of operations.
    #[must_use]
    pub fn share(&self, operations: u64) -> u64 {
        let (index, count) = (self.index as u64, self.count as u64);
        operations / count + u64::from(index < operations % count)
    }

    /// This part's share of a stop rule of a closed loop.
    #[must_use]
    pub fn stop(&self, stop: Stop) -> Stop {
        match stop {
            Stop::Operations(operations) => Stop::Operations(self.share(operations)),
            Stop::OperationsEach(_) | Stop::DurationNs(_) => stop,
        }
    }

    /// The number, over all parts, of this part's operation `local`, from 0: every `count`-th.
    #[must_use]
    pub fn number(&self, local: u64) -> u64 {
        self.index as u64 + local * self.count as u64
    }

    /// Whether this is only a part of a load, or starts and ends together with other parts.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.count == 1 && self.start_at_ns.is_none() && self.lease_ns.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_operations_and_their_numbers() {
        for count in 1..5 {
            for operations in [0, 1, 7, 12] {
                let parts = (0..count).map(|index| PartPlan {
                    index,
                    count,
                    ..PartPlan::default()
                });
                let mut numbers: Vec<u64> = parts
                    .flat_map(|part| {
                        (0..part.share(operations)).map(move |local| part.number(local))
                    })
                    .collect();
                numbers.sort_unstable();
                assert_eq!(numbers, (0..operations).collect::<Vec<_>>());
            }
        }
    }
}
