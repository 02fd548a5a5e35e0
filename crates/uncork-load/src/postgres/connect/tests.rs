use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use rustls::ServerConnection;

use super::*;
use crate::postgres::tls::test_server::{TestCertificate, certificate, connection, server_config};

/// What a server does with one connection.
type Serve = Box<dyn FnOnce(TcpStream) + Send>;
/// A server that sends these bytes after authentication.
type Way = fn(Vec<u8>) -> Serve;
type LookUp = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x09Z\0\0\0\x05I";

/// Start a server that serves one connection after the other; return its port.
fn server(script: Vec<Serve>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = listener.local_addr().expect("has an address").port();
    thread::spawn(move || {
        for serve in script {
            let (socket, _) = listener.accept().expect("accepts");
            serve(socket);
        }
    });
    port
}

/// Answer the request for TLS with these bytes and keep the connection open.
fn answer(bytes: &'static [u8]) -> Serve {
    Box::new(move |mut socket| {
        let mut request = [0; 8];
        socket.read_exact(&mut request).expect("is asked");
        assert_eq!(request, SSL_REQUEST);
        socket.write_all(bytes).expect("answers");
        // Until the client has closed the connection.
        let _ = socket.read(&mut [0; 1000]);
    })
}

/// Read the first message of a session.
fn startup(stream: &mut impl Read) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("begins");
    let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut rest).expect("goes on");
    rest
}

fn refusal() -> Vec<u8> {
    let fields = b"SFATAL\0VFATAL\0C28000\0Mno entry\0\0";
    let length = u8::try_from(fields.len() + 4).expect("is short");
    [b"E\0\0\0", &[length][..], fields].concat()
}

/// Accept or refuse clients without TLS.
fn plain(bytes: Vec<u8>) -> Serve {
    Box::new(move |mut socket| {
        startup(&mut socket);
        socket.write_all(&bytes).expect("answers");
        let _ = socket.read(&mut [0; 1000]);
    })
}

/// Accept or refuse clients with TLS.
fn encrypted(bytes: Vec<u8>) -> Serve {
    let config = server_config(&certificate(&["localhost"]));
    Box::new(move |mut socket| {
        let mut request = [0; 8];
        socket.read_exact(&mut request).expect("is asked");
        assert_eq!(request, SSL_REQUEST);
        socket.write_all(b"S").expect("answers");
        let mut session = ServerConnection::new(config).expect("is valid");
        let mut tls = rustls::Stream::new(&mut session, &mut socket);
        startup(&mut tls);
        tls.write_all(&bytes).expect("answers");
        let _ = tls.read(&mut [0; 1000]);
    })
}

fn target(port: u16, more: &str) -> Target {
    let mut connection = connection(more);
    connection.port = port;
    connection.hostaddr = Some("127.0.0.1".to_owned());
    Target::new(connection)
}

fn open_with(target: &Target, interrupt: &Interrupt) -> Result<Session, LoadError> {
    let limits = Limits {
        trial: Instant::now() + Duration::from_secs(30),
        interrupt,
    };
    connect(target, &[], limits)
}

fn attempt_at(target: &Target) -> Result<Session, ConnectError> {
    open_with(target, &Interrupt::default()).map_err(|error| match error {
        LoadError::Connect(error) => error,
        other => panic!("{other}"),
    })
}

fn failure(target: &Target) -> (String, String) {
    let error = attempt_at(target).expect_err("fails");
    (error.sqlstate().to_owned(), error.to_string())
}

#[test]
fn each_mode_makes_its_attempts_in_libpqs_order() {
    let let_in = || LET_IN.to_vec();
    let no_tls = || -> Serve {
        Box::new(|mut socket| {
            socket.read_exact(&mut [0; 8]).expect("is asked");
            socket.write_all(b"N").expect("answers");
            startup(&mut socket);
            socket.write_all(LET_IN).expect("lets in");
            let _ = socket.read(&mut [0; 1000]);
        })
    };
    let cases: Vec<(&str, Vec<Serve>, bool)> = vec![
        ("disable", vec![plain(let_in())], false),
        ("allow", vec![plain(let_in())], false),
        ("allow", vec![plain(refusal()), encrypted(let_in())], true),
        ("prefer", vec![encrypted(let_in())], true),
        ("prefer", vec![encrypted(refusal()), plain(let_in())], false),
        ("prefer", vec![no_tls()], false),
        ("require", vec![encrypted(let_in())], true),
    ];
    for (mode, script, expected) in cases {
        let target = target(server(script), &format!(r#""sslmode": "{mode}""#));
        let session = attempt_at(&target).expect(mode);
        assert_eq!(session.stream.encrypted(), expected, "{mode}");
        assert_eq!(session.key, (7, 9));
        assert!(session.connect_ns > 0);
    }
}

#[test]
fn refusals_of_both_ways_are_told_in_one_message() {
    let script = vec![encrypted(refusal()), plain(refusal())];
    let prefer = target(server(script), r#""sslmode": "prefer""#);
    let (sqlstate, message) = failure(&prefer);
    assert_eq!(sqlstate, "28000");
    assert_eq!(
        message.matches("no entry").count(),
        1,
        "said once: {message}"
    );
    let script = vec![plain(refusal()), answer(b"N")];
    let allow = target(server(script), r#""sslmode": "allow""#);
    let (sqlstate, message) = failure(&allow);
    assert_eq!(sqlstate, "28000", "the server's own word counts");
    assert!(
        message.contains("no entry") && message.contains("with TLS, "),
        "{message}"
    );
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_demanded() {
    let roots = r#""sslrootcert": "/nonexistent""#;
    for (mode, more) in [("require", r#""sslsni": true"#), ("verify-ca", roots)] {
        let port = server(vec![answer(b"N")]);
        let target = target(port, &format!(r#""sslmode": "{mode}", {more}"#));
        let (sqlstate, message) = failure(&target);
        assert_eq!(sqlstate, "08001");
        if mode == "require" {
            let expected = format!("localhost:{port} does not support TLS, but sslmode require");
            assert!(message.contains(&expected), "{message}");
        } else {
            assert!(message.contains("\"/nonexistent\" cannot be read"));
        }
    }
}

#[test]
fn an_answer_that_may_not_be_believed_is_refused() {
    for (bytes, expected) in [
        (&b"S\x15"[..], "unencrypted data came after"),
        (b"NR", "unencrypted data came after"),
        (b"EFATAL\0", "with an error"),
        (b"HTTP/1.1", "with an unknown message"),
        (b"", "did not answer within"),
    ] {
        let port = server(vec![answer(bytes)]);
        let more = r#""sslmode": "prefer", "password": "open sesame""#;
        let (sqlstate, message) = failure(&target(port, more));
        assert_eq!(sqlstate, "08001");
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("sesame"));
    }
}

#[test]
fn certificates_are_checked_as_far_as_is_asked() {
    let folder = tempfile::tempdir().expect("has a folder");
    let right = certificate(&["localhost"]);
    let named = certificate(&["elsewhere"]);
    let file = |name: &str, made: &TestCertificate| {
        let path = folder.path().join(name);
        std::fs::write(&path, &made.certificate_pem).expect("writes");
        path.display().to_string()
    };
    let (right_file, named_file) = (file("right.pem", &right), file("named.pem", &named));
    let serve = |made: &TestCertificate| -> Serve {
        let config = server_config(made);
        Box::new(move |mut socket| {
            socket.read_exact(&mut [0; 8]).expect("is asked");
            socket.write_all(b"S").expect("answers");
            let mut session = ServerConnection::new(config).expect("is valid");
            let mut tls = rustls::Stream::new(&mut session, &mut socket);
            // A client that does not trust the server closes the connection here.
            let mut length = [0; 4];
            if tls.read_exact(&mut length).is_ok() {
                let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
                tls.read_exact(&mut rest).expect("goes on");
                tls.write_all(LET_IN).expect("lets in");
            }
            let _ = tls.read(&mut [0; 1000]);
        })
    };
    for (mode, roots, other_name, expected) in [
        ("require", None, true, None),
        ("require", Some(&right_file), false, None),
        (
            "require",
            Some(&named_file),
            false,
            Some("is not signed by"),
        ),
        ("verify-ca", Some(&named_file), true, None),
        (
            "verify-ca",
            Some(&right_file),
            true,
            Some("is not signed by"),
        ),
        ("verify-full", Some(&right_file), false, None),
        (
            "verify-full",
            Some(&named_file),
            true,
            Some("its certificate is for \"elsewhere\", not for \"localhost\""),
        ),
    ] {
        let port = if other_name {
            server(vec![serve(&named)])
        } else {
            server(vec![serve(&right)])
        };
        let roots = roots.map_or("null".to_owned(), |it| format!("{it:?}"));
        let more = format!(r#""sslmode": "{mode}", "sslrootcert": {roots}"#);
        let result = attempt_at(&target(port, &more));
        match (result, expected) {
            (Ok(session), None) => assert!(session.stream.encrypted()),
            (Err(error), Some(expected)) => {
                assert_eq!(error.sqlstate(), "08001");
                let message = error.to_string();
                assert!(message.contains(expected), "{message}");
                assert!(message.contains(&format!("localhost:{port}")), "{message}");
            }
            (result, _) => panic!("{more}: {result:?}"),
        }
    }
}

#[test]
fn options_that_contradict_one_another_are_named() {
    for (more, expected) in [
        (r#""sslmode": "verify-ca""#, "requires sslrootcert"),
        (
            r#""sslmode": "require", "sslrootcert": "system""#,
            "set sslmode to verify-full",
        ),
        (
            r#""sslmode": "require", "sslcert": "/nonexistent""#,
            "sslcert \"/nonexistent\" cannot be read",
        ),
    ] {
        let (sqlstate, message) = failure(&target(1, more));
        // The socket comes first.
        assert_eq!(sqlstate, "08001");
        assert!(
            message.contains(expected) || message.contains("cannot connect to localhost:1"),
            "{message}"
        );
        let error = Tls::new(&connection(more)).expect_err("contradicts itself");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("has a folder");
    let (own, other) = (certificate(&["client"]), certificate(&["other"]));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str, mode| {
        std::fs::write(path(name), text).expect("writes");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path(name), mode).expect("sets");
    };
    let locked = own.key_pem.replace("PRIVATE", "ENCRYPTED PRIVATE");
    write("own.crt", &own.certificate_pem, 0o644);
    write("own.key", &own.key_pem, 0o600);
    write("open.key", &own.key_pem, 0o644);
    write("other.key", &other.key_pem, 0o600);
    write("locked.key", &locked, 0o600);
    for (file, expected) in [
        ("own.key", None),
        ("open.key", Some("can be read by others")),
        ("other.key", Some("is not the key of sslcert")),
        ("locked.key", Some("is encrypted")),
        ("own.crt", Some("can be read by others")),
        ("none.key", Some("cannot be read")),
    ] {
        let connection = connection(&format!(
            r#""sslcert": {:?}, "sslkey": {:?}"#,
            path("own.crt"),
            path(file)
        ));
        let problem = Tls::new(&connection).err().map(|error| error.to_string());
        match (problem, expected) {
            (None, None) => {}
            (Some(problem), Some(expected)) => assert!(problem.contains(expected), "{problem}"),
            (problem, _) => panic!("{file}: {problem:?}"),
        }
    }
}

#[test]
fn binding_is_not_given_up_where_it_is_demanded() {
    let ask = |bytes: &'static [u8]| plain(bytes.to_vec());
    let sasl = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
    for (bytes, expected) in [
        (
            LET_IN,
            "accepts the connection without a bound password exchange",
        ),
        (b"R\0\0\0\x08\0\0\0\x03", "other than scram-sha-256"),
        (sasl, "is not encrypted"),
    ] {
        let port = server(vec![ask(bytes)]);
        let more = r#""sslmode": "disable", "channel_binding": "require", "password": "p""#;
        let (sqlstate, message) = failure(&target(port, more));
        assert_eq!(sqlstate, "28000");
        assert!(message.contains(expected), "{message}");
    }
    let more = r#""sslmode": "require", "channel_binding": "require", "password": "p""#;
    let port = server(vec![encrypted(sasl.to_vec())]);
    let (_, message) = failure(&target(port, more));
    assert!(
        message.contains("does not offer SCRAM-SHA-256-PLUS"),
        "{message}"
    );
}

#[test]
fn a_server_that_goes_away_is_lost_not_unreachable() {
    let port = server(vec![Box::new(|mut socket| {
        startup(&mut socket);
    })]);
    let (sqlstate, message) = failure(&target(port, r#""sslmode": "disable""#));
    assert_eq!(sqlstate, "08006");
    assert!(message.contains("closed the connection"), "{message}");
}

#[test]
fn what_the_server_says_beyond_the_answers_is_handed_over() {
    let ways: [(Way, &str); 2] = [(plain, "disable"), (encrypted, "require")];
    for (way, mode) in ways {
        let mut bytes = LET_IN.to_vec();
        bytes.extend_from_slice(b"N\0\0\0\x05\0");
        let port = server(vec![way(bytes)]);
        let session = attempt_at(&target(port, &format!(r#""sslmode": "{mode}""#)));
        let session = session.expect("is let in");
        assert_eq!(&session.received[..], b"N\0\0\0\x05\0", "{mode}");
    }
}

#[test]
fn an_interrupt_ends_an_attempt_wherever_it_is() {
    let interrupt = Arc::new(Interrupt::default());
    let request = Arc::clone(&interrupt);
    // It accepts, and sends nothing.
    let port = server(vec![Box::new(|mut socket| {
        let _ = socket.read_to_end(&mut Vec::new());
    })]);
    let start = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        request.request();
    });
    let error = open_with(&target(port, r#""sslmode": "prefer""#), &interrupt);
    assert!(matches!(error, Err(LoadError::Interrupted)), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn nobody_listening_is_told_with_the_address() {
    // A port that is never assigned at random.
    let port = 1;
    let (sqlstate, message) = failure(&target(port, r#""sslmode": "prefer""#));
    assert_eq!(sqlstate, "08001");
    assert!(
        message.starts_with(&format!(
            "cannot connect to localhost:{port}: Connection refused"
        )),
        "{message}"
    );
}

/// Connect to a Unix socket until its queue is full.
fn fill(path: &Path) -> Vec<mio::net::UnixStream> {
    let mut streams = Vec::new();
    while let Ok(stream) = mio::net::UnixStream::connect(path) {
        streams.push(stream);
    }
    streams
}

#[test]
fn a_full_unix_socket_is_asked_again_until_there_is_room() {
    let folder = tempfile::tempdir().expect("has a folder");
    let path = folder.path().join(".s.PGSQL.5432");
    let listener = UnixListener::bind(&path).expect("binds");
    let waiting = fill(&path);
    let mut connection = connection(r#""sslmode": "require""#);
    connection.host = folder.path().display().to_string();
    connection.connect_timeout_ns = 200_000_000;
    let (sqlstate, message) = failure(&Target::new(connection.clone()));
    assert_eq!(sqlstate, "08001");
    assert!(
        message.contains("did not answer within 200 ms"),
        "{message}"
    );
    connection.connect_timeout_ns = 5_000_000_000;
    let count = waiting.len();
    let server = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        let accept = || -> UnixStream { listener.accept().expect("accepts").0 };
        let _others: Vec<_> = (0..count).map(|_| accept()).collect();
        let mut ours = accept();
        startup(&mut ours);
        ours.write_all(LET_IN).expect("lets in");
    });
    let session = attempt_at(&Target::new(connection)).expect("is let in");
    assert!(!session.stream.encrypted(), "a Unix socket never is");
    server.join().expect("served");
}

#[test]
fn a_name_that_is_not_resolved_in_time_is_told() {
    let slow = |_: &str, _: u16| -> io::Result<Vec<SocketAddr>> {
        thread::sleep(Duration::from_secs(20));
        Ok(Vec::new())
    };
    let unknown = |_: &str, _: u16| -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::other("Name or service not known"))
    };
    let look_ups: [(LookUp, &str); 2] = [
        (slow, "did not resolve within 200 ms"),
        (unknown, "does not resolve (Name or service not known)"),
    ];
    for (look_up, expected) in look_ups {
        let mut connection = connection(r#""sslmode": "disable""#);
        connection.host = "db.example".to_owned();
        connection.connect_timeout_ns = 200_000_000;
        let mut target = Target::new(connection);
        target.resolver = Resolver::new(look_up);
        for _ in 0..2 {
            let start = Instant::now();
            let (sqlstate, message) = failure(&target);
            assert_eq!(sqlstate, "08001");
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("db.example:5432"), "{message}");
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    }
}

#[test]
fn an_address_that_is_silent_leaves_time_for_the_next() {
    // A listener whose queue is full does not answer.
    let silent = TcpListener::bind("127.0.0.2:0").expect("binds");
    let place = silent.local_addr().expect("has an address");
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&place, Duration::from_millis(200)) {
        queue.push(stream);
    }
    let port = server(vec![plain(LET_IN.to_vec())]);
    let mut target = target(port, r#""sslmode": "disable""#);
    target.connection.hostaddr = None;
    target.connection.connect_timeout_ns = 4_000_000_000;
    SILENT_PORT.store(place.port(), Ordering::Relaxed);
    target.resolver = Resolver::new(|_, port| {
        Ok(vec![
            SocketAddr::from(([127, 0, 0, 2], SILENT_PORT.load(Ordering::Relaxed))),
            SocketAddr::from(([127, 0, 0, 1], port)),
        ])
    });
    let session = attempt_at(&target).expect("the second address answers");
    assert!(
        session.connect_ns > 1_600_000_000,
        "the first was given its time"
    );
}

/// The port of [`an_address_that_is_silent_leaves_time_for_the_next`]; a resolver knows one only.
static SILENT_PORT: AtomicU16 = AtomicU16::new(0);
