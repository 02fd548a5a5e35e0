//! A socket (Unix, TCP or encrypted): blocking while connecting, then for the event loop.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use mio::event::Source;
use mio::{Interest, Registry, Token};
#[cfg(target_os = "linux")]
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
    /// How long a read or a write may block before it returns [`io::ErrorKind::WouldBlock`].
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

    /// Convert the socket for an event loop.
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

    /// The certificate of the server, if the connection is encrypted.
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

    /// Take received bytes that are buffered here, where a poll does not see them.
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

/// A socket in an event loop: it never blocks.
///
/// Readiness is edge-triggered. Readers continue until [`Stream::drained`], or until a read would
/// block. Writers register for writability while [`Stream::wants_write`], and then call
/// [`Stream::flush`].
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

    /// Read available bytes; `Ok(0)` is the end.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }

    /// Whether a read that returned `length` bytes into `room` bytes of space left nothing behind,
    /// so that the next data raises an event. On a plain socket that is a short read; an encrypted
    /// one may have buffered more.
    pub(crate) fn drained(&self, length: usize, room: usize) -> bool {
        match self {
            Self::Unix(_) | Self::Tcp(_) => length < room,
            Self::Tls(stream) => stream.drained(),
        }
    }

    /// Write as much as is accepted. On an encrypted socket accepted bytes may still be buffered:
    /// see [`Stream::wants_write`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Whether bytes that [`Stream::write`] accepted are not sent yet. Reading can cause this too,
    /// if TLS has to reply.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Unix(_) | Self::Tcp(_) => false,
            Self::Tls(stream) => stream.wants_write(),
        }
    }

    /// Send buffered bytes; an error of the kind `WouldBlock` means that some are left.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }

    /// Bytes on the wire since the socket is in the event loop.
    pub(crate) fn traffic(&self) -> Traffic {
        match self {
            Self::Unix(stream) => stream.traffic(),
            Self::Tcp(stream) => stream.traffic(),
            Self::Tls(stream) => stream.socket().traffic(),
        }
    }

    /// Acknowledge received bytes now, instead of waiting for data to send along.
    pub(crate) fn acknowledge(&self) {
        let socket = match self {
            Self::Unix(_) => return,
            Self::Tcp(stream) => stream.get(),
            Self::Tls(stream) => stream.socket().get(),
        };
        // If the system does not support it, nothing changes.
        #[cfg(target_os = "linux")]
        let _ = SockRef::from(socket).set_tcp_quickack(true);
        #[cfg(not(target_os = "linux"))]
        let _ = socket;
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Unix(stream) => stream.get_mut(),
            Self::Tcp(stream) => stream.get_mut(),
            Self::Tls(stream) => stream.socket_mut().get_mut(),
        }
    }
}
