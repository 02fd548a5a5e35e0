//! Reads logs that are not files: objects of a store, whose bytes the caller fetches.

use std::fmt::Debug;
use std::io::{self, Read};
use std::path::Path;

use crate::control::Control;

/// Objects that a request names among its paths.
pub trait Objects: Debug + Send + Sync {
    /// Return when an object was last written, in seconds since 1970; `None` if the path is a file.
    fn written(&self, path: &Path) -> Option<i64>;

    /// Copy the next bytes of an object and return their number, 0 at its end; `None` if they have not arrived yet,
    /// after a wait that is short enough to notice a request to stop. Objects are read one after the other.
    ///
    /// # Errors
    ///
    /// Why the object cannot be read to its end.
    fn read(&self, path: &Path, buffer: &mut [u8]) -> io::Result<Option<usize>>;
}

/// Reads one object.
pub(crate) struct Object<'a> {
    pub(crate) objects: &'a dyn Objects,
    pub(crate) path: &'a Path,
    pub(crate) control: &'a Control,
}

impl Read for Object<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.control.is_stopped() {
            if let Some(length) = self.objects.read(self.path, buffer)? {
                return Ok(length);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests;
