//! An encrypted socket: blocking while connecting, then for the event loop.
//!
//! Two buffers stand between the socket and its reader: bytes received but not decrypted, and bytes
//! decrypted but not read. So a short read does not show that the socket is drained;
//! [`TlsStream::drained`] does. Likewise written bytes may be buffered here: see
//! [`TlsStream::wants_write`] and [`TlsStream::flush`].

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// Bytes per read of the socket: a whole TLS record.
const INCOMING_BYTES: usize = 16 * 1024 + 512;

/// An encrypted socket. `S` may block or not; its errors are passed on.
#[derive(Debug)]
pub(crate) struct TlsStream<S> {
    socket: S,
    session: Box<ClientConnection>,
    /// Received bytes; `begin..end` is not decrypted yet.
    incoming: Box<[u8]>,
    begin: usize,
    end: usize,
    /// How many bytes are decrypted and not read yet.
    readable: usize,
    /// The last read of the socket came back short: nothing was left in it.
    emptied: bool,
}

impl<S: Read + Write> TlsStream<S> {
    /// Wrap a socket. Nothing is sent yet.
    pub(crate) fn new(
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
        socket: S,
    ) -> Result<Self, rustls::Error> {
        let session = ClientConnection::new(Arc::clone(config), name)?;
        Ok(Self {
            socket,
            session: Box::new(session),
            incoming: vec![0; INCOMING_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            readable: 0,
            emptied: false,
        })
    }

    /// Continue the handshake until it is complete. If the socket would block, the error says so;
    /// call again when it is ready.
    pub(crate) fn handshake(&mut self) -> io::Result<()> {
        while self.session.is_handshaking() {
            self.flush()?;
            let closed = !self.session.wants_read();
            if !closed {
                self.receive()?;
            }
            if self.session.is_handshaking() && (closed || self.ended()) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.flush()
    }

    /// Read decrypted bytes, and read from the socket if there are none. `Ok(0)` is the end.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(bytes) {
                Ok(length) => {
                    self.readable = self.readable.saturating_sub(length);
                    return Ok(length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.receive()?,
                // PostgreSQL and HTTP mark the end of messages themselves, so an end without
                // close_notify cannot be mistaken for a complete answer.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
        }
    }

    /// Encrypt as much as the session buffers, and send as much as the socket accepts. Encrypted
    /// bytes count as written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let length = self.session.writer().write(bytes)?;
            match self.flush() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            if length > 0 || bytes.is_empty() {
                return Ok(length);
            }
            // The session's buffer was full. If nothing was sent, the socket's readiness will
            // report when it has space.
            if self.session.wants_write() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Send buffered bytes; if the socket would block, the error says so.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether written bytes are buffered here.
    pub(crate) fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Whether nothing can be read before the socket becomes readable again.
    pub(crate) fn drained(&self) -> bool {
        self.readable == 0 && self.begin == self.end && self.emptied
    }

    /// The server's own certificate.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        let chain = self.session.peer_certificates()?;
        chain.first().map(AsRef::as_ref)
    }

    /// The protocol agreed on by ALPN, if any.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    pub(crate) fn socket(&self) -> &S {
        &self.socket
    }

    pub(crate) fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Change the socket's type and nothing else.
    pub(crate) fn map<T>(self, change: impl FnOnce(S) -> T) -> TlsStream<T> {
        TlsStream {
            socket: change(self.socket),
            session: self.session,
            incoming: self.incoming,
            begin: self.begin,
            end: self.end,
            readable: self.readable,
            emptied: self.emptied,
        }
    }

    /// Take what was received and not read, without reading from the socket.
    pub(crate) fn take_held(&mut self, into: &mut BytesMut) -> io::Result<()> {
        loop {
            let mut chunk = [0; 4096];
            match self.session.reader().read(&mut chunk) {
                Ok(length) if length > 0 => into.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.begin == self.end {
                        self.readable = 0;
                        return Ok(());
                    }
                    self.decrypt()?;
                }
                // The next reader finds the end.
                _ => return Ok(()),
            }
        }
    }

    /// Move bytes one step: from the socket if there are none, then through decryption.
    fn receive(&mut self) -> io::Result<()> {
        if self.begin == self.end {
            let length = self.socket.read(&mut self.incoming)?;
            self.emptied = length < self.incoming.len() && length > 0;
            self.begin = 0;
            self.end = length;
        }
        self.decrypt()
    }

    fn decrypt(&mut self) -> io::Result<()> {
        let mut rest = &self.incoming[self.begin..self.end];
        // An empty read tells the session that the end has come.
        self.session.read_tls(&mut rest)?;
        self.begin = self.end - rest.len();
        match self.session.process_new_packets() {
            Ok(state) => {
                self.readable = state.plaintext_bytes_to_read();
                // After close_notify the end is still to be read.
                self.emptied &= !state.peer_has_closed();
            }
            Err(error) => {
                // Best effort: send an alert with the reason.
                let _ = self.session.write_tls(&mut self.socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
        match self.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the last read of the socket found its end.
    fn ended(&self) -> bool {
        self.end == 0 && !self.emptied
    }
}

#[cfg(test)]
mod tests;
