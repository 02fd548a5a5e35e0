//! Frees large values and returns memory to the system, on threads that nobody waits for.

use std::ops::{Deref, DerefMut};
use std::thread;

/// A value that whoever drops it does not wait for. Logs with 50,000 templates take 0.1 s to free.
#[derive(Debug)]
pub(crate) struct FreedAside<T: Send + 'static>(Option<T>);

impl<T: Send> FreedAside<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for FreedAside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send> DerefMut for FreedAside<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl<T: Send> Drop for FreedAside<T> {
    fn drop(&mut self) {
        return_memory_of(self.0.take());
    }
}

/// Drop a value, and then return memory that is not in use. The allocator would keep it for a second, in case another
/// thread of the core allocates soon. After reading logs only Python allocates, from memory of its own.
pub(crate) fn return_memory_of(value: impl Send + 'static) {
    let free = move || {
        drop(value);
        return_memory();
    };
    // Without another thread, `free` is dropped here with the value.
    let _ = thread::Builder::new().name("uncork".to_owned()).spawn(free);
}

#[expect(unsafe_code, reason = "a function of the allocator is called")]
fn return_memory() {
    // SAFETY: it can be called at any time, from any thread.
    unsafe {
        libmimalloc_sys::mi_thread_init();
        libmimalloc_sys::mi_collect(true);
    }
}
