//! The values of variables.

use crate::error::EvaluationError;
use crate::number::{write_double, write_integer};

/// A variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Null, as the result of an expression; its text is `NULL`.
    Null,
    /// True or false.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit floating-point number.
    Double(f64),
    /// A text, from `-D` or from a captured column. SQL contains it unchanged; an expression
    /// interprets it as a number, a boolean or null.
    Text(Box<Text>),
}

impl Value {
    /// Create a value from text.
    pub fn from_text(text: impl Into<Vec<u8>>) -> Self {
        Self::Text(Box::new(Text {
            bytes: text.into(),
            meaning: None,
        }))
    }

    /// Append the value as it appears in SQL.
    #[inline]
    pub fn write_text(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Integer(number) => write_integer(buffer, *number),
            Self::Text(text) => buffer.extend_from_slice(&text.bytes),
            Self::Double(number) => write_double(buffer, *number),
            Self::Null => buffer.extend_from_slice(b"NULL"),
            Self::Boolean(true) => buffer.extend_from_slice(b"true"),
            Self::Boolean(false) => buffer.extend_from_slice(b"false"),
        }
    }
}

/// A text whose interpretation as a number is cached.
#[derive(Debug, Clone)]
pub struct Text {
    bytes: Vec<u8>,
    meaning: Option<Scalar>,
}

/// Equal if the bytes are, since they determine the interpretation.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Text {
    /// The bytes, in the client's encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Replace the bytes, keeping the allocation.
    pub(crate) fn replace(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.meaning = None;
    }

    /// Interpret the text in an expression.
    #[inline]
    pub(crate) fn scalar(&mut self, variable: &str) -> Result<Scalar, EvaluationError> {
        if let Some(meaning) = self.meaning {
            return Ok(meaning);
        }
        let meaning = interpret(&self.bytes, variable)?;
        self.meaning = Some(meaning);
        Ok(meaning)
    }
}

/// The operands of expressions: values without text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
}

impl From<Scalar> for Value {
    #[inline]
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Boolean(truth) => Self::Boolean(truth),
            Scalar::Integer(number) => Self::Integer(number),
            Scalar::Double(number) => Self::Double(number),
        }
    }
}

impl Scalar {
    /// The value as a condition: numbers are true unless zero, null is false.
    #[inline]
    pub(crate) fn truth(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(truth) => truth,
            Self::Integer(number) => number != 0,
            Self::Double(number) => number != 0.0,
        }
    }

    /// The value as a boolean; numbers are not booleans.
    #[inline]
    pub(crate) fn boolean(self) -> Result<bool, EvaluationError> {
        match self {
            Self::Boolean(truth) => Ok(truth),
            other => Err(other.misfit("boolean")),
        }
    }

    /// The value as an integer; a double is rounded half to even, as C's `rint` does.
    #[inline]
    pub(crate) fn integer(self) -> Result<i64, EvaluationError> {
        match self {
            Self::Integer(number) => Ok(number),
            Self::Double(number) => round(number),
            other => Err(other.misfit("int")),
        }
    }

    /// As a double.
    #[inline]
    pub(crate) fn double(self) -> Result<f64, EvaluationError> {
        match self {
            Self::Double(number) => Ok(number),
            Self::Integer(number) => Ok(to_double(number)),
            other => Err(other.misfit("double")),
        }
    }

    #[cold]
    fn misfit(self, wanted: &str) -> EvaluationError {
        let found = match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "int",
            Self::Double(_) => "double",
        };
        EvaluationError::new(format!("cannot coerce {found} to {wanted}"))
    }
}

/// Convert to the nearest double, as C does.
#[allow(clippy::cast_precision_loss)] // C's conversion loses precision just so.
#[inline]
pub(crate) fn to_double(number: i64) -> f64 {
    number as f64
}

/// Convert to an integer by truncation; the nearest one if it is out of range.
#[allow(clippy::cast_possible_truncation)] // Cutting off is what it is for.
#[inline]
pub(crate) fn truncate(number: f64) -> i64 {
    number as i64
}

fn round(number: f64) -> Result<i64, EvaluationError> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let rounded = number.round_ties_even();
    if rounded.is_nan() || !(-LIMIT..LIMIT).contains(&rounded) {
        let mut text = Vec::new();
        if rounded.is_finite() {
            text.extend_from_slice(format!("{rounded:.6}").as_bytes());
        } else {
            write_double(&mut text, rounded);
        }
        let text = String::from_utf8_lossy(&text);
        return Err(EvaluationError::new(format!(
            "double to int overflow for {text}"
        )));
    }
    Ok(truncate(rounded))
}

/// Interpret the text of a variable in an expression, by pgbench's rules: null; a prefix of true,
/// yes, false or no, or on, off, of; an integer; otherwise a double.
fn interpret(bytes: &[u8], variable: &str) -> Result<Scalar, EvaluationError> {
    let begins = |word: &str| {
        bytes.len() <= word.len() && word.as_bytes()[..bytes.len()].eq_ignore_ascii_case(bytes)
    };
    let is = |word: &str| bytes.eq_ignore_ascii_case(word.as_bytes());
    if bytes.is_empty() {
        return Err(EvaluationError::new(format!(
            "variable \"{variable}\" is empty (an SQL NULL is captured as empty text); \
             give it a number, a boolean or null"
        )));
    }
    if is("null") {
        return Ok(Scalar::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Ok(Scalar::Boolean(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Ok(Scalar::Boolean(false));
    }
    let start = bytes
        .iter()
        .position(|&byte| !is_space(byte))
        .unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[start..]).unwrap_or("");
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Scalar::Integer).map_err(|_| {
            EvaluationError::new(format!(
                "variable \"{variable}\": value \"{text}\" is out of range for type bigint"
            ))
        });
    }
    match parse_double(text) {
        Some(number) => Ok(Scalar::Double(number)),
        None => Err(EvaluationError::new(format!(
            "malformed variable \"{variable}\" value: \"{}\"",
            String::from_utf8_lossy(bytes)
        ))),
    }
}

/// White space as in C's `isspace`.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Parse `text` as a double; `None` if it is not one, or too large or too small.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let named = text
        .trim_start_matches(['+', '-'])
        .starts_with(|first: char| first.is_alphabetic());
    let mantissa = text.split(['e', 'E']).next().unwrap_or("");
    let lost = number == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (named || (number.is_finite() && !lost)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(text: &str) -> Result<Scalar, String> {
        interpret(text.as_bytes(), "v").map_err(|error| error.to_string())
    }

    #[test]
    fn text_means_what_pgbench_takes_it_for() {
        for truth in ["t", "TRUE", "tr", "y", "yes", "On"] {
            assert_eq!(meaning(truth), Ok(Scalar::Boolean(true)), "{truth}");
        }
        for falsehood in ["f", "fal", "N", "no", "off", "of"] {
            assert_eq!(
                meaning(falsehood),
                Ok(Scalar::Boolean(false)),
                "{falsehood}"
            );
        }
        assert_eq!(meaning("nUll"), Ok(Scalar::Null));
        assert_eq!(meaning("+3"), Ok(Scalar::Integer(3)));
        assert_eq!(
            meaning(" -9223372036854775808"),
            Ok(Scalar::Integer(i64::MIN))
        );
        assert_eq!(meaning("-10.1"), Ok(Scalar::Double(-10.1)));
        assert_eq!(meaning("1e2"), Ok(Scalar::Double(100.0)));
        assert_eq!(meaning(".5"), Ok(Scalar::Double(0.5)));
        assert_eq!(meaning("inf"), Ok(Scalar::Double(f64::INFINITY)));
    }

    #[test]
    fn text_without_meaning_is_refused_in_words() {
        let cases = [
            ("bla", "malformed variable \"v\" value: \"bla\""),
            ("truest", "malformed variable \"v\" value: \"truest\""),
            ("o", "malformed variable \"v\" value: \"o\""),
            ("1 ", "malformed variable \"v\" value: \"1 \""),
            ("+", "malformed variable \"v\" value: \"+\""),
            ("1e999", "malformed variable \"v\" value: \"1e999\""),
            ("9223372036854775808", "is out of range for type bigint"),
            ("", "is empty"),
        ];
        for (text, reason) in cases {
            let error = meaning(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn doubles_become_integers_by_rounding_half_to_even() {
        for (number, integer) in [
            (0.5, 0),
            (1.5, 2),
            (2.5, 2),
            (-0.5, 0),
            (7.3, 7),
            (-7.7, -8),
        ] {
            assert_eq!(Scalar::Double(number).integer(), Ok(integer));
        }
        let error = Scalar::Double(1e32).integer().unwrap_err().to_string();
        assert_eq!(
            error,
            "double to int overflow for 100000000000000005366162204393472.000000"
        );
        assert!(Scalar::Double(f64::NAN).integer().is_err());
        assert!(
            Scalar::Double(9_223_372_036_854_775_808.0)
                .integer()
                .is_err()
        );
        assert_eq!(
            Scalar::Double(-9_223_372_036_854_775_808.0).integer(),
            Ok(i64::MIN)
        );
    }

    #[test]
    fn a_value_is_small() {
        assert_eq!(std::mem::size_of::<Option<Value>>(), 16);
        assert_eq!(std::mem::size_of::<Result<Scalar, EvaluationError>>(), 16);
    }
}
