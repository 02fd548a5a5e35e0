//! The rows that `\gset` and `\aset` store in variables.

/// What was captured from one answer: for each of its results the columns' names, the number of
/// rows, and the last row. An answer of the simple protocol may have several results.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) results: Vec<Rows>,
    names: Vec<String>,
    count: u64,
    last: Vec<Option<Vec<u8>>>,
}

/// One result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) names: Vec<String>,
    pub(crate) count: u64,
    /// The last row, in text form; empty if there was none.
    pub(crate) last: Vec<Option<Vec<u8>>>,
}

impl Captured {
    /// Read the body of a `RowDescription`.
    pub(super) fn describe(&mut self, body: &[u8]) {
        /// Bytes after each name: table, column, type, size, modifier, format.
        const FACTS: usize = 18;
        self.names.clear();
        let mut rest = body.get(2..).unwrap_or_default();
        while let Some(end) = rest.iter().position(|&byte| byte == 0) {
            self.names
                .push(String::from_utf8_lossy(&rest[..end]).into_owned());
            rest = rest.get(end + 1 + FACTS..).unwrap_or_default();
        }
    }

    /// Read the body of a `DataRow`.
    pub(super) fn row(&mut self, body: &[u8]) {
        self.count += 1;
        self.last.clear();
        let mut rest = body.get(2..).unwrap_or_default();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            rest = after;
            // A negative length is null.
            let value = match usize::try_from(i32::from_be_bytes(*length)) {
                Ok(length) => {
                    let (value, after) = rest.split_at(length.min(rest.len()));
                    rest = after;
                    Some(value.to_vec())
                }
                Err(_) => None,
            };
            self.last.push(value);
        }
    }

    /// End a result.
    pub(super) fn complete(&mut self) {
        if self.names.is_empty() && self.count == 0 {
            return;
        }
        self.results.push(Rows {
            names: std::mem::take(&mut self.names),
            count: std::mem::take(&mut self.count),
            last: std::mem::take(&mut self.last),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_is_kept_with_its_names() {
        let mut captured = Captured::default();
        let mut description = vec![0, 2];
        for name in [b"one\0", b"two\0"] {
            description.extend_from_slice(name);
            description.extend_from_slice(&[0; 18]);
        }
        captured.describe(&description);
        captured.row(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff");
        captured.row(b"\0\x02\0\0\0\x02bc\0\0\0\0");
        captured.complete();
        captured.complete();
        let rows = Rows {
            names: vec!["one".to_owned(), "two".to_owned()],
            count: 2,
            last: vec![Some(b"bc".to_vec()), Some(Vec::new())],
        };
        assert_eq!(captured.results, [rows]);
    }
}
