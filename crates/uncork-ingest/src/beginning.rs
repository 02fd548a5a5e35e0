//! Finds when a log begins, without reading all of it.

use std::io::{self, Read};
use std::path::Path;

use memchr::memrchr;
use uncork_log::{Dialect, Entry, Micros, Prefix, Side, Sink, Unwrapper, Written};

use crate::control::Control;
use crate::crew::written;
use crate::unpack::{self, Visit, fill_most};

/// How much of a log is read.
const SAMPLE: usize = 64 << 10;

/// Return when the first entry of a file was logged, also of a compressed one; of an archive, of its first log. `None` if
/// its format is unknown, or if its first entries have no time.
///
/// # Errors
///
/// If the file cannot be read.
pub fn begins_at(path: &Path, prefix: Option<&Prefix>) -> io::Result<Option<Micros>> {
    let mut beginning = Beginning {
        prefix,
        written: written(Some(&std::fs::metadata(path)?)),
        is_read: false,
        found: None,
    };
    let read = unpack::file(path, &Control::default(), &mut beginning);
    if !beginning.is_read {
        read?;
    }
    Ok(beginning.found)
}

/// Return the same of a log that is not a file, from its first bytes; `written` is in seconds since 1970.
#[must_use]
pub fn begins_with(beginning: &[u8], written: i64, prefix: Option<&Prefix>) -> Option<Micros> {
    let mut found = Beginning {
        prefix,
        written: Written::at(written),
        is_read: false,
        found: None,
    };
    // What is cut short in the middle of compressed bytes ends with an error: its beginning counts.
    let _ = unpack::stream("", beginning, &Control::default(), &mut found);
    found.found
}

struct Beginning<'a> {
    prefix: Option<&'a Prefix>,
    written: Written,
    /// Whether a log was read, whose rest is refused.
    is_read: bool,
    found: Option<Micros>,
}

impl Visit for Beginning<'_> {
    fn log(&mut self, _name: &str, reader: &mut dyn Read) -> io::Result<()> {
        let mut sample = vec![0; SAMPLE];
        let (length, _) = fill_most(reader, &mut sample);
        let text = &sample[..memrchr(b'\n', &sample[..length]).map_or(0, |at| at + 1)];
        (self.is_read, self.found) = (true, self.first(text));
        // The rest of an archive is not needed.
        Err(io::Error::other("only the beginning is read"))
    }
}

impl Beginning<'_> {
    fn first(&self, text: &[u8]) -> Option<Micros> {
        let mut first = First(None);
        if let Some(mut unwrapper) = Unwrapper::detect(text, self.written, self.prefix) {
            let mut inside = Vec::new();
            unwrapper.feed(text, &mut inside);
            unwrapper.finish(&mut inside);
            unwrapper.dialect().clone().scan(&inside, 0, &mut first);
        } else {
            let mut dialect = match self.prefix {
                Some(prefix) => Dialect::with_prefix(prefix.clone()),
                None => Dialect::detect(text)?,
            };
            dialect.scan(text, 0, &mut first);
        }
        first.0
    }
}

/// The time of the first entry that has one.
struct First(Option<Micros>);

impl Sink for First {
    fn entry(&mut self, entry: &Entry<'_>) {
        if !entry.stands_alone() {
            self.0 = self.0.or(entry.head.time);
        }
    }

    fn rejected(&mut self, _offset: u64, _line: &[u8]) {}

    fn pooler(&mut self, entry: &Entry<'_>, _side: Option<Side>) {
        self.entry(entry);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// 2026-05-31 08:00:07 in UTC.
    const TIME: Micros = 1_780_214_407_000_000;

    fn begin(bytes: &[u8]) -> Option<Micros> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("is written");
        begins_at(file.path(), None).expect("can be read")
    }

    #[test]
    fn the_first_entry_of_a_log_says_when_it_begins() {
        let plain = b"rest of an entry\n2026-05-31 08:00:07.000 UTC [7] LOG:  x\n\
            2026-05-31 08:00:06.000 UTC [7] LOG:  y\n";
        assert_eq!(begin(plain), Some(TIME));
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(plain).expect("is packed");
        assert_eq!(begin(&packed.finish().expect("is packed")), Some(TIME));
        let container =
            b"2026-05-31T08:00:07.1Z stderr F 2026-05-31 08:00:07.000 UTC [7] LOG:  x\n\
            2026-05-31T08:00:07.1Z stderr F 2026-05-31 08:00:07.000 UTC [7] LOG:  x\n";
        assert_eq!(begin(container), Some(TIME));
        let json = b"{\"timestamp\":\"2026-05-31 08:00:07.000 UTC\",\"pid\":7,\
            \"error_severity\":\"LOG\",\"message\":\"x\"}\n";
        assert_eq!(begin(json), Some(TIME));
    }

    #[test]
    fn of_an_archive_the_first_log_counts_and_of_anything_else_nothing_is_known() {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, second) in [("a.log", 7), ("b.log", 1)] {
            let text = format!("2026-05-31 08:00:0{second}.000 UTC [7] LOG:  x\n");
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_cksum();
            archive
                .append_data(&mut header, name, text.as_bytes())
                .expect("is added");
        }
        assert_eq!(
            begin(&archive.into_inner().expect("is an archive")),
            Some(TIME)
        );
        assert_eq!(begin(b""), None);
        assert_eq!(begin(b"no log\nat all\n"), None);
        assert!(begins_at(Path::new("/nowhere"), None).is_err());
    }

    #[test]
    fn the_first_bytes_of_an_object_are_enough() {
        let mut log = b"2026-05-31 08:00:07.000 UTC [7] LOG:  x\n".to_vec();
        for number in 0_u64..40_000 {
            let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            log.extend(format!("2026-05-31 08:00:08.000 UTC [7] LOG:  {mixed}\n").bytes());
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&log).expect("is packed");
        let packed = packed.finish().expect("is packed");
        let frames = zstd::stream::encode_all(&log[..], 3).expect("is packed");
        for bytes in [&log, &packed, &frames] {
            assert!(bytes.len() > 2 * SAMPLE);
            assert_eq!(begins_with(&bytes[..SAMPLE], 0, None), Some(TIME));
            assert_eq!(begins_with(&bytes[..3], 0, None), None);
        }
    }
}
