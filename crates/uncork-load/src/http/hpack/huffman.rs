//! The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: its lengths alone define it. Sorted by length, then by symbol, each code
//! is the one before it plus one, so a code of some length is found by comparing it with the last
//! one of that length.

use std::sync::LazyLock;

/// The symbol that ends a text; it is not valid within one.
const END: u16 = 256;

/// The length of each symbol's code, in bits.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The codes of one length, aligned to the left of 32 bits.
#[derive(Debug, Clone, Copy)]
struct Group {
    length: u32,
    /// The first code.
    first: u32,
    /// The first code that is longer than these.
    end: u64,
    /// Where this length begins among the symbols.
    offset: usize,
}

#[derive(Debug)]
struct Code {
    groups: Vec<Group>,
    symbols: Vec<u16>,
}

static CODE: LazyLock<Code> = LazyLock::new(|| {
    let mut symbols: Vec<u16> = (0..=END).collect();
    symbols.sort_by_key(|&symbol| (LENGTHS[usize::from(symbol)], symbol));
    let mut groups: Vec<Group> = Vec::new();
    let mut next: u64 = 0;
    for (offset, &symbol) in symbols.iter().enumerate() {
        let length = u32::from(LENGTHS[usize::from(symbol)]);
        if groups.last().is_none_or(|group| group.length != length) {
            groups.push(Group {
                length,
                first: u32::try_from(next).unwrap_or(u32::MAX),
                end: next,
                offset,
            });
        }
        next += 1 << (32 - length);
        if let Some(group) = groups.last_mut() {
            group.end = next;
        }
    }
    Code { groups, symbols }
});

/// Append the decoded text; return false if the code is not valid.
pub(super) fn decode(coded: &[u8], text: &mut Vec<u8>) -> bool {
    let code = &*CODE;
    let mut rest = coded.iter();
    let (mut bits, mut count): (u64, u32) = (0, 0);
    loop {
        while count <= 32
            && let Some(&byte) = rest.next()
        {
            bits = bits << 8 | u64::from(byte);
            count += 8;
        }
        if count == 0 {
            return true;
        }
        // Bits that are missing at the end are filled with ones, like the padding.
        let window = if count >= 32 {
            bits >> (count - 32)
        } else {
            (bits << (32 - count)) | (u64::from(u32::MAX) >> count)
        } & u64::from(u32::MAX);
        let Some(group) = code.groups.iter().find(|group| window < group.end) else {
            // Only ones: valid padding, if it is shorter than a byte.
            return is_padding(bits, count);
        };
        if group.length > count {
            return is_padding(bits, count);
        }
        let window = u32::try_from(window).unwrap_or(u32::MAX);
        let place = (window - group.first) >> (32 - group.length);
        let symbol = code.symbols[group.offset + place as usize];
        let Ok(byte) = u8::try_from(symbol) else {
            return false;
        };
        text.push(byte);
        count -= group.length;
        bits &= (1 << count) - 1;
    }
}

fn is_padding(bits: u64, count: u32) -> bool {
    count < 8 && bits == (1 << count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::cast_possible_truncation, reason = "all of it is small")]
    fn encode(text: &[u8]) -> Vec<u8> {
        let code = &*CODE;
        let (mut bits, mut count, mut coded) = (0_u64, 0, Vec::new());
        for &byte in text {
            let place = code
                .symbols
                .iter()
                .position(|&symbol| symbol == u16::from(byte));
            let place = place.expect("every byte has a code");
            let group = code.groups.iter().rfind(|group| group.offset <= place);
            let group = group.expect("the first group begins at 0");
            let length = group.length;
            let value = (group.first >> (32 - length)) + (place - group.offset) as u32;
            bits = bits << length | u64::from(value);
            count += length;
            while count >= 8 {
                count -= 8;
                coded.push((bits >> count) as u8);
                bits &= (1 << count) - 1;
            }
        }
        if count > 0 {
            coded.push((bits << (8 - count)) as u8 | (0xff >> count));
        }
        coded
    }

    #[test]
    fn the_rfcs_texts_are_read() {
        for (coded, text) in [
            (
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x64, 0x02], "302"),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], "private"),
            (
                &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f],
                "custom-key",
            ),
        ] {
            let mut found = Vec::new();
            assert!(decode(coded, &mut found), "{text}");
            assert_eq!(found, text.as_bytes());
            assert_eq!(encode(text.as_bytes()), coded);
        }
    }

    #[test]
    fn all_bytes_return_and_wrong_padding_is_refused() {
        let all: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        for end in [0, 1, 2, 7, 100, 999, 1_000] {
            let mut found = Vec::new();
            assert!(decode(&encode(&all[..end]), &mut found));
            assert_eq!(found, all[..end]);
        }
        let mut text = Vec::new();
        assert!(
            !decode(&[0xff, 0xff, 0xff, 0xff], &mut text),
            "the end symbol"
        );
        assert!(!decode(&[0xff], &mut text), "a whole byte of padding");
        assert!(!decode(&[0b0000_0000], &mut text), "padding of zeros");
    }
}
