//! Decodes header blocks to fields.

use super::table::{Field, Table};
use super::{huffman, read_integer};
use crate::http::fault::FieldNames;

/// The most bytes that the names and values of one block may take. A small block can decode to a
/// large one by naming a large field again and again.
const MOST_PLAIN_BYTES: usize = 1 << 20;
/// Capacity of the table: the default setting.
const CAPACITY: usize = 4096;

/// Why a block cannot be decoded; the connection cannot continue after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// It is not valid.
    #[error("the compressed headers are damaged")]
    Damaged,
    /// It decodes to more than the limit.
    #[error("the headers take more than 1 MiB")]
    TooLong,
}

/// The fields of a block.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fields {
    /// The status of an answer; 0 if there is none.
    pub(crate) status: u16,
    /// The declared length of the body.
    pub(crate) length: Option<u64>,
    /// Total bytes of names and values.
    pub(crate) plain_bytes: usize,
    /// Names and values; empty unless they are requested.
    pub(crate) listed: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The decoder of one connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: Table,
    /// The fields that are kept.
    lists: FieldNames,
    /// The last block that decodes to the same when it is repeated, and its fields. Answers are
    /// often identical to the byte.
    last_block: Vec<u8>,
    last: Fields,
    /// What that block adds to the table.
    learnt: Vec<Field>,
    /// Whether adding it once more leaves the table unchanged, because it is full of the same
    /// fields.
    settled: bool,
}

/// A decoded block, and what it did to the table.
#[derive(Debug, Default)]
struct Block {
    fields: Fields,
    learnt: Vec<Field>,
    /// Whether the block would decode differently if repeated: it refers to the dynamic table and changes it, or it
    /// changes the table's capacity.
    passing: bool,
}

impl Decoder {
    /// Create a decoder that keeps the fields that `lists` names.
    pub(crate) fn new(lists: FieldNames) -> Self {
        Self {
            table: Table::new(CAPACITY),
            lists,
            last_block: Vec::new(),
            last: Fields::default(),
            learnt: Vec::new(),
            settled: false,
        }
    }

    /// Decode a block.
    pub(crate) fn decode(&mut self, block: &[u8]) -> Result<&Fields, DecodeError> {
        if block != self.last_block || block.is_empty() {
            let read = self.read(block)?;
            self.last = read.fields;
            self.settled = read.learnt.is_empty();
            self.learnt = read.learnt;
            self.last_block.clear();
            if !read.passing {
                self.last_block.extend_from_slice(block);
            }
        } else if !self.settled {
            let before = self.table.clone();
            for (name, value) in &self.learnt {
                self.table.add(name, value);
            }
            self.settled = before == self.table;
        }
        Ok(&self.last)
    }

    fn read(&mut self, mut block: &[u8]) -> Result<Block, DecodeError> {
        let mut read = Block::default();
        let mut names_own = false;
        let mut begun = false;
        while let Some(&first) = block.first() {
            if first & 0b1110_0000 == 0b0010_0000 {
                let capacity = read_integer(&mut block, 5).ok_or(DecodeError::Damaged)?;
                if begun || capacity > CAPACITY {
                    return Err(DecodeError::Damaged);
                }
                self.table.resize(capacity);
                read.passing = true;
                continue;
            }
            begun = true;
            if first & 0b1000_0000 != 0 {
                let index = read_integer(&mut block, 7).ok_or(DecodeError::Damaged)?;
                let (name, value) = self.table.get(index).ok_or(DecodeError::Damaged)?;
                read.fields.add(name, value, &self.lists)?;
                names_own |= Table::is_own(index);
                continue;
            }
            let learns = first & 0b0100_0000 != 0;
            let index = read_integer(&mut block, if learns { 6 } else { 4 });
            let mut name = Vec::new();
            match index.ok_or(DecodeError::Damaged)? {
                0 => read_text(&mut block, 7, &mut name)?,
                index => {
                    let (known, _) = self.table.get(index).ok_or(DecodeError::Damaged)?;
                    name.extend_from_slice(known);
                    names_own |= Table::is_own(index);
                }
            }
            let mut value = Vec::new();
            read_text(&mut block, 7, &mut value)?;
            read.fields.add(&name, &value, &self.lists)?;
            if learns {
                self.table.add(&name, &value);
                read.learnt.push((name.into(), value.into()));
            }
        }
        read.passing |= names_own && !read.learnt.is_empty();
        Ok(read)
    }
}

impl Fields {
    /// Add a field, and keep it if `lists` names it.
    pub(in crate::http) fn add(
        &mut self,
        name: &[u8],
        value: &[u8],
        lists: &FieldNames,
    ) -> Result<(), DecodeError> {
        self.plain_bytes += name.len() + value.len();
        if self.plain_bytes > MOST_PLAIN_BYTES {
            return Err(DecodeError::TooLong);
        }
        if name == b":status" {
            self.status = status(value).ok_or(DecodeError::Damaged)?;
            return Ok(());
        }
        if name == b"content-length" {
            let length = str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
            self.length = Some(length.ok_or(DecodeError::Damaged)?);
        }
        if lists.wants(name) {
            self.listed.push((name.to_vec(), value.to_vec()));
        }
        Ok(())
    }
}

fn status(value: &[u8]) -> Option<u16> {
    let [
        hundreds @ b'1'..=b'9',
        tens @ b'0'..=b'9',
        ones @ b'0'..=b'9',
    ] = value
    else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    Some(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
}

/// Append a text whose length has a prefix of so many bits; the bit before them is set if Huffman's
/// code is used.
pub(in crate::http) fn read_text(
    block: &mut &[u8],
    prefix: u32,
    text: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let coded = block.first().ok_or(DecodeError::Damaged)? & (1 << prefix) != 0;
    let length = read_integer(block, prefix).ok_or(DecodeError::Damaged)?;
    let (bytes, rest) = block.split_at_checked(length).ok_or(DecodeError::Damaged)?;
    *block = rest;
    if !coded {
        text.extend_from_slice(bytes);
    } else if !huffman::decode(bytes, text) {
        return Err(DecodeError::Damaged);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use uncork_script::Prng;

    use super::*;

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<u8> = hexadecimal.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).expect("is ASCII"));
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).expect("is a number"))
            .collect()
    }

    fn listed(fields: &Fields) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("is ASCII");
        fields
            .listed
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    /// RFC 7541, C.3 and C.4: the same three requests without and with Huffman's code.
    #[test]
    fn the_rfcs_requests_are_read() {
        for blocks in [
            [
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "8286 84be 5808 6e6f 2d63 6163 6865",
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
            ],
            [
                "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                "8286 84be 5886 a8eb 1064 9cbf",
                "8287 85bf 4088 25a8 49e9 5b a9 7d7f 8925 a849 e95b b8e8 b4bf",
            ],
        ] {
            let mut decoder = Decoder::new(FieldNames::All);
            let last = blocks.map(|block| listed(decoder.decode(&bytes(block)).expect("valid")));
            let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            assert_eq!(
                last[0],
                [
                    pair(":method", "GET"),
                    pair(":scheme", "http"),
                    pair(":path", "/"),
                    pair(":authority", "www.example.com"),
                ]
            );
            assert_eq!(last[1][4], pair("cache-control", "no-cache"));
            assert_eq!(
                last[2],
                [
                    pair(":method", "GET"),
                    pair(":scheme", "https"),
                    pair(":path", "/index.html"),
                    pair(":authority", "www.example.com"),
                    pair("custom-key", "custom-value"),
                ]
            );
            assert_eq!(decoder.table.size(), 164);
        }
    }

    /// RFC 7541, C.5 and C.6: answers with a table of 256 bytes, from which fields are evicted.
    #[test]
    fn the_rfcs_answers_are_read() {
        for blocks in [
            [
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
                 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
                 6c65 2e63 6f6d",
                "4803 3330 37c1 c0bf",
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
                 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
                 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
                 3d31",
            ],
            [
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
                 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                "4883 640e ffc1 c0bf",
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
                 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
                 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            ],
        ] {
            let mut decoder = Decoder::new(FieldNames::All);
            decoder.table.resize(256);
            let found = blocks.map(|block| decoder.decode(&bytes(block)).expect("valid").clone());
            assert_eq!(
                found.each_ref().map(|fields| fields.status),
                [302, 307, 200]
            );
            let last = listed(&found[2]);
            assert_eq!(last[1].1, "Mon, 21 Oct 2013 20:13:22 GMT");
            assert_eq!(last[3], ("content-encoding".to_owned(), "gzip".to_owned()));
            assert_eq!(
                last[4].1,
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
            );
            assert_eq!(decoder.table.size(), 215);
            assert_eq!(found[0].plain_bytes, 94);
        }
    }

    #[test]
    fn a_block_seen_before_means_the_same_only_while_the_table_does() {
        let mut decoder = Decoder::new(FieldNames::All);
        // Adds "a: 1", then refers to the newest field, then adds "b: 2", then refers to the
        // newest.
        let learn = |name: u8, value: u8| vec![0x40, 1, name, 1, value];
        decoder.decode(&learn(b'a', b'1')).expect("valid");
        let newest = [0xbe];
        assert_eq!(decoder.decode(&newest).expect("valid").listed[0].1, b"1");
        assert_eq!(decoder.decode(&newest).expect("valid").listed[0].1, b"1");
        decoder.decode(&learn(b'b', b'2')).expect("valid");
        assert_eq!(decoder.decode(&newest).expect("valid").listed[0].1, b"2");
    }

    /// Repeated blocks are not decoded again; their fields and their effect on the table are the
    /// same.
    #[test]
    fn what_is_remembered_is_what_would_be_read() {
        let long = |name: u8| [&[0x40, 1, name, 100][..], &[b'v'; 100]].concat();
        let blocks = [
            vec![0x88],
            [&[0x88][..], &long(b'a'), &long(b'b')].concat(),
            [long(b'c'), vec![0x88, 0x5f, 1, b'x']].concat(),
            vec![0x88, 0xbe],
            [vec![0xbf], long(b'd')].concat(),
            vec![0x7e, 2, b'h', b'i'],
            vec![0x3f, 0x81, 0x1e, 0x88],
        ];
        let mut random = Prng::new(5);
        for _ in 0..300 {
            let (mut one, mut plain) =
                (Decoder::new(FieldNames::All), Decoder::new(FieldNames::All));
            for _ in 0..30 {
                let at = usize::try_from(random.up_to(blocks.len() as u64 - 1)).expect("small");
                for _ in 0..random.up_to(60) {
                    plain.last_block.clear();
                    let (found, expected) = (one.decode(&blocks[at]), plain.decode(&blocks[at]));
                    assert_eq!(found.is_ok(), expected.is_ok());
                    let (Ok(found), Ok(expected)) = (found, expected) else {
                        break;
                    };
                    assert_eq!(listed(found), listed(expected));
                    assert_eq!(found.plain_bytes, expected.plain_bytes);
                    assert_eq!(one.table, plain.table);
                }
            }
        }
        let mut decoder = Decoder::new(FieldNames::None);
        for _ in 0..40 {
            decoder.decode(&blocks[1]).expect("valid");
        }
        assert!(
            decoder.settled,
            "a table full of the same fields is left alone"
        );
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for block in [
            "80",
            "be",
            "3fff ffff 7f",
            "40",
            "4001",
            "0085 6100",
            "8220",
            "4803 3939",
        ] {
            let found = Decoder::new(FieldNames::None)
                .decode(&bytes(block))
                .map(|_| ());
            assert_eq!(found, Err(DecodeError::Damaged), "{block}");
        }
        let mut bomb = vec![0x40, 1, b'a', 0x7f, 0xa1, 0x1e];
        bomb.resize(bomb.len() + 4_000, b'x');
        bomb.resize(bomb.len() + 300, 0xbe);
        let found = Decoder::new(FieldNames::None).decode(&bomb).map(|_| ());
        assert_eq!(found, Err(DecodeError::TooLong));
    }

    #[test]
    fn random_bytes_do_no_harm() {
        let mut random = Prng::new(7);
        let mut decoder = Decoder::new(FieldNames::All);
        for _ in 0..20_000 {
            let length = random.up_to(59);
            let block: Vec<u8> = (0..length)
                .map(|_| random.bits().to_le_bytes()[0])
                .collect();
            let _ = decoder.decode(&block);
            assert!(decoder.table.size() <= CAPACITY);
        }
    }
}
