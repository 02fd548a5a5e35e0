//! Encodes the headers of requests to header blocks.
//!
//! A load sends few different headers, over and over. Headers that never change enter the server's
//! table with their first use, and after that cost a byte or two. They are never evicted: when the
//! table is full, further headers are sent as literals.

use super::table::{STATIC, size_of};
use super::write_integer;

/// A header to send.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Header<'a> {
    /// A header that is the same in many requests; its number among all such headers of the load.
    Lasting(usize, &'a [u8], &'a [u8]),
    /// A header that differs from request to request.
    Passing(&'a [u8], &'a [u8]),
}

/// The encoder of one connection, which mirrors the server's table.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// The place of each lasting header in the table, in the order of insertion; `None` if it is
    /// not in the table.
    places: Vec<Option<usize>>,
    learnt: usize,
    size: usize,
    /// Capacity of the server's table.
    capacity: usize,
    /// The new capacity must be sent to the server, after its table was emptied.
    resized: bool,
}

impl Encoder {
    /// The largest part of the server's table that is used.
    const MOST: usize = 4096;

    /// Create an encoder for an empty table, and a load with so many lasting headers.
    pub(crate) fn new(lasting: usize) -> Self {
        Self {
            places: vec![None; lasting],
            learnt: 0,
            size: 0,
            capacity: Self::MOST,
            resized: false,
        }
    }

    /// Adopt the capacity of the server's table.
    pub(crate) fn resize(&mut self, capacity: usize) {
        let capacity = capacity.min(Self::MOST);
        if capacity == self.capacity {
            return;
        }
        self.capacity = capacity;
        self.places.fill(None);
        self.learnt = 0;
        self.size = 0;
        self.resized = true;
    }

    /// Append the beginning of a block.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.resized) {
            write_integer(out, 0b0010_0000, 5, 0);
            write_integer(out, 0b0010_0000, 5, self.capacity);
        }
    }

    /// Append a header.
    pub(crate) fn write(&mut self, header: Header<'_>, out: &mut Vec<u8>) {
        match header {
            Header::Lasting(number, name, value) => {
                if let Some(place) = self.places[number] {
                    let index = STATIC.len() + self.learnt - place;
                    write_integer(out, 0b1000_0000, 7, index);
                } else if let Some(index) = known(name, Some(value)) {
                    write_integer(out, 0b1000_0000, 7, index);
                } else if self.size + size_of(name, value) <= self.capacity {
                    self.places[number] = Some(self.learnt);
                    self.learnt += 1;
                    self.size += size_of(name, value);
                    write_literal(out, 0b0100_0000, 6, name, value);
                } else {
                    write_literal(out, 0, 4, name, value);
                }
            }
            Header::Passing(name, value) => write_literal(out, 0, 4, name, value),
        }
    }
}

/// Find the index of a field, or of a name, in the static table.
fn known(name: &[u8], value: Option<&[u8]>) -> Option<usize> {
    let place = STATIC
        .iter()
        .position(|&(known, its)| known == name && value.is_none_or(|value| value == its));
    place.map(|place| place + 1)
}

fn write_literal(out: &mut Vec<u8>, first: u8, prefix: u32, name: &[u8], value: &[u8]) {
    if let Some(index) = known(name, None) {
        write_integer(out, first, prefix, index);
    } else {
        out.push(first);
        write_integer(out, 0, 7, name.len());
        out.extend_from_slice(name);
    }
    write_integer(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;
    use crate::http::fault::FieldNames;

    const HEADERS: [Header<'_>; 6] = [
        Header::Lasting(0, b":method", b"GET"),
        Header::Lasting(1, b":scheme", b"http"),
        Header::Lasting(2, b":authority", b"www.example.com"),
        Header::Lasting(3, b"user-agent", b"uncork"),
        Header::Lasting(4, b"x-own", b"value"),
        Header::Passing(b":path", b"/17"),
    ];

    fn block(encoder: &mut Encoder) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for header in HEADERS {
            encoder.write(header, &mut out);
        }
        out
    }

    fn expected() -> Vec<(Vec<u8>, Vec<u8>)> {
        let pair = |header: &Header<'_>| match *header {
            Header::Lasting(_, name, value) | Header::Passing(name, value) => {
                (name.to_vec(), value.to_vec())
            }
        };
        HEADERS.iter().map(pair).collect()
    }

    /// RFC 7541, C.2.1 and C.3.1, whose choice of representations is the same.
    #[test]
    fn the_rfcs_fields_are_written() {
        let mut out = Vec::new();
        Encoder::new(1).write(
            Header::Lasting(0, b"custom-key", b"custom-header"),
            &mut out,
        );
        assert_eq!(out, b"\x40\x0acustom-key\x0dcustom-header");
        let mut out = Vec::new();
        Encoder::new(1).write(Header::Passing(b":path", b"/sample/path"), &mut out);
        assert_eq!(out, b"\x04\x0c/sample/path");
        let mut out = Vec::new();
        Encoder::new(1).write(
            Header::Lasting(0, b":authority", b"www.example.com"),
            &mut out,
        );
        assert_eq!(out, b"\x41\x0fwww.example.com");
    }

    #[test]
    fn a_decoder_reads_the_same_headers_however_large_the_table_is() {
        for capacity in [0, 40, 100, 4096, 100_000] {
            let (mut encoder, mut decoder) = (Encoder::new(5), Decoder::new(FieldNames::All));
            encoder.resize(capacity);
            let mut lengths = Vec::new();
            for _ in 0..3 {
                let block = block(&mut encoder);
                assert_eq!(decoder.decode(&block).expect("valid").listed, expected());
                lengths.push(block.len());
            }
            encoder.resize(64);
            assert_eq!(
                decoder.decode(&block(&mut encoder)).expect("valid").listed,
                expected()
            );
            if capacity >= 4096 {
                assert_eq!(
                    lengths[1],
                    1 + 1 + 1 + 1 + 1 + 5,
                    "all but the path are indexes"
                );
            }
        }
    }
}
