//! QPACK (RFC 9204): the headers of HTTP/3, compressed. Pure.
//!
//! Both directions use the static table only. Our settings give the server's encoder no dynamic
//! table, and we use none of the server's, so header blocks never wait for another stream.

mod table;

use super::fault::FieldNames;
use super::hpack::{DecodeError, Fields, Header, read_integer, read_text, write_integer};
use table::STATIC;

/// Encodes the headers of requests to header blocks.
#[derive(Debug)]
pub(super) struct Encoder {
    /// Each lasting header as it is sent; empty until its first use.
    lasting: Vec<Vec<u8>>,
}

impl Encoder {
    /// Create an encoder for a load with so many lasting headers.
    pub(super) fn new(lasting: usize) -> Self {
        Self {
            lasting: vec![Vec::new(); lasting],
        }
    }

    /// Append the beginning of a block: it refers to no entry of the dynamic table.
    pub(super) fn begin(out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
    }

    /// Append a header.
    pub(super) fn write(&mut self, header: Header<'_>, out: &mut Vec<u8>) {
        match header {
            Header::Lasting(number, name, value) => {
                let coded = &mut self.lasting[number];
                if coded.is_empty() {
                    write_lasting(coded, name, value);
                }
                out.extend_from_slice(coded);
            }
            Header::Passing(name, value) => write_literal(out, name, value),
        }
    }
}

fn write_lasting(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    match STATIC.iter().position(|&known| known == (name, value)) {
        Some(index) => write_integer(out, 0b1100_0000, 6, index),
        None => write_literal(out, name, value),
    }
}

fn write_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if let Some(index) = STATIC.iter().position(|&(known, _)| known == name) {
        write_integer(out, 0b0101_0000, 4, index);
    } else {
        write_integer(out, 0b0010_0000, 3, name.len());
        out.extend_from_slice(name);
    }
    write_integer(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// Decodes the header blocks of one connection to fields.
#[derive(Debug)]
pub(super) struct Decoder {
    /// The fields that are kept.
    lists: FieldNames,
    /// The last block and its fields. Answers are often identical to the byte.
    last_block: Vec<u8>,
    last: Fields,
}

impl Decoder {
    /// Create a decoder that keeps the fields that `lists` names.
    pub(super) fn new(lists: FieldNames) -> Self {
        Self {
            lists,
            last_block: Vec::new(),
            last: Fields::default(),
        }
    }

    /// Decode a block.
    pub(super) fn decode(&mut self, block: &[u8]) -> Result<&Fields, DecodeError> {
        if block.is_empty() || block != self.last_block {
            self.last_block.clear();
            self.last = self.read(block)?;
            self.last_block.extend_from_slice(block);
        }
        Ok(&self.last)
    }

    fn read(&self, mut block: &[u8]) -> Result<Fields, DecodeError> {
        let mut fields = Fields::default();
        let needed = read_integer(&mut block, 8).ok_or(DecodeError::Damaged)?;
        read_integer(&mut block, 7).ok_or(DecodeError::Damaged)?;
        if needed != 0 {
            return Err(DecodeError::Damaged);
        }
        let (mut name, mut value) = (Vec::new(), Vec::new());
        while let Some(&first) = block.first() {
            value.clear();
            match first >> 4 {
                // A field of the static table.
                0b1100..=0b1111 => {
                    let (name, value) = entry(&mut block, 6)?;
                    fields.add(name, value, &self.lists)?;
                }
                // A name of the static table.
                0b0101 | 0b0111 => {
                    let (name, _) = entry(&mut block, 4)?;
                    read_text(&mut block, 7, &mut value)?;
                    fields.add(name, &value, &self.lists)?;
                }
                0b0010 | 0b0011 => {
                    name.clear();
                    read_text(&mut block, 3, &mut name)?;
                    read_text(&mut block, 7, &mut value)?;
                    fields.add(&name, &value, &self.lists)?;
                }
                // The dynamic table, which is empty.
                _ => return Err(DecodeError::Damaged),
            }
        }
        Ok(fields)
    }
}

fn entry(block: &mut &[u8], prefix: u32) -> Result<(&'static [u8], &'static [u8]), DecodeError> {
    let index = read_integer(block, prefix).ok_or(DecodeError::Damaged)?;
    STATIC.get(index).copied().ok_or(DecodeError::Damaged)
}

#[cfg(test)]
mod tests {
    use uncork_script::Prng;

    use super::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn decoded(block: &[u8]) -> Result<Pairs, DecodeError> {
        let mut decoder = Decoder::new(FieldNames::All);
        decoder.decode(block).map(|fields| fields.listed.clone())
    }

    /// RFC 9204, B.1: a literal field line with a name of the static table.
    #[test]
    fn the_rfcs_block_is_written_and_read() {
        let block = b"\x00\x00\x51\x0b/index.html";
        let mut out = Vec::new();
        Encoder::begin(&mut out);
        Encoder::new(0).write(Header::Passing(b":path", b"/index.html"), &mut out);
        assert_eq!(out, block);
        let expected = vec![(b":path".to_vec(), b"/index.html".to_vec())];
        assert_eq!(decoded(block), Ok(expected));
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        let headers = [
            Header::Lasting(0, b":method", b"PUT"),
            Header::Lasting(1, b":authority", b"www.example.com"),
            Header::Lasting(2, b"x-a-long-name-of-our-own", b"value"),
            Header::Lasting(3, b"vary", b"accept-encoding"),
            Header::Passing(b":path", b"/17"),
            Header::Passing(b"x", b""),
        ];
        let mut encoder = Encoder::new(4);
        for _ in 0..2 {
            let mut out = Vec::new();
            Encoder::begin(&mut out);
            for header in headers {
                encoder.write(header, &mut out);
            }
            let expected = headers.map(|header| match header {
                Header::Lasting(_, name, value) | Header::Passing(name, value) => {
                    (name.to_vec(), value.to_vec())
                }
            });
            assert_eq!(decoded(&out), Ok(expected.to_vec()));
        }
        assert_eq!(encoder.lasting[0], [0b1101_0101], "an index is enough");
    }

    #[test]
    fn answers_have_a_status_and_a_length() {
        // 200 of the static table; content-length in Huffman's code; a repeated block.
        let block = b"\x00\x00\xd9\x54\x83\x08\x04\xd7";
        let mut decoder = Decoder::new(FieldNames::None);
        for _ in 0..2 {
            let fields = decoder.decode(block).expect("valid");
            assert_eq!((fields.status, fields.length), (200, Some(1024)));
            assert_eq!(fields.plain_bytes, 7 + 3 + 14 + 4);
            assert!(fields.listed.is_empty());
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for block in [
            &b"\x00"[..],
            b"\x01\x00",
            b"\x00\x00\x80",
            b"\x00\x00\x10",
            b"\x00\x00\x41\x00",
            b"\x00\x00\x00\x00",
            b"\x00\x00\xff\x24",
            b"\x00\x00\x51\x0b/in",
            b"\x00\x00\x23ab",
            b"\x00\x00\x5f\x09\x0299",
        ] {
            assert_eq!(decoded(block), Err(DecodeError::Damaged), "{block:?}");
        }
    }

    #[test]
    fn random_bytes_do_no_harm() {
        let mut random = Prng::new(7);
        for _ in 0..20_000 {
            let length = random.up_to(59);
            let bytes = (0..length).map(|_| random.bits().to_le_bytes()[0]);
            let block: Vec<u8> = [0, 0].into_iter().chain(bytes).collect();
            let _ = decoded(&block);
        }
    }
}
