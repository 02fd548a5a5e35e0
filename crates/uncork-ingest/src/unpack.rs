//! Unpacks files: plain logs, compressed ones, and archives. The format is recognized by the content, not by the name.

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use lz4_flex::frame::FrameDecoder;

use crate::control::Control;

/// How many bytes are needed to recognize a format: the mark of a tar archive is far from its
/// beginning.
const HEAD: usize = 512;
/// The deepest nesting of archives.
const DEEPEST: u32 = 4;

/// Receives each log that is found: its name and its bytes.
pub(crate) trait Visit {
    /// Read one log. An error is a read error.
    fn log(&mut self, name: &str, reader: &mut dyn Read) -> io::Result<()>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Gzip,
    Bzip2,
    Xz,
    Lz4,
    Zstd,
    Zip,
    Tar,
    /// 7z and RAR archives, which are recognised only to be refused by name.
    SevenZip,
    Rar,
    Plain,
}

/// Visit all logs in a file.
pub(crate) fn file(path: &Path, control: &Control, visit: &mut dyn Visit) -> io::Result<()> {
    let name = path.to_string_lossy();
    let mut file = File::open(path)?;
    let mut head = [0; HEAD];
    let length = fill(&mut file, &mut head)?;
    if format(&head[..length]) != Format::Zip {
        let counted = Counted(Cursor::new(head[..length].to_vec()).chain(file), control);
        return unpack(&name, Box::new(counted), 0, visit);
    }
    let mut archive = zip::ZipArchive::new(file)?;
    for number in 0..archive.len() {
        let mut member = archive.by_index(number)?;
        if member.is_file() {
            let name = format!("{name}:{}", member.name()?);
            unpack(&name, Box::new(Counted(&mut member, control)), 1, visit)?;
        }
    }
    Ok(())
}

/// Visit all logs in a stream.
pub(crate) fn stream(
    name: &str,
    stream: impl Read,
    control: &Control,
    visit: &mut dyn Visit,
) -> io::Result<()> {
    unpack(name, Box::new(Counted(stream, control)), 0, visit)
}

fn unpack(
    name: &str,
    mut reader: Box<dyn Read + '_>,
    depth: u32,
    visit: &mut dyn Visit,
) -> io::Result<()> {
    let mut head = vec![0; HEAD];
    let length = fill(&mut reader, &mut head)?;
    head.truncate(length);
    let format = format(&head);
    let mut reader: Chain<_, _> = Cursor::new(head).chain(reader);
    if format == Format::Plain {
        return visit.log(name, &mut reader);
    }
    if depth == DEEPEST {
        return Err(io::Error::other("archives are nested too deeply"));
    }
    let inner: Box<dyn Read + '_> = match format {
        Format::Gzip => Box::new(MultiGzDecoder::new(reader)),
        Format::Bzip2 => Box::new(MultiBzDecoder::new(reader)),
        Format::Xz => Box::new(XzDecoder::new_multi_decoder(reader)),
        Format::Lz4 => Box::new(Frames(FrameDecoder::new(reader))),
        Format::Zstd => Box::new(zstd::stream::read::Decoder::new(reader)?),
        Format::Zip => {
            return Err(io::Error::other(
                "a zip archive within a stream or an archive cannot be read: unpack it first",
            ));
        }
        Format::Tar => {
            for member in tar::Archive::new(reader).entries()? {
                let mut member = member?;
                if member.header().entry_type().is_file() {
                    let name = format!("{name}:{}", member.path()?.display());
                    unpack(&name, Box::new(&mut member), depth + 1, visit)?;
                }
            }
            return Ok(());
        }
        Format::SevenZip => {
            return Err(io::Error::other(
                "7z archives cannot be read; extract the archive and name its files, or pipe it: \
                 7z x -so FILE | uncork profile logs -",
            ));
        }
        Format::Rar => {
            return Err(io::Error::other(
                "RAR archives cannot be read; extract the archive and name its files",
            ));
        }
        Format::Plain => Box::new(reader),
    };
    unpack(name, inner, depth + 1, visit)
}

fn format(head: &[u8]) -> Format {
    match head {
        [0x1f, 0x8b, ..] => Format::Gzip,
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Format::Bzip2,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Format::Xz,
        [0x04, 0x22, 0x4d, 0x18, ..] => Format::Lz4,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Format::Zstd,
        [b'P', b'K', 3, 4, ..] => Format::Zip,
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Format::SevenZip,
        [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => Format::Rar,
        _ if head.get(257..262) == Some(b"ustar") => Format::Tar,
        _ => Format::Plain,
    }
}

/// Whether bytes begin like a compressed file or an archive.
pub(crate) fn is_packed(head: &[u8]) -> bool {
    format(head) != Format::Plain
}

/// Read until a buffer is full or the end is reached; return the number of bytes.
pub(crate) fn fill(reader: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    match fill_most(reader, buffer) {
        (filled, None) => Ok(filled),
        (_, Some(error)) => Err(error),
    }
}

/// Read until a buffer is full, the end is reached or reading fails; return the number of bytes and the error.
pub(crate) fn fill_most(
    reader: &mut (impl Read + ?Sized),
    buffer: &mut [u8],
) -> (usize, Option<io::Error>) {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(error)),
        }
    }
    (filled, None)
}

/// Counts bytes read, and ends early on a request to stop.
struct Counted<'a, R>(R, &'a Control);

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_stopped() {
            return Ok(0);
        }
        let length = self.0.read(buffer)?;
        self.1.add_bytes(length);
        Ok(length)
    }
}

/// Reads consecutive lz4 frames: the decoder ends after each.
struct Frames<R: Read>(FrameDecoder<R>);

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => self.0.read(buffer),
            length => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests;
