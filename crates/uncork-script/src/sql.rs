//! SQL commands of a script, with the places of their variables.

use std::ops::Range;

use crate::error::EvaluationError;
use crate::symbols::{Slot, Symbols, begins_name, continues_name, is_variable_name};

/// The most parameters of a command in the extended protocol, as in pgbench.
pub const MOST_PARAMETERS: usize = 255;

/// One request: one SQL command, or several joined by `\;`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sql {
    /// The text as written, with `:name` for variables.
    pub text: String,
    /// The parts of `text`, in order, without gaps.
    pub pieces: Vec<Piece>,
    /// The text for the extended protocol: `$1`, `$2` … for each use of a variable.
    pub numbered: String,
    /// The variable of `$1`, `$2` and so on.
    pub parameters: Vec<Slot>,
    /// What happens to returned rows.
    pub capture: Option<Capture>,
}

/// A part of an SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes of the text, unchanged.
    Text(Range<usize>),
    /// The value of a variable, or these bytes (`:name`) if it is undefined.
    Variable {
        /// The variable.
        slot: Slot,
        /// The bytes of the text that refer to it.
        range: Range<usize>,
    },
}

/// `\gset` or `\aset`: a row's columns become variables. `\gset` requires exactly one row from the last query of the
/// request; `\aset` uses the last row of every query that returns one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Whether it is `\aset`.
    pub all: bool,
    /// The prefix of the variables' names; may be empty.
    pub prefix: String,
}

impl Capture {
    /// Return the variable for the column `column`; `None` if no script uses it, so that its value need not be kept.
    ///
    /// # Errors
    ///
    /// If no variable can have that name.
    pub fn slot(&self, symbols: &Symbols, column: &str) -> Result<Option<Slot>, EvaluationError> {
        let name = format!("{}{column}", self.prefix);
        if !is_variable_name(&name) {
            let command = if self.all { "aset" } else { "gset" };
            return Err(EvaluationError::new(format!(
                "\\{command}: error storing into variable {name}: no variable can have that name; \
                 name the column with AS"
            )));
        }
        Ok(symbols.lookup(&name))
    }
}

impl Sql {
    /// Parse the command `text`. Like pgbench, this takes `:name` for a variable everywhere, even in quotes and
    /// comments; but not after another colon, so that casts are left alone.
    pub(crate) fn new(text: String, symbols: &mut Symbols) -> Self {
        let bytes = text.as_bytes();
        let mut pieces = Vec::new();
        let mut parameters = Vec::new();
        let mut numbered = String::with_capacity(text.len());
        let (mut done, mut at) = (0, 0);
        while at < bytes.len() {
            if bytes[at] != b':' {
                at += 1;
                continue;
            }
            let name = at + 1;
            if !bytes.get(name).copied().is_some_and(begins_name) {
                at += bytes[at..].iter().take_while(|&&byte| byte == b':').count();
                continue;
            }
            let length = bytes[name..]
                .iter()
                .take_while(|&&byte| continues_name(byte))
                .count();
            let end = name + length;
            if at > done {
                pieces.push(Piece::Text(done..at));
            }
            numbered.push_str(&text[done..at]);
            let slot = symbols.slot(&text[name..end]);
            pieces.push(Piece::Variable {
                slot,
                range: at..end,
            });
            parameters.push(slot);
            numbered.push('$');
            numbered.push_str(&parameters.len().to_string());
            (done, at) = (end, end);
        }
        if done < text.len() {
            pieces.push(Piece::Text(done..text.len()));
        }
        numbered.push_str(&text[done..]);
        Self {
            text,
            pieces,
            numbered,
            parameters,
            capture: None,
        }
    }

    /// Return the first line of the text, as a name of the command.
    #[must_use]
    pub fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or("").trim_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> (Sql, Symbols) {
        let mut symbols = Symbols::new();
        (Sql::new(text.to_owned(), &mut symbols), symbols)
    }

    #[test]
    fn each_occurrence_of_a_variable_is_a_parameter() {
        let (sql, symbols) = sql("SELECT :a::int, ':b' /* :a */ FROM t[1:2]");
        assert_eq!(sql.numbered, "SELECT $1::int, '$2' /* $3 */ FROM t[1:2]");
        let names: Vec<&str> = sql
            .parameters
            .iter()
            .map(|&slot| symbols.name(slot))
            .collect();
        assert_eq!(names, ["a", "b", "a"]);
        assert_eq!(sql.pieces.len(), 7);
    }

    #[test]
    fn a_cast_is_no_variable() {
        for text in [
            "SELECT 1::int",
            "SELECT x:::y",
            "a := 1",
            "'12:30'",
            "::a",
            ":",
        ] {
            let (sql, _) = sql(text);
            assert_eq!(sql.numbered, text);
            assert!(sql.parameters.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_column_becomes_a_variable_only_if_someone_refers_to_it() {
        let mut symbols = Symbols::new();
        let balance = symbols.slot("p_balance");
        let capture = Capture {
            all: false,
            prefix: "p_".into(),
        };
        assert_eq!(capture.slot(&symbols, "balance"), Ok(Some(balance)));
        assert_eq!(capture.slot(&symbols, "other"), Ok(None));
        let capture = Capture {
            all: true,
            prefix: String::new(),
        };
        let error = capture.slot(&symbols, "?column?").unwrap_err().to_string();
        assert!(
            error.starts_with("\\aset: error storing into variable ?column?"),
            "{error}"
        );
    }
}
