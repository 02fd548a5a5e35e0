//! Sockets, plain and encrypted, and waiting for them: shared by the drivers of real servers.

mod counted;
mod encrypted;
mod poller;
#[cfg(any(test, not(target_os = "linux")))]
mod sleeper;
mod stream;
#[cfg(target_os = "linux")]
mod timer;
mod udp_drops;

pub(crate) use counted::Counted;
pub(crate) use encrypted::TlsStream;
pub(crate) use poller::Poller;
#[cfg(not(target_os = "linux"))]
use sleeper::Timer;
pub(crate) use stream::{BlockingStream, Stream};
#[cfg(target_os = "linux")]
use timer::Timer;
pub(crate) use udp_drops::udp_drops;
