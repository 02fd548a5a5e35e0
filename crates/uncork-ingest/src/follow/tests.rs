use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::*;
use crate::crew::gather;

fn entry(number: u32) -> String {
    let (second, pid) = (number / 10 % 60, 100 + number % 3);
    format!(
        "2026-01-01 00:00:{second:02}.000 UTC [{pid}] u@d app LOG:  duration: 1.{number:03} ms  statement: SELECT\n\
         \t{number}\n"
    )
}

fn entries(numbers: std::ops::Range<u32>) -> String {
    numbers.map(entry).collect()
}

fn append(path: &Path, text: &str) {
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .expect("is written");
}

fn following(paths: &[&Path]) -> Follower {
    let request = Request {
        paths: paths.iter().map(|path| path.to_path_buf()).collect(),
        ..Request::default()
    };
    Follower::new(request).expect("no events are asked for")
}

fn poll(follower: &mut Follower) {
    while follower.poll(&Control::default()) {}
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn what_is_written_meanwhile_is_read_as_if_it_had_been_there() {
    let folder = folder();
    let (grows, whole) = (folder.path().join("grows"), folder.path().join("whole"));
    let text = entries(0..200);
    append(&whole, &text);
    let mut follower = following(&[&grows]);
    // Pieces that end within lines and entries.
    for piece in text.as_bytes().chunks(777) {
        append(&grows, std::str::from_utf8(piece).expect("is ASCII"));
        poll(&mut follower);
    }
    let before = follower.report();
    assert!(
        before.gathered.entries >= 195,
        "{}",
        before.gathered.entries
    );
    let report = follower.finish().expect("no events");
    let request = Request {
        paths: vec![whole],
        ..Request::default()
    };
    let expected = gather(&request, &Control::default()).expect("can be read");
    assert_eq!(report.gathered.entries, 200);
    assert_eq!(report.gathered.rejected, 0);
    let (found, told) = (&report.gathered.templates, &expected.gathered.templates);
    assert_eq!(found.all()[0].executions, told.all()[0].executions);
    assert_eq!(found.all()[0].histogram, told.all()[0].histogram);
    assert_eq!(report.files[0].entries, 200);
}

#[test]
fn when_nobody_writes_the_last_entry_is_whole() {
    let folder = folder();
    let path = folder.path().join("log");
    append(&path, &entries(0..3));
    let mut follower = following(&[&path]);
    poll(&mut follower);
    assert_eq!(follower.report().gathered.entries, 2);
    poll(&mut follower);
    assert_eq!(follower.report().gathered.entries, 3);
    append(&path, &entries(3..5));
    poll(&mut follower);
    poll(&mut follower);
    let told = follower.finish().expect("no events").gathered;
    assert_eq!((told.entries, told.rejected), (5, 0));
}

#[test]
fn a_log_that_is_renamed_or_cut_off_goes_on_in_the_next() {
    let folder = folder();
    let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
    append(&path, &entries(0..10));
    let mut follower = following(&[&path]);
    poll(&mut follower);
    // Text that the server wrote before it reopened its log is not lost.
    fs::rename(&path, &old).expect("is renamed");
    append(&old, &entries(10..15));
    poll(&mut follower);
    append(&path, &entries(15..20));
    poll(&mut follower);
    poll(&mut follower);
    assert_eq!(follower.report().gathered.entries, 20);
    fs::write(&path, entries(20..22)).expect("is cut off");
    poll(&mut follower);
    append(&path, &entries(22..30));
    poll(&mut follower);
    let report = follower.finish().expect("no events");
    assert_eq!((report.gathered.entries, report.gathered.rejected), (30, 0));
    let files: Vec<u64> = report.files.iter().map(|file| file.entries).collect();
    assert_eq!(files, [15, 5, 10]);
}

#[test]
fn a_path_may_come_to_life_later_and_others_join() {
    let folder = folder();
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    let mut follower = following(&[&first]);
    poll(&mut follower);
    assert_eq!(follower.report().files.len(), 0);
    append(&first, &entries(0..5));
    follower.add(second.clone(), "");
    follower.add(second.clone(), "");
    append(&second, &entries(5..9));
    poll(&mut follower);
    let report = follower.finish().expect("no events");
    assert_eq!(report.gathered.entries, 9);
}

#[test]
fn wrapped_logs_are_followed_and_packed_ones_refused() {
    let folder = folder();
    let (wrapped, packed) = (folder.path().join("wrapped"), folder.path().join("packed"));
    let line = |number: u32| {
        let text = entries(number..number + 1).replace("\n\t", " ");
        format!("2026-01-01T00:00:00.000000000Z stderr F {text}")
    };
    append(&wrapped, &(0..5).map(line).collect::<String>());
    fs::write(&packed, [0x1f, 0x8b, 8, 0, 0, 0]).expect("is written");
    let mut follower = following(&[&wrapped, &packed]);
    poll(&mut follower);
    append(&wrapped, &(5..9).map(line).collect::<String>());
    poll(&mut follower);
    let report = follower.finish().expect("no events");
    assert_eq!((report.gathered.entries, report.gathered.rejected), (9, 0));
    assert_eq!(report.files[0].dialect, Some("container"));
    assert!(report.files[1].trouble.is_some());
}
