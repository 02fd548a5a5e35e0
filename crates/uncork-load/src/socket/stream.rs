//! A socket, Unix, TCP or encrypted: blocking while connecting, then for the event loop.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use mio::event::Source;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

use super::{Counted, TlsStream};
use crate::Traffic;

/// A blocking socket.
#[derive(Debug)]
pub(crate) enum BlockingStream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(TlsStream<TcpStream>),
}

impl BlockingStream {
    /// How long a read or a write may wait; then it says [`io::ErrorKind::WouldBlock`].
    pub(crate) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
            Self::Tcp(stream) => set_tcp_timeout(stream, timeout),
            Self::Tls(stream) => set_tcp_timeout(stream.socket(), timeout),
        }
    }

    /// Hands the socket to an event loop.
    pub(crate) fn into_stream(self) -> io::Result<Stream> {
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                let stream = mio::net::UnixStream::from_std(stream);
                Ok(Stream::Unix(Counted::new(stream)))
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                let stream = mio::net::TcpStream::from_std(stream);
                Ok(Stream::Tcp(Counted::new(stream)))
            }
            Self::Tls(stream) => {
                stream.socket().set_nonblocking(true)?;
                let wrap = |socket| Counted::new(mio::net::TcpStream::from_std(socket));
                Ok(Stream::Tls(stream.map(wrap)))
            }
        }
    }

    /// The certificate of the server at the other end of an encrypted connection.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => None,
            Self::Tls(stream) => stream.certificate(),
        }
    }

    /// Whether the connection is encrypted.
    pub(crate) fn encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Takes what was received and is kept here, out of sight of who watches the socket.
    pub(crate) fn take_held(&mut self, into: &mut BytesMut) -> io::Result<()> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => Ok(()),
            Self::Tls(stream) => stream.take_held(into),
        }
    }
}

fn set_tcp_timeout(stream: &TcpStream, timeout: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))
}

impl Read for BlockingStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A socket in an event loop: it never waits.
///
/// Readiness is edge-triggered. Whoever reads goes on until [`Stream::drained`] says that nothing
/// is left, or until a read would wait. Whoever writes watches for readiness to write as long as
/// [`Stream::wants_write`], and then calls [`Stream::flush`].
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(Counted<mio::net::UnixStream>),
    Tcp(Counted<mio::net::TcpStream>),
    Tls(TlsStream<Counted<mio::net::TcpStream>>),
}

impl Stream {
    pub(crate) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.source().register(registry, token, interest)
    }

    pub(crate) fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.source().reregister(registry, token, interest)
    }

    /// Reads what is there; `Ok(0)` is the end.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }

    /// Whether a read that gave `length` bytes where there was room for `room` left nothing behind:
    /// the next thing to happen is then an event. On a plain socket that is a short read; an
    /// encrypted one may have more in store.
    pub(crate) fn drained(&self, length: usize, room: usize) -> bool {
        match self {
            Self::Unix(_) | Self::Tcp(_) => length < room,
            Self::Tls(stream) => stream.drained(),
        }
    }

    /// Writes as much as is taken. On an encrypted socket what was taken may still be here:
    /// [`Stream::wants_write`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Whether bytes that were taken by [`Stream::write`] are not sent yet. Reading may bring this
    /// about too, when the encryption has something to answer.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Unix(_) | Self::Tcp(_) => false,
            Self::Tls(stream) => stream.wants_write(),
        }
    }

    /// Sends what [`Stream::wants_write`] tells of; an error of the kind `WouldBlock` says that
    /// some of it is still here.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }

    /// The bytes on the wire since it is in the event loop.
    pub(crate) fn traffic(&self) -> Traffic {
        match self {
            Self::Unix(stream) => stream.traffic(),
            Self::Tcp(stream) => stream.traffic(),
            Self::Tls(stream) => stream.socket().traffic(),
        }
    }

    /// Acknowledges at once what was received, instead of waiting for something to send it with.
    pub(crate) fn acknowledge(&self) {
        let socket = match self {
            Self::Unix(_) => return,
            Self::Tcp(stream) => stream.get(),
            Self::Tls(stream) => stream.socket().get(),
        };
        // Where the system cannot, it stays as it is.
        let _ = SockRef::from(socket).set_tcp_quickack(true);
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Unix(stream) => stream.get_mut(),
            Self::Tcp(stream) => stream.get_mut(),
            Self::Tls(stream) => stream.socket_mut().get_mut(),
        }
    }
}
