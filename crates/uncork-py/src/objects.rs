//! Logs in object stores, which Python fetches.

use std::io;
use std::path::Path;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use uncork_ingest::Objects;

/// An object of Python that fetches objects. Its bytes are copied once: to where they are scanned.
#[derive(Debug)]
pub(crate) struct PythonObjects(pub(crate) Py<PyAny>);

impl Objects for PythonObjects {
    fn written(&self, path: &Path) -> Option<i64> {
        let name = path.to_string_lossy();
        Python::try_attach(|py| {
            let written = self.0.call_method1(py, "written_s", (name,)).ok()?;
            written.extract(py).ok()
        })?
    }

    fn read(&self, path: &Path, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let name = path.to_string_lossy();
        let read = Python::try_attach(|py| {
            let next = self.0.call_method1(py, "read", (name, buffer.len()))?;
            if next.is_none(py) {
                return Ok(None);
            }
            let bytes = PyBuffer::<u8>::get(next.bind(py))?;
            let length = bytes.item_count();
            match buffer.get_mut(..length) {
                Some(buffer) if length > 0 => bytes.copy_to_slice(py, buffer)?,
                Some(_) => {}
                None => {
                    return Err(io::Error::other("an object has more bytes than requested").into());
                }
            }
            Ok(Some(length))
        });
        match read {
            Some(Ok(length)) => Ok(length),
            Some(Err(error)) => Err(message(&error)),
            None => Err(io::Error::other("Python is shutting down")),
        }
    }
}

/// The message of an exception, without its type.
fn message(error: &PyErr) -> io::Error {
    let text = Python::try_attach(|py| error.value(py).to_string());
    io::Error::other(text.unwrap_or_default())
}
