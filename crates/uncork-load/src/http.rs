//! The HTTP driver: HTTP/1.1 and HTTP/2 over TCP, with TLS or without, and HTTP/3 over QUIC.
//!
//! A connection has as many slots as requests may be under way on it: pipelined in HTTP/1.1, as
//! streams in HTTP/2 and HTTP/3. The protocol is implemented without I/O (`http1`, `http2`, `hpack`,
//! `qpack`, `request`, `template`, `session`, `check`); `connection` and `endpoint` join it to
//! sockets. In HTTP/3 (`http3`) a connection of `quic` takes the place of the socket.

mod capture;
mod check;
mod connection;
mod endpoint;
mod fault;
mod hpack;
mod http1;
mod http2;
mod http3;
mod qpack;
mod quic;
#[cfg(test)]
mod recording_sink;
mod redaction;
mod request;
mod session;
mod slot;
mod stall_probe;
mod template;
mod tls;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

pub use endpoint::HttpEndpoint;
use uncork_model::{HttpPlan, HttpVersion, LoadPlan, OnLost, PlanError};

use crate::recorder::Shape;
use crate::{ConnectError, Driver, Interrupt, LoadError, Share};
use fault::{Fault, Kind};
use request::Program;
use tls::Tls;

/// How often requests to stop are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Sends requests to an HTTP server.
#[derive(Debug)]
pub struct HttpDriver {
    state: Arc<State>,
}

/// What all connections of a trial share.
#[derive(Debug)]
struct State {
    plan: HttpPlan,
    program: Program,
    tls: Option<Tls>,
    /// How HTTP/3 connects; `None` in other versions.
    quic: Option<quic::Config>,
    /// The host's addresses, resolved when the first connection is opened.
    addresses: OnceLock<Result<Vec<SocketAddr>, String>>,
    depth: usize,
    /// Each operation has a connection of its own.
    connect_each: bool,
    /// The load ends when a connection does.
    stops: bool,
    seed: u64,
    origin: Instant,
    deadline: Instant,
    interrupt: Interrupt,
}

impl HttpDriver {
    /// Encode the requests of a plan and read the certificates that it names. Opens no connection.
    /// The deadline counts from now.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when the plan cannot be carried out.
    pub fn new(plan: &LoadPlan, interrupt: &Interrupt) -> Result<Self, LoadError> {
        let missing = || PlanError::Invalid("the http driver needs http".to_owned());
        let http = plan.http.clone().ok_or_else(missing)?;
        let origin = Instant::now();
        let tls = http.tls.as_ref().map(|tls| Tls::new(tls, &http));
        let tls = tls.transpose()?;
        let quic = match &tls {
            Some(tls) if http.version == HttpVersion::Http3 => Some(tls.quic()?),
            _ => None,
        };
        let state = State {
            program: Program::compile(plan, &http)?,
            tls,
            quic,
            plan: http,
            addresses: OnceLock::new(),
            depth: plan.pipeline_depth,
            connect_each: plan.connect_each,
            stops: plan.on_lost == OnLost::Stop,
            seed: plan.seed,
            origin,
            deadline: origin + Duration::from_nanos(plan.deadline_ns),
            interrupt: interrupt.clone(),
        };
        Ok(Self {
            state: Arc::new(state),
        })
    }

    /// The requests to count, by name.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.state.program.shape
    }
}

impl Driver for HttpDriver {
    type Endpoint = HttpEndpoint;

    fn open(&self, share: Share, _interrupt: &Interrupt) -> Result<HttpEndpoint, LoadError> {
        self.state.resolve()?;
        HttpEndpoint::open(Arc::clone(&self.state), share)
    }
}

impl State {
    fn now_ns(&self) -> u64 {
        // Five centuries fit.
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether to speak HTTP/2 on unencrypted connections, where there is no ALPN.
    fn speaks_http2(&self) -> bool {
        self.plan.version == HttpVersion::Http2
    }

    fn speaks_http3(&self) -> bool {
        self.plan.version == HttpVersion::Http3
    }

    fn place(&self) -> String {
        let HttpPlan { host, port, .. } = &self.plan;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    /// Stop waiting when an interrupt is requested or the deadline has passed.
    fn look_around(&self, doing: &'static str) -> Result<(), LoadError> {
        if self.interrupt.requested() {
            return Err(LoadError::Interrupted);
        }
        if Instant::now() >= self.deadline {
            return Err(LoadError::Deadline(doing));
        }
        Ok(())
    }

    /// Resolve the host's addresses, once for all connections. The system's resolver cannot be
    /// cancelled, so it runs on a thread of its own.
    fn resolve(&self) -> Result<(), LoadError> {
        let (host, port) = (self.plan.host.clone(), self.plan.port);
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            let found = found.map(Iterator::collect::<Vec<_>>);
            // The receiver may be gone.
            let _ = sender.send(found.map_err(|error| error.to_string()));
        });
        let patience = Duration::from_nanos(self.plan.connect_timeout_ns);
        let begun = Instant::now();
        let found = loop {
            match receiver.recv_timeout(CHECK_INTERVAL) {
                Ok(Ok(found)) if found.is_empty() => break Err("it has no address".to_owned()),
                Ok(found) => break found,
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < patience => {
                    self.look_around("the host's name was resolved")?;
                }
                Err(_) => break Err("no answer in time".to_owned()),
            }
        };
        match self.addresses.get_or_init(|| found) {
            Ok(_) => Ok(()),
            Err(problem) => {
                let host = &self.plan.host;
                let message =
                    format!("the host name \"{host}\" does not resolve ({problem}); correct it");
                Err(connect_error(&Fault::new(Kind::Dns, message)))
            }
        }
    }

    fn addresses(&self) -> &[SocketAddr] {
        match self.addresses.get() {
            Some(Ok(addresses)) => addresses,
            _ => &[],
        }
    }
}

fn connect_error(fault: &Fault) -> LoadError {
    let kind = fault.kind.word();
    let message = fault.message.clone();
    ConnectError::Http { kind, message }.into()
}
