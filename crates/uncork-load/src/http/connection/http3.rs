//! Connections of HTTP/3, which have their transport below the protocol.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use mio::Registry;
use quinn_proto::{ConnectionError, TransportErrorCode};

use super::{Connection, Context, Progress, Protocol, Stage, unreachable};
use crate::http::State;
use crate::http::fault::{Fault, Kind};
use crate::http::http3::{Broken, Http3, error_name};

/// What QUIC adds to the code of a TLS alert.
const ALERTS: std::ops::Range<u64> = 0x100..0x200;
/// The alert of a server without the protocol that was asked for.
const NO_APPLICATION_PROTOCOL: u64 = ALERTS.start + 120;

impl Connection {
    /// Begin to connect.
    pub(super) fn connect_http3(
        &mut self,
        address: SocketAddr,
        state: &State,
        registry: &Registry,
    ) -> io::Result<()> {
        let config = state.quic.as_ref();
        let config = config.ok_or_else(|| io::Error::other("HTTP/3 needs TLS"))?;
        let http3 = Http3::connect(
            config,
            (address, &state.plan.host),
            (registry, self.token),
            self.slots.len(),
            state.program.lasting,
            state.program.lists.clone(),
        )?;
        self.protocol = Some(Protocol::Http3(Box::new(http3)));
        Ok(())
    }

    /// Whether sending is to be tried after all that was received.
    pub(crate) fn transmits(&self) -> bool {
        matches!(self.protocol, Some(Protocol::Http3(_)))
    }

    /// When the connection next has something to do, if nothing is received before.
    pub(crate) fn timer_ns(&mut self, origin: Instant) -> Option<u64> {
        let Some(Protocol::Http3(http3)) = &mut self.protocol else {
            return None;
        };
        let wait = http3.timeout()?.saturating_duration_since(origin);
        Some(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Do what is due, receive, and parse.
    pub(super) fn work_http3(&mut self, context: &mut Context<'_>) -> Result<Progress, Fault> {
        let opening = self.stage != Stage::Open;
        let now = Instant::now();
        let Some(Protocol::Http3(http3)) = &mut self.protocol else {
            return Ok(Progress::Nothing);
        };
        let received = http3.receive(now, context.read_buffer);
        let now_ns = context.state.now_ns();
        let (protocol, mut sink) = self.sink(now_ns, context);
        let processed = match protocol {
            Some(Protocol::Http3(http3)) => http3.process(&mut sink),
            _ => Ok(()),
        };
        processed.map_err(|broken| match broken {
            Broken::Wrong(fault) => fault,
            Broken::Lost(reason) => lost(&reason, opening, context.state),
        })?;
        self.drained = received.map_err(|error| broken(&error, opening, context.state))?;
        let Some(Protocol::Http3(http3)) = &self.protocol else {
            return Ok(Progress::Nothing);
        };
        if opening {
            return Ok(if http3.is_connected() {
                self.opened(now_ns)
            } else {
                Progress::Nothing
            });
        }
        if http3.takes_no_more() && http3.is_idle() {
            let fault = Fault::new(Kind::Closed, "");
            return Ok(Progress::Ended(self.break_off(&fault, context)));
        }
        if !self.waiting.is_empty() {
            self.send(context);
        }
        Ok(if self.drained {
            Progress::Nothing
        } else {
            Progress::More
        })
    }
}

/// Describe an error of the socket.
fn broken(error: &io::Error, opening: bool, state: &State) -> Fault {
    if opening {
        return unreachable(state, error);
    }
    let message = format!("the connection broke: {error}");
    match Kind::of(error) {
        // The server's system reports that its port is closed.
        Kind::Refused => Fault::new(Kind::Reset, message),
        kind => Fault::new(kind, message),
    }
}

/// Describe why QUIC ended the connection.
fn lost(reason: &ConnectionError, opening: bool, state: &State) -> Fault {
    let tls = |code: TransportErrorCode, reason: &str| {
        let code = u64::from(code);
        let place = state.place();
        if code == NO_APPLICATION_PROTOCOL {
            let message =
                format!("{place} does not speak HTTP/3, though it speaks QUIC; leave out --h3");
            return Some(Fault::new(Kind::Tls, message));
        }
        let tls = state.tls.as_ref().filter(|_| ALERTS.contains(&code))?;
        Some(tls.quic_fault(code - ALERTS.start, reason))
    };
    match reason {
        ConnectionError::VersionMismatch => Fault::new(
            Kind::Garbage,
            "the server does not speak version 1 of QUIC; leave out --h3",
        ),
        ConnectionError::TransportError(error) => {
            tls(error.code, &error.reason).unwrap_or_else(|| {
                Fault::new(
                    Kind::Garbage,
                    format!("the server breaks the rules of QUIC ({error})"),
                )
            })
        }
        ConnectionError::ConnectionClosed(close) => {
            let reason = String::from_utf8_lossy(&close.reason);
            tls(close.error_code, &reason).unwrap_or_else(|| {
                let kind = match (opening, u64::from(close.error_code)) {
                    (true, _) => Kind::Refused,
                    (false, 0) => Kind::Closed,
                    (false, _) => Kind::Reset,
                };
                Fault::new(kind, format!("the server closed the connection ({close})"))
            })
        }
        ConnectionError::ApplicationClosed(close) => {
            let name = error_name(close.error_code);
            if name == "H3_NO_ERROR" {
                let message = "the server closed the connection without an answer";
                return Fault::new(Kind::Closed, message);
            }
            Fault::new(
                Kind::Reset,
                format!("the server closed the connection ({name})"),
            )
        }
        ConnectionError::TimedOut => Fault::new(
            Kind::Closed,
            "the connection ended by its idle timeout, without an answer",
        ),
        ConnectionError::Reset
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => {
            Fault::new(Kind::Reset, format!("the connection broke: {reason}"))
        }
    }
}
