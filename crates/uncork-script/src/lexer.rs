//! Splits backslash commands into words and tokens.

use crate::error::Fault;
use crate::symbols::{begins_name, continues_name};
use crate::value::parse_double;

/// The beginnings of lines, to find the line of an offset.
#[derive(Debug)]
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let after = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self(
            std::iter::once(0)
                .chain(after.map(|(index, _)| index + 1))
                .collect(),
        )
    }

    /// Return the line of the byte at `offset`, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|&start| start <= offset)
    }

    /// Return how many bytes before `offset` its line begins, plus 1.
    fn column(&self, offset: usize) -> usize {
        offset + 1 - self.0[self.line(offset) - 1]
    }
}

/// The tokens of expressions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Integer(i64),
    /// 9223372036854775808, which is an integer only after a minus.
    BeyondGreatest,
    Double(f64),
    Boolean(bool),
    Null,
    Variable(String),
    Function(String),
    And,
    Or,
    Not,
    Is,
    IsNull,
    NotNull,
    Case,
    When,
    Then,
    Else,
    End,
    /// One of `+ - * / % ( ) , < > = | # & ~`.
    Sign(u8),
    LessOrEqual,
    GreaterOrEqual,
    NotEqual,
    ShiftLeft,
    ShiftRight,
    /// The end of the line.
    Finish,
}

/// Reads a backslash command up to the end of its line; a backslash before the end continues the
/// line.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    lines: &'a Lines,
    position: usize,
    /// Where the last token begins.
    start: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, lines: &'a Lines, position: usize) -> Self {
        Self {
            text,
            lines,
            position,
            start: position,
        }
    }

    /// The position after the last token.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Create an error at the last token: its line, `message`, its column, `remedy`.
    pub(crate) fn fault(&self, message: &str, remedy: &str) -> Fault {
        let column = self.lines.column(self.start);
        Fault::new(
            self.lines.line(self.start),
            format!("{message} at column {column}; {remedy}"),
        )
    }

    /// The text of the last token, for a message.
    pub(crate) fn found(&self) -> String {
        let token = &self.text[self.start..self.position];
        if token.trim().is_empty() {
            "the end of the line".to_owned()
        } else {
            format!("\"{token}\"")
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.position + ahead).copied()
    }

    /// Return the length of a backslash at `ahead` that continues the line with the next one.
    fn continuation(&self, ahead: usize) -> Option<usize> {
        match (self.byte(ahead), self.byte(ahead + 1), self.byte(ahead + 2)) {
            (Some(b'\\'), Some(b'\n'), _) => Some(2),
            (Some(b'\\'), Some(b'\r'), Some(b'\n')) => Some(3),
            _ => None,
        }
    }

    /// Skip blanks and line continuations.
    fn skip_blanks(&mut self) {
        loop {
            if self.byte(0).is_some_and(is_blank) {
                self.position += 1;
            } else if let Some(length) = self.continuation(0) {
                self.position += length;
            } else {
                return;
            }
        }
    }

    /// Read the next word, delimited by blanks. At the end of the line, which is then consumed, return `None`.
    pub(crate) fn word(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        self.start = self.position;
        while let Some(byte) = self.byte(0) {
            if is_blank(byte) || byte == b'\n' || self.continuation(0).is_some() {
                break;
            }
            self.position += 1;
        }
        if self.position > self.start {
            return Some(&self.text[self.start..self.position]);
        }
        self.finish();
        None
    }

    fn finish(&mut self) {
        if self.byte(0) == Some(b'\n') {
            self.position += 1;
        }
    }

    /// Read the next token of an expression.
    pub(crate) fn token(&mut self) -> Result<Token, Fault> {
        self.skip_blanks();
        self.start = self.position;
        let Some(byte) = self.byte(0) else {
            return Ok(Token::Finish);
        };
        if byte == b'\n' {
            self.finish();
            return Ok(Token::Finish);
        }
        if byte.is_ascii_digit()
            || (byte == b'.' && self.byte(1).is_some_and(|next| next.is_ascii_digit()))
        {
            return self.number();
        }
        if begins_name(byte) {
            return Ok(keyword(self.name(0)));
        }
        if byte == b':' && self.byte(1).is_some_and(continues_name) {
            return Ok(Token::Variable(self.name(1).to_owned()));
        }
        let (token, length) = match (byte, self.byte(1)) {
            (b'<', Some(b'=')) => (Token::LessOrEqual, 2),
            (b'>', Some(b'=')) => (Token::GreaterOrEqual, 2),
            (b'<', Some(b'>')) | (b'!', Some(b'=')) => (Token::NotEqual, 2),
            (b'<', Some(b'<')) => (Token::ShiftLeft, 2),
            (b'>', Some(b'>')) => (Token::ShiftRight, 2),
            (sign, _) if b"+-*/%(),<>=|#&~".contains(&sign) => (Token::Sign(sign), 1),
            _ => {
                let character = self.text[self.position..].chars().next().unwrap_or(' ');
                return Err(self.fault(
                    &format!("unexpected character \"{character}\""),
                    "an expression has numbers, :variables, operators and functions",
                ));
            }
        };
        self.position += length;
        Ok(token)
    }

    /// Read the name that begins `skip` bytes ahead.
    fn name(&mut self, skip: usize) -> &'a str {
        let start = self.position + skip;
        self.position = start;
        while self.byte(0).is_some_and(continues_name) {
            self.position += 1;
        }
        &self.text[start..self.position]
    }

    fn digits(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
    }

    fn number(&mut self) -> Result<Token, Fault> {
        self.digits();
        let mut whole = true;
        if self.byte(0) == Some(b'.') {
            whole = false;
            self.position += 1;
            self.digits();
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
            if self
                .byte(1 + sign)
                .is_some_and(|byte| byte.is_ascii_digit())
            {
                whole = false;
                self.position += 1 + sign;
                self.digits();
            }
        }
        let text = &self.text[self.start..self.position];
        if !whole {
            return parse_double(text).map(Token::Double).ok_or_else(|| {
                self.fault(
                    &format!("double constant overflow ({text})"),
                    "a double lies between 1e-307 and 1e308",
                )
            });
        }
        if text == "9223372036854775808" {
            return Ok(Token::BeyondGreatest);
        }
        text.parse()
            .map(Token::Integer)
            .map_err(|_| self.overflow(text))
    }

    /// Create the error of an integer constant that is too large.
    pub(crate) fn overflow(&self, text: &str) -> Fault {
        self.fault(
            &format!("bigint constant overflow ({text})"),
            "the greatest integer is 9223372036854775807; with a point it is a double",
        )
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0B | 0x0C)
}

/// Return the keyword `name`, regardless of case; otherwise a function name.
fn keyword(name: &str) -> Token {
    match name.to_ascii_lowercase().as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "is" => Token::Is,
        "isnull" => Token::IsNull,
        "notnull" => Token::NotNull,
        "case" => Token::Case,
        "when" => Token::When,
        "then" => Token::Then,
        "else" => Token::Else,
        "end" => Token::End,
        "null" => Token::Null,
        "true" => Token::Boolean(true),
        "false" => Token::Boolean(false),
        _ => Token::Function(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        let lines = Lines::of(text);
        let mut lexer = Lexer::new(text, &lines, 0);
        let mut tokens = Vec::new();
        loop {
            match lexer.token().unwrap() {
                Token::Finish => return tokens,
                token => tokens.push(token),
            }
        }
    }

    #[test]
    fn numbers_are_integers_or_doubles() {
        assert_eq!(
            tokens("1 1. 1.5 .5e3 1E-2 9223372036854775808\n7"),
            [
                Token::Integer(1),
                Token::Double(1.0),
                Token::Double(1.5),
                Token::Double(500.0),
                Token::Double(0.01),
                Token::BeyondGreatest
            ]
        );
        // As in pgbench, an exponent without digits is the name of a function.
        assert_eq!(
            tokens("1e"),
            [Token::Integer(1), Token::Function("e".into())]
        );
    }

    #[test]
    fn a_backslash_continues_the_line() {
        assert_eq!(
            tokens(":a \\\n + \\\r\n:1b"),
            [
                Token::Variable("a".into()),
                Token::Sign(b'+'),
                Token::Variable("1b".into())
            ]
        );
    }

    #[test]
    fn words_end_at_blanks_and_continuations() {
        let text = "sleep\\\n :one\tms\r\nnext";
        let lines = Lines::of(text);
        let mut lexer = Lexer::new(text, &lines, 0);
        assert_eq!(lexer.word(), Some("sleep"));
        assert_eq!(lexer.word(), Some(":one"));
        assert_eq!(lexer.word(), Some("ms"));
        assert_eq!(lexer.word(), None);
        assert_eq!(&text[lexer.position()..], "next");
    }

    #[test]
    fn a_place_is_a_line_and_a_column() {
        let lines = Lines::of("ab\ncd\n");
        assert_eq!(
            (lines.line(0), lines.line(2), lines.line(3), lines.line(6)),
            (1, 1, 2, 3)
        );
        assert_eq!(lines.column(4), 2);
    }
}
