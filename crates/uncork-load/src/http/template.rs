//! Texts with variables, such as `/items/{id}`. Pure.

use uncork_model::{Values, Variable};

/// A text with variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    /// The value of a variable; whether bytes that an address may not contain are escaped.
    Value(usize, bool),
}

impl Template {
    /// Parse a text. `{name}` is a variable, `{{` a brace; braces around anything except a name are
    /// text. `escapes` is for addresses.
    ///
    /// # Errors
    ///
    /// The name of an unknown variable.
    pub(crate) fn read(text: &str, variables: &[Variable], escapes: bool) -> Result<Self, String> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            template.push(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('{') {
                template.push(b"{");
                rest = behind;
                continue;
            }
            let name = rest.split_once('}').map(|(name, _)| name);
            let Some(name) = name.filter(|name| is_name(name)) else {
                template.push(b"{");
                continue;
            };
            let place = variables.iter().position(|variable| variable.name == name);
            let place = place.ok_or_else(|| name.to_owned())?;
            template.pieces.push(Piece::Value(place, escapes));
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
                value @ Piece::Value(..) => self.pieces.push(value.clone()),
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

    /// The text, if it has no variables.
    pub(crate) fn fixed(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The variables in it.
    pub(crate) fn variables(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value(place, _) => Some(*place),
        })
    }

    /// Append the text of operation `number`.
    pub(crate) fn write(&self, drawn: Drawn<'_>, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Value(place, false) => drawn.write(*place, out),
                Piece::Value(place, true) => {
                    let start = out.len();
                    drawn.write(*place, out);
                    if !out[start..].iter().copied().all(is_for_addresses) {
                        let value = out.split_off(start);
                        escape(&value, out);
                    }
                }
            }
        }
    }
}

/// The values of all variables in one operation. They depend only on the seed and the operation's
/// number, so that a load can be repeated regardless of its threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn<'a> {
    pub(crate) variables: &'a [Variable],
    pub(crate) seed: u64,
    pub(crate) number: u64,
}

impl Drawn<'_> {
    fn write(self, place: usize, out: &mut Vec<u8>) {
        let variable = &self.variables[place];
        let count = variable.values.count();
        let index = if variable.in_turn {
            self.number % count
        } else {
            let key = self.seed ^ mix(place as u64 + 1);
            scale(mix(key.wrapping_add(mix(self.number))), count)
        };
        match &variable.values {
            Values::Range(first, _) => write_number(first + index, out),
            Values::Listed(values) => {
                out.extend_from_slice(values[usize::try_from(index).unwrap_or(0)].as_bytes());
            }
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
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether an address may contain a byte unescaped.
fn is_for_addresses(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte)
}

/// Append a text, with bytes that an address may not contain escaped as `%20`.
pub(crate) fn escape(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        if is_for_addresses(byte) {
            out.push(byte);
        } else {
            let (high, low) = (
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            );
            out.extend_from_slice(&[b'%', high, low]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Vec<Variable> {
        let listed = ["a b", "ü", "c/d?e=f"].map(str::to_owned).to_vec();
        let variable = |name: &str, values, in_turn| Variable {
            name: name.to_owned(),
            values,
            in_turn,
        };
        vec![
            variable("id", Values::Range(10, 13), false),
            variable("word", Values::Listed(listed), true),
        ]
    }

    fn written(text: &str, escapes: bool, number: u64) -> String {
        let variables = variables();
        let template = Template::read(text, &variables, escapes).expect("valid");
        let mut out = Vec::new();
        let drawn = Drawn {
            variables: &variables,
            seed: 5,
            number,
        };
        template.write(drawn, &mut out);
        String::from_utf8(out).expect("is UTF-8")
    }

    #[test]
    fn variables_are_replaced_and_other_braces_are_not() {
        assert_eq!(written("{word}", false, 0), "a b");
        assert_eq!(written("/{word}?x", true, 0), "/a%20b?x");
        assert_eq!(written("/{word}", true, 1), "/%C3%BC");
        assert_eq!(written("/{word}", true, 2), "/c/d?e=f");
        assert_eq!(
            written("{{id} {\"a\": {}} {", false, 0),
            "{id} {\"a\": {}} {"
        );
        assert_eq!(
            Template::read("/{other}", &variables(), true),
            Err("other".to_owned())
        );
        let fixed = Template::read("/{{x", &variables(), true).expect("valid");
        assert_eq!(fixed.fixed(), Some(&b"/{x"[..]));
    }

    #[test]
    fn random_values_are_repeatable_and_each_comes_as_often() {
        let mut counts = [0; 4];
        for number in 0..40_000 {
            let value = written("{id}", false, number);
            assert_eq!(value, written("{id}", false, number));
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
