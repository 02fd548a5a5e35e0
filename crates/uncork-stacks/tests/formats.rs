//! Reads files of every format, written by other tools and by ourselves.

#![expect(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::iter::repeat;

use uncork_stacks::{
    Format, Limits, Measure, ReadError, Stacks, read, to_folded, to_pprof, to_speedscope,
};

fn rows(stacks: &Stacks) -> Vec<(String, String, i64)> {
    let measures = stacks.rows.iter().map(|row| row.measure).chain(repeat(0));
    stacks
        .values()
        .zip(measures)
        .map(|((stack, value), measure)| {
            let measure = &stacks.measures[measure];
            (measure.name.clone(), stack.to_owned(), value)
        })
        .collect()
}

fn ok(bytes: &[u8]) -> (Format, Stacks) {
    read(bytes, None, false, Limits::default()).unwrap()
}

fn error(bytes: &[u8], format: Format) -> String {
    read(bytes, Some(format), false, Limits::default())
        .unwrap_err()
        .to_string()
}

const STACKS: [(&str, i64); 3] = [
    ("main;work", 7),
    ("main;read;ksys_read_[k]", 2),
    ("main", 1),
];
const SPEEDSCOPE: &str = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
"shared":{"frames":[{"name":"a"},{"name":"b","file":"x.js","line":3}]},
"profiles":[{"type":"evented","name":"one","unit":"milliseconds","startValue":0,"endValue":10,
"events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":2},{"type":"C","frame":1,"at":5},{"type":"C","frame":0,"at":10}]},
{"type":"sampled","name":"two","unit":"milliseconds","startValue":0,"endValue":3,"samples":[[0,1],[0]],"weights":[1.5,1.5]}]}"#;
const PYROSCOPE: &str = r#"{"version":1,"flamebearer":{"names":["total","main","work","idle"],
"levels":[[0,100,0,0],[0,90,10,1,0,10,10,3],[10,80,80,2]],"numTicks":100,"maxSelf":80},
"metadata":{"format":"single","spyName":"gospy","sampleRate":100,"units":"samples","name":"shop.cpu{}"}}"#;

#[test]
fn folded_lines_are_read_and_written() {
    let text = to_folded(STACKS);
    let (format, stacks) = ok(&text);
    assert_eq!(format, Format::Folded);
    let found = rows(&stacks);
    let found: Vec<_> = found
        .iter()
        .map(|(_, stack, value)| (stack.as_str(), *value))
        .collect();
    assert_eq!(found, STACKS);
}

#[test]
fn what_we_write_as_pprof_and_speedscope_is_read_again() {
    let measure = Measure {
        name: "cpu".to_owned(),
        unit: "nanoseconds".to_owned(),
    };
    let (format, stacks) = ok(&to_pprof(&measure, STACKS));
    assert_eq!(
        (format, stacks.measures.clone()),
        (Format::Pprof, vec![measure.clone()])
    );
    let found: Vec<_> = rows(&stacks)
        .into_iter()
        .map(|(_, stack, value)| (stack, value))
        .collect();
    let wanted: Vec<_> = STACKS
        .iter()
        .map(|(stack, value)| ((*stack).to_owned(), *value))
        .collect();
    assert_eq!(found, wanted);
    let (format, stacks) = ok(&to_speedscope("x", &measure, STACKS));
    assert_eq!(format, Format::Speedscope);
    let total: i64 = stacks.rows.iter().map(|row| row.value).sum();
    assert_eq!(
        (stacks.measures[0].unit.as_str(), total),
        ("nanoseconds", 10)
    );
}

#[test]
fn speedscopes_events_become_time_in_stacks() {
    let (format, stacks) = ok(SPEEDSCOPE.as_bytes());
    assert_eq!(format, Format::Speedscope);
    let found: Vec<_> = stacks
        .rows
        .iter()
        .map(|row| (stacks.text(row.process), stacks.text(row.stack), row.value))
        .collect();
    assert_eq!(
        found,
        [
            ("one", "a", 7_000_000),
            ("one", "a;b", 3_000_000),
            ("two", "a;b", 1_500_000),
            ("two", "a", 1_500_000),
        ]
    );
}

#[test]
fn pyroscopes_bars_become_stacks() {
    let (format, stacks) = ok(PYROSCOPE.as_bytes());
    assert_eq!(format, Format::Pyroscope);
    let row = |stack: &str, value| ("cpu".to_owned(), stack.to_owned(), value);
    assert_eq!(
        rows(&stacks),
        [row("main", 10), row("idle", 10), row("main;work", 80)]
    );
}

#[test]
fn broken_files_say_where() {
    let whole = to_pprof(
        &Measure {
            name: "cpu".to_owned(),
            unit: "samples".to_owned(),
        },
        STACKS,
    );
    let cut = whole.len() / 2;
    let told = error(&whole[..cut], Format::Pprof);
    assert!(
        told.starts_with("byte ") && told.contains("cut off"),
        "{told}"
    );
    let told = error(&SPEEDSCOPE.as_bytes()[..200], Format::Speedscope);
    assert!(told.starts_with("line 3: column "), "{told}");
    assert_eq!(
        error(b"a;b 1\na;b\n", Format::Folded),
        "line 2: \"a;b\" does not end with a space and a whole number"
    );
    let wrong = SPEEDSCOPE.replace("\"frame\":1,\"at\":5", "\"frame\":0,\"at\":5");
    assert_eq!(
        error(wrong.as_bytes(), Format::Speedscope),
        "profile 0: event 2 closes frame 0, which is not the open one"
    );
    let wrong = PYROSCOPE.replace("[10,80,80,2]", "[10,95,80,2]");
    assert_eq!(
        error(wrong.as_bytes(), Format::Pyroscope),
        "level 2: bar 0 does not lie under one of the level above"
    );
    assert_eq!(
        error(b"PERFILE2 \0", Format::Folded).split(' ').next(),
        Some("line")
    );
    assert!(matches!(
        read(b"PERFILE2\0\0", None, false, Limits::default()),
        Err(ReadError::Whole(text)) if text.contains("perf script")
    ));
}

#[test]
fn gzip_is_unpacked_up_to_a_bound() {
    use std::io::Write;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&to_folded(STACKS)).unwrap();
    let zipped = packer.finish().unwrap();
    assert_eq!(ok(&zipped).0, Format::Folded);
    let tight = Limits {
        unpacked: 10,
        ..Limits::default()
    };
    let told = read(&zipped, None, false, tight).unwrap_err().to_string();
    assert_eq!(told, "unpacked it takes more than 0 MB");
    assert!(
        error(&zipped[..zipped.len() - 6], Format::Folded).contains("gzip"),
        "cut off"
    );
}

#[test]
fn texts_are_bounded() {
    let tight = Limits {
        stacks: 100,
        name: 10,
        depth: 3,
        ..Limits::default()
    };
    let (_, stacks) = read(b"abcdefghijklm;b;c;d;e 1\n", None, false, tight).unwrap();
    assert_eq!(stacks.values().next(), Some(("abcdefghij;b;c", 1)));
    let many: Vec<String> = (0..100).map(|number| format!("main;f{number} 1")).collect();
    let many = many.join("\n");
    let told = read(many.as_bytes(), None, false, tight)
        .unwrap_err()
        .to_string();
    assert!(told.contains("its stacks take more than"), "{told}");
}
