use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use rustls::ServerConnection;

use super::*;
use crate::postgres::tls::Tls;
use crate::postgres::tls::test_server::{certificate, connection, server_config};
use crate::socket::{BlockingStream, Stream};

/// Start a server that handles each connection by `serve`, and connect a client's socket to it.
fn pair(
    serve: impl FnOnce(ServerConnection, TcpStream) + Send + 'static,
) -> (TlsStream<TcpStream>, JoinHandle<()>) {
    let config = server_config(&certificate(&["localhost"]));
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = listener.local_addr().expect("has an address").port();
    let server = thread::spawn(move || {
        let (socket, _) = listener.accept().expect("accepts");
        let session = ServerConnection::new(config).expect("is valid");
        serve(session, socket);
    });
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    let tls = Tls::new(&connection(r#""sslmode": "require""#)).expect("is valid");
    let mut stream = tls.wrap(socket).expect("wraps");
    stream.handshake().expect("agrees");
    (stream, server)
}

/// Read as the event loop does: until the stream is drained, then wait.
fn read_all(stream: &mut Stream, poll: &mut Poll, count: usize) -> Vec<u8> {
    let mut events = Events::with_capacity(4);
    let mut all = Vec::new();
    let mut chunk = vec![0; 1000];
    while all.len() < count {
        let wait = Some(Duration::from_secs(5));
        poll.poll(&mut events, wait).expect("polls");
        assert!(!events.is_empty(), "bytes were left behind: {}", all.len());
        loop {
            match stream.read(&mut chunk) {
                Ok(0) => return all,
                Ok(length) => {
                    all.extend_from_slice(&chunk[..length]);
                    if stream.drained(length, chunk.len()) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    all
}

fn watched(stream: TlsStream<TcpStream>, interest: Interest) -> (Stream, Poll) {
    let poll = Poll::new().expect("has a poll");
    let mut stream = BlockingStream::Tls(stream).into_stream().expect("converts");
    stream
        .register(poll.registry(), Token(0), interest)
        .expect("registers");
    (stream, poll)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..=250_u8).cycle().step_by(7).take(length).collect()
}

#[test]
fn nothing_is_left_behind_by_whoever_reads_until_drained() {
    for (length, piece) in [(3_000_000, 100_000), (300_000, 700), (5, 1)] {
        let (stream, server) = pair(move |mut session, mut socket| {
            let mut tls = rustls::Stream::new(&mut session, &mut socket);
            for piece in pattern(length).chunks(piece) {
                tls.write_all(piece).expect("sends");
            }
            // The last bytes must be found without an event for the end.
            assert_eq!(tls.read(&mut [0]).expect("is told"), 1);
        });
        let (mut stream, mut poll) = watched(stream, Interest::READABLE);
        assert_eq!(read_all(&mut stream, &mut poll, length), pattern(length));
        assert_eq!(stream.write(b"x").expect("tells"), 1);
        server.join().expect("served");
    }
}

#[test]
fn many_small_answers_are_found_one_after_the_other() {
    let (stream, server) = pair(|mut session, mut socket| {
        let mut tls = rustls::Stream::new(&mut session, &mut socket);
        let mut byte = [0];
        while tls.read(&mut byte).is_ok_and(|length| length > 0) {
            tls.write_all(&byte).expect("answers");
        }
    });
    let (mut stream, mut poll) = watched(stream, Interest::READABLE);
    for round in 0..500_usize {
        let questions = pattern(1 + round % 5);
        for question in &questions {
            assert_eq!(stream.write(&[*question]).expect("asks"), 1);
        }
        let answers = read_all(&mut stream, &mut poll, questions.len());
        assert_eq!(answers, questions);
    }
    drop(stream);
    server.join().expect("served");
}

#[test]
fn what_is_written_and_not_sent_is_said() {
    let (stream, server) = pair(|mut session, mut socket| {
        // So late that the client's socket buffer is full long before.
        thread::sleep(Duration::from_millis(300));
        let mut tls = rustls::Stream::new(&mut session, &mut socket);
        let mut all = vec![0; 20_000_000];
        tls.read_exact(&mut all).expect("receives");
        assert!(all == pattern(all.len()));
    });
    let (mut stream, mut poll) = watched(stream, Interest::WRITABLE);
    let bytes = pattern(20_000_000);
    let mut written = 0;
    let mut waited = false;
    let mut events = Events::with_capacity(4);
    while written < bytes.len() || stream.wants_write() {
        let step = if written < bytes.len() {
            stream.write(&bytes[written..])
        } else {
            stream.flush().map(|()| 0)
        };
        match step {
            Ok(length) => written += length,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                assert!(stream.wants_write());
                waited = true;
                let wait = Some(Duration::from_secs(5));
                poll.poll(&mut events, wait).expect("polls");
                assert!(!events.is_empty(), "nobody wakes us to write");
            }
        }
    }
    assert!(waited, "the socket took everything at once");
    server.join().expect("served");
}

#[test]
fn an_end_is_an_end_with_and_without_farewell() {
    for connection_failure in [true, false] {
        let (mut stream, server) = pair(move |mut session, mut socket| {
            let mut tls = rustls::Stream::new(&mut session, &mut socket);
            tls.write_all(b"last words").expect("sends");
            if connection_failure {
                session.send_close_notify();
                session.write_tls(&mut socket).expect("sends");
            }
        });
        server.join().expect("served");
        let mut bytes = [0; 100];
        let mut all = Vec::new();
        loop {
            let length = stream.read(&mut bytes).expect("reads");
            if length == 0 {
                break;
            }
            all.extend_from_slice(&bytes[..length]);
        }
        assert_eq!(all, b"last words");
        assert!(!stream.drained(), "the end is there to be read");
    }
}

#[test]
fn what_came_with_the_answer_is_handed_over() {
    let (mut stream, server) = pair(|mut session, mut socket| {
        let mut tls = rustls::Stream::new(&mut session, &mut socket);
        tls.write_all(b"answer").expect("sends");
        tls.write_all(b"and more").expect("sends");
        assert_eq!(tls.read(&mut [0]).expect("is told"), 1);
    });
    thread::sleep(Duration::from_millis(100));
    let mut answer = [0; 6];
    assert_eq!(stream.read(&mut answer).expect("reads"), 6);
    assert_eq!(&answer, b"answer");
    let mut rest = BytesMut::new();
    stream.take_held(&mut rest).expect("takes");
    // Both arrived together, so there is no second event.
    assert_eq!(&rest[..], b"and more");
    assert!(stream.readable == 0 && stream.begin == stream.end);
    stream.write(b"x").expect("tells");
    server.join().expect("served");
}
