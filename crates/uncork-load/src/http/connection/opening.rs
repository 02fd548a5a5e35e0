//! Opening a connection: TCP connect, TLS handshake, choice of the HTTP version, settings.

use std::io;
use std::net::SocketAddr;

use mio::{Interest, Registry};

use super::{Connection, Context, Progress, Protocol, Stage, unreachable};
use crate::http::State;
use crate::http::fault::{Fault, Kind};
use crate::http::http1::Http1;
use crate::http::http2::Http2;
use crate::http::tls::H2;
use crate::socket::{Counted, Stream};

impl Connection {
    /// Begin to connect.
    pub(crate) fn connect(
        &mut self,
        address: SocketAddr,
        now_ns: u64,
        state: &State,
        registry: &Registry,
    ) -> io::Result<()> {
        if state.speaks_http3() {
            self.connect_http3(address, state, registry)?;
        } else {
            let stream = mio::net::TcpStream::connect(address)?;
            let mut stream = Stream::Tcp(Counted::new(stream));
            stream.register(
                registry,
                self.token,
                Interest::READABLE | Interest::WRITABLE,
            )?;
            self.stream = Some(stream);
            self.watches_writing = true;
        }
        self.stage = Stage::Connecting;
        self.drained = true;
        self.closing = false;
        self.begun_ns = now_ns;
        self.answered = 0;
        self.requested = 0;
        Ok(())
    }

    /// Continue opening. Afterwards the connection is open, or waits for the socket.
    pub(super) fn open(&mut self, context: &mut Context<'_>) -> Result<Progress, Fault> {
        if self.stage == Stage::Connecting {
            let Some(Stream::Tcp(socket)) = &self.stream else {
                return Ok(Progress::Nothing);
            };
            let socket = socket.get();
            if let Some(error) = socket.take_error().ok().flatten() {
                return Err(unreachable(context.state, &error));
            }
            match socket.peer_addr() {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    return Ok(Progress::Nothing);
                }
                Err(error) => return Err(unreachable(context.state, &error)),
            }
            // Disable Nagle's algorithm: small requests must not wait for one another.
            let _ = socket.set_nodelay(true);
            self.begin_tls(context)?;
        }
        let mut http2 = context.state.speaks_http2();
        if self.stage == Stage::Agreeing {
            let (Some(Stream::Tls(stream)), Some(tls)) = (&mut self.stream, &context.state.tls)
            else {
                return Ok(Progress::Nothing);
            };
            match stream.handshake() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.watch(context)?;
                    return Ok(Progress::Nothing);
                }
                Err(error) => return Err(tls.fault(&error)),
            }
            let agreed = stream.alpn() == Some(H2);
            if http2 && !agreed {
                let message = "the server did not agree to speak HTTP/2; leave out --h2";
                return Err(Fault::new(Kind::Tls, message));
            }
            http2 = agreed;
        }
        let (depth, program) = (self.slots.len(), &context.state.program);
        if http2 {
            self.protocol = Some(Protocol::Http2(Box::new(Http2::new(
                depth,
                program.lasting,
                program.lists.clone(),
            ))));
            Http2::open(&mut self.outgoing);
            self.stage = Stage::Greeting;
            self.write(context)?;
            return Ok(Progress::More);
        }
        self.protocol = Some(Protocol::Http1(Http1::new(program.lists.clone())));
        self.watch(context)?;
        Ok(self.opened(context.state.now_ns()))
    }

    fn begin_tls(&mut self, context: &Context<'_>) -> Result<(), Fault> {
        let Some(tls) = &context.state.tls else {
            return Ok(());
        };
        let Some(Stream::Tcp(socket)) = self.stream.take() else {
            return Ok(());
        };
        self.agreeing_ns = context.state.now_ns();
        self.stage = Stage::Agreeing;
        let wrapped = tls.wrap(socket).map_err(|error| tls.fault(&error))?;
        self.stream = Some(Stream::Tls(wrapped));
        Ok(())
    }

    pub(super) fn opened(&mut self, now_ns: u64) -> Progress {
        let tls_ns = (self.agreeing_ns > 0).then(|| now_ns - self.agreeing_ns);
        self.agreeing_ns = 0;
        self.stage = Stage::Open;
        Progress::Opened {
            connect_ns: now_ns - self.begun_ns,
            tls_ns,
        }
    }
}
