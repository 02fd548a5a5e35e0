//! The frames of HTTP/2: frame heads, flags, settings and error codes.

/// Length of a frame head, in bytes.
pub(super) const HEAD_BYTES: usize = 9;
/// The client's connection preface.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;

pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const CANCEL: u32 = 8;

/// Frame types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Data,
    Headers,
    Priority,
    Reset,
    Settings,
    PushPromise,
    Ping,
    Goaway,
    WindowUpdate,
    Continuation,
    /// Ignored.
    Unknown,
}

const TYPES: [Type; 10] = [
    Type::Data,
    Type::Headers,
    Type::Priority,
    Type::Reset,
    Type::Settings,
    Type::PushPromise,
    Type::Ping,
    Type::Goaway,
    Type::WindowUpdate,
    Type::Continuation,
];

/// A frame head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: Type,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) fn new(length: usize, kind: Type, flags: u8, stream: u32) -> Self {
        Self {
            length,
            kind,
            flags,
            stream,
        }
    }

    /// Parse a frame head from the beginning of `bytes`, if it is complete.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let &[l1, l2, l3, kind, flags, s1, s2, s3, s4] = bytes.first_chunk::<HEAD_BYTES>()?;
        Some(Self {
            length: usize::from(l1) << 16 | usize::from(l2) << 8 | usize::from(l3),
            kind: TYPES
                .get(usize::from(kind))
                .copied()
                .unwrap_or(Type::Unknown),
            flags,
            stream: u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]),
        })
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        let length = u32::try_from(self.length).unwrap_or(u32::MAX).to_be_bytes();
        out.extend_from_slice(&length[1..]);
        out.push(self.kind as u8);
        out.push(self.flags);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }
}

/// Read a 32-bit number from the beginning.
pub(super) fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// The name of an error code.
pub(super) fn error_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let name = NAMES.get(code as usize);
    name.map_or_else(|| format!("error {code}"), |name| (*name).to_owned())
}
