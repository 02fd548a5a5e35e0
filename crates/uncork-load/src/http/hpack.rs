//! HPACK (RFC 7541): the headers of HTTP/2, compressed. Pure.

mod decoder;
mod encoder;
mod huffman;
mod table;

pub(super) use decoder::{DecodeError, Decoder, Fields, read_text};
pub(super) use encoder::{Encoder, Header};

/// Append an integer with a prefix of so many bits; `first` holds the bits before the prefix.
pub(super) fn write_integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        out.push(first | low_byte(value));
        return;
    }
    out.push(first | low_byte(most));
    let mut rest = value - most;
    while rest >= 128 {
        out.push(low_byte(rest & 127) | 128);
        rest >>= 7;
    }
    out.push(low_byte(rest));
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits are gone by then"
)]
fn low_byte(value: usize) -> u8 {
    value as u8
}

/// Read an integer with a prefix of so many bits from the beginning of `bytes`.
pub(super) fn read_integer(bytes: &mut &[u8], prefix: u32) -> Option<usize> {
    let (&first, mut rest) = bytes.split_first()?;
    let most = (1_usize << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        // No valid header needs more than 28 bits.
        for shift in [0, 7, 14, 21] {
            let (&byte, behind) = rest.split_first()?;
            rest = behind;
            value += usize::from(byte & 127) << shift;
            if byte & 128 == 0 {
                *bytes = rest;
                return Some(value);
            }
        }
        return None;
    }
    *bytes = rest;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_numbers_are_written_and_read() {
        for (value, prefix, coded) in [
            (10, 5, &[0b01010][..]),
            (1337, 5, &[0b11111, 0b1001_1010, 0b0000_1010]),
            (42, 8, &[0b0010_1010]),
        ] {
            let mut out = Vec::new();
            write_integer(&mut out, 0, prefix, value);
            assert_eq!(out, coded);
            let mut rest = coded;
            assert_eq!(read_integer(&mut rest, prefix), Some(value));
            assert!(rest.is_empty());
        }
        assert_eq!(
            read_integer(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 1][..], 7),
            None
        );
        assert_eq!(read_integer(&mut &[0x7f, 0x80][..], 7), None);
    }

    #[test]
    fn every_number_returns() {
        for prefix in 4..=8 {
            for value in (0..2_000).chain([16_383, 16_384, 1 << 20, (1 << 27) - 1]) {
                let mut out = Vec::new();
                write_integer(&mut out, 0, prefix, value);
                assert_eq!(read_integer(&mut out.as_slice(), prefix), Some(value));
            }
        }
    }
}
