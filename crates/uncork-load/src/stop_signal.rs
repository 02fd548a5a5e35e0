//! Stops a trial before its stop rule does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use uncork_model::Outcome;

/// A request from outside to stop at once. All clones share it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Request the stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether, and why, all threads of a trial should stop early. The first cause counts.
#[derive(Debug)]
pub(crate) struct StopSignal<'a> {
    interrupt: &'a Interrupt,
    cause: OnceLock<(Outcome, String)>,
}

impl<'a> StopSignal<'a> {
    pub(crate) fn new(interrupt: &'a Interrupt) -> Self {
        Self {
            interrupt,
            cause: OnceLock::new(),
        }
    }

    pub(crate) fn set(&self, outcome: Outcome, message: impl Into<String>) {
        // A later cause is a consequence of the first.
        let _ = self.cause.set((outcome, message.into()));
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }

    pub(crate) fn is_set(&self) -> bool {
        self.interrupted() || self.cause.get().is_some()
    }

    pub(crate) fn cause(&self) -> Option<&(Outcome, String)> {
        self.cause.get()
    }
}
