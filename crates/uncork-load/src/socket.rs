//! Sockets, plain and encrypted, and waiting for them: shared by the drivers of real servers.

mod counted;
mod encrypted;
mod poller;
#[cfg(any(test, not(target_os = "linux")))]
mod sleeper;
mod stream;
#[cfg(target_os = "linux")]
mod timer;

pub(crate) use counted::Counted;
pub(crate) use encrypted::TlsStream;
pub(crate) use poller::Poller;
#[cfg(not(target_os = "linux"))]
use sleeper::Timer;
pub(crate) use stream::{BlockingStream, Stream};
#[cfg(target_os = "linux")]
use timer::Timer;
