//! Parameters written into a statement's text as literals, for the simple protocol.
//!
//! `$1` is a parameter only where the server would see one: not in strings, quoted identifiers,
//! comments and dollar quotes, nor inside an identifier such as `a$1`. Strings follow
//! `standard_conforming_strings = on`, the default since PostgreSQL 9.1.

use std::ops::Range;

/// A piece of a statement's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Copied unchanged.
    Text(Range<usize>),
    /// Replaced by parameter `$n`, n from 1.
    Parameter(usize),
}

/// Split a statement into texts and parameters.
pub(crate) fn pieces(sql: &str) -> Vec<Piece> {
    let bytes = sql.as_bytes();
    let mut pieces = Vec::new();
    let mut text_start = 0;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at = match bytes[at] {
            b'\'' => quoted(bytes, at, b'\'', false),
            b'"' => quoted(bytes, at, b'"', false),
            b'-' if bytes[at..].starts_with(b"--") => line_comment(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment(bytes, at),
            b'$' => {
                let digits = count(&bytes[at + 1..], u8::is_ascii_digit);
                match sql[at + 1..at + 1 + digits].parse() {
                    Ok(number) if number > 0 => {
                        pieces.push(Piece::Text(text_start..at));
                        pieces.push(Piece::Parameter(number));
                        text_start = at + 1 + digits;
                        text_start
                    }
                    _ => dollar_quoted(sql, at),
                }
            }
            byte if starts_identifier(byte) => {
                let end = at + count(&bytes[at..], |&byte| continues_identifier(byte));
                let escapes = matches!(&bytes[at..end], b"e" | b"E");
                if escapes && bytes.get(end) == Some(&b'\'') {
                    quoted(bytes, end, b'\'', true)
                } else {
                    end
                }
            }
            _ => at + 1,
        };
        debug_assert!(at > start);
    }
    pieces.push(Piece::Text(text_start..bytes.len()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(range) if range.is_empty()));
    pieces
}

/// Return the greatest `n` of all `$n` in a statement; 0 if it has no parameters.
pub(crate) fn highest_parameter(pieces: &[Piece]) -> usize {
    let numbers = pieces.iter().map(|piece| match piece {
        Piece::Parameter(number) => *number,
        Piece::Text(_) => 0,
    });
    numbers.max().unwrap_or(0)
}

/// Assemble a statement, with `value(n)` for each `$n`; `None` becomes `NULL`.
pub(crate) fn substitute<'a>(
    sql: &str,
    pieces: &[Piece],
    value: impl Fn(usize) -> Option<&'a str>,
) -> String {
    let mut text = String::with_capacity(sql.len() + 16 * pieces.len());
    for piece in pieces {
        match piece {
            Piece::Text(range) => text.push_str(&sql[range.clone()]),
            Piece::Parameter(number) => match value(*number) {
                Some(value) => text.push_str(&postgres_protocol::escape::escape_literal(value)),
                None => text.push_str("NULL"),
            },
        }
    }
    text
}

fn count(bytes: &[u8], belongs: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| belongs(byte)).count()
}

fn starts_identifier(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn continues_identifier(byte: u8) -> bool {
    starts_identifier(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// Find the end of a string or quoted identifier that starts at `at`. A doubled quote does not end
/// it.
fn quoted(bytes: &[u8], at: usize, quote: u8, backslash_escapes: bool) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if backslash_escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn line_comment(bytes: &[u8], at: usize) -> usize {
    at + count(&bytes[at..], |&byte| byte != b'\n' && byte != b'\r')
}

fn block_comment(bytes: &[u8], at: usize) -> usize {
    let mut depth = 1;
    let mut at = at + 2;
    while at < bytes.len() && depth > 0 {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
    }
    at
}

/// Find the end of the dollar quote that starts at `at`; if none starts there, the position after
/// the dollar.
fn dollar_quoted(sql: &str, at: usize) -> usize {
    let rest = &sql[at + 1..];
    let tag_length = count(rest.as_bytes(), |&byte| {
        continues_identifier(byte) && byte != b'$'
    });
    if rest.as_bytes().get(tag_length) != Some(&b'$') {
        return at + 1;
    }
    let delimiter = &sql[at..at + tag_length + 2];
    let body = at + delimiter.len();
    match sql[body..].find(delimiter) {
        Some(end) => body + end + delimiter.len(),
        None => sql.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(sql: &str) -> String {
        let values = [Some("a'b"), None, Some("c\\d")];
        substitute(sql, &pieces(sql), |number| values[number - 1])
    }

    #[test]
    fn parameters_become_literals() {
        assert_eq!(fill("SELECT $1, $2;"), "SELECT 'a''b', NULL;");
        assert_eq!(fill("$1"), "'a''b'");
        assert_eq!(fill("f($3)"), "f( E'c\\\\d')");
        assert_eq!(fill("$1$1"), "'a''b''a''b'");
    }

    #[test]
    fn nothing_is_replaced_where_the_server_sees_no_parameter() {
        for sql in [
            "SELECT '$1'",
            "SELECT 'it''s $1'",
            "SELECT E'\\'$1'",
            "SELECT e'''$1\\\\'",
            "SELECT \"$1\"",
            "SELECT 1 -- $1",
            "/* $1 /* nested $1 */ $1 */ SELECT 1",
            "SELECT $$ $1 $$",
            "SELECT $tag$ $1 $$ $1 $tag$",
            "SELECT a$1 FROM t",
            "SELECT é$1 FROM t",
            "SELECT '$1",
            "SELECT $ 1, $x",
            "SELECT $tag$ never closed $1",
        ] {
            assert_eq!(fill(sql), sql);
        }
    }

    #[test]
    fn what_follows_a_quote_is_seen_again() {
        assert_eq!(fill("SELECT '\\' , $2"), "SELECT '\\' , NULL");
        assert_eq!(fill("SELECT E'\\\\' , $2"), "SELECT E'\\\\' , NULL");
        assert_eq!(fill("SELECT name'x' , $2"), "SELECT name'x' , NULL");
        assert_eq!(fill("-- $1\n$2"), "-- $1\nNULL");
        assert_eq!(fill("$q$ $1 $q$ || $2"), "$q$ $1 $q$ || NULL");
        assert_eq!(fill("1-$2"), "1-NULL");
        assert_eq!(fill("/**/$2/**/"), "/**/NULL/**/");
    }

    #[test]
    fn the_highest_parameter_is_counted() {
        assert_eq!(highest_parameter(&pieces("SELECT $2, $11, '$99'")), 11);
        assert_eq!(highest_parameter(&pieces("SELECT 1")), 0);
    }
}
