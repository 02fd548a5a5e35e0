use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::*;
use crate::crew::{Request, gather};

const LINE: &str =
    "2026-01-01 00:00:00.000 UTC [7] u@d app LOG:  duration: 0.010 ms  statement: SELECT 1\n";

/// Objects whose bytes arrive in pieces of this size, each after one answer that there are none yet.
#[derive(Debug)]
struct Pieces {
    contents: Vec<(PathBuf, Vec<u8>)>,
    size: usize,
    /// How many bytes arrive before reading fails.
    most: usize,
    /// How much of which object was read, and whether the last answer was that there are no bytes yet.
    state: Mutex<(PathBuf, usize, bool)>,
}

impl Objects for Pieces {
    fn written(&self, path: &Path) -> Option<i64> {
        self.contents
            .iter()
            .any(|(name, _)| name == path)
            .then_some(1_767_225_600)
    }

    fn read(&self, path: &Path, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut state = self.state.lock().expect("no thread panics");
        let (of, at, waited) = &mut *state;
        if of.as_path() != path {
            (*of, *at) = (path.to_owned(), 0);
        }
        *waited = !*waited;
        if *waited {
            return Ok(None);
        }
        let (_, content) = self
            .contents
            .iter()
            .find(|(name, _)| name == path)
            .expect("an object");
        if *at >= self.most {
            return Err(io::Error::other("it changed while it was read"));
        }
        let end = content.len().min(self.most);
        let length = buffer.len().min(self.size).min(end - *at);
        buffer[..length].copy_from_slice(&content[*at..*at + length]);
        *at += length;
        Ok(Some(length))
    }
}

fn request(contents: Vec<(PathBuf, Vec<u8>)>, most: usize) -> Request {
    Request {
        paths: contents.iter().map(|(name, _)| name.clone()).collect(),
        threads: 2,
        objects: Some(Arc::new(Pieces {
            contents,
            size: 1_000,
            most,
            state: Mutex::default(),
        })),
        ..Request::default()
    }
}

#[test]
fn objects_are_read_as_files_are() {
    let text = LINE.repeat(500);
    let packed = zstd::encode_all(text.as_bytes(), 1).expect("can be compressed");
    let contents = vec![
        (PathBuf::from("s3://bucket/one.log"), text.clone().into()),
        (PathBuf::from("s3://bucket/two.log.zst"), packed),
    ];
    let control = Control::default();
    let report = gather(&request(contents, usize::MAX), &control).expect("can be read");
    let read: Vec<_> = report
        .files
        .iter()
        .map(|file| (file.name.as_str(), file.bytes, file.entries, &file.trouble))
        .collect();
    let bytes = text.len() as u64;
    assert_eq!(
        read,
        [
            ("s3://bucket/one.log", bytes, 500, &None),
            ("s3://bucket/two.log.zst", bytes, 500, &None)
        ]
    );
}

#[test]
fn what_arrived_before_an_error_is_kept() {
    let contents = vec![(
        PathBuf::from("s3://bucket/one.log"),
        LINE.repeat(500).into(),
    )];
    let request = request(contents, LINE.len() * 100);
    let report = gather(&request, &Control::default()).expect("can be read");
    assert_eq!(report.gathered.entries, 100);
    let trouble = report.files[0].trouble.as_deref();
    assert_eq!(trouble, Some("it changed while it was read"));
}

#[test]
fn a_request_to_stop_ends_the_wait_for_bytes() {
    let contents = vec![(PathBuf::from("s3://bucket/one.log"), LINE.into())];
    let control = Control::default();
    control.stop();
    let report = gather(&request(contents, usize::MAX), &control).expect("can be read");
    assert!(report.stopped);
    assert_eq!(report.gathered.entries, 0);
}
