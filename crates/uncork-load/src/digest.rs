//! A digest of answers, to check whether two variants returned the same.
//!
//! All hashes are XXH3 of 128 bits without a seed, over little-endian numbers; all sums wrap.
//!
//! - A row is the hash of its `DataRow` body: the number of columns, then length and bytes of each
//!   value. Names of columns are not part of it, so a renamed column changes nothing; an answer
//!   without rows has no columns.
//! - The rows of a statement are the sum of the rows (multiset), or `h' = hash(h, row)` from
//!   `h = 0` (ordered).
//! - A statement is the hash of its rows, its row count and its SQLSTATE (empty when it succeeded).
//! - An operation is `h' = hash(h, statement number, statement)` from `h = 0`.
//! - A trial is the sum over operations of `hash(operation number, operation)`: which client did
//!   what, and when, does not matter.

use twox_hash::XxHash3_128;
use uncork_model::DigestMode;

/// The rows of one statement.
#[derive(Debug, Clone)]
pub struct RowsDigest {
    mode: DigestMode,
    rows: u128,
}

impl RowsDigest {
    /// An empty answer.
    #[must_use]
    pub fn new(mode: DigestMode) -> Self {
        Self { mode, rows: 0 }
    }

    /// Whether rows need to be hashed at all.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.mode != DigestMode::None
    }

    /// Add a row: the body of its message.
    pub fn row(&mut self, body: &[u8]) {
        let row = XxHash3_128::oneshot(body);
        self.rows = match self.mode {
            DigestMode::None => 0,
            DigestMode::Multiset => self.rows.wrapping_add(row),
            DigestMode::Ordered => hash(&[&self.rows.to_le_bytes(), &row.to_le_bytes()]),
        };
    }

    /// The statement's hash; begins the next answer.
    pub fn finish(&mut self, row_count: u64, sqlstate: &str) -> u128 {
        let rows = std::mem::take(&mut self.rows);
        if !self.is_wanted() {
            return 0;
        }
        hash(&[
            &rows.to_le_bytes(),
            &row_count.to_le_bytes(),
            sqlstate.as_bytes(),
        ])
    }
}

/// The sum over operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest(u128);

impl Digest {
    /// Add a whole operation.
    pub fn operation(&mut self, number: u64, operation: u128) {
        let keyed = hash(&[&number.to_le_bytes(), &operation.to_le_bytes()]);
        self.0 = self.0.wrapping_add(keyed);
    }

    /// Add another part of the same trial.
    pub fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// As 32 hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// Continue an operation's hash with a statement's.
pub(crate) fn chain(operation: u128, number: usize, statement: u128) -> u128 {
    let number = number as u64;
    hash(&[
        &operation.to_le_bytes(),
        &number.to_le_bytes(),
        &statement.to_le_bytes(),
    ])
}

/// Hash short parts end to end. Every caller's parts have fixed lengths except the last, so that no
/// two inputs collide; whatever does not fit (a SQLSTATE of more than forty characters) is left
/// out.
fn hash(parts: &[&[u8]]) -> u128 {
    let mut bytes = [0; 64];
    let mut length = 0;
    for part in parts {
        let room = &mut bytes[length..];
        let part = &part[..part.len().min(room.len())];
        room[..part.len()].copy_from_slice(part);
        length += part.len();
    }
    XxHash3_128::oneshot(&bytes[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(mode: DigestMode, rows: &[&str]) -> u128 {
        let mut digest = RowsDigest::new(mode);
        for row in rows {
            digest.row(row.as_bytes());
        }
        digest.finish(rows.len() as u64, "")
    }

    #[test]
    fn a_multiset_ignores_order_and_nothing_else() {
        let mode = DigestMode::Multiset;
        assert_eq!(rows(mode, &["a", "b", "b"]), rows(mode, &["b", "a", "b"]));
        assert_ne!(rows(mode, &["a", "b", "b"]), rows(mode, &["a", "a", "b"]));
        assert_ne!(rows(mode, &["a", "b"]), rows(mode, &["a", "b", "b"]));
        assert_ne!(rows(mode, &[]), rows(mode, &["a"]));
    }

    #[test]
    fn order_matters_when_asked() {
        let mode = DigestMode::Ordered;
        assert_ne!(rows(mode, &["a", "b"]), rows(mode, &["b", "a"]));
        assert_eq!(rows(mode, &["a", "b"]), rows(mode, &["a", "b"]));
        assert_eq!(rows(DigestMode::None, &["a"]), 0);
    }

    #[test]
    fn counts_and_errors_matter() {
        let mut digest = RowsDigest::new(DigestMode::Multiset);
        let none = digest.finish(0, "");
        assert_ne!(none, digest.finish(1, ""));
        assert_ne!(none, digest.finish(0, "23505"));
        assert_eq!(none, digest.finish(0, ""));
    }

    #[test]
    fn operations_add_up_in_any_order_but_keep_their_numbers() {
        let sum = |operations: &[(u64, u128)]| {
            let mut digest = Digest::default();
            for &(number, operation) in operations {
                digest.operation(number, operation);
            }
            digest
        };
        assert_eq!(sum(&[(0, 7), (1, 8)]), sum(&[(1, 8), (0, 7)]));
        assert_ne!(sum(&[(0, 7), (1, 8)]), sum(&[(0, 8), (1, 7)]));
        let mut halves = sum(&[(0, 7)]);
        halves.merge(sum(&[(1, 8)]));
        assert_eq!(halves.hex(), sum(&[(0, 7), (1, 8)]).hex());
        assert_eq!(halves.hex().len(), 32);
        assert_ne!(chain(chain(0, 0, 1), 1, 2), chain(chain(0, 0, 2), 1, 1));
    }
}
