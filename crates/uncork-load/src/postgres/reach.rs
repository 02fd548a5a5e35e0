//! Opens a socket to a host within a time limit. No step blocks uninterruptibly: names are resolved
//! on a thread of their own, sockets connect without blocking.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::SocketAddr as UnixAddress;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use uncork_model::Connection;

use super::connect::{CHECK_INTERVAL, Watch};
use crate::socket::BlockingStream;
use crate::{ConnectError, LoadError};

/// How long to wait before a retry when a Unix socket's queue is full.
const FULL_SOCKET_PAUSE: Duration = Duration::from_millis(5);

/// The server's name in messages.
pub(crate) fn address(connection: &Connection) -> String {
    if connection.on_socket() {
        socket_path(connection).display().to_string()
    } else {
        format!("{}:{}", connection.host, connection.port)
    }
}

fn socket_path(connection: &Connection) -> PathBuf {
    PathBuf::from(&connection.host).join(format!(".s.PGSQL.{}", connection.port))
}

/// Open a socket to the server.
pub(super) fn reach(
    connection: &Connection,
    resolver: &Resolver,
    watch: Watch<'_>,
) -> Result<BlockingStream, LoadError> {
    if connection.on_socket() {
        return reach_socket(connection, watch).map(BlockingStream::Unix);
    }
    let addresses = addresses(connection, resolver, watch)?;
    let mut problems: Vec<(SocketAddr, io::Error)> = Vec::new();
    for (number, &address) in addresses.iter().enumerate() {
        // Divide the time, so that an address that does not answer leaves time for the next ones.
        let left = u32::try_from(addresses.len() - number).unwrap_or(u32::MAX);
        let until = watch.until().map(|until| {
            let now = Instant::now();
            now + until.saturating_duration_since(now) / left
        });
        match reach_address(address, until, watch)? {
            Ok(stream) => return Ok(BlockingStream::Tcp(stream)),
            Err(problem) => problems.push((address, problem)),
        }
    }
    watch.look_around()?;
    Err(watch.unreachable(summary(problems)))
}

/// Join the errors of several addresses.
fn summary(mut problems: Vec<(SocketAddr, io::Error)>) -> io::Error {
    if problems.len() < 2 {
        return problems.pop().map_or_else(
            || io::Error::new(io::ErrorKind::NotFound, "the host has no address"),
            |(_, problem)| problem,
        );
    }
    let kind = problems[0].1.kind();
    let texts: Vec<String> = problems
        .iter()
        .map(|(address, problem)| format!("{}: {problem}", address.ip()))
        .collect();
    io::Error::new(kind, texts.join("; "))
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<UnixAddress> {
    use std::os::linux::net::SocketAddrExt;

    UnixAddress::from_abstract_name(name)
}

/// Only Linux has sockets without a file.
#[cfg(not(target_os = "linux"))]
fn abstract_address(_name: &[u8]) -> io::Result<UnixAddress> {
    Err(io::ErrorKind::Unsupported.into())
}

fn reach_socket(connection: &Connection, watch: Watch<'_>) -> Result<UnixStream, LoadError> {
    let path = socket_path(connection);
    let place = match path.as_os_str().as_encoded_bytes().strip_prefix(b"@") {
        Some(name) => abstract_address(name),
        None => UnixAddress::from_pathname(&path),
    };
    let place = place.map_err(|source| watch.unreachable(source))?;
    loop {
        match mio::net::UnixStream::connect_addr(&place) {
            Ok(stream) => {
                let stream = UnixStream::from(stream);
                let changed = stream.set_nonblocking(false);
                changed.map_err(|source| watch.unreachable(source))?;
                return Ok(stream);
            }
            // The server's queue of connections is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                watch.look_around()?;
                thread::sleep(FULL_SOCKET_PAUSE);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(watch.unreachable(error)),
        }
    }
}

/// Connect to one address. The inner error belongs to the address, the outer one ends the attempt.
fn reach_address(
    address: SocketAddr,
    until: Option<Instant>,
    watch: Watch<'_>,
) -> Result<io::Result<TcpStream>, LoadError> {
    let stream = match mio::net::TcpStream::connect(address) {
        Ok(stream) => TcpStream::from(stream),
        Err(error) => return Ok(Err(error)),
    };
    loop {
        let interval_ms = u16::try_from(CHECK_INTERVAL.as_millis()).unwrap_or(u16::MAX);
        let mut watched = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut watched, PollTimeout::from(interval_ms)) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => break,
            Err(error) => return Ok(Err(error.into())),
        }
        watch.look_around()?;
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok(Err(io::ErrorKind::TimedOut.into()));
        }
    }
    Ok(match stream.take_error() {
        Ok(Some(error)) | Err(error) => Err(error),
        Ok(None) => stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .map(|()| stream),
    })
}

fn addresses(
    connection: &Connection,
    resolver: &Resolver,
    watch: Watch<'_>,
) -> Result<Vec<SocketAddr>, LoadError> {
    let host = connection.hostaddr.as_ref().unwrap_or(&connection.host);
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, connection.port)]);
    }
    let ticket = resolver.begin(host, connection.port);
    loop {
        match resolver.wait(ticket) {
            Some(Ok(addresses)) => return Ok(addresses),
            Some(Err(problem)) => {
                let address = address(connection);
                return Err(ConnectError::Resolve { address, problem }.into());
            }
            None => watch.look_around().map_err(|error| match error {
                LoadError::Connect(ConnectError::Timeout {
                    address,
                    timeout_ms,
                }) => ConnectError::ResolveTimeout {
                    address,
                    timeout_ms,
                }
                .into(),
                other => other,
            })?,
        }
    }
}

/// Resolves a host name. The system's resolver cannot be cancelled, so it runs on a thread. There
/// is never more than one such thread; callers that arrive meanwhile wait for the same answer.
#[derive(Debug)]
pub(crate) struct Resolver {
    shared: Arc<(Mutex<Resolution>, Condvar)>,
    look_up: fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
}

#[derive(Debug)]
struct Resolution {
    busy: bool,
    /// Number of answers so far.
    answers: u64,
    /// The last answer.
    answer: Result<Vec<SocketAddr>, String>,
}

impl Default for Resolution {
    fn default() -> Self {
        Self {
            busy: false,
            answers: 0,
            answer: Ok(Vec::new()),
        }
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
    }
}

impl Resolver {
    pub(super) fn new(look_up: fn(&str, u16) -> io::Result<Vec<SocketAddr>>) -> Self {
        Self {
            shared: Arc::default(),
            look_up,
        }
    }

    /// Start the resolver unless it is running; return the number of the answer to wait for.
    fn begin(&self, host: &str, port: u16) -> u64 {
        let mut resolution = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = resolution.answers + 1;
        if resolution.busy {
            return ticket;
        }
        let (shared, look_up, host) = (Arc::clone(&self.shared), self.look_up, host.to_owned());
        let answer = move |answer: io::Result<Vec<SocketAddr>>| {
            let mut resolution = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            resolution.busy = false;
            resolution.answers += 1;
            resolution.answer = match answer {
                Ok(addresses) if addresses.is_empty() => Err("it has no address".to_owned()),
                other => other.map_err(|error| error.to_string()),
            };
            shared.1.notify_all();
        };
        let asker = thread::Builder::new().name("uncork-resolve".to_owned());
        match asker.spawn(move || answer(look_up(&host, port))) {
            Ok(_) => resolution.busy = true,
            Err(error) => {
                resolution.answers += 1;
                resolution.answer = Err(error.to_string());
            }
        }
        ticket
    }

    /// Wait a short time for an answer.
    fn wait(&self, ticket: u64) -> Option<Result<Vec<SocketAddr>, String>> {
        let resolution = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unanswered = |resolution: &mut Resolution| resolution.answers < ticket;
        let (resolution, _) = self
            .shared
            .1
            .wait_timeout_while(resolution, CHECK_INTERVAL, unanswered)
            .unwrap_or_else(PoisonError::into_inner);
        (resolution.answers >= ticket).then(|| resolution.answer.clone())
    }
}
