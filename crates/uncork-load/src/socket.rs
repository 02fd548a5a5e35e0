//! Sockets, plain and encrypted, and waiting for them: shared by the drivers of real servers.

mod counted;
mod encrypted;
mod poller;
mod stream;
mod timer;

pub(crate) use counted::Counted;
pub(crate) use encrypted::TlsStream;
pub(crate) use poller::Poller;
pub(crate) use stream::{BlockingStream, Stream};
use timer::Timer;
