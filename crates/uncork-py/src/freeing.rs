//! Frees large values and returns memory to the system, on threads that nobody waits for.

use std::thread;

/// Drop a value, and then return memory that is not in use. The allocator would keep it for a second, in case another
/// thread of the core allocates soon. After reading logs only Python allocates, from memory of its own.
pub(crate) fn free(value: impl Send + 'static) {
    let work = move || {
        drop(value);
        return_memory();
    };
    // Without another thread, `work` is dropped here with the value.
    let _ = thread::Builder::new().name("uncork".to_owned()).spawn(work);
}

#[expect(unsafe_code, reason = "functions of the allocator are called")]
fn return_memory() {
    // SAFETY: both can be called at any time, from any thread.
    unsafe {
        libmimalloc_sys::mi_thread_init();
        libmimalloc_sys::mi_collect(true);
    }
}
