//! A permission to send that ends unless it is renewed.
//!
//! Whoever started the load on another machine renews it. When that machine, the network between or
//! this process's parent is gone, nobody does, and the load ends. The threads that send check the
//! lease themselves, before each operation: no other thread has to be awake for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::time::{ClockId, clock_gettime};

/// A lease. All clones share it.
#[derive(Debug, Clone)]
pub struct Lease {
    renewed_ns: Arc<AtomicU64>,
}

impl Default for Lease {
    /// A lease that was renewed just now.
    fn default() -> Self {
        Self {
            renewed_ns: Arc::new(AtomicU64::new(monotonic_ns())),
        }
    }
}

impl Lease {
    /// Renew the lease: its term begins anew.
    pub fn renew(&self) {
        self.renewed_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    /// Whether the lease was not renewed in the `term_ns` before a time.
    pub(crate) fn is_over(&self, term_ns: u64, monotonic_ns: u64) -> bool {
        monotonic_ns.saturating_sub(self.renewed_ns.load(Ordering::Relaxed)) >= term_ns
    }
}

/// The monotonic clock of the machine, which all of its processes share.
pub(crate) fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_over_a_term_after_its_renewal() {
        let lease = Lease::default();
        let renewed_ns = lease.renewed_ns.load(Ordering::Relaxed);
        assert!(!lease.is_over(5, renewed_ns.saturating_sub(1)));
        assert!(!lease.is_over(5, renewed_ns + 4));
        assert!(lease.is_over(5, renewed_ns + 5));
        lease.renew();
        assert!(lease.renewed_ns.load(Ordering::Relaxed) >= renewed_ns);
    }
}
