//! Finds the ends of SQL commands by psql's rules, which pgbench shares.
//!
//! A semicolon ends a command unless it is inside quotes, a comment, parentheses or the `BEGIN …
//! END` body of a function; a backslash ends it too, and begins a backslash command.

use crate::error::Fault;
use crate::lexer::Lines;

/// What ended a section of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Semicolon,
    /// The position is after the backslash.
    Backslash,
    Text,
}

/// A section of SQL: blanks and `--` comments before it are removed, `\;` becomes `;`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Empty if there is nothing to send.
    pub(crate) text: String,
    /// The line on which the text begins.
    pub(crate) line: usize,
    pub(crate) end: End,
}

/// Splits a script into sections of SQL.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    lines: &'a Lines,
    pub(crate) position: usize,
    parentheses: usize,
    body: Body,
}

/// The depth inside the body of a function: the number of open BEGIN (and CASE). Counted only if
/// the command begins with CREATE [OR REPLACE] FUNCTION or PROCEDURE.
#[derive(Debug, Default)]
struct Body {
    /// The first letters of the first four words, if they belong to that beginning.
    beginning: [u8; 4],
    words: usize,
    depth: usize,
}

impl Body {
    fn word(&mut self, word: &str, parentheses: usize) {
        if self.words == 0 {
            self.beginning = [0; 4];
        }
        let is = |candidate: &str| word.eq_ignore_ascii_case(candidate);
        if self.words < self.beginning.len()
            && ["create", "function", "procedure", "or", "replace"]
                .into_iter()
                .any(is)
        {
            self.beginning[self.words] = word.as_bytes()[0].to_ascii_lowercase();
        }
        self.words += 1;
        let routine = matches!(
            self.beginning,
            [b'c', b'f' | b'p', _, _] | [b'c', b'o', b'r', b'f' | b'p']
        );
        if !routine || parentheses > 0 {
            return;
        }
        if is("begin") || (is("case") && self.depth > 0) {
            self.depth += 1;
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str, lines: &'a Lines) -> Self {
        Self {
            text,
            lines,
            position: 0,
            parentheses: 0,
            body: Body::default(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// Return the next section; after the end of the text always an empty one.
    pub(crate) fn next(&mut self) -> Result<Stretch, Fault> {
        let mut out = String::new();
        let mut start = self.position;
        let end = loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else {
                break End::Text;
            };
            let length = match first {
                ' ' | '\t' | '\n' | '\r' | '\x0B' | '\x0C' => 1,
                '-' if rest.starts_with("--") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => self.comment()?,
                '\'' => self.quoted(1, false)?,
                'e' | 'E' if rest[1..].starts_with('\'') => self.quoted(2, true)?,
                '"' => match rest[1..].find('"') {
                    Some(close) => close + 2,
                    None => return Err(self.unterminated("quoted identifier", "\"")),
                },
                '$' => self.dollar_quoted()?,
                ':' if named_test(rest).is_some() => {
                    // psql tests here whether a variable is defined; pgbench has none.
                    if out.is_empty() {
                        start = self.position;
                    }
                    self.position += named_test(rest).unwrap_or(0);
                    out.push_str("FALSE");
                    continue;
                }
                ':' => {
                    1 + rest[1..]
                        .bytes()
                        .take_while(|&byte| continues_word(byte, false))
                        .count()
                }
                '\\' if rest.starts_with("\\;") || rest.starts_with("\\:") => {
                    if out.is_empty() {
                        start = self.position;
                    }
                    if rest.starts_with("\\;") {
                        self.body.words = 0;
                    }
                    out.push_str(&rest[1..2]);
                    self.position += 2;
                    continue;
                }
                '\\' => {
                    self.position += 1;
                    break End::Backslash;
                }
                '0'..='9' => rest
                    .bytes()
                    .take_while(|&byte| continues_word(byte, false))
                    .count(),
                _ if continues_word(rest.as_bytes()[0], false) => {
                    let length = rest
                        .bytes()
                        .take_while(|&byte| continues_word(byte, true))
                        .count();
                    self.body.word(&rest[..length], self.parentheses);
                    length
                }
                '(' => {
                    self.parentheses += 1;
                    1
                }
                ')' => {
                    self.parentheses = self.parentheses.saturating_sub(1);
                    1
                }
                _ => first.len_utf8(),
            };
            let blank = first.is_ascii_whitespace() || first == '\x0B' || rest.starts_with("--");
            if !(blank && out.is_empty()) {
                if out.is_empty() {
                    start = self.position;
                }
                out.push_str(&rest[..length]);
            }
            self.position += length;
            if first == ';' && self.parentheses == 0 && self.body.depth == 0 {
                break End::Semicolon;
            }
        };
        self.body.words = 0;
        Ok(Stretch {
            text: out,
            line: self.lines.line(start),
            end,
        })
    }

    fn unterminated(&self, what: &str, close: &str) -> Fault {
        Fault::new(
            self.lines.line(self.position),
            format!("unterminated {what}, up to the end of the script; close it with {close}"),
        )
    }

    /// Return the length of a comment; comments nest.
    fn comment(&self) -> Result<usize, Fault> {
        let bytes = self.rest().as_bytes();
        let (mut at, mut depth) = (2, 1);
        while depth > 0 {
            match bytes.get(at..at + 2) {
                Some(b"/*") => (at, depth) = (at + 2, depth + 1),
                Some(b"*/") => (at, depth) = (at + 2, depth - 1),
                Some(_) => at += 1,
                None => return Err(self.unterminated("/* comment", "*/")),
            }
        }
        Ok(at)
    }

    /// Return the length of a quoted string whose content begins `at` bytes ahead. After a line break another quote
    /// may continue it, in which backslashes escape if they did before.
    fn quoted(&self, mut at: usize, escapes: bool) -> Result<usize, Fault> {
        let bytes = self.rest().as_bytes();
        loop {
            match bytes.get(at) {
                None => return Err(self.unterminated("quoted string", "'")),
                Some(b'\\') if escapes => at += 2,
                Some(b'\'') => {
                    at += 1;
                    match continued(&bytes[at..]) {
                        Some(length) if escapes => at += length,
                        _ if bytes.get(at) == Some(&b'\'') => at += 1,
                        _ => return Ok(at),
                    }
                }
                Some(_) => at += 1,
            }
        }
    }

    /// Return the length of a `$tag$ … $tag$` string; 1 if the dollar does not begin one.
    fn dollar_quoted(&self) -> Result<usize, Fault> {
        let rest = self.rest();
        let tag = rest[1..]
            .bytes()
            .take_while(|&byte| continues_word(byte, false))
            .count();
        let digit = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if digit || !rest[1 + tag..].starts_with('$') {
            return Ok(1);
        }
        let delimiter = &rest[..tag + 2];
        match rest[delimiter.len()..].find(delimiter) {
            Some(close) => Ok(close + 2 * delimiter.len()),
            None => Err(self.unterminated("dollar-quoted string", delimiter)),
        }
    }
}

/// Whether a word can continue with this byte.
fn continues_word(byte: u8, dollar: bool) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii() || (dollar && byte == b'$')
}

/// Return the length of `:{?name}`.
fn named_test(rest: &str) -> Option<usize> {
    let name = rest.strip_prefix(":{?")?;
    let length = name
        .bytes()
        .take_while(|&byte| continues_word(byte, false))
        .count();
    (length > 0 && name[length..].starts_with('}')).then_some(length + 4)
}

/// Return the length of blanks with a line break, and the quote, that continue a string.
fn continued(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut broken = false;
    loop {
        match bytes.get(at)? {
            b'\n' | b'\r' => broken = true,
            b' ' | b'\t' | 0x0B | 0x0C => {}
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at += bytes[at..]
                    .iter()
                    .position(|byte| matches!(byte, b'\n' | b'\r'))?;
                continue;
            }
            b'\'' if broken => return Some(at + 1),
            _ => return None,
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sections of a text without backslash commands.
    fn split(text: &str) -> Vec<String> {
        let lines = Lines::of(text);
        let mut scanner = Scanner::new(text, &lines);
        let mut found = Vec::new();
        loop {
            let stretch = scanner.next().unwrap();
            if !stretch.text.is_empty() {
                found.push(stretch.text);
            }
            if stretch.end == End::Text {
                return found;
            }
        }
    }

    #[test]
    fn semicolons_end_commands() {
        assert_eq!(
            split("SELECT 1;SELECT 2 ;\n SELECT 3"),
            ["SELECT 1;", "SELECT 2 ;", "SELECT 3"]
        );
        assert_eq!(split(" \n\t"), Vec::<String>::new());
        assert_eq!(split(";"), [";"]);
    }

    #[test]
    fn semicolons_inside_do_not() {
        for text in [
            "SELECT 'a;b''c;';",
            r"SELECT E'a\';b';",
            "SELECT E'a'\n 'b\\';c';",
            "SELECT E'a' -- c\n 'b\\';c';",
            "SELECT e'\\\\';",
            "SELECT \"a;\"\"b;\";",
            "SELECT $$a;b$$;",
            "SELECT $tag$a;$$;$tag $;$tag$;",
            "SELECT 1 /* a; /* b; */ c; */;",
            "SELECT 1 -- a; b'\n;",
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT (2););",
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN a THEN 1 END; END;",
            "create or replace procedure f() BEGIN ATOMIC; END;",
            "SELECT a$b$ FROM t$;",
            "SELECT $1, U&'a;', U&\"b;\", N'c;', B'1;', x'2;';",
            "SELECT 'größe;', \"größe;\", größe;",
        ] {
            assert_eq!(split(&format!("{text}SELECT 2")), [text, "SELECT 2"]);
        }
    }

    #[test]
    fn a_backslash_is_nothing_special_in_a_plain_string() {
        assert_eq!(
            split(r"SELECT '\'; SELECT '\';"),
            [r"SELECT '\';", r"SELECT '\';"]
        );
    }

    #[test]
    fn begin_counts_only_in_the_body_of_a_function() {
        assert_eq!(split("BEGIN; END;"), ["BEGIN;", "END;"]);
        assert_eq!(split("CREATE TABLE begin (a int); SELECT 1;").len(), 2);
        assert_eq!(
            split("SELECT 1;CREATE FUNCTION f() BEGIN a; END; SELECT 2;").len(),
            3
        );
    }

    #[test]
    fn blanks_and_line_comments_before_a_command_are_dropped() {
        let text = "-- first\n  -- second\n\n  SELECT 1 -- inside\n ;\n-- last\n";
        let lines = Lines::of(text);
        let stretch = Scanner::new(text, &lines).next().unwrap();
        assert_eq!(stretch.text, "SELECT 1 -- inside\n ;");
        assert_eq!((stretch.line, stretch.end), (4, End::Semicolon));
        assert_eq!(split(text).len(), 1);
        // As in pgbench, a /* */ comment is sent.
        assert_eq!(split("/* a */ SELECT 1;"), ["/* a */ SELECT 1;"]);
    }

    #[test]
    fn an_escaped_semicolon_joins_queries() {
        assert_eq!(split(r"SELECT 1\; SELECT 2;"), ["SELECT 1; SELECT 2;"]);
        assert_eq!(split(r"\; \; SELECT 0;"), ["; ; SELECT 0;"]);
        assert_eq!(
            split(r"SELECT a\:b, :{?c}, :{?};"),
            ["SELECT a:b, FALSE, :{?};"]
        );
    }

    #[test]
    fn what_is_not_closed_is_refused_with_its_line() {
        for (text, line, what) in [
            ("SELECT 1;\nSELECT 'a", 2, "quoted string"),
            ("SELECT e'a\\'", 1, "quoted string"),
            ("\n\"a", 2, "quoted identifier"),
            ("/* /* */", 1, "/* comment"),
            ("DO $x$ $$", 1, "dollar-quoted string"),
        ] {
            let lines = Lines::of(text);
            let mut scanner = Scanner::new(text, &lines);
            let fault = loop {
                match scanner.next() {
                    Ok(stretch) => assert_ne!(stretch.end, End::Text, "{text}"),
                    Err(fault) => break fault,
                }
            };
            assert_eq!(fault.line, line);
            assert!(
                fault.message.starts_with(&format!("unterminated {what}")),
                "{}",
                fault.message
            );
        }
    }
}
