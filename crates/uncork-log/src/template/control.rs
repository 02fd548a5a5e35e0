//! Which statements begin or end a transaction.

use crate::form::form_choice;

/// Whether a statement begins or ends a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Control {
    /// It does neither.
    #[default]
    None,
    /// `BEGIN`, `START TRANSACTION`.
    Begin,
    /// `COMMIT`, `END`, `ROLLBACK`, `ABORT`.
    End,
}

impl Control {
    /// Classify a template by its first words.
    #[must_use]
    pub fn of(template: &[u8]) -> Self {
        let mut words = template.split(|byte| matches!(byte, b' ' | b';'));
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        match (first, second) {
            (b"begin", _) | (b"start", Some(b"transaction")) => Self::Begin,
            // ROLLBACK TO a savepoint and COMMIT PREPARED do not end the session's transaction.
            (_, Some(b"to" | b"prepared")) => Self::None,
            (b"rollback" | b"commit" | b"end" | b"abort", _) => Self::End,
            _ => Self::None,
        }
    }
}

form_choice!(Control { None, Begin, End });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_statements_are_recognised() {
        for (template, control) in [
            ("begin", Control::Begin),
            ("begin isolation level serializable", Control::Begin),
            ("start transaction", Control::Begin),
            ("commit", Control::End),
            ("end", Control::End),
            ("rollback", Control::End),
            ("rollback to savepoint a", Control::None),
            ("commit prepared ?", Control::None),
            ("select ?", Control::None),
            ("start_things ( )", Control::None),
        ] {
            assert_eq!(Control::of(template.as_bytes()), control, "{template}");
        }
    }
}
