//! Texts with variables, such as `/items/{id}`. Pure.

use std::collections::BTreeMap;

use uncork_model::{Values, Variable};

use super::session::Session;

/// A text with variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Value(Source, Escape),
    /// The header with the client's cookies, if there are any.
    Cookies,
}

/// Where a value comes from: the number of a variable, or of a captured value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Drawn(usize),
    Captured(usize),
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    None,
    /// Bytes that an address may not contain become `%20`.
    Address,
    /// As a value of `application/x-www-form-urlencoded`.
    Form,
    /// Inside quotes of a JSON text as the content of a string; elsewhere unchanged.
    Json,
}

/// What the names in a text stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) variables: &'a [Variable],
    pub(crate) captured: &'a [String],
    /// The values of `${NAME}`.
    pub(crate) environment: &'a BTreeMap<String, String>,
}

impl Names<'_> {
    fn find(&self, name: &str) -> Option<Source> {
        let captured = self.captured.iter().position(|captured| captured == name);
        let drawn = || self.variables.iter().position(|it| it.name == name);
        captured
            .map(Source::Captured)
            .or_else(|| drawn().map(Source::Drawn))
    }
}

impl Template {
    /// Parse a text. `{name}` is a value, `${NAME}` one of the environment, `{{` a brace; braces
    /// around anything except a name are text.
    ///
    /// # Errors
    ///
    /// An unknown name.
    pub(crate) fn read(text: &str, names: Names<'_>, escape: Escape) -> Result<Self, String> {
        let mut template = Self::default();
        let mut rest = text;
        let mut quoted = Quoted::default();
        while let Some(at) = rest.find('{') {
            let before = &rest[..at];
            rest = &rest[at + 1..];
            quoted.follow(before.as_bytes());
            if let Some(behind) = rest.strip_prefix('{') {
                template.push(before.as_bytes());
                template.push(b"{");
                rest = behind;
                continue;
            }
            let name = rest.split_once('}').map(|(name, _)| name);
            let escape = match escape {
                Escape::Json if !quoted.inside => Escape::None,
                escape => escape,
            };
            let secret = name
                .filter(|_| before.ends_with('$'))
                .and_then(|name| names.environment.get(name));
            if let (Some(name), Some(secret)) = (name, secret) {
                template.push(&before.as_bytes()[..before.len() - 1]);
                let mut value = Vec::new();
                escape.write(secret.as_bytes(), &mut value);
                template.push(&value);
                rest = &rest[name.len() + 1..];
                continue;
            }
            template.push(before.as_bytes());
            let source = match name.filter(|name| is_name(name)) {
                // A name with a dot is the column of a file, or else any text.
                Some(name) if name.contains('.') => names.find(name),
                Some(name) => Some(names.find(name).ok_or_else(|| name.to_owned())?),
                None => None,
            };
            let (Some(source), Some(name)) = (source, name) else {
                template.push(b"{");
                continue;
            };
            template.pieces.push(Piece::Value(source, escape));
            rest = &rest[name.len() + 1..];
        }
        template.push(rest.as_bytes());
        Ok(template)
    }

    /// A text without variables.
    pub(crate) fn plain(text: &[u8]) -> Self {
        let mut template = Self::default();
        template.push(text);
        template
    }

    /// Append another one.
    pub(crate) fn append(&mut self, other: &Self) {
        for piece in &other.pieces {
            match piece {
                Piece::Text(text) => self.push(text),
                value => self.pieces.push(value.clone()),
            }
        }
    }

    /// Append a text.
    pub(crate) fn push(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.extend_from_slice(text),
            _ => self.pieces.push(Piece::Text(text.to_vec())),
        }
    }

    /// Append the header with the client's cookies.
    pub(crate) fn push_cookies(&mut self) {
        self.pieces.push(Piece::Cookies);
    }

    /// The text, if it has no variables.
    pub(crate) fn fixed(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The values in it.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) | Piece::Cookies => None,
            Piece::Value(source, _) => Some(*source),
        })
    }

    /// Append the text of an operation.
    pub(crate) fn write(&self, operation: Operation<'_>, out: &mut Vec<u8>) {
        let begin = out.len();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Value(source, Escape::None) => operation.write(*source, out),
                Piece::Value(source, escape) => {
                    let start = out.len();
                    operation.write(*source, out);
                    if !out[start..].iter().copied().all(|byte| escape.keeps(byte)) {
                        let value = out.split_off(start);
                        escape.write(&value, out);
                    }
                }
                Piece::Cookies => operation.write_cookie_header(begin, out),
            }
        }
    }
}

impl Escape {
    /// Whether a byte is written unchanged.
    fn keeps(self, byte: u8) -> bool {
        match self {
            Self::None => true,
            Self::Address => is_for_addresses(byte),
            Self::Form => byte.is_ascii_alphanumeric() || b"-._*".contains(&byte),
            Self::Json => byte >= b' ' && byte != b'"' && byte != b'\\',
        }
    }

    /// Append a value.
    pub(crate) fn write(self, value: &[u8], out: &mut Vec<u8>) {
        for &byte in value {
            match self {
                _ if self.keeps(byte) => out.push(byte),
                Self::None => out.push(byte),
                Self::Form if byte == b' ' => out.push(b'+'),
                Self::Address | Self::Form => {
                    out.push(b'%');
                    out.extend(hexadecimal(byte));
                }
                Self::Json if byte >= b' ' => out.extend_from_slice(&[b'\\', byte]),
                Self::Json => {
                    out.extend_from_slice(b"\\u00");
                    out.extend(hexadecimal(byte));
                }
            }
        }
    }
}

/// Whether the current place of a JSON text is inside of a string.
#[derive(Debug, Default)]
struct Quoted {
    inside: bool,
    escaped: bool,
}

impl Quoted {
    fn follow(&mut self, text: &[u8]) {
        for &byte in text {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' => self.escaped = self.inside,
                b'"' => self.inside = !self.inside,
                _ => {}
            }
        }
    }
}

/// The values of all names in one operation. Drawn values depend only on the seed and the
/// operation's number (or the client's), so that a load can be repeated regardless of its threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) variables: &'a [Variable],
    pub(crate) seed: u64,
    pub(crate) number: u64,
    /// The client's number over all threads, from 0.
    pub(crate) client: u64,
    /// What the client has captured.
    pub(crate) session: Option<&'a Session>,
}

impl Operation<'_> {
    fn write(self, source: Source, out: &mut Vec<u8>) {
        match source {
            Source::Drawn(place) => self.draw(place, out),
            Source::Captured(place) => {
                let value = self.session.and_then(|session| session.value(place));
                out.extend_from_slice(value.unwrap_or_default());
            }
        }
    }

    fn draw(self, place: usize, out: &mut Vec<u8>) {
        let variable = &self.variables[place];
        let count = variable.values.count();
        let number = if variable.per_client {
            self.client
        } else {
            self.number
        };
        let index = if variable.in_turn {
            number % count
        } else {
            let stream = variable
                .group
                .map_or(place as u64 + 1, |group| u64::MAX - group);
            let key = self.seed ^ mix(stream);
            scale(mix(key.wrapping_add(mix(number))), count)
        };
        match &variable.values {
            Values::Range(first, _) => write_number(first + index, out),
            Values::Listed(values) => {
                out.extend_from_slice(values[usize::try_from(index).unwrap_or(0)].as_bytes());
            }
        }
    }

    /// Append the header of HTTP/1.1 with the client's cookies; the request begins at `begin`.
    fn write_cookie_header(self, begin: usize, out: &mut Vec<u8>) {
        let Some(session) = self.session.filter(|session| session.has_cookies()) else {
            return;
        };
        let mut value = Vec::new();
        let mut words = out[begin..].split(|&byte| byte == b' ');
        session.write_cookies(words.nth(1).unwrap_or_default(), &mut value);
        if !value.is_empty() {
            out.extend_from_slice(b"Cookie: ");
            out.extend_from_slice(&value);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Mix a number over all 64 bits (`SplitMix64`'s finalizer, after Stafford's variant 13).
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Map all 64 bits to 0 … count - 1, uniformly up to 2⁻⁶⁴ · count.
fn scale(bits: u64, count: u64) -> u64 {
    let scaled = (u128::from(bits) * u128::from(count)) >> 64;
    u64::try_from(scaled).unwrap_or(0)
}

fn write_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn is_name(text: &str) -> bool {
    let first = text.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
}

/// Whether an address may contain a byte unescaped.
fn is_for_addresses(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte)
}

fn hexadecimal(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [
        DIGITS[usize::from(byte >> 4)],
        DIGITS[usize::from(byte & 15)],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, values: Values, in_turn: bool) -> Variable {
        Variable {
            name: name.to_owned(),
            values,
            in_turn,
            per_client: false,
            group: None,
        }
    }

    fn listed(values: &[&str]) -> Values {
        Values::Listed(values.iter().map(|&value| value.to_owned()).collect())
    }

    fn variables() -> Vec<Variable> {
        vec![
            variable("id", Values::Range(10, 13), false),
            variable("word", listed(&["a b", "ü", "c/d?e=f"]), true),
            variable("odd", listed(&["say \"hi\"\n\\"]), true),
        ]
    }

    fn read(text: &str, escape: Escape) -> Result<Template, String> {
        let environment = BTreeMap::from([("KEY".to_owned(), "a\"b".to_owned())]);
        let names = Names {
            variables: &variables(),
            captured: &["token".to_owned()],
            environment: &environment,
        };
        Template::read(text, names, escape)
    }

    fn written(text: &str, escape: Escape, number: u64) -> String {
        let template = read(text, escape).expect("valid");
        let mut out = Vec::new();
        let session = Session::new(vec![Some(b"t\"1".to_vec())]);
        let operation = Operation {
            variables: &variables(),
            seed: 5,
            number,
            client: 3,
            session: Some(&session),
        };
        template.write(operation, &mut out);
        String::from_utf8(out).expect("is UTF-8")
    }

    #[test]
    fn variables_are_replaced_and_other_braces_are_not() {
        assert_eq!(written("{word}", Escape::None, 0), "a b");
        assert_eq!(written("/{word}?x", Escape::Address, 0), "/a%20b?x");
        assert_eq!(written("/{word}", Escape::Address, 1), "/%C3%BC");
        assert_eq!(written("/{word}", Escape::Address, 2), "/c/d?e=f");
        assert_eq!(
            written("{{id} {\"a\": {}} {a.b} {", Escape::None, 0),
            "{id} {\"a\": {}} {a.b} {"
        );
        assert_eq!(read("/{other}", Escape::Address), Err("other".to_owned()));
        let fixed = read("/{{x", Escape::Address).expect("valid");
        assert_eq!(fixed.fixed(), Some(&b"/{x"[..]));
    }

    #[test]
    fn values_are_escaped_as_their_place_requires() {
        assert_eq!(
            written("{\"n\": {word}, \"s\": \"{odd}\"}", Escape::Json, 0),
            "{\"n\": a b, \"s\": \"say \\\"hi\\\"\\u000A\\\\\"}"
        );
        assert_eq!(
            written(r#""a\"{odd}""#, Escape::Json, 0),
            r#""a\"say \"hi\"\u000A\\""#
        );
        assert_eq!(written("a={word}", Escape::Form, 2), "a=c%2Fd%3Fe%3Df");
        assert_eq!(written("a={word}", Escape::Form, 0), "a=a+b");
    }

    #[test]
    fn captured_values_and_the_environment_are_inserted() {
        assert_eq!(written("Bearer {token}", Escape::None, 0), "Bearer t\"1");
        assert_eq!(written("\"{token}\"", Escape::Json, 0), "\"t\\\"1\"");
        assert_eq!(written("x${KEY}$y", Escape::None, 0), "xa\"b$y");
        assert_eq!(written("\"${KEY}\"", Escape::Json, 0), "\"a\\\"b\"");
        // Without such a name in the environment it is a dollar before a variable.
        assert_eq!(written("${word}", Escape::None, 0), "$a b");
        assert!(
            read("${KEY}", Escape::None)
                .expect("valid")
                .fixed()
                .is_some()
        );
    }

    #[test]
    fn columns_of_a_row_are_drawn_together_and_clients_keep_their_values() {
        let column = |name: &str, values: &[&str], per_client| Variable {
            per_client,
            group: Some(1),
            ..variable(name, listed(values), false)
        };
        let variables = [
            column("u.name", &["a", "b", "c", "d"], false),
            column("u.key", &["1", "2", "3", "4"], false),
            column("own", &["a", "b", "c", "d"], true),
        ];
        let names = Names {
            variables: &variables,
            captured: &[],
            environment: &BTreeMap::new(),
        };
        let template = Template::read("{u.name}{u.key}{own}", names, Escape::None);
        let template = template.expect("valid");
        let mut seen = std::collections::BTreeSet::new();
        let mut own = std::collections::BTreeSet::new();
        for number in 0..100 {
            let mut out = Vec::new();
            let operation = Operation {
                variables: &variables,
                seed: 1,
                number,
                client: 7,
                session: None,
            };
            template.write(operation, &mut out);
            seen.insert((out[0], out[1]));
            own.insert(out[2]);
        }
        let rows = [(b'a', b'1'), (b'b', b'2'), (b'c', b'3'), (b'd', b'4')];
        assert_eq!(seen, rows.into());
        assert_eq!(own.len(), 1);
    }

    #[test]
    fn random_values_are_repeatable_and_each_comes_as_often() {
        let mut counts = [0; 4];
        for number in 0..40_000 {
            let value = written("{id}", Escape::None, number);
            assert_eq!(value, written("{id}", Escape::None, number));
            counts[value.parse::<usize>().expect("a number") - 10] += 1;
        }
        // Three standard deviations of a binomial count.
        assert!(
            counts
                .iter()
                .all(|count: &i32| (count - 10_000).abs() < 260),
            "{counts:?}"
        );
    }
}
