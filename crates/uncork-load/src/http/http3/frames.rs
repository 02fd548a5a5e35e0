//! The frames of HTTP/3 (RFC 9114): numbers of variable length, frame types and error codes.

use quinn_proto::VarInt;

pub(super) const DATA: u64 = 0x0;
pub(super) const HEADERS: u64 = 0x1;
pub(super) const CANCEL_PUSH: u64 = 0x3;
pub(super) const SETTINGS: u64 = 0x4;
pub(super) const PUSH_PROMISE: u64 = 0x5;
pub(super) const GOAWAY: u64 = 0x7;
pub(super) const MAX_PUSH_ID: u64 = 0xd;
/// Frames of HTTP/2 that HTTP/3 has not; they must not occur.
pub(super) const OF_HTTP_2: [u64; 4] = [0x2, 0x6, 0x8, 0x9];

/// The type of the control stream.
pub(super) const CONTROL_STREAM: u64 = 0x0;
pub(super) const PUSH_STREAM: u64 = 0x1;

pub(super) const NO_ERROR: VarInt = VarInt::from_u32(0x100);
pub(super) const REQUEST_REJECTED: VarInt = VarInt::from_u32(0x10b);
pub(super) const REQUEST_CANCELLED: VarInt = VarInt::from_u32(0x10c);

/// Read a number of variable length (RFC 9000, section 16) from the beginning of `bytes`.
pub(super) fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    *bytes = rest;
    let most = u64::from(first & 0b0011_1111);
    Some(
        number[1..]
            .iter()
            .fold(most, |value, &byte| value << 8 | u64::from(byte)),
    )
}

/// Append a number of variable length, which must be below 2^62.
pub(super) fn write_number(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let (length, mark) = match value {
        0..0x40 => (1, 0),
        0x40..0x4000 => (2, 0b0100_0000),
        0x4000..0x4000_0000 => (4, 0b1000_0000),
        _ => (8, 0b1100_0000),
    };
    let begin = out.len();
    out.extend_from_slice(&bytes[8 - length..]);
    out[begin] |= mark;
}

/// The name of an error code of HTTP/3 or QPACK.
pub(in crate::http) fn error_name(code: VarInt) -> String {
    const NAMES: [&str; 17] = [
        "H3_NO_ERROR",
        "H3_GENERAL_PROTOCOL_ERROR",
        "H3_INTERNAL_ERROR",
        "H3_STREAM_CREATION_ERROR",
        "H3_CLOSED_CRITICAL_STREAM",
        "H3_FRAME_UNEXPECTED",
        "H3_FRAME_ERROR",
        "H3_EXCESSIVE_LOAD",
        "H3_ID_ERROR",
        "H3_SETTINGS_ERROR",
        "H3_MISSING_SETTINGS",
        "H3_REQUEST_REJECTED",
        "H3_REQUEST_CANCELLED",
        "H3_REQUEST_INCOMPLETE",
        "H3_MESSAGE_ERROR",
        "H3_CONNECT_ERROR",
        "H3_VERSION_FALLBACK",
    ];
    const OF_QPACK: [&str; 3] = [
        "QPACK_DECOMPRESSION_FAILED",
        "QPACK_ENCODER_STREAM_ERROR",
        "QPACK_DECODER_STREAM_ERROR",
    ];
    let code = code.into_inner();
    let place = |base: u64| usize::try_from(code.checked_sub(base)?).ok();
    let name = place(0x100).and_then(|place| NAMES.get(place));
    let name = name.or_else(|| place(0x200).and_then(|place| OF_QPACK.get(place)));
    name.map_or_else(|| format!("error {code:#x}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000, A.1.
    #[test]
    fn the_rfcs_numbers_are_read_and_written() {
        for (coded, value) in [
            (
                &b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..],
                151_288_809_941_952_652,
            ),
            (b"\x9d\x7f\x3e\x7d", 494_878_333),
            (b"\x7b\xbd", 15_293),
            (b"\x25", 37),
        ] {
            let mut rest = coded;
            assert_eq!(read_number(&mut rest), Some(value));
            assert!(rest.is_empty());
            let mut out = Vec::new();
            write_number(value, &mut out);
            assert_eq!(out, coded);
        }
        assert_eq!(read_number(&mut &b"\x40\x25"[..]), Some(37));
        assert_eq!(read_number(&mut &b"\x40"[..]), None);
        assert_eq!(read_number(&mut &b""[..]), None);
    }

    #[test]
    fn errors_have_names() {
        assert_eq!(error_name(NO_ERROR), "H3_NO_ERROR");
        assert_eq!(error_name(REQUEST_REJECTED), "H3_REQUEST_REJECTED");
        assert_eq!(error_name(VarInt::from_u32(0x110)), "H3_VERSION_FALLBACK");
        assert_eq!(
            error_name(VarInt::from_u32(0x200)),
            "QPACK_DECOMPRESSION_FAILED"
        );
        assert_eq!(error_name(VarInt::from_u32(7)), "error 0x7");
    }
}
