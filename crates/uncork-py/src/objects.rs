//! Logs in object stores, which Python fetches.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use uncork_ingest::Objects;

/// An object of Python that fetches objects. It returns buffers, which are copied once: to where they are scanned.
#[derive(Debug)]
pub(crate) struct PythonObjects {
    source: Py<PyAny>,
    piece: Mutex<Option<Piece>>,
}

/// A buffer that Python returned, and how much of it has been read.
#[derive(Debug)]
struct Piece {
    /// The object that it is part of: the rest is dropped when another object is read.
    path: PathBuf,
    bytes: PyBuffer<u8>,
    read: usize,
}

impl PythonObjects {
    pub(crate) fn new(source: Py<PyAny>) -> Self {
        Self {
            source,
            piece: Mutex::new(None),
        }
    }
}

impl Objects for PythonObjects {
    fn written(&self, path: &Path) -> Option<i64> {
        let name = path.to_string_lossy();
        Python::try_attach(|py| {
            let written = self.source.call_method1(py, "written_s", (name,)).ok()?;
            written.extract(py).ok()
        })?
    }

    fn read(&self, path: &Path, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let read = Python::try_attach(|py| {
            let mut piece = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
            if piece.as_ref().is_none_or(|piece| piece.path != path) {
                let name = path.to_string_lossy();
                let next = self.source.call_method1(py, "next_piece", (name,));
                let next = next.map_err(|error| message(py, &error))?;
                if next.is_none(py) {
                    return Ok(None);
                }
                let bytes = PyBuffer::get(next.bind(py)).map_err(|error| message(py, &error))?;
                *piece = Some(Piece {
                    path: path.to_owned(),
                    bytes,
                    read: 0,
                });
            }
            let length = piece.as_mut().map_or(0, |piece| piece.read(py, buffer));
            if piece.as_ref().is_some_and(Piece::is_read) {
                *piece = None;
            }
            Ok(Some(length))
        });
        read.unwrap_or_else(|| Err(io::Error::other("Python is shutting down")))
    }
}

impl Piece {
    fn read(&mut self, py: Python<'_>, buffer: &mut [u8]) -> usize {
        let rest = self.bytes.as_slice(py).and_then(|all| all.get(self.read..));
        let rest = rest.unwrap_or_default();
        let length = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(&rest[..length]) {
            *to = from.get();
        }
        self.read += length;
        length
    }

    fn is_read(&self) -> bool {
        self.read >= self.bytes.item_count()
    }
}

/// The message of an exception, without its type.
fn message(py: Python<'_>, error: &PyErr) -> io::Error {
    io::Error::other(error.value(py).to_string())
}
