//! Progress of reading, and a request to stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared with the caller that waits for logs to be read.
#[derive(Debug, Clone, Default)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    read: AtomicU64,
    entries: AtomicU64,
}

impl Control {
    /// Request to stop soon; what has been read until then is kept.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Bytes read so far, as stored in the files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared.read.load(Ordering::Relaxed)
    }

    /// Entries gathered so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.shared.entries.load(Ordering::Relaxed)
    }

    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.shared.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_entries(&self, entries: u64) {
        self.shared.entries.fetch_add(entries, Ordering::Relaxed);
    }
}
