//! Long work on a thread of its own, while this one looks for Ctrl-C.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::DataError;

/// How often signals are looked for.
const GLANCE: Duration = Duration::from_millis(25);
/// How long interrupted work is waited for: it has connections to close.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs `work` with Python detached, and `glance` with it attached several times a second. On a
/// signal, or an error of `glance`, calls `stop`, and gives the work a moment to end. What it ends
/// with is the answer if `stop` says that it is to be kept; else what the signal's handler raised.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    glance: impl Fn() -> PyResult<()>,
    stop: impl FnOnce() -> bool,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new()
        .name("uncork".to_owned())
        .spawn(move || sender.send(work()))
        .map_err(|error| DataError::from(&error))?;
    // A receiver may not be shared between threads, and detaching asks for that.
    let receiver = std::sync::Mutex::new(receiver);
    let receive = |timeout| {
        py.detach(|| match receiver.lock() {
            Ok(receiver) => receiver.recv_timeout(timeout),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        })
    };
    loop {
        match receive(GLANCE) {
            // A signal that came at the last moment must not take away what is to be kept.
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
        if let Err(error) = py.check_signals().and_then(|()| glance()) {
            let keeps = stop();
            return match receive(PATIENCE) {
                Ok(result) if keeps => Ok(result),
                _ => Err(error),
            };
        }
    }
}
