//! HTTP/3 over QUIC on loopback, against a server on the same QUIC and with frames of its own.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::BytesMut;
use mio::{Events, Poll};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, ServerConfig,
    TransportConfig, VarInt,
};
use rustls::crypto::ring;

use super::*;
use crate::http::hpack::Header;
use crate::http::quic::READ_BYTES;
use crate::http::recording_sink::{RecordingSink, SinkCall};
use crate::postgres::tls::test_server::{TestCertificate, certificate};

const HEADERS: [Header<'_>; 2] = [
    Header::Lasting(0, b":method", b"GET"),
    Header::Passing(b":path", b"/x"),
];
/// `:status: 200`, as the static table has it.
const OK: &[u8] = &[1, 3, 0, 0, 0b1101_1001];

/// What the server does with the request of this number, from 0.
type Serve = fn(&mut Connection, usize, StreamId, &[u8]);

struct Server {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

fn server(made: &TestCertificate, most: u32, serve: Serve) -> Server {
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("has versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.certificate.clone()], made.key.clone_key())
        .expect("has a certificate");
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicServerConfig::try_from(tls).expect("has TLS 1.3");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(most));
    config.transport_config(Arc::new(transport));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let wait = Some(Duration::from_millis(2));
    socket.set_read_timeout(wait).expect("has a timeout");
    let address = socket.local_addr().expect("has an address");
    let ends = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&ends);
    let thread = thread::spawn(move || run(&socket, config, serve, &over));
    Server {
        address,
        ends,
        thread: Some(thread),
    }
}

fn run(socket: &UdpSocket, config: ServerConfig, serve: Serve, over: &AtomicBool) {
    let endpoint = Arc::new(EndpointConfig::default());
    let mut endpoint = Endpoint::new(endpoint, Some(Arc::new(config)), false, None);
    let mut connections: HashMap<ConnectionHandle, Connection> = HashMap::new();
    let mut requests: HashMap<StreamId, Vec<u8>> = HashMap::new();
    let (mut served, mut chunk, mut out) = (0, [0; 2048], Vec::new());
    while !over.load(Ordering::Relaxed) {
        if let Ok((length, client)) = socket.recv_from(&mut chunk) {
            let now = Instant::now();
            let bytes = BytesMut::from(&chunk[..length]);
            out.clear();
            match endpoint.handle(now, client, None, None, bytes, &mut out) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = endpoint.accept(incoming, now, &mut out, None);
                    let (handle, connection) = accepted.map_err(|_| ()).expect("is accepted");
                    connections.insert(handle, connection);
                }
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    connections
                        .get_mut(&handle)
                        .expect("is known")
                        .handle_event(event);
                }
                _ => {}
            }
        }
        for (&handle, connection) in &mut connections {
            let now = Instant::now();
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            while let Some(event) = connection.poll() {
                let id = match event {
                    Event::Connected => {
                        let id = connection.streams().open(Dir::Uni).expect("has room");
                        // The control stream, with empty settings.
                        connection
                            .send_stream(id)
                            .write(&[0, 4, 0])
                            .expect("has room");
                        continue;
                    }
                    Event::Stream(StreamEvent::Opened { dir }) => {
                        while let Some(id) = connection.streams().accept(dir) {
                            read(connection, id, &mut requests, &mut served, serve);
                        }
                        continue;
                    }
                    Event::Stream(StreamEvent::Readable { id }) => id,
                    _ => continue,
                };
                read(connection, id, &mut requests, &mut served, serve);
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(handle, event) {
                    connection.handle_event(event);
                }
            }
            loop {
                out.clear();
                let Some(sent) = connection.poll_transmit(now, 1, &mut out) else {
                    break;
                };
                // The client may be gone.
                let _ = socket.send_to(&out[..sent.size], sent.destination);
            }
        }
    }
}

fn read(
    connection: &mut Connection,
    id: StreamId,
    requests: &mut HashMap<StreamId, Vec<u8>>,
    served: &mut usize,
    serve: Serve,
) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else {
        return;
    };
    let ended = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => requests
                .entry(id)
                .or_default()
                .extend_from_slice(&chunk.bytes),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    drop(chunks);
    if ended && id.dir() == Dir::Bi {
        serve(
            connection,
            *served,
            id,
            &requests.remove(&id).unwrap_or_default(),
        );
        *served += 1;
    }
}

/// Send bytes on a stream, and end it.
fn answer(connection: &mut Connection, id: StreamId, bytes: &[u8]) {
    let mut stream = connection.send_stream(id);
    assert_eq!(stream.write(bytes), Ok(bytes.len()));
    stream.finish().expect("is open");
}

struct Client {
    poll: Poll,
    http3: Http3,
    saw: RecordingSink,
    buffer: Vec<u8>,
}

impl Client {
    /// Connect to a server that has this certificate, and may have another.
    fn new(server: &Server, made: &TestCertificate, slots: usize) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(made.certificate.clone())
            .expect("is a certificate");
        let provider = Arc::new(ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("has versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let config = Config::new(&Arc::new(tls)).expect("has TLS 1.3");
        let poll = Poll::new().expect("has a poll");
        let http3 = Http3::connect(
            &config,
            (server.address, "localhost"),
            (poll.registry(), Token(0)),
            slots,
            1,
            FieldNames::None,
        );
        Self {
            poll,
            http3: http3.expect("begins"),
            saw: RecordingSink::default(),
            buffer: vec![0; READ_BYTES],
        }
    }

    /// Work as the event loop does, until `done`.
    fn until(&mut self, done: impl Fn(&mut Self) -> bool) -> Result<(), Broken> {
        let mut events = Events::with_capacity(4);
        let end = Instant::now() + Duration::from_secs(20);
        while !done(self) {
            assert!(
                Instant::now() < end,
                "it takes too long: {:?}",
                self.saw.all
            );
            let registry = self.poll.registry();
            self.http3.transmit(registry, Token(0)).expect("sends");
            let now = Instant::now();
            let timeout = self
                .http3
                .timeout()
                .map(|at| at.saturating_duration_since(now));
            let wait = timeout.unwrap_or(Duration::MAX).min(Duration::from_secs(1));
            self.poll.poll(&mut events, Some(wait)).expect("polls");
            while !self
                .http3
                .receive(Instant::now(), &mut self.buffer)
                .expect("receives")
            {}
            self.http3.process(&mut self.saw)?;
        }
        Ok(())
    }

    fn connected(server: &Server, made: &TestCertificate, slots: usize) -> Self {
        let mut client = Self::new(server, made, slots);
        client.until(|it| it.http3.has_room()).expect("connects");
        client
    }

    fn send(&mut self, slot: usize, body: &[u8]) {
        assert!(self.http3.has_room());
        self.http3.send(slot, HEADERS.into_iter(), body);
    }
}

#[test]
fn requests_are_answered_on_streams_of_their_own() {
    let made = certificate(&["localhost"]);
    let server = server(&made, 100, |connection, _, id, request| {
        // A header block of 2 + 1 + 4 bytes, and the length of the body.
        let body = request.len().saturating_sub(9);
        let length = u8::try_from(body % 251).expect("is small");
        answer(connection, id, &[OK, &[0, 1, length]].concat());
    });
    let mut client = Client::connected(&server, &made, 3);
    for slot in 0..3 {
        client.send(slot, b"");
    }
    client.until(|it| it.http3.is_idle()).expect("works");
    for slot in 0..3 {
        let its = client.saw.all.iter().filter(|call| match call {
            SinkCall::Head(at, 200) | SinkCall::Body(at, _) | SinkCall::End(at) => *at == slot,
            _ => false,
        });
        assert_eq!(its.count(), 3, "{:?}", client.saw.all);
    }
    // More than the server's window: it is sent as the window opens.
    client.saw.all.clear();
    client.send(1, &vec![b'y'; 3_000_000]);
    client.until(|it| it.http3.is_idle()).expect("works");
    // The frame's type and a length of four bytes.
    let length = u8::try_from((3_000_000 + 5) % 251).expect("is small");
    let expected = [
        SinkCall::Head(1, 200),
        SinkCall::Body(1, vec![length]),
        SinkCall::End(1),
    ];
    assert_eq!(client.saw.all, expected);
    assert!(client.http3.traffic().sent_bytes > 3_000_000);
}

#[test]
fn no_more_streams_are_open_than_the_server_permits() {
    let made = certificate(&["localhost"]);
    let server = server(&made, 2, |connection, _, id, _| answer(connection, id, OK));
    let mut client = Client::connected(&server, &made, 4);
    client.send(0, b"");
    client.send(1, b"");
    assert!(!client.http3.has_room());
    client.until(|it| it.http3.has_room()).expect("works");
    client.send(2, b"");
    client.until(|it| it.http3.is_idle()).expect("works");
    assert_eq!(client.saw.all.len(), 6);
}

#[test]
fn what_was_not_processed_is_told_from_what_failed() {
    let made = certificate(&["localhost"]);
    let server = server(&made, 100, |connection, number, id, _| match number {
        0 => connection
            .send_stream(id)
            .reset(REQUEST_REJECTED)
            .expect("is open"),
        1 => connection
            .send_stream(id)
            .reset(VarInt::from_u32(0x102))
            .expect("is open"),
        _ => {
            // GOAWAY on the control stream, for this request and all later ones.
            let control = StreamId::new(Side::Server, Dir::Uni, 0);
            let last = u8::try_from(u64::from(id)).expect("is small");
            connection
                .send_stream(control)
                .write(&[7, 1, last])
                .expect("has room");
        }
    });
    let mut client = Client::connected(&server, &made, 1);
    for _ in 0..3 {
        client.send(0, b"");
        client.until(|it| it.http3.is_idle()).expect("works");
    }
    let expected = [
        SinkCall::Unprocessed(0, Kind::StreamRefused),
        SinkCall::Failed(0, Kind::StreamReset),
        SinkCall::Unprocessed(0, Kind::Goaway),
    ];
    assert_eq!(client.saw.all, expected);
    assert!(client.http3.takes_no_more() && !client.http3.has_room());
}

#[test]
fn the_end_of_the_connection_ends_its_requests() {
    let made = certificate(&["localhost"]);
    let server = server(&made, 100, |connection, number, id, _| {
        if number == 0 {
            connection.send_stream(id).write(OK).expect("has room");
        } else {
            connection.close(Instant::now(), NO_ERROR, bytes::Bytes::new());
        }
    });
    let mut client = Client::connected(&server, &made, 2);
    client.send(0, b"");
    client.until(|it| !it.saw.all.is_empty()).expect("works");
    client.send(1, b"");
    let ended = client.until(|_| false);
    assert!(
        matches!(&ended, Err(Broken::Lost(ConnectionError::ApplicationClosed(close)))
            if error_name(close.error_code) == "H3_NO_ERROR"),
        "{ended:?}"
    );
    assert!(
        client
            .http3
            .finish(&Fault::new(Kind::Closed, "closed"), &mut client.saw)
    );
    let expected = [
        SinkCall::Head(0, 200),
        SinkCall::Failed(0, Kind::Truncated),
        SinkCall::Failed(1, Kind::Closed),
    ];
    assert_eq!(client.saw.all, expected);
}

#[test]
fn a_server_with_another_certificate_is_refused() {
    let made = certificate(&["localhost"]);
    let server = server(&made, 100, |_, _, _, _| {});
    let mut client = Client::new(&server, &certificate(&["localhost"]), 1);
    let ended = client.until(|it| it.http3.is_connected());
    assert!(
        matches!(
            &ended,
            Err(Broken::Lost(ConnectionError::TransportError(_)))
        ),
        "{ended:?}"
    );
}
