use std::collections::HashMap;
use std::fmt::Debug;

use super::*;

fn returns<T: Form + PartialEq + Debug>(value: &T) {
    let mut out = Vec::new();
    value.write(&mut out);
    let mut reader = Reader::new(&out, 0);
    assert_eq!(T::read(&mut reader).as_ref(), Ok(value));
    assert!(reader.is_empty());
    for length in 0..out.len() {
        assert_eq!(
            T::read(&mut Reader::new(&out[..length], 0)),
            Err(FormError::Damaged)
        );
    }
}

#[test]
fn what_is_written_is_read() {
    for number in [0, 1, 127, 128, 300, u64::MAX / 3, u64::MAX] {
        returns(&number);
    }
    for number in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
        returns(&number);
    }
    returns(&1.5_f64);
    returns(&"läuft".to_owned());
    returns(&vec![Some(7_u32), None, Some(u32::MAX)]);
    returns(&[true, false, true]);
    returns(&HashMap::from([(7_u64, vec![1_u8, 2]), (9, Vec::new())]));
}

#[test]
fn files_are_numbered_after_those_before() {
    let mut out = Vec::new();
    (3_u32, 70_u64).write(&mut out);
    assert_eq!(Place::read(&mut Reader::new(&out, 40)), Ok((43, 70)));
    let read = Place::read(&mut Reader::new(&out, u32::MAX));
    assert_eq!(read, Err(FormError::Damaged));
}

#[test]
fn a_count_beyond_the_bytes_takes_no_memory() {
    let mut out = Vec::new();
    u64::MAX.write(&mut out);
    assert_eq!(
        Vec::<u64>::read(&mut Reader::new(&out, 0)),
        Err(FormError::Damaged)
    );
}

#[test]
fn only_a_whole_form_of_this_version_is_opened() {
    let sealed = seal(b"contents");
    assert_eq!(unseal(&sealed), Ok(&b"contents"[..]));
    assert_eq!(unseal(b"contents"), Err(FormError::Foreign));
    assert_eq!(unseal(&sealed[..sealed.len() - 1]), Err(FormError::Damaged));
    let mut newer = sealed.clone();
    newer[12] += 1;
    assert_eq!(unseal(&newer), Err(FormError::Version(VERSION + 1)));
}
