//! Where the kernel tells what it does, and how it is read: thin.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The root below which `proc` and `sys` are: `/`, or a folder of fixtures.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    root: PathBuf,
}

impl Host {
    /// This machine.
    pub(crate) fn here() -> Self {
        Self::at(Path::new("/"))
    }

    /// A machine whose files are below another folder.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The path of a file, given without the leading slash.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Reads a file once. Names of processes and files may be any bytes.
    pub(crate) fn read(&self, below: &str) -> io::Result<String> {
        fs::read(self.path(below)).map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Opens a file to be read again and again.
    pub(crate) fn keep(&self, below: &str) -> io::Result<OpenFile> {
        File::open(self.path(below)).map(OpenFile)
    }
}

/// A file of the kernel that is kept open: each reading from its beginning is a new one.
#[derive(Debug)]
pub(crate) struct OpenFile(File);

impl OpenFile {
    /// Reads the file as it is now.
    pub(crate) fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> io::Result<&'a str> {
        const LEAST: usize = 8 * 1024;
        let mut end = 0;
        loop {
            if buffer.len() < end + LEAST {
                buffer.resize(end + 2 * LEAST, 0);
            }
            match self.0.read_at(&mut buffer[end..], end as u64) {
                // The kernel may hand a long list over in pieces, so only nothing is its end.
                Ok(0) => break,
                Ok(count) => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        std::str::from_utf8(&buffer[..end]).map_err(io::Error::other)
    }
}
