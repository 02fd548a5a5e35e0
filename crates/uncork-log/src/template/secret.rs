//! Removes passwords from statements: logs contain them, but reports must not.

use std::borrow::Cow;

const WORD: &[u8] = b"password";
/// The position of its `w`.
const RAREST: usize = 4;

/// Return a statement with `'***'` for each literal that follows the word `PASSWORD`.
#[must_use]
pub(crate) fn without_passwords(sql: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(place) = find(&sql[at..]) {
        at += place + WORD.len();
        let begin = at
            + sql[at..]
                .iter()
                .take_while(|byte| is_between(**byte))
                .count();
        // Also `E'…'`; CREATE ROLE accepts no dollar-quoted password.
        let quote = begin + usize::from(matches!(sql.get(begin), Some(b'e' | b'E')));
        if begin == at || sql.get(quote) != Some(&b'\'') {
            continue;
        }
        at = literal_end(sql, quote + 1);
        out.extend_from_slice(&sql[kept..begin]);
        out.extend_from_slice(b"'***'");
        kept = at;
    }
    if kept == 0 {
        return Cow::Borrowed(sql);
    }
    out.extend_from_slice(&sql[kept..]);
    Cow::Owned(out)
}

/// Find the next occurrence of the word, by its rarest letter.
fn find(sql: &[u8]) -> Option<usize> {
    memchr::memchr2_iter(b'w', b'W', sql).find_map(|at| {
        let begin = at.checked_sub(RAREST)?;
        let word = sql.get(begin..begin + WORD.len())?;
        word.eq_ignore_ascii_case(WORD).then_some(begin)
    })
}

/// Whether a byte may be between the word and its literal: `PASSWORD 'x'`, `password = 'x'`, `password='x'`.
fn is_between(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'=' | b':')
}

/// Find the end of a literal after its first quote; the end of the text if it is truncated.
fn literal_end(sql: &[u8], mut at: usize) -> usize {
    while let Some(byte) = sql.get(at) {
        at += 1;
        match byte {
            b'\'' if sql.get(at) == Some(&b'\'') => at += 1,
            b'\'' => return at,
            b'\\' => at += 1,
            _ => {}
        }
    }
    sql.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_taken_out() {
        for (sql, expected) in [
            ("CREATE USER a PASSWORD 'x'", "CREATE USER a PASSWORD '***'"),
            (
                "alter role a with encrypted password\n E'it''s \\' x' VALID UNTIL 'infinity'",
                "alter role a with encrypted password\n '***' VALID UNTIL 'infinity'",
            ),
            (
                "CREATE USER a PASSWORD 'cut sho",
                "CREATE USER a PASSWORD '***'",
            ),
            (
                "SELECT dblink('host=h password=x'), password FROM t WHERE password = 'y' AND b = 'z'",
                "SELECT dblink('host=h password=x'), password FROM t WHERE password = '***' AND b = 'z'",
            ),
            ("SELECT 'password'", "SELECT 'password'"),
            ("SELECT password", "SELECT password"),
            ("", ""),
        ] {
            let found = without_passwords(sql.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected);
        }
    }
}
