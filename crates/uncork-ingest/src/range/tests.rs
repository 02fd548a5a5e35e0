use std::fmt::Write as _;
use std::io::Write as _;

use super::*;

fn log(seconds: impl Iterator<Item = u64>) -> tempfile::NamedTempFile {
    let mut log = String::new();
    for second in seconds {
        for number in 0..10 {
            let _ = writeln!(
                log,
                "2026-01-01 {:02}:{:02}:{:02}.{number}00 UTC [1] LOG:  duration: 1.000 ms  statement: SELECT '{second}'",
                second / 3_600,
                second / 60 % 60,
                second % 60,
            );
        }
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(log.as_bytes()).expect("is written");
    file
}

const BEGIN: Micros = 1_767_225_600_000_000;

fn at(second: i64) -> Micros {
    BEGIN + second * 1_000_000
}

#[test]
fn a_part_holds_the_range_and_not_much_more() {
    let file = log(0..7_200);
    let size = file.as_file().metadata().expect("has a size").len();
    let part = find(file.path(), None, Some(at(3_000)), Some(at(3_600))).expect("can be read");
    let part = part.expect("is in order");
    let share = |seconds: u64| size * seconds / 7_200;
    assert!(
        part.begin <= share(3_000) && part.begin > share(2_700),
        "{part:?} of {size}"
    );
    assert!(
        part.end >= share(3_600) && part.end < share(3_900),
        "{part:?} of {size}"
    );
    let whole = find(file.path(), None, None, None).expect("can be read");
    assert_eq!(
        whole,
        Some(Part {
            begin: 0,
            end: size
        })
    );
}

#[test]
fn what_is_in_no_order_or_packed_has_no_part() {
    let file = log((0..7_200).rev());
    assert_eq!(
        find(file.path(), None, Some(at(0)), None).expect("can be read"),
        None
    );
    let mut packed = tempfile::NamedTempFile::new().expect("a file");
    packed.write_all(&[0x1f, 0x8b, 8, 0]).expect("is written");
    assert_eq!(
        find(packed.path(), None, Some(at(0)), None).expect("can be read"),
        None
    );
}
