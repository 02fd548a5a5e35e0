//! Hashes a statement without its literals, for one look-up per execution.
//!
//! Executions from one piece of application code differ only in literals, so they have the same skeleton. The costlier
//! template lookup is made once per skeleton, not once per execution. Skeletons are finer than templates: case, white
//! space and the length of lists make a difference.

use memchr::{memchr, memmem};

use crate::hash::Hash;

/// What follows a run of bytes: a number, a string or parameter, a comment, or nothing.
const NUMBER: u64 = 0;
const TEXT: u64 = 1;
const COMMENT: u64 = 2;
const END: u64 = 3;

/// Bytes that end a literal run.
static SPECIAL: [bool; 256] = specials();
/// Bytes that a name may contain after its first byte.
pub(super) static NAME: [bool; 256] = names();

const fn specials() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = b'0';
    while byte <= b'9' {
        table[byte as usize] = true;
        byte += 1;
    }
    table[b'\'' as usize] = true;
    table[b'"' as usize] = true;
    table[b'$' as usize] = true;
    table[b'-' as usize] = true;
    table[b'/' as usize] = true;
    table
}

const fn names() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends at 255")]
        let this = byte as u8;
        table[byte] = this.is_ascii_alphanumeric() || matches!(this, b'_' | b'$' | 0x80..);
        byte += 1;
    }
    table
}

/// Find the next byte from `"` to `9`: all special bytes are among them, and few others. Eight bytes are tested at
/// once (Sean Anderson, *Bit Twiddling Hacks*: whether a word has a byte between two others).
fn perhaps_special(sql: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const LOW: u64 = ONES * 127;
    while let Some(eight) = sql.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*eight);
        let low = word & LOW;
        let below = ONES * (127 + u64::from(b'9') + 1) - low;
        let above = low + ONES * (127 - (u64::from(b'"') - 1));
        let found = below & !word & above & (ONES * 128);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

fn in_name(sql: &[u8], at: usize) -> bool {
    at > 0 && NAME[usize::from(sql[at - 1])]
}

/// Return the hash of a statement's skeleton.
#[must_use]
pub fn skeleton(sql: &[u8]) -> u64 {
    let sql = sql.trim_ascii_end();
    let mut hash = Hash::new();
    let (mut begin, mut at) = (0, 0);
    loop {
        at = perhaps_special(sql, at);
        let Some(&byte) = sql.get(at) else {
            break;
        };
        if !SPECIAL[usize::from(byte)] {
            at += 1;
            continue;
        }
        let end = match byte {
            b'\'' => {
                let escapes = at > 0 && sql[at - 1] | 0x20 == b'e' && !in_name(sql, at - 1);
                string_end(sql, at, escapes)
            }
            b'"' => {
                // A name: hashed unchanged, whatever it contains.
                at = memchr(b'"', &sql[at + 1..]).map_or(sql.len(), |length| at + length + 2);
                continue;
            }
            b'$' if in_name(sql, at) => None,
            b'$' => dollar_end(sql, at),
            b'-' if sql.get(at + 1) == Some(&b'-') => Some(line_end(sql, at)),
            b'/' if sql.get(at + 1) == Some(&b'*') => Some(comment_end(sql, at)),
            b'0'..=b'9' if !in_name(sql, at) => Some(number_end(sql, at)),
            _ => None,
        };
        match end {
            Some(end) => {
                let then = match byte {
                    b'-' | b'/' => COMMENT,
                    b'0'..=b'9' => NUMBER,
                    _ => TEXT,
                };
                hash.add(&sql[begin..at], then);
                (begin, at) = (end, end);
            }
            None => at += 1,
        }
    }
    hash.add(&sql[begin..], END);
    hash.get()
}

fn string_end(sql: &[u8], at: usize, escapes: bool) -> Option<usize> {
    let mut end = at + 1;
    loop {
        let Some(rest) = sql.get(end..) else {
            return Some(sql.len());
        };
        let found = if escapes {
            memchr::memchr2(b'\'', b'\\', rest)
        } else {
            memchr(b'\'', rest)
        };
        let Some(found) = found else {
            return Some(sql.len());
        };
        end += found + 1;
        if rest[found] == b'\\' || sql.get(end) == Some(&b'\'') {
            end += 1;
        } else {
            return Some(end);
        }
    }
}

fn dollar_end(sql: &[u8], at: usize) -> Option<usize> {
    let rest = &sql[at + 1..];
    if rest.first().is_some_and(u8::is_ascii_digit) {
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit());
        return Some(at + 1 + digits.unwrap_or(rest.len()));
    }
    let length = rest
        .iter()
        .position(|byte| *byte == b'$' || !NAME[usize::from(*byte)])
        .filter(|length| rest[*length] == b'$')?;
    let tag = &sql[at..at + length + 2];
    let body = at + tag.len();
    Some(memmem::find(&sql[body..], tag).map_or(sql.len(), |found| body + found + tag.len()))
}

fn line_end(sql: &[u8], at: usize) -> usize {
    memchr(b'\n', &sql[at..]).map_or(sql.len(), |length| at + length + 1)
}

fn comment_end(sql: &[u8], at: usize) -> usize {
    crate::template::comment_end(sql, at).unwrap_or(sql.len())
}

fn number_end(sql: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = sql.get(end) {
        let sign = matches!(byte, b'+' | b'-')
            && sql[end - 1] | 0x20 == b'e'
            && sql[at + 1] | 0x20 != b'x';
        if !(NAME[usize::from(byte)] && byte != b'$' || byte == b'.' || sign) {
            break;
        }
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn bytes_that_are_passed_over_are_not_special() {
        for byte in 0..=255_u8 {
            for place in 0..20 {
                let mut sql = [b'a'; 20];
                sql[place] = byte;
                let found = perhaps_special(&sql, 0);
                let passed = &sql[..found];
                assert!(passed.iter().all(|byte| !SPECIAL[usize::from(*byte)]));
                assert!(found <= place || !SPECIAL[usize::from(byte)]);
            }
        }
    }
    use crate::Stripper;

    #[test]
    fn literals_make_no_difference() {
        let all = |literals: &[&str]| {
            literals
                .iter()
                .map(|literal| {
                    skeleton(format!("SELECT f FROM t1 WHERE a = {literal} AND b2 > 0").as_bytes())
                })
                .collect::<Vec<_>>()
        };
        for alike in [
            &["1", "23", "1.5", "1e10", "1.5e-3", "0x1F"][..],
            &[
                "'a'",
                "'it''s'",
                "''",
                "$1",
                "$$a$$",
                "$t$ $$ $t$",
                "' /* '",
            ],
            &["/* c */ 7", "/* /* */ c */ 7"],
        ] {
            let found = all(alike);
            assert!(found.iter().all(|one| *one == found[0]), "{alike:?}");
        }
        let end = skeleton(b"SELECT f FROM t1 WHERE a = 9 AND b2 > 77 \n");
        assert_eq!(all(&["1"]), [end]);
    }

    #[test]
    fn everything_else_does() {
        let statements = [
            "SELECT 1",
            "SELECT 1, 2",
            "select 1",
            "SELECT a1",
            "SELECT a2",
            "SELECT \"a'b\", 'c'",
            "SELECT \"a'c\", 'c'",
            "SELECT a",
            "SELECT b",
            "SELECT ab",
            "SELECT aab",
            "SELECT abb",
            "SELECT 1 FROM abcdefghij",
            "SELECT 1 FROM abcdefghik",
            "SELECT 1 FROM abcdefghijklmnopqrstuv",
            "SELECT 1 FROM abcdefghijklmnopqrstuw",
            "",
            "x",
            "xx",
            "xxx",
            "xxxx",
            "xxxxx",
        ];
        let mut seen = HashMap::new();
        for sql in statements {
            assert_eq!(seen.insert(skeleton(sql.as_bytes()), sql), None, "{sql}");
        }
    }

    #[test]
    fn many_statements_have_as_many_numbers() {
        let mut seen = HashMap::new();
        for number in 0..200_000 {
            let sql = format!("SELECT c{number} FROM t{}", number % 7);
            assert_eq!(seen.insert(skeleton(sql.as_bytes()), number), None);
        }
    }

    #[test]
    fn one_skeleton_has_one_template() {
        let mut seen: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut stripper = Stripper::default();
        let mut draw = 7_u64;
        let pieces = [
            "a", "b1", " ", "1", "23", "'x'", "'y z'", "=", "-", "(", ")", ",", "$1", "$2", "in",
            "\"q\"", "/* c */", " a.b", "::int", "e'a'",
        ];
        for _ in 0..200_000 {
            let mut sql = String::new();
            for _ in 0..6 {
                draw = draw
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                sql += pieces[(draw >> 33) as usize % pieces.len()];
            }
            let template = stripper.strip(sql.as_bytes()).text.to_vec();
            let known = seen
                .entry(skeleton(sql.as_bytes()))
                .or_insert_with(|| template.clone());
            assert_eq!(
                String::from_utf8_lossy(known),
                String::from_utf8_lossy(&template),
                "{sql}"
            );
        }
    }

    #[test]
    fn any_bytes_are_taken() {
        for text in [
            "'", "\"", "$", "$a", "$a$", "--", "/*", "1", "1e", "0x", "e'\\", "''", "-", "/",
            "1e+", "\u{ff}$",
        ] {
            let _ = skeleton(text.as_bytes());
        }
    }
}
