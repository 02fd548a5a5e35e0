//! Runs long work on a separate thread, while the calling thread checks for signals such as Ctrl-C.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::DataError;

/// How often signals are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(25);
/// How long interrupted work may take to end: it has connections to close.
const PATIENCE: Duration = Duration::from_secs(2);

/// Run `work` with Python detached, and `check` with Python attached several times a second. On a
/// signal, or if `check` fails, call `stop` and wait a moment for the work to end. If `stop`
/// returns that its result is to be kept, that is the result; otherwise the exception that the
/// signal's handler raised.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    check: impl Fn() -> PyResult<()>,
    stop: impl FnOnce() -> bool,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new()
        .name("uncork".to_owned())
        .spawn(move || sender.send(work()))
        .map_err(|error| DataError::from(&error))?;
    // A receiver must not be shared between threads, which detaching requires.
    let receiver = std::sync::Mutex::new(receiver);
    let receive = |timeout| {
        py.detach(|| match receiver.lock() {
            Ok(receiver) => receiver.recv_timeout(timeout),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        })
    };
    loop {
        match receive(CHECK_INTERVAL) {
            // A signal at the last moment must not discard a result that is to be kept.
            Ok(result) => {
                return match py.check_signals() {
                    Err(error) if !stop() => Err(error),
                    _ => Ok(result),
                };
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(
                    DataError("the core panicked; this is a defect, report it".into()).into(),
                );
            }
        }
        if let Err(error) = py.check_signals().and_then(|()| check()) {
            let keeps = stop();
            return match receive(PATIENCE) {
                Ok(result) if keeps => Ok(result),
                _ => Err(error),
            };
        }
    }
}
