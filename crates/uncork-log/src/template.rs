//! Strips literals from statements.
//!
//! Executions of one statement differ in literals, white space, case, comments and the number of
//! values in a list. What remains without them is the statement's template. The scanner strips
//! statements at the speed of reading: it knows tokens but no grammar, so it also accepts truncated
//! statements.

pub(crate) mod control;
pub(crate) mod numbered;
pub(crate) mod roles;
pub(crate) mod secret;
pub(crate) mod skeleton;
pub(crate) mod tags;

/// Strips literals from statements, one at a time, into a reused buffer.
#[derive(Debug, Clone, Default)]
pub struct Stripper {
    out: Vec<u8>,
    lists: Vec<List>,
    depth: u32,
    last: Token,
    elements: u32,
}

/// A statement without its literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripped<'a> {
    /// Its tokens in normal form: lower case, single spaces, `?` for each literal and parameter,
    /// and only the first of a list's equal elements.
    pub text: &'a [u8],
    /// Length of the longest list: values of `IN` or `ARRAY`, rows of `VALUES`; 0 without a list.
    pub elements: u32,
    /// Whether no literal or comment was truncated.
    pub complete: bool,
}

/// The last token written; it decides whether a space precedes the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Token {
    #[default]
    Start,
    Word,
    Literal,
    Open,
    Close,
    Comma,
    /// `.` or `::`: no spaces around it.
    Joint,
    Operator,
}

/// A list whose equal elements are written once.
#[derive(Debug, Clone, Copy)]
struct List {
    kind: Kind,
    /// The depth of brackets of its commas.
    depth: u32,
    /// The range of its first element in the output, once it has ended.
    first: Option<(usize, usize)>,
    /// Where the current element begins.
    begin: usize,
    elements: u32,
    /// Whether all elements were equal so far.
    uniform: bool,
    /// For rows: whether the next token may be a row's bracket. Any other token ends the list.
    awaits_row: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `IN (…)`, `ARRAY[…]`: elements are separated by commas.
    Values,
    /// `VALUES (…), (…)`: elements are in brackets. The list ends with the first token that is
    /// neither a row nor the comma between two.
    Rows,
}

const WORD: u8 = 1;
const DIGIT: u8 = 2;
const SPACE: u8 = 3;
const OPERATOR: u8 = 4;

/// What a byte may begin or continue.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends at 255")]
        let this = byte as u8;
        table[byte] = match this {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0xff => WORD,
            b'0'..=b'9' => DIGIT,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => SPACE,
            b'+' | b'-' | b'*' | b'/' | b'<' | b'>' | b'=' | b'~' | b'!' | b'@' | b'#' | b'%'
            | b'^' | b'&' | b'|' | b'`' | b'?' => OPERATOR,
            _ => 0,
        };
        byte += 1;
    }
    table
}

fn class(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

impl Stripper {
    /// Strip the literals from a statement.
    pub fn strip(&mut self, sql: &[u8]) -> Stripped<'_> {
        self.out.clear();
        self.lists.clear();
        (self.depth, self.last, self.elements) = (0, Token::Start, 0);
        let complete = self.tokens(sql);
        while let Some(list) = self.lists.pop() {
            self.end_list(list);
        }
        if self.out.last() == Some(&b';') {
            self.out.pop();
        }
        Stripped {
            text: &self.out,
            elements: self.elements,
            complete,
        }
    }

    /// Write all tokens; return whether none was truncated.
    fn tokens(&mut self, sql: &[u8]) -> bool {
        let mut at = 0;
        while let Some(&byte) = sql.get(at) {
            at = match class(byte) {
                SPACE => at + 1,
                WORD => match self.word(sql, at) {
                    Some(end) => end,
                    None => return false,
                },
                DIGIT => self.number(sql, at),
                OPERATOR => match self.operator(sql, at) {
                    Some(end) => end,
                    None => return false,
                },
                _ => match self.punctuation(sql, at) {
                    Some(end) => end,
                    None => return false,
                },
            };
        }
        true
    }

    /// Write a word, or the literal that it introduces (`E'…'`); `None` if that is truncated.
    fn word(&mut self, sql: &[u8], at: usize) -> Option<usize> {
        let rest = &sql[at..];
        let length = rest
            .iter()
            .position(|&byte| !matches!(class(byte), WORD | DIGIT) && byte != b'$')
            .unwrap_or(rest.len());
        let end = at + length;
        let quoted = match (length, rest.get(length), rest.get(length + 1)) {
            (1, Some(b'\''), _) => matches!(rest[0] | 0x20, b'e' | b'b' | b'x' | b'n').then_some(0),
            (1, Some(b'&'), Some(b'\'')) => (rest[0] | 0x20 == b'u').then_some(1),
            _ => None,
        };
        if let Some(skipped) = quoted {
            let escapes = rest[0] | 0x20 == b'e';
            self.literal();
            return quote_end(sql, end + skipped, escapes);
        }
        self.space_before_value();
        let begin = self.out.len();
        self.out.extend_from_slice(&rest[..length]);
        self.out[begin..].make_ascii_lowercase();
        self.last = Token::Word;
        if length == 6 && &self.out[begin..] == b"values" {
            self.lists.push(List::new(Kind::Rows, self.depth));
        }
        Some(end)
    }

    fn number(&mut self, sql: &[u8], at: usize) -> usize {
        let mut end = at;
        while let Some(&byte) = sql.get(end) {
            let sign = matches!(byte, b'+' | b'-') && end > at && sql[end - 1] | 0x20 == b'e';
            // Hexadecimal digits include e, but no exponent's sign follows it.
            let sign = sign && sql.get(at + 1).is_none_or(|second| second | 0x20 != b'x');
            if !(matches!(class(byte), WORD | DIGIT) || byte == b'.' || sign) {
                break;
            }
            end += 1;
        }
        self.literal();
        end
    }

    /// Write an operator, or skip a comment; `None` if that is truncated.
    fn operator(&mut self, sql: &[u8], at: usize) -> Option<usize> {
        let rest = &sql[at..];
        if rest.starts_with(b"--") {
            return Some(memchr::memchr(b'\n', rest).map_or(sql.len(), |length| at + length + 1));
        }
        if rest.starts_with(b"/*") {
            return comment_end(sql, at);
        }
        if self.is_sign(rest) {
            return Some(at + 1);
        }
        let mut length = 1;
        while length < rest.len()
            && class(rest[length]) == OPERATOR
            && !rest[length..].starts_with(b"--")
            && !rest[length..].starts_with(b"/*")
            // The sign of a number, as in `x=-1`.
            && !(rest[length] == b'-' && rest.get(length + 1).is_some_and(u8::is_ascii_digit))
        {
            length += 1;
        }
        self.end_rows();
        let star = rest[..length] == *b"*";
        match self.last {
            Token::Start | Token::Open | Token::Joint => {}
            _ => self.out.push(b' '),
        }
        self.out.extend_from_slice(&rest[..length]);
        self.last = if star { Token::Word } else { Token::Operator };
        Some(at + length)
    }

    /// Whether a minus or plus belongs to the number after it.
    fn is_sign(&self, rest: &[u8]) -> bool {
        matches!(rest[0], b'-' | b'+')
            && rest.get(1).is_some_and(u8::is_ascii_digit)
            && matches!(self.last, Token::Open | Token::Comma | Token::Operator)
    }

    /// Write a token that is not a word, number or operator; `None` if it is truncated.
    fn punctuation(&mut self, sql: &[u8], at: usize) -> Option<usize> {
        match sql[at] {
            b'\'' => {
                self.literal();
                let end = quote_end(sql, at, false)?;
                self.array_literal(&sql[at + 1..end - 1]);
                return Some(end);
            }
            b'"' => return self.quoted_name(sql, at),
            b'$' => return self.dollar(sql, at),
            b'(' | b'[' => self.open(sql[at]),
            b')' | b']' => self.close(sql[at]),
            b',' => self.comma(),
            b':' if sql.get(at + 1) == Some(&b':') => {
                self.end_rows();
                self.out.extend_from_slice(b"::");
                self.last = Token::Joint;
                return Some(at + 2);
            }
            b'.' if sql.get(at + 1).is_some_and(u8::is_ascii_digit)
                && !matches!(self.last, Token::Word | Token::Close) =>
            {
                return Some(self.number(sql, at));
            }
            b'.' => {
                self.end_rows();
                self.out.push(b'.');
                self.last = Token::Joint;
            }
            b';' => {
                self.end_rows();
                self.out.push(b';');
                self.last = Token::Operator;
            }
            other => {
                self.space_before_value();
                self.out.push(other);
                self.last = Token::Operator;
            }
        }
        Some(at + 1)
    }

    /// End the list of rows that the next token does not belong to.
    fn end_rows(&mut self) {
        if let Some(list) = self.lists.last()
            && list.kind == Kind::Rows
            && list.depth == self.depth
        {
            let list = *list;
            self.lists.pop();
            self.end_list(list);
        }
    }

    fn space_before_value(&mut self) {
        self.end_rows();
        if !matches!(self.last, Token::Start | Token::Open | Token::Joint) {
            self.out.push(b' ');
        }
    }

    fn literal(&mut self) {
        self.space_before_value();
        self.out.push(b'?');
        self.last = Token::Literal;
    }

    /// Count the elements of an array literal: `'{1,2,3}'`.
    fn array_literal(&mut self, inside: &[u8]) {
        if let [b'{', values @ .., b'}'] = inside {
            let commas = memchr::memchr_iter(b',', values).count();
            let elements = u32::try_from(commas).unwrap_or(u32::MAX);
            self.elements = self.elements.max(elements.saturating_add(1));
        }
    }

    fn quoted_name(&mut self, sql: &[u8], at: usize) -> Option<usize> {
        self.space_before_value();
        let mut end = at + 1;
        loop {
            end += memchr::memchr(b'"', sql.get(end..)?)? + 1;
            if sql.get(end) != Some(&b'"') {
                break;
            }
            end += 1;
        }
        self.out.extend_from_slice(&sql[at..end]);
        self.last = Token::Word;
        Some(end)
    }

    /// Write a parameter (`$1`) or a dollar-quoted string (`$tag$…$tag$`).
    fn dollar(&mut self, sql: &[u8], at: usize) -> Option<usize> {
        self.literal();
        let rest = &sql[at + 1..];
        let first = |of: fn(u8) -> bool| {
            rest.iter()
                .position(|&byte| !of(byte))
                .unwrap_or(rest.len())
        };
        if rest.first().is_some_and(u8::is_ascii_digit) {
            return Some(at + 1 + first(|byte| byte.is_ascii_digit()));
        }
        let length = first(|byte| matches!(class(byte), WORD | DIGIT));
        if rest.get(length) != Some(&b'$') {
            return Some(at + 1);
        }
        let tag = &sql[at..at + length + 2];
        let body = at + tag.len();
        memchr::memmem::find(&sql[body..], tag).map(|found| body + found + tag.len())
    }

    fn open(&mut self, bracket: u8) {
        let is_row = bracket == b'(' && self.lists.last().is_some_and(|list| list.awaits_row);
        if !is_row {
            self.end_rows();
        }
        let word = self.last_word();
        let spaced = match self.last {
            Token::Word => bracket == b'(' && is_spaced(word),
            Token::Start | Token::Open | Token::Joint => false,
            Token::Close => bracket == b'(',
            Token::Literal | Token::Comma | Token::Operator => true,
        };
        let values = self.last == Token::Word
            && if bracket == b'(' {
                word == b"in"
            } else {
                word == b"array"
            };
        if spaced {
            self.out.push(b' ');
        }
        let before = self.out.len();
        self.out.push(bracket);
        if let Some(list) = self.lists.last_mut()
            && list.kind == Kind::Rows
            && list.depth == self.depth
        {
            (list.begin, list.awaits_row) = (before, false);
        }
        self.depth += 1;
        self.last = Token::Open;
        if values {
            let mut list = List::new(Kind::Values, self.depth);
            list.begin = self.out.len();
            self.lists.push(list);
        }
    }

    fn close(&mut self, bracket: u8) {
        while let Some(list) = self.lists.last()
            && list.depth >= self.depth
            && self.depth > 0
        {
            let list = *list;
            self.lists.pop();
            self.end_list(list);
        }
        self.depth = self.depth.saturating_sub(1);
        self.out.push(bracket);
        self.last = Token::Close;
        if let Some(list) = self.lists.last_mut()
            && list.kind == Kind::Rows
            && list.depth == self.depth
        {
            list.end_element(&mut self.out);
        }
    }

    fn comma(&mut self) {
        if let Some(list) = self.lists.last_mut()
            && list.kind == Kind::Values
            && list.depth == self.depth
        {
            list.end_element(&mut self.out);
            self.out.push(b',');
            // The next element begins after the space that follows every comma.
            list.begin = self.out.len() + 1;
        } else {
            match self.lists.last_mut() {
                // A comma before the first row does not separate rows.
                Some(list) if list.kind == Kind::Rows && list.depth == self.depth => {
                    if list.elements > 0 && !list.awaits_row {
                        list.awaits_row = true;
                    } else {
                        self.end_rows();
                    }
                }
                _ => {}
            }
            self.out.push(b',');
        }
        self.last = Token::Comma;
    }

    fn end_list(&mut self, mut list: List) {
        if list.kind == Kind::Values && list.begin < self.out.len() {
            list.end_element(&mut self.out);
        }
        if list.uniform {
            self.elements = self.elements.max(list.elements);
        }
    }

    fn last_word(&self) -> &[u8] {
        let begin = self
            .out
            .iter()
            .rposition(|&byte| !matches!(class(byte), WORD | DIGIT))
            .map_or(0, |before| before + 1);
        &self.out[begin..]
    }
}

impl List {
    fn new(kind: Kind, depth: u32) -> Self {
        Self {
            kind,
            depth,
            first: None,
            begin: usize::MAX,
            elements: 0,
            uniform: true,
            awaits_row: kind == Kind::Rows,
        }
    }

    /// Drop the element that ends here if it equals the first one.
    fn end_element(&mut self, out: &mut Vec<u8>) {
        let Some(element) = out.get(self.begin..) else {
            return;
        };
        self.elements = self.elements.saturating_add(1);
        match self.first {
            None => self.first = Some((self.begin, out.len())),
            Some((begin, end)) if self.uniform => {
                if *element == out[begin..end] {
                    out.truncate(end);
                } else {
                    self.uniform = false;
                }
            }
            Some(_) => {}
        }
    }
}

/// Words that a space separates from a bracket, unlike the name of a function.
fn is_spaced(word: &[u8]) -> bool {
    matches!(
        word,
        b"in"
            | b"values"
            | b"and"
            | b"or"
            | b"not"
            | b"on"
            | b"where"
            | b"from"
            | b"as"
            | b"using"
            | b"select"
            | b"then"
            | b"when"
            | b"else"
            | b"case"
            | b"exists"
            | b"over"
            | b"join"
            | b"by"
            | b"having"
            | b"union"
            | b"all"
            | b"except"
            | b"intersect"
            | b"with"
    )
}

/// Return the end of a string that begins with the quote at `at`; `None` if it is truncated.
fn quote_end(sql: &[u8], at: usize, escapes: bool) -> Option<usize> {
    let mut end = at + 1;
    loop {
        let rest = sql.get(end..)?;
        let found = if escapes {
            memchr::memchr2(b'\'', b'\\', rest)?
        } else {
            memchr::memchr(b'\'', rest)?
        };
        end += found + 1;
        let doubled = sql.get(end) == Some(&b'\'');
        if rest[found] == b'\\' || doubled {
            end += 1;
        } else {
            return Some(end);
        }
    }
}

/// Return the end of a comment, which may contain others; `None` if it is truncated.
pub(crate) fn comment_end(sql: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut end) = (0_usize, at);
    loop {
        let rest = sql.get(end..)?;
        let found = memchr::memchr2(b'*', b'/', rest)?;
        match (&rest[found], rest.get(found + 1)?) {
            (b'/', b'*') => depth += 1,
            (b'*', b'/') if depth == 1 => return Some(end + found + 2),
            (b'*', b'/') => depth -= 1,
            _ => {
                end += found + 1;
                continue;
            }
        }
        end += found + 2;
    }
}

#[cfg(test)]
mod tests;
