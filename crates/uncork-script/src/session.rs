//! The variables and random numbers of one client.

use crate::error::EvaluationError;
use crate::expression::{Environment, Expression};
use crate::meta::Sleep;
use crate::prng::Prng;
use crate::sql::{Piece, Sql};
use crate::symbols::{DEFAULT_SEED, Slot, Symbols};
use crate::value::{Value, is_space};

/// The variables that every script may use without setting them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// `:scale`.
    pub scale: i64,
    /// `:client_id`, from 0.
    pub client_id: i64,
    /// `:default_seed`, the default seed of `hash` and `permute`.
    pub default_seed: i64,
    /// `:random_seed`.
    pub random_seed: i64,
}

/// One client's variables and random numbers.
#[derive(Debug, Clone)]
pub struct Session {
    environment: Environment,
    saved: Saved,
}

/// The undo log since the last save.
#[derive(Debug, Clone)]
struct Saved {
    /// Counts the saves; 0 as long as nothing was saved and no changes are logged.
    epoch: u32,
    /// The epoch in which a variable was last logged, by its slot.
    noted: Vec<u32>,
    /// The values of variables before their first change in this epoch.
    before: Vec<(Slot, Option<Value>)>,
    random: Prng,
}

impl Session {
    /// Create a session in which every variable of `symbols` is undefined, with the generator `random`.
    #[must_use]
    pub fn new(symbols: &Symbols, random: Prng) -> Self {
        let names = symbols.names().to_vec();
        let saved = Saved {
            epoch: 0,
            noted: vec![0; names.len()],
            before: Vec::new(),
            random,
        };
        Self {
            environment: Environment {
                values: vec![None; names.len()],
                names,
                random,
            },
            saved,
        }
    }

    /// Set those default variables that a script uses. Values from `-D` are set afterwards.
    pub fn define_defaults(&mut self, symbols: &Symbols, defaults: &Defaults) {
        let values = [
            ("scale", defaults.scale),
            ("client_id", defaults.client_id),
            (DEFAULT_SEED, defaults.default_seed),
            ("random_seed", defaults.random_seed),
        ];
        for (name, value) in values {
            if let Some(slot) = symbols.lookup(name) {
                self.set(slot, Value::Integer(value));
            }
        }
    }

    /// Return the value of a variable; `None` if it is undefined.
    #[must_use]
    pub fn get(&self, slot: Slot) -> Option<&Value> {
        self.environment.values[slot.index()].as_ref()
    }

    /// Set a variable.
    #[inline]
    pub fn set(&mut self, slot: Slot, value: Value) {
        let place = &mut self.environment.values[slot.index()];
        let old = place.replace(value);
        if self.saved.noted[slot.index()] != self.saved.epoch {
            self.saved.noted[slot.index()] = self.saved.epoch;
            self.saved.before.push((slot, old));
        }
    }

    /// Make a variable undefined.
    pub fn clear(&mut self, slot: Slot) {
        let old = self.environment.values[slot.index()].take();
        if self.saved.noted[slot.index()] != self.saved.epoch {
            self.saved.noted[slot.index()] = self.saved.epoch;
            self.saved.before.push((slot, old));
        }
    }

    /// Set a variable to the text of a captured column; NULL is the empty text, as in pgbench.
    pub fn set_text(&mut self, slot: Slot, text: &[u8]) {
        let noted = self.saved.noted[slot.index()] == self.saved.epoch;
        match &mut self.environment.values[slot.index()] {
            Some(Value::Text(old)) if noted => old.replace(text),
            _ => self.set(slot, Value::from_text(text)),
        }
    }

    /// Evaluate an expression.
    ///
    /// # Errors
    ///
    /// If it has no value: an undefined variable, a wrong type, an overflow, a parameter out of
    /// range.
    pub fn evaluate(&mut self, expression: &Expression) -> Result<Value, EvaluationError> {
        expression
            .0
            .evaluate(&mut self.environment)
            .map(Value::from)
    }

    /// Set a variable to the value of an expression: `\set`.
    ///
    /// # Errors
    ///
    /// As [`Session::evaluate`]; the variable then keeps its value.
    #[inline]
    pub fn assign(&mut self, slot: Slot, expression: &Expression) -> Result<(), EvaluationError> {
        let scalar = expression.0.evaluate(&mut self.environment)?;
        self.set(slot, scalar.into());
        Ok(())
    }

    /// Evaluate a condition: numbers are true unless they are 0, null is false.
    ///
    /// # Errors
    ///
    /// As [`Session::evaluate`].
    pub fn truth(&mut self, condition: &Expression) -> Result<bool, EvaluationError> {
        condition
            .0
            .evaluate(&mut self.environment)
            .map(crate::value::Scalar::truth)
    }

    /// Return how long `\sleep` waits, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If its variable is undefined or does not begin with a digit.
    pub fn sleep_ns(&self, sleep: &Sleep) -> Result<u64, EvaluationError> {
        let (slot, unit_ns) = match *sleep {
            Sleep::Fixed { ns } => return Ok(ns),
            Sleep::Variable { slot, unit_ns } => (slot, unit_ns),
        };
        let mut text = Vec::new();
        match self.get(slot) {
            Some(value) => value.write_text(&mut text),
            None => return Err(self.environment.undefined(slot)),
        }
        let number = leading_integer(&text);
        if number == 0 && !text.first().is_some_and(u8::is_ascii_digit) {
            return Err(EvaluationError::new(format!(
                "sleep: invalid sleep time \"{}\" for variable \"{}\"",
                String::from_utf8_lossy(&text),
                self.environment.names[slot.index()]
            )));
        }
        Ok(u64::try_from(number).unwrap_or(0).saturating_mul(unit_ns))
    }

    /// Append the text of a command with the variables' values inserted, for the simple protocol; an undefined
    /// variable stays as written.
    pub fn write_query(&self, sql: &Sql, buffer: &mut Vec<u8>) {
        let text = sql.text.as_bytes();
        for piece in &sql.pieces {
            match piece {
                Piece::Text(range) => buffer.extend_from_slice(&text[range.clone()]),
                Piece::Variable { slot, range } => match self.get(*slot) {
                    Some(value) => value.write_text(buffer),
                    None => buffer.extend_from_slice(&text[range.clone()]),
                },
            }
        }
    }

    /// Append a variable's text as a parameter of the extended protocol. Return false, and append nothing, if it is
    /// undefined: the parameter is then NULL. (A variable with the value null has the text `NULL`, as in pgbench.)
    #[inline]
    pub fn write_parameter(&self, slot: Slot, buffer: &mut Vec<u8>) -> bool {
        match self.get(slot) {
            Some(value) => {
                value.write_text(buffer);
                true
            }
            None => false,
        }
    }

    /// Save the state of the generator and the variables.
    pub fn save(&mut self) {
        self.saved.before.clear();
        self.saved.random = self.environment.random;
        self.next_epoch();
    }

    /// Return to the last save, which stays valid: the operation is then repeated with the same values. pgbench's
    /// manual promises that for variables; its code restores the random numbers only, which is the same unless a
    /// script reads a variable before it sets it. Without a save, nothing happens.
    pub fn restore(&mut self) {
        if self.saved.epoch == 0 {
            return;
        }
        for (slot, value) in self.saved.before.drain(..) {
            self.environment.values[slot.index()] = value;
        }
        self.environment.random = self.saved.random;
        self.next_epoch();
    }

    fn next_epoch(&mut self) {
        self.saved.epoch = self.saved.epoch.wrapping_add(1);
        if self.saved.epoch == 0 {
            self.saved.epoch = 1;
            self.saved.noted.fill(0);
        }
    }
}

/// Parse the integer at the beginning of a text, 0 if there is none: C's `atoi`.
fn leading_integer(text: &[u8]) -> i64 {
    let start = text
        .iter()
        .position(|&byte| !is_space(byte))
        .unwrap_or(text.len());
    let text = &text[start..];
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, &digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    if text.first() == Some(&b'-') {
        -number
    } else {
        number
    }
}
