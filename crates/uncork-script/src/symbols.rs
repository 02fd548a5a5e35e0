//! The names of variables, and their slots.

use std::collections::HashMap;

/// The variable with the default seed of `hash` and `permute`.
pub(crate) const DEFAULT_SEED: &str = "default_seed";

/// The place of one variable in every session of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u32);

impl Slot {
    /// The place as an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every variable that a script of a load uses or sets. Parse all scripts before creating a
/// [`crate::Session`]: it has room for the variables known then.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Vec<String>,
    slots: HashMap<String, Slot>,
}

impl Symbols {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Return the slot of the variable `name`, a new one if it is unknown.
    ///
    /// # Panics
    ///
    /// If there are more than 2^32 variables.
    pub fn slot(&mut self, name: &str) -> Slot {
        if let Some(&slot) = self.slots.get(name) {
            return slot;
        }
        let slot = Slot(u32::try_from(self.names.len()).expect("fewer than 2^32 variables"));
        self.names.push(name.to_owned());
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// Return the slot of the variable `name`; `None` if no script uses it, so that its value is not needed.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// The name of the variable in `slot`.
    ///
    /// # Panics
    ///
    /// If `slot` belongs to another table.
    #[must_use]
    pub fn name(&self, slot: Slot) -> &str {
        &self.names[slot.index()]
    }

    /// All names, by slot.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Whether a variable can have this name: ASCII letters, digits, underscores and non-ASCII
/// characters, without a digit at the beginning.
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    name.bytes().next().is_some_and(begins_name) && name.bytes().all(continues_name)
}

/// Whether a name can begin with this byte.
pub(crate) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// Whether a name can contain this byte.
pub(crate) fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_slot() {
        let mut symbols = Symbols::new();
        let aid = symbols.slot("aid");
        let bid = symbols.slot("bid");
        assert_ne!(aid, bid);
        assert_eq!(symbols.slot("aid"), aid);
        assert_eq!(symbols.lookup("bid"), Some(bid));
        assert_eq!(symbols.lookup("tid"), None);
        assert_eq!(symbols.name(bid), "bid");
        assert_eq!(symbols.names(), ["aid", "bid"]);
    }

    #[test]
    fn names_are_letters_digits_and_underscores() {
        for name in ["a", "_", "a1", "größe", "Z_9"] {
            assert!(is_variable_name(name), "{name}");
        }
        for name in ["", "1a", ".", "a-b", "?column?", "bad name!"] {
            assert!(!is_variable_name(name), "{name}");
        }
    }
}
