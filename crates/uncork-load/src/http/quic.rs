//! One QUIC connection on a UDP socket of its own.
//!
//! `quinn-proto` implements QUIC without I/O, and `quinn-udp` sends and receives several datagrams
//! with one system call. A socket for each connection gives each a local port of its own, as the
//! clients of a service have, and reports whether the server's port is closed.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mio::{Interest, Registry, Token};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    TransportConfig, VarInt,
};
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::SockRef;

use crate::Traffic;

/// Messages per system call when receiving. The kernel joins datagrams to messages of up to 64 KiB.
const MESSAGES: usize = 16;
const MESSAGE_BYTES: usize = 64 * 1024;
/// Bytes of the buffer that sockets are read into.
pub(crate) const READ_BYTES: usize = MESSAGES * MESSAGE_BYTES;
/// The most datagrams per system call when sending.
const MOST_SEGMENTS: usize = 10;
/// Requested size of the socket's buffers; the system may give less.
const SOCKET_BYTES: usize = 2 << 20;
/// What the server may send before it has to wait for us.
const WINDOW: VarInt = VarInt::from_u32(1 << 30);

/// A QUIC connection.
pub(super) struct Quic {
    socket: mio::net::UdpSocket,
    udp: UdpSocketState,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub(super) connection: Connection,
    traffic: Traffic,
    /// Datagrams that the socket did not accept yet.
    unsent: Option<quinn_proto::Transmit>,
    outgoing: Vec<u8>,
    /// The socket's error: the server's port is closed, or there is no way to it.
    error: Option<io::Error>,
    watches_writing: bool,
}

impl fmt::Debug for Quic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Quic").finish_non_exhaustive()
    }
}

/// What all connections of a load share.
pub(super) struct Config {
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Config").finish_non_exhaustive()
    }
}

impl Config {
    /// Use this encryption, which must offer TLS 1.3.
    pub(super) fn new(tls: &Arc<rustls::ClientConfig>) -> Result<Self, String> {
        let crypto = quinn_proto::crypto::rustls::QuicClientConfig::try_from(Arc::clone(tls));
        let crypto = crypto.map_err(|error| error.to_string())?;
        let mut transport = TransportConfig::default();
        transport
            .stream_receive_window(WINDOW)
            .receive_window(WINDOW)
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .datagram_receive_buffer_size(None)
            // The server decides how long a connection may be idle.
            .max_idle_timeout(None);
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(Arc::new(transport));
        Ok(Self {
            endpoint: Arc::new(EndpointConfig::default()),
            client,
        })
    }
}

impl Quic {
    /// Begin to connect. Nothing is sent before [`Quic::transmit`].
    pub(super) fn connect(
        config: &Config,
        address: SocketAddr,
        host: &str,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let local: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        // Only a connected socket learns that the server's port is closed. Elsewhere such sockets
        // refuse messages that name their destination, as all do here.
        if cfg!(target_os = "linux") {
            socket.connect(address)?;
        }
        let options = SockRef::from(&socket);
        // If the system gives less, datagrams may get lost: see the counts of the load.
        let _ = options.set_recv_buffer_size(SOCKET_BYTES);
        let _ = options.set_send_buffer_size(SOCKET_BYTES);
        let udp = UdpSocketState::new((&socket).into())?;
        let discovers = !udp.may_fragment();
        let endpoint = Arc::clone(&config.endpoint);
        let mut endpoint = Endpoint::new(endpoint, None, discovers, None);
        let (handle, connection) = endpoint
            .connect(Instant::now(), config.client.clone(), address, host)
            .map_err(io::Error::other)?;
        let mut socket = mio::net::UdpSocket::from_std(socket);
        registry.register(&mut socket, token, Interest::READABLE)?;
        Ok(Self {
            socket,
            udp,
            endpoint,
            handle,
            connection,
            traffic: Traffic::default(),
            unsent: None,
            outgoing: Vec::new(),
            error: None,
            watches_writing: false,
        })
    }

    /// Bytes of datagrams sent and received.
    pub(super) fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The next event of the connection.
    pub(super) fn poll(&mut self) -> Option<Event> {
        self.connection.poll()
    }

    /// The error of the socket, once.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// When the connection next has something to do, if nothing is received before.
    pub(super) fn timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Do what is due.
    pub(super) fn elapse(&mut self, now: Instant) {
        if self.timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
            self.settle();
        }
    }

    /// Receive waiting datagrams; return whether none is left.
    pub(super) fn receive(&mut self, now: Instant, buffer: &mut [u8]) -> bool {
        let mut parts = buffer.chunks_exact_mut(MESSAGE_BYTES);
        let mut buffers: [IoSliceMut<'_>; MESSAGES] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
        let mut metas = [RecvMeta::default(); MESSAGES];
        let received = self
            .udp
            .recv((&self.socket).into(), &mut buffers, &mut metas);
        let count = match received {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return false,
            Err(error) => {
                self.error = Some(error);
                return true;
            }
        };
        for (buffer, meta) in buffers.iter().zip(&metas[..count]) {
            self.traffic.received_bytes += meta.len as u64;
            for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                self.take_datagram(now, datagram, meta);
            }
        }
        self.settle();
        count < MESSAGES
    }

    fn take_datagram(&mut self, now: Instant, datagram: &[u8], meta: &RecvMeta) {
        let ecn = meta
            .ecn
            .and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
        let mut reply = Vec::new();
        let taken = self.endpoint.handle(
            now,
            meta.addr,
            meta.dst_ip,
            ecn,
            BytesMut::from(datagram),
            &mut reply,
        );
        // A client has nothing to answer to datagrams of other connections.
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = taken
            && handle == self.handle
        {
            self.connection.handle_event(event);
        }
    }

    /// Exchange events between the connection and its endpoint.
    fn settle(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
    }

    /// Send what is due, as far as the socket accepts it.
    pub(super) fn transmit(&mut self, now: Instant) {
        loop {
            if self.unsent.is_none() {
                self.outgoing.clear();
                let most = self.udp.max_gso_segments().min(MOST_SEGMENTS);
                self.unsent = self.connection.poll_transmit(now, most, &mut self.outgoing);
            }
            let Some(transmit) = &self.unsent else {
                break;
            };
            let message = quinn_udp::Transmit {
                destination: transmit.destination,
                ecn: transmit
                    .ecn
                    .and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                contents: &self.outgoing[..transmit.size],
                segment_size: transmit.segment_size,
                src_ip: transmit.src_ip,
            };
            match self.udp.try_send((&self.socket).into(), &message) {
                Ok(()) => self.traffic.sent_bytes += transmit.size as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Too large for the way to the server: the connection tries what fits.
                Err(error) if error.raw_os_error() == Some(nix::libc::EMSGSIZE) => {}
                Err(error) => self.error = Some(error),
            }
            self.unsent = None;
            if self.error.is_some() {
                break;
            }
        }
        self.settle();
    }

    /// Register for writability as long as there is something to send.
    pub(super) fn watch(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let writes = self.unsent.is_some();
        if writes == self.watches_writing {
            return Ok(());
        }
        self.watches_writing = writes;
        let interest = if writes {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        registry.reregister(&mut self.socket, token, interest)
    }

    /// Tell the server that the connection is over, as far as the socket accepts it.
    pub(super) fn close(&mut self, code: VarInt) {
        let now = Instant::now();
        self.connection.close(now, code, Bytes::new());
        self.unsent = None;
        self.transmit(now);
    }
}
