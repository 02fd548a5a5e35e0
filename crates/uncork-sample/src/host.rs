//! Reads files of `/proc` and `/sys`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The root folder of `proc` and `sys`: `/`, or a folder of fixtures.
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

    /// Return the path of a file, given without the leading slash.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Read a file once. Names of processes and files may contain any bytes.
    pub(crate) fn read(&self, below: &str) -> io::Result<String> {
        fs::read(self.path(below)).map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Open a file to be read repeatedly.
    pub(crate) fn keep(&self, below: &str) -> io::Result<OpenFile> {
        File::open(self.path(below)).map(OpenFile)
    }
}

/// An open kernel file: each reading from its beginning returns current values.
#[derive(Debug)]
pub(crate) struct OpenFile(File);

impl OpenFile {
    /// Read the current contents.
    pub(crate) fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> io::Result<&'a str> {
        const LEAST: usize = 8 * 1024;
        let mut end = 0;
        loop {
            if buffer.len() < end + LEAST {
                buffer.resize(end + 2 * LEAST, 0);
            }
            match self.0.read_at(&mut buffer[end..], end as u64) {
                // The kernel may return a long list in pieces, so only an empty read is its end.
                Ok(0) => break,
                Ok(count) => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        std::str::from_utf8(&buffer[..end]).map_err(io::Error::other)
    }
}
