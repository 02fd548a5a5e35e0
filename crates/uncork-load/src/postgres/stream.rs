//! A socket, Unix or TCP: blocking while connecting, then for the event loop.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};
use uncork_model::Connection;

/// How messages call the server.
pub(crate) fn address(connection: &Connection) -> String {
    if connection.host.starts_with('/') {
        socket_path(connection).display().to_string()
    } else {
        format!("{}:{}", connection.host, connection.port)
    }
}

fn socket_path(connection: &Connection) -> PathBuf {
    PathBuf::from(&connection.host).join(format!(".s.PGSQL.{}", connection.port))
}

/// A blocking socket.
#[derive(Debug)]
pub(crate) enum BlockingStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl BlockingStream {
    /// Connects; each of a host's addresses may take `timeout`.
    pub(crate) fn connect(connection: &Connection, timeout: Duration) -> io::Result<Self> {
        if connection.host.starts_with('/') {
            return UnixStream::connect(socket_path(connection)).map(Self::Unix);
        }
        let mut error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in (connection.host.as_str(), connection.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(refusal) => error = refusal,
            }
        }
        Err(error)
    }

    /// How long a read may wait.
    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(Some(timeout)),
            Self::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
        }
    }

    /// Hands the socket to an event loop.
    pub(crate) fn into_stream(self) -> io::Result<Stream> {
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(mio::net::UnixStream::from_std(stream)))
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Stream::Tcp(mio::net::TcpStream::from_std(stream)))
            }
        }
    }
}

impl Read for BlockingStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket in an event loop: it never waits.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(mio::net::UnixStream),
    Tcp(mio::net::TcpStream),
}

impl Stream {
    pub(crate) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.register(registry, token, interest),
            Self::Tcp(stream) => stream.register(registry, token, interest),
        }
    }

    pub(crate) fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.reregister(registry, token, interest),
            Self::Tcp(stream) => stream.reregister(registry, token, interest),
        }
    }

    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
}
