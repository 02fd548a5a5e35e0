//! A socket that counts the bytes on the wire, after encryption if there is any.

use std::io::{self, Read, Write};

use crate::Traffic;

/// A socket and its traffic.
#[derive(Debug)]
pub(crate) struct Counted<S> {
    socket: S,
    traffic: Traffic,
}

impl<S> Counted<S> {
    /// Wrap a socket without traffic so far.
    pub(crate) fn new(socket: S) -> Self {
        Self {
            socket,
            traffic: Traffic::default(),
        }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }

    pub(crate) fn get(&self) -> &S {
        &self.socket
    }

    pub(crate) fn get_mut(&mut self) -> &mut S {
        &mut self.socket
    }
}

impl<S: Read> Read for Counted<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.socket.read(bytes)?;
        self.traffic.received_bytes += length as u64;
        Ok(length)
    }
}

impl<S: Write> Write for Counted<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.socket.write(bytes)?;
        self.traffic.sent_bytes += length as u64;
        Ok(length)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let length = self.socket.write_vectored(parts)?;
        self.traffic.sent_bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
