//! Opening a connection: reaching the server, agreeing on keys and on a version, greeting.

use std::io;
use std::net::SocketAddr;

use mio::{Interest, Registry};

use super::{Came, Link, Shared, Stage, Wire, unreachable};
use crate::http::fault::{Fault, Kind};
use crate::http::one::One;
use crate::http::tls::TWO;
use crate::http::two::Two;
use crate::socket::{Counted, Stream};

impl Link {
    /// Begins to connect.
    pub(crate) fn connect(
        &mut self,
        address: SocketAddr,
        now_ns: u64,
        registry: &Registry,
    ) -> io::Result<()> {
        let stream = mio::net::TcpStream::connect(address)?;
        let mut stream = Stream::Tcp(Counted::new(stream));
        stream.register(
            registry,
            self.token,
            Interest::READABLE | Interest::WRITABLE,
        )?;
        self.stream = Some(stream);
        self.watches_writing = true;
        self.stage = Stage::Connecting;
        self.drained = true;
        self.closing = false;
        self.begun_ns = now_ns;
        self.answered = 0;
        self.requested = 0;
        Ok(())
    }

    /// Goes on with opening; afterwards the connection is open, or waits for the socket.
    pub(super) fn open(&mut self, shared: &mut Shared<'_>) -> Result<Came, Fault> {
        if self.stage == Stage::Connecting {
            let Some(Stream::Tcp(socket)) = &self.stream else {
                return Ok(Came::Nothing);
            };
            let socket = socket.get();
            if let Some(error) = socket.take_error().ok().flatten() {
                return Err(unreachable(shared.state, &error));
            }
            match socket.peer_addr() {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    return Ok(Came::Nothing);
                }
                Err(error) => return Err(unreachable(shared.state, &error)),
            }
            // Small requests must not wait for one another.
            let _ = socket.set_nodelay(true);
            self.begin_tls(shared)?;
        }
        let mut two = shared.state.speaks_two();
        if self.stage == Stage::Agreeing {
            let (Some(Stream::Tls(stream)), Some(tls)) = (&mut self.stream, &shared.state.tls)
            else {
                return Ok(Came::Nothing);
            };
            match stream.handshake() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.watch(shared)?;
                    return Ok(Came::Nothing);
                }
                Err(error) => return Err(tls.fault(&error)),
            }
            let agreed = stream.alpn() == Some(TWO);
            if two && !agreed {
                let message = "the server did not agree to speak HTTP/2; leave out --h2";
                return Err(Fault::new(Kind::Tls, message));
            }
            two = agreed;
        }
        let (depth, program) = (self.lanes.len(), &shared.state.program);
        if two {
            self.wire = Some(Wire::Two(Box::new(Two::new(
                depth,
                program.lasting,
                program.lists,
            ))));
            Two::open(&mut self.outgoing);
            self.stage = Stage::Greeting;
            self.write(shared)?;
            return Ok(Came::More);
        }
        self.wire = Some(Wire::One(One::new(program.lists)));
        self.watch(shared)?;
        Ok(self.opened(shared.state.now_ns()))
    }

    fn begin_tls(&mut self, shared: &Shared<'_>) -> Result<(), Fault> {
        let Some(tls) = &shared.state.tls else {
            return Ok(());
        };
        let Some(Stream::Tcp(socket)) = self.stream.take() else {
            return Ok(());
        };
        self.agreeing_ns = shared.state.now_ns();
        self.stage = Stage::Agreeing;
        let wrapped = tls.wrap(socket).map_err(|error| tls.fault(&error))?;
        self.stream = Some(Stream::Tls(wrapped));
        Ok(())
    }

    pub(super) fn opened(&mut self, now_ns: u64) -> Came {
        let tls_ns = (self.agreeing_ns > 0).then(|| now_ns - self.agreeing_ns);
        self.agreeing_ns = 0;
        self.stage = Stage::Open;
        Came::Opened {
            connect_ns: now_ns - self.begun_ns,
            tls_ns,
        }
    }
}
