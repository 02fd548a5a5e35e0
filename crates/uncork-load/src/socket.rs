//! Sockets, plain and encrypted, and waking up at a moment: what drivers of real servers share.

mod counted;
mod encrypted;
mod stream;
mod timer;

pub(crate) use counted::Counted;
pub(crate) use encrypted::TlsStream;
pub(crate) use stream::{BlockingStream, Stream};
pub(crate) use timer::Timer;
