//! A fixed number of buffers, and why the threads that share them cannot deadlock.
//!
//! Three kinds of threads pass buffers on in a circle: the reader fills a buffer and sends it as a block, a scanner
//! scans the block, and the collector takes scanned blocks in the order of the log and returns each buffer. Memory is
//! limited because there are no other buffers. Four rules exclude a deadlock:
//!
//! 1. **No buffer is lost.** A [`Buffer`] returns to its pool when it is dropped, whoever drops it: at the end of
//!    a log, on an error, while a panic unwinds. So the number of buffers in the circle never falls.
//! 2. **Only the reader waits for a buffer,** and while it waits it holds fewer than [`LEAST`] buffers, which is
//!    what a pool has at least. So while it waits, at least one buffer is with the others.
//! 3. **No other thread waits for the reader while a block is under way.** A queue has room for all buffers, so
//!    that sending never waits; a scanner waits only if no block is queued, the collector only if none is scanned.
//! 4. **Every block that is sent is scanned, or the pool is closed.** Blocks are numbered without gaps. The
//!    collector holds blocks back only for one with a lower number, and the lowest under way is held back by
//!    nobody. A scanner that fails makes the collector end, which closes the pool, and the reader ends.
//!
//! By 2 a waiting reader has left a block under way (1), which reaches the collector (3), which gives the buffer
//! of the lowest one back (4). `pool/tests.rs` checks these rules against the steps that the reader really takes,
//! in every order in which threads can run.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use uncork_log::Event;

/// Buffers that the reader needs at once: the one that it fills, and one for the rest of a block.
pub(crate) const LEAST: usize = 2;

/// Buffers that threads share.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    count: usize,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: Vec<Memory>,
    closed: bool,
}

/// The memory of a buffer, which blocks use one after the other.
#[derive(Debug, Clone, Default)]
struct Memory {
    bytes: Vec<u8>,
    events: Vec<Event>,
}

/// A buffer of a pool, to which it returns when it is dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    /// What scanning has found in the bytes.
    pub(crate) events: Vec<Event>,
    /// `None` if it belongs to no pool.
    pool: Option<Arc<Shared>>,
}

/// Closes a pool when it is dropped.
pub(crate) struct Closing<'a>(pub(crate) &'a Pool);

impl Pool {
    /// Create so many buffers of a size, but at least [`LEAST`].
    pub(crate) fn new(count: usize, bytes: usize) -> Self {
        let count = count.max(LEAST);
        let state = State {
            free: vec![
                Memory {
                    bytes: vec![0; bytes],
                    events: Vec::new()
                };
                count
            ],
            closed: false,
        };
        let shared = Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            count,
        }
    }

    /// The number of buffers, wherever they are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Wait for a buffer; `None` once the pool is closed.
    pub(crate) fn take(&self) -> Option<Buffer> {
        let mut state = self.shared.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(memory) = state.free.pop() {
                return Some(Buffer {
                    bytes: memory.bytes,
                    events: memory.events,
                    pool: Some(self.shared.clone()),
                });
            }
            let waited = self.shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The number of free buffers.
    #[cfg(test)]
    fn free(&self) -> usize {
        self.shared.state().free.len()
    }
}

impl Shared {
    /// Locked data stays valid if a thread panics, because nothing under the lock can fail.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.shared.state().closed = true;
        self.0.shared.changed.notify_all();
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let memory = Memory {
                bytes: std::mem::take(&mut self.bytes),
                events: std::mem::take(&mut self.events),
            };
            pool.state().free.push(memory);
            pool.changed.notify_one();
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            events: Vec::new(),
            pool: None,
        }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests;
