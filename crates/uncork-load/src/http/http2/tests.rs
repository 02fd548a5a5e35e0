use uncork_script::Prng;

use super::frames::*;
use super::*;
use crate::http::hpack::Header;
use crate::http::recording_sink::{RecordingSink, SinkCall};

const HEADERS: [Header<'_>; 2] = [
    Header::Lasting(0, b":method", b"GET"),
    Header::Passing(b":path", b"/x"),
];

fn frame(kind: Type, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    FrameHead::new(payload.len(), kind, flags, stream).write(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// A connection that has received these settings.
fn greeted(slots: usize, settings: &[Vec<u8>]) -> Http2 {
    let mut http2 = Http2::new(slots, 1, FieldNames::All);
    let (saw, _) = read(
        &mut http2,
        &frame(Type::Settings, 0, 0, &settings.concat()),
        1_000,
    )
    .expect("valid");
    assert!(saw.is_empty() && http2.greeted());
    http2
}

/// Parse bytes in pieces of this size; return what the sink received, and what was sent in return.
fn read(http2: &mut Http2, bytes: &[u8], piece: usize) -> Result<(Vec<SinkCall>, Vec<u8>), Fault> {
    let (mut saw, mut pending, mut out) = (RecordingSink::default(), Vec::new(), Vec::new());
    for part in bytes.chunks(piece) {
        pending.extend_from_slice(part);
        let used = http2.receive(&pending, &mut saw, &mut out)?;
        pending.drain(..used);
        assert!(
            pending.len() <= HEAD_BYTES + LONGEST_FRAME,
            "what is kept is bounded"
        );
    }
    Ok((saw.all, out))
}

fn send(http2: &mut Http2, slot: usize, body: &[u8]) -> Vec<u8> {
    assert!(http2.has_room());
    let mut out = Vec::new();
    http2.send(slot, HEADERS.into_iter(), body, &mut out);
    out
}

/// The frames in bytes: type, flags, stream, length.
fn frames_of(mut bytes: &[u8]) -> Vec<(Type, u8, u32, usize)> {
    let mut found = Vec::new();
    while let Some(head) = FrameHead::read(bytes) {
        found.push((head.kind, head.flags, head.stream, head.length));
        bytes = &bytes[HEAD_BYTES + head.length..];
    }
    found
}

/// `:status: 200`, as the static table has it.
const OK: &[u8] = &[0x88];

#[test]
fn the_first_words_are_those_of_the_standard() {
    let mut out = Vec::new();
    Http2::open(&mut out);
    let rest = out.strip_prefix(PREFACE).expect("begins with the preface");
    assert_eq!(
        frames_of(rest),
        [(Type::Settings, 0, 0, 12), (Type::WindowUpdate, 0, 0, 4)]
    );
}

#[test]
fn answers_are_read_in_whatever_pieces_they_come() {
    let padded = [&[3_u8][..], b"lo", &[0; 3]].concat();
    let bytes = [
        frame(Type::Headers, END_HEADERS, 3, &[0x48, 3, b'1', b'0', b'3']),
        frame(Type::Headers, END_HEADERS, 3, OK),
        frame(Type::Unknown, 0, 0, b"whatever"),
        frame(Type::Headers, 0, 1, OK),
        frame(Type::Continuation, 0, 1, b"\x00\x01a\x01"),
        frame(Type::Continuation, END_HEADERS, 1, b"b"),
        frame(Type::Data, 0, 1, b"the "),
        frame(Type::Data, 0, 3, b"other"),
        frame(Type::Ping, 0, 0, b"12345678"),
        frame(Type::Data, PADDED, 1, &padded),
        frame(
            Type::Headers,
            END_HEADERS | END_STREAM,
            1,
            b"\x00\x01t\x01u",
        ),
        frame(Type::Data, END_STREAM, 3, b""),
        frame(
            Type::Headers,
            END_HEADERS | END_STREAM | PADDED | PRIORITY,
            5,
            &[1, 0, 0, 0, 0, 9, 0x8d, 0],
        ),
    ]
    .concat();
    let body = |slot, text: &str| SinkCall::Body(slot, text.as_bytes().to_vec());
    for piece in [1, 2, 5, 9, 30, bytes.len()] {
        let mut http2 = greeted(3, &[]);
        for slot in 0..3 {
            send(&mut http2, slot, b"");
        }
        let (saw, out) = read(&mut http2, &bytes, piece).expect("valid");
        let expected = [
            SinkCall::Head(1, 200),
            SinkCall::Head(0, 200),
            body(0, "the "),
            body(1, "other"),
            body(0, "lo"),
            SinkCall::End(0),
            SinkCall::End(1),
            SinkCall::Head(2, 404),
            SinkCall::End(2),
        ];
        assert_eq!(saw, expected, "in pieces of {piece}");
        assert_eq!(frames_of(&out), [(Type::Ping, ACK, 0, 8)]);
        assert!(http2.is_idle());
    }
}

#[test]
fn a_body_keeps_to_the_servers_windows() {
    let mut http2 = greeted(
        2,
        &[
            setting(INITIAL_WINDOW_SIZE, 10),
            setting(MAX_FRAME_SIZE, 16_384),
        ],
    );
    let body = vec![7; 100];
    let sent = send(&mut http2, 0, &body);
    assert_eq!(frames_of(&sent)[1], (Type::Data, 0, 1, 10));
    // A wider window for the stream; then for all streams, by a setting.
    let more = frame(Type::WindowUpdate, 0, 1, &20_u32.to_be_bytes());
    assert_eq!(
        frames_of(&read(&mut http2, &more, 99).expect("valid").1),
        [(Type::Data, 0, 1, 20)]
    );
    let more = frame(Type::Settings, 0, 0, &setting(INITIAL_WINDOW_SIZE, 80));
    let (_, out) = read(&mut http2, &more, 99).expect("valid");
    assert_eq!(
        frames_of(&out),
        [(Type::Settings, ACK, 0, 0), (Type::Data, END_STREAM, 1, 70)]
    );
    // The connection's own window is shared.
    let big = vec![1; 70_000];
    let widest = frame(
        Type::Settings,
        0,
        0,
        &setting(INITIAL_WINDOW_SIZE, GREATEST),
    );
    read(&mut http2, &widest, 99).expect("valid");
    let sent: usize = frames_of(&send(&mut http2, 1, &big))[1..]
        .iter()
        .map(|frame| frame.3)
        .sum();
    assert_eq!(sent, 65_535 - 100);
    let more = frame(Type::WindowUpdate, 0, 0, &100_000_u32.to_be_bytes());
    let (_, out) = read(&mut http2, &more, 99).expect("valid");
    assert_eq!(
        frames_of(&out),
        [(Type::Data, END_STREAM, 3, 70_000 - sent)]
    );
}

#[test]
fn windows_for_answers_are_renewed_before_they_are_used_up() {
    let mut http2 = greeted(1, &[]);
    send(&mut http2, 0, b"");
    read(&mut http2, &frame(Type::Headers, END_HEADERS, 1, OK), 99).expect("valid");
    let data = frame(Type::Data, 0, 1, &[0; LONGEST_FRAME]);
    let (mut renewed, mut sink, mut out) = ([0_u64; 2], RecordingSink::default(), Vec::new());
    let frames = (2 * u64::from(WINDOW)) / LONGEST_FRAME as u64;
    for _ in 0..frames {
        http2
            .receive(&data, &mut sink, &mut out)
            .expect("within the window");
        sink.all.clear();
        for (kind, _, stream, _) in frames_of(&out) {
            assert_eq!(kind, Type::WindowUpdate);
            renewed[usize::from(stream == 1)] += u64::from(number(&out[9..]).expect("a number"));
        }
        out.clear();
    }
    assert_eq!(renewed, [frames * LONGEST_FRAME as u64; 2]);
}

#[test]
fn a_server_that_takes_leave_says_what_it_has_not_processed() {
    let mut http2 = greeted(3, &[]);
    for slot in 0..3 {
        send(&mut http2, slot, b"");
    }
    let leave = [&3_u32.to_be_bytes()[..], &0_u32.to_be_bytes(), b"bye"].concat();
    let (saw, _) = read(&mut http2, &frame(Type::Goaway, 0, 0, &leave), 99).expect("valid");
    assert_eq!(saw, [SinkCall::Unprocessed(2, Kind::Goaway)]);
    assert!(http2.is_leaving() && !http2.is_idle() && !http2.has_room());
    let answer = frame(Type::Headers, END_HEADERS | END_STREAM, 1, OK);
    assert_eq!(
        read(&mut http2, &answer, 99).expect("valid").0,
        [SinkCall::Head(0, 200), SinkCall::End(0)]
    );
    let mut sink = RecordingSink::default();
    assert!(http2.finish(&Fault::new(Kind::Closed, ""), &mut sink));
    assert_eq!(sink.all, [SinkCall::Failed(1, Kind::Goaway)]);
}

#[test]
fn a_server_may_first_announce_its_leave_and_then_say_how_far_it_gets() {
    let mut http2 = greeted(3, &[]);
    for slot in 0..3 {
        send(&mut http2, slot, b"");
    }
    let leave = |last: u32| frame(Type::Goaway, 0, 0, &[last.to_be_bytes(), [0; 4]].concat());
    assert_eq!(read(&mut http2, &leave(GREATEST), 99).expect("valid").0, []);
    assert!(http2.is_leaving() && !http2.has_room());
    assert_eq!(
        read(&mut http2, &leave(1), 99).expect("valid").0,
        [
            SinkCall::Unprocessed(1, Kind::Goaway),
            SinkCall::Unprocessed(2, Kind::Goaway)
        ]
    );
    let answer = frame(Type::Headers, END_HEADERS | END_STREAM, 1, OK);
    read(&mut http2, &answer, 99).expect("valid");
    assert!(http2.is_idle());
}

#[test]
fn streams_are_refused_reset_and_cancelled_one_by_one() {
    let mut http2 = greeted(3, &[]);
    for slot in 0..3 {
        send(&mut http2, slot, b"");
    }
    let bytes = [
        frame(Type::Reset, 0, 1, &REFUSED_STREAM.to_be_bytes()),
        frame(Type::Reset, 0, 3, &2_u32.to_be_bytes()),
        frame(Type::Reset, 0, 77, &2_u32.to_be_bytes()),
    ]
    .concat();
    let (saw, _) = read(&mut http2, &bytes, 99).expect("valid");
    let expected = [
        SinkCall::Unprocessed(0, Kind::StreamRefused),
        SinkCall::Failed(1, Kind::StreamReset),
    ];
    assert_eq!(saw, expected);
    let mut out = Vec::new();
    http2.cancel(2, &mut out);
    assert_eq!(frames_of(&out), [(Type::Reset, 0, 5, 4)]);
    // The answer to a cancelled request is ignored, but its effect on the table counts.
    let late = frame(
        Type::Headers,
        END_HEADERS | END_STREAM,
        5,
        b"\x88\x40\x01a\x01b",
    );
    assert_eq!(read(&mut http2, &late, 99).expect("valid").0, []);
    send(&mut http2, 0, b"");
    let named = frame(Type::Headers, END_HEADERS | END_STREAM, 7, &[0x88, 0xbe]);
    assert_eq!(
        read(&mut http2, &named, 99).expect("valid").0,
        [SinkCall::Head(0, 200), SinkCall::End(0)]
    );
}

#[test]
fn only_as_many_streams_are_open_as_the_server_permits() {
    let mut http2 = greeted(3, &[setting(MAX_CONCURRENT_STREAMS, 2)]);
    send(&mut http2, 0, b"");
    send(&mut http2, 1, b"");
    assert!(!http2.has_room());
    let answer = frame(Type::Headers, END_HEADERS | END_STREAM, 1, OK);
    read(&mut http2, &answer, 99).expect("valid");
    assert!(http2.has_room());
}

#[test]
fn what_breaks_the_rules_ends_the_connection_by_kind() {
    let long = [frame(Type::Headers, 0, 1, OK)]
        .into_iter()
        .chain((0..20).map(|_| frame(Type::Continuation, 0, 1, &[0; LONGEST_FRAME])));
    let empty = [frame(Type::Headers, 0, 1, OK)]
        .into_iter()
        .chain((0..40_000).map(|_| frame(Type::Continuation, 0, 1, b"")));
    let more = GREATEST.to_be_bytes();
    for (bytes, kind) in [
        (frame(Type::Headers, END_HEADERS, 1, &[0x80]), Kind::Garbage),
        (
            frame(Type::Headers, END_HEADERS, 1, b"\x00\x01a\x01b"),
            Kind::Garbage,
        ),
        (frame(Type::Data, 0, 0, b"x"), Kind::Garbage),
        (frame(Type::Data, PADDED, 1, &[9, 1]), Kind::Garbage),
        (frame(Type::Continuation, 0, 1, b""), Kind::Garbage),
        (
            [
                frame(Type::Headers, 0, 1, OK),
                frame(Type::Ping, 0, 0, &[0; 8]),
            ]
            .concat(),
            Kind::Garbage,
        ),
        (frame(Type::Settings, 0, 0, &[0; 5]), Kind::Garbage),
        (
            frame(Type::Settings, 0, 0, &setting(INITIAL_WINDOW_SIZE, 1 << 31)),
            Kind::Garbage,
        ),
        (frame(Type::WindowUpdate, 0, 0, &more), Kind::Garbage),
        (
            frame(Type::PushPromise, END_HEADERS, 1, &[0, 0, 0, 2]),
            Kind::Garbage,
        ),
        (
            frame(Type::Unknown, 0, 0, &vec![0; LONGEST_FRAME + 1]),
            Kind::Garbage,
        ),
        (long.flatten().collect(), Kind::LongHead),
        (empty.flatten().collect(), Kind::LongHead),
    ] {
        let mut http2 = greeted(1, &[]);
        send(&mut http2, 0, b"");
        let found = read(&mut http2, &bytes, 1_000).expect_err("refused");
        assert_eq!(found.kind, kind, "{}", bytes[..10].escape_ascii());
    }
    let fault = Http2::new(1, 0, FieldNames::None).receive(
        b"HTTP/1.1 400 Bad",
        &mut RecordingSink::default(),
        &mut Vec::new(),
    );
    assert!(
        fault
            .expect_err("refused")
            .message
            .contains("leave out --h2")
    );
}

#[test]
fn random_and_damaged_bytes_do_no_harm() {
    let good = [
        frame(Type::Headers, END_HEADERS, 1, OK),
        frame(Type::Data, 0, 1, b"hello"),
        frame(Type::Settings, 0, 0, &setting(INITIAL_WINDOW_SIZE, 9)),
        frame(Type::WindowUpdate, 0, 0, &[0, 0, 0, 9]),
        frame(
            Type::Headers,
            END_HEADERS | END_STREAM,
            3,
            b"\x88\x40\x01a\x01b",
        ),
        frame(Type::Goaway, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]),
        frame(Type::Data, END_STREAM, 1, b"bye"),
    ]
    .concat();
    let mut random = Prng::new(11);
    for _ in 0..5_000 {
        let mut bytes = good.clone();
        for _ in 0..random.up_to(5) {
            let at = usize::try_from(random.up_to(good.len() as u64 - 1)).expect("small");
            bytes[at] = random.bits().to_le_bytes()[0];
        }
        let mut http2 = greeted(4, &[]);
        for slot in 0..4 {
            send(&mut http2, slot, b"body");
        }
        let piece = usize::try_from(random.up_to(60)).expect("small") + 1;
        let _ = read(&mut http2, &bytes, piece);
        let mut sink = RecordingSink::default();
        http2.finish(&Fault::new(Kind::Closed, ""), &mut sink);
        assert!(http2.is_idle());
    }
}
