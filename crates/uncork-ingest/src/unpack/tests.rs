use std::io::Write;

use super::*;

const LOG: &[u8] = b"2026-01-01 00:00:00 UTC [1] LOG:  ready\n";

/// Keeps the logs that it visits.
#[derive(Default)]
struct Seen(Vec<(String, Vec<u8>)>);

impl Visit for Seen {
    fn log(&mut self, name: &str, reader: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        let read = reader.read_to_end(&mut bytes);
        self.0.push((name.to_owned(), bytes));
        read.map(|_| ())
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("is packed");
    encoder.finish().expect("is packed")
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("is packed");
    encoder.finish().expect("is packed")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("is packed");
    encoder.finish().expect("is packed")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).expect("is packed");
    encoder.finish().expect("is packed")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).expect("is packed")
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, name, *bytes)
            .expect("is packed");
    }
    builder.into_inner().expect("is packed")
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(*name, options).expect("is packed");
        writer.write_all(bytes).expect("is packed");
    }
    writer.finish().expect("is packed").into_inner()
}

fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("is written");
    file
}

fn unpacked(bytes: &[u8]) -> (Vec<(String, Vec<u8>)>, io::Result<()>) {
    let (file, mut seen) = (written(bytes), Seen::default());
    let name = file.path().to_string_lossy().into_owned();
    let result = super::file(file.path(), &Control::default(), &mut seen);
    let logs = seen.0.into_iter();
    let logs = logs.map(|(of, bytes)| (of.replace(&name, "x"), bytes));
    (logs.collect(), result)
}

#[test]
fn every_format_is_unpacked_also_several_in_a_row() {
    let twice = [LOG, LOG].concat();
    for (name, packed) in [
        ("plain", LOG.to_vec()),
        ("gzip", gzip(LOG)),
        ("bzip2", bzip2(LOG)),
        ("xz", xz(LOG)),
        ("lz4", lz4(LOG)),
        ("zstd", zstd(LOG)),
        ("gzip in zstd", zstd(&gzip(LOG))),
    ] {
        let (logs, result) = unpacked(&packed);
        result.expect(name);
        assert_eq!(logs, [("x".to_owned(), LOG.to_vec())], "{name}");
        let (logs, result) = unpacked(&[packed.clone(), packed].concat());
        result.expect(name);
        assert_eq!(logs, [("x".to_owned(), twice.clone())], "{name} twice");
    }
}

#[test]
fn archives_give_their_members() {
    let other = gzip(b"2026-01-01 00:00:01 UTC [2] LOG:  other\n");
    let members: [(&str, &[u8]); 2] = [("a.log", LOG), ("b/c.log.gz", &other)];
    for (name, packed) in [
        ("tar", tar(&members)),
        ("tgz", gzip(&tar(&members))),
        ("zip", zip(&members)),
    ] {
        let (logs, result) = unpacked(&packed);
        result.expect(name);
        let names: Vec<&str> = logs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x:a.log", "x:b/c.log.gz"], "{name}");
        assert_eq!(logs[0].1, LOG);
        assert!(logs[1].1.ends_with(b"other\n"));
    }
}

#[test]
fn what_is_damaged_is_told_and_what_lies_before_is_kept() {
    let long = LOG.repeat(10_000);
    for (name, packed) in [
        ("gzip", gzip(&long)),
        ("zstd", zstd(&long)),
        ("bzip2", bzip2(&long)),
    ] {
        let (logs, result) = unpacked(&packed[..packed.len() - 20]);
        assert!(result.is_err(), "{name}");
        assert_eq!(logs.len(), 1, "{name}");
    }
    let (logs, result) = unpacked(&gzip(&long)[..8_000.min(gzip(&long).len() - 9)]);
    assert!(result.is_err());
    assert!(long.starts_with(&logs[0].1) && !logs[0].1.is_empty());
    let mut nested = LOG.to_vec();
    for _ in 0..6 {
        nested = gzip(&nested);
    }
    assert!(unpacked(&nested).1.is_err());
}

#[test]
fn archives_that_cannot_be_read_are_refused_by_name() {
    for (head, name) in [
        (&b"7z\xbc\xaf\x27\x1c\0\x04"[..], "7z"),
        (b"Rar!\x1a\x07\x01\0", "RAR"),
    ] {
        let packed = [head, LOG].concat();
        for packed in [packed.clone(), gzip(&packed)] {
            let (logs, result) = unpacked(&packed);
            let message = result.expect_err(name).to_string();
            assert!(
                message.starts_with(name) && message.contains("extract"),
                "{message}"
            );
            assert!(logs.is_empty());
        }
    }
}

#[test]
fn a_request_to_stop_is_heard() {
    let (file, control) = (written(LOG), Control::default());
    control.stop();
    let mut seen = Seen::default();
    let stream = std::fs::File::open(file.path()).expect("opens");
    super::stream("x", stream, &control, &mut seen).expect("ends");
    assert_eq!(seen.0, [("x".to_owned(), Vec::new())]);
    assert_eq!(control.bytes(), 0);
}
