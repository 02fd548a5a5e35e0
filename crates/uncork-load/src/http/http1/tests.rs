use uncork_script::Prng;

use super::*;
use crate::http::recording_sink::{RecordingSink, SinkCall};

fn connection(requests: &[bool]) -> Http1 {
    let mut http1 = Http1::new(FieldNames::All);
    for (slot, &head_only) in requests.iter().enumerate() {
        http1.sent(slot, head_only);
    }
    http1
}

#[test]
fn a_frame_of_http_2_is_told_from_garbage() {
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x80";
    let goaway = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    let empty_settings = b"\0\0\0\x04\0\0\0\0\0";
    for (bytes, kind) in [
        (&settings[..], Kind::OtherProtocol),
        (&goaway[..], Kind::OtherProtocol),
        (&empty_settings[..], Kind::OtherProtocol),
        (&b"\0\0\x05\x04\0\0\0\0\0\0\0\0\0\0"[..], Kind::Garbage),
        (&b"\0\x01garbage\r\n\r\n"[..], Kind::Garbage),
    ] {
        for piece in [1, 4, bytes.len()] {
            let fault = read(&mut connection(&[false]), bytes, piece).unwrap_err();
            assert_eq!(fault.kind, kind, "{bytes:?} in pieces of {piece}");
        }
    }
}

/// Parse bytes in pieces of this size, as a connection would.
fn read(http1: &mut Http1, bytes: &[u8], piece: usize) -> Result<Vec<SinkCall>, Fault> {
    let (mut saw, mut pending) = (RecordingSink::default(), Vec::new());
    for part in bytes.chunks(piece) {
        pending.extend_from_slice(part);
        let used = http1.receive(&pending, &mut saw)?;
        pending.drain(..used);
    }
    Ok(saw.all)
}

fn whole(slot: usize, status: u16, body: &str) -> Vec<SinkCall> {
    let body = (!body.is_empty()).then(|| SinkCall::Body(slot, body.as_bytes().to_vec()));
    [
        Some(SinkCall::Head(slot, status)),
        body,
        Some(SinkCall::End(slot)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn answers_are_read_in_whatever_pieces_they_come() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
        HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nWiki\r\n5\r\npedia\r\n0\r\nA: b\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n\
        HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end";
    let expected = [
        whole(0, 200, "hello"),
        whole(1, 404, ""),
        whole(2, 200, "Wikipedia"),
        whole(3, 200, ""),
        whole(4, 304, ""),
        whole(5, 204, ""),
        vec![
            SinkCall::Head(6, 200),
            SinkCall::Body(6, b"to the end".to_vec()),
        ],
    ];
    for piece in [1, 2, 3, 7, 50, bytes.len()] {
        let mut http1 = connection(&[false, false, false, true, false, false, false]);
        let saw = read(&mut http1, bytes, piece).expect("valid");
        assert_eq!(saw, expected.concat(), "in pieces of {piece}");
        let mut sink = RecordingSink::default();
        let fault = Fault::new(Kind::Closed, "");
        assert!(
            !http1.finish(&fault, false, &mut sink),
            "the end ends the last body"
        );
        assert_eq!(sink.all, [SinkCall::End(6)]);
    }
}

#[test]
fn the_end_of_a_connection_says_what_may_have_been_processed() {
    let fault = Fault::new(Kind::Closed, "");
    let ended = |bytes: &[u8]| {
        let mut http1 = connection(&[false, false]);
        let saw = read(&mut http1, bytes, 1_000).expect("valid");
        let partial = saw.is_empty() && !bytes.is_empty();
        let mut sink = RecordingSink::default();
        http1.finish(&fault, partial, &mut sink);
        sink.all
    };
    let failed = |slot, kind| SinkCall::Failed(slot, kind);
    assert_eq!(
        ended(b""),
        [failed(0, Kind::Closed), failed(1, Kind::Closed)]
    );
    assert_eq!(
        ended(b"HTTP/1.1 2"),
        [failed(0, Kind::Truncated), failed(1, Kind::Closed)]
    );
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe";
    assert_eq!(
        ended(short),
        [failed(0, Kind::Truncated), failed(1, Kind::Closed)]
    );
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(
        ended(last),
        [SinkCall::Unprocessed(1, Kind::Closed)],
        "behind the last answer"
    );
    let short_last = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nx";
    assert_eq!(
        ended(short_last),
        [
            failed(0, Kind::Truncated),
            SinkCall::Unprocessed(1, Kind::Closed)
        ]
    );
}

#[test]
fn what_is_no_answer_is_refused_by_kind() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(LONGEST_HEAD));
    let many = format!(
        "HTTP/1.1 200 OK\r\n{}\r\n",
        "a: b\r\n".repeat(MOST_HEADERS + 1)
    );
    for (bytes, kind) in [
        (&b"\x15\x03\x01\x00\x02\x02\x16"[..], Kind::Garbage),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Kind::Garbage),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            Kind::Garbage,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            Kind::Garbage,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            Kind::Garbage,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            Kind::Garbage,
        ),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Kind::Garbage),
        (
            b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            Kind::Garbage,
        ),
        (long.as_bytes(), Kind::LongHead),
        (many.as_bytes(), Kind::LongHead),
    ] {
        let found = read(&mut connection(&[false]), bytes, 10_000);
        assert_eq!(
            found.expect_err("refused").kind,
            kind,
            "{}",
            bytes[..20].escape_ascii()
        );
    }
}

#[test]
fn random_and_damaged_bytes_do_no_harm() {
    let good =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n0\r\n\r\n".repeat(3);
    let mut random = Prng::new(3);
    for _ in 0..5_000 {
        let mut bytes = good.clone();
        for _ in 0..random.up_to(4) {
            let at = usize::try_from(random.up_to(good.len() as u64 - 1)).expect("small");
            bytes[at] = random.bits().to_le_bytes()[0];
        }
        let piece = usize::try_from(random.up_to(60)).expect("small") + 1;
        let mut http1 = connection(&[false; 5]);
        let saw = read(&mut http1, &bytes, piece).unwrap_or_default();
        let mut sink = RecordingSink { all: saw };
        http1.finish(&Fault::new(Kind::Closed, ""), false, &mut sink);
    }
}
