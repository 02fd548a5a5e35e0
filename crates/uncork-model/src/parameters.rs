//! The values that operations are carried out with: rows of nullable texts.

/// Why the parameters do not fit the plan.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParameterError {
    /// Columns of one table must have the same length.
    #[error("the parameter columns have different lengths: {first} and {other} rows")]
    Ragged {
        /// Rows of the first column.
        first: usize,
        /// Rows of the column that differs.
        other: usize,
    },
    /// A statement binds a column that does not exist.
    #[error(
        "statement \"{statement}\" binds parameter column {column}, but the table has {columns}"
    )]
    NoSuchColumn {
        /// The statement's name.
        statement: String,
        /// The index of the column.
        column: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A statement binds a column, but there is no row to take a value from.
    #[error("statement \"{statement}\" has parameters, but the parameter table has no rows")]
    NoRows {
        /// The statement's name.
        statement: String,
    },
}

/// One column: nullable texts, stored end to end.
#[derive(Debug, Clone, Default)]
pub struct Column {
    text: String,
    ends: Vec<usize>,
    nulls: Vec<bool>,
}

impl Column {
    /// Append a value.
    pub fn push(&mut self, value: Option<&str>) {
        self.text.push_str(value.unwrap_or_default());
        self.ends.push(self.text.len());
        self.nulls.push(value.is_none());
    }

    /// How many values the column holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the column is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The value in a row; `None` is NULL.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&str> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        (!self.nulls[row]).then(|| &self.text[start..self.ends[row]])
    }
}

impl<'a> FromIterator<Option<&'a str>> for Column {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(values: I) -> Self {
        let mut column = Self::default();
        for value in values {
            column.push(value);
        }
        column
    }
}

/// A table of parameters: operation `i` uses row `i` modulo the number of rows.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    columns: Vec<Column>,
}

impl Parameters {
    /// Create a table from columns of the same length.
    ///
    /// # Errors
    ///
    /// [`ParameterError::Ragged`] if lengths differ.
    pub fn new(columns: Vec<Column>) -> Result<Self, ParameterError> {
        let first = columns.first().map_or(0, Column::len);
        match columns.iter().find(|column| column.len() != first) {
            Some(column) => Err(ParameterError::Ragged {
                first,
                other: column.len(),
            }),
            None => Ok(Self { columns }),
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Check that a statement's parameters are in the table.
    ///
    /// # Errors
    ///
    /// Names the statement and the column that is missing.
    pub fn check(&self, statement: &crate::Statement) -> Result<(), ParameterError> {
        let columns = self.columns.len();
        if let Some(&column) = statement
            .parameters
            .iter()
            .find(|&&column| column >= columns)
        {
            let statement = statement.name.clone();
            return Err(ParameterError::NoSuchColumn {
                statement,
                column,
                columns,
            });
        }
        if !statement.parameters.is_empty() && self.rows() == 0 {
            return Err(ParameterError::NoRows {
                statement: statement.name.clone(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(parameters: Vec<usize>) -> crate::Statement {
        crate::Statement {
            name: "s".into(),
            sql: "SELECT $1".into(),
            parameters,
            batch: None,
        }
    }

    #[test]
    fn values_come_back_and_null_is_not_empty() {
        let column: Column = [Some("a"), None, Some(""), Some("bc")]
            .into_iter()
            .collect();
        assert_eq!(column.len(), 4);
        assert_eq!(column.get(0), Some("a"));
        assert_eq!(column.get(1), None);
        assert_eq!(column.get(2), Some(""));
        assert_eq!(column.get(3), Some("bc"));
    }

    #[test]
    fn ragged_columns_and_missing_values_are_refused() {
        let one: Column = [Some("a")].into_iter().collect();
        let ragged = Parameters::new(vec![one.clone(), Column::default()]);
        assert_eq!(
            ragged.err(),
            Some(ParameterError::Ragged { first: 1, other: 0 })
        );
        let table = Parameters::new(vec![one]).expect("even");
        assert!(table.check(&statement(vec![0])).is_ok());
        let missing = table.check(&statement(vec![0, 1])).expect_err("one column");
        assert!(missing.to_string().contains("column 1"));
        let empty = Parameters::new(vec![Column::default()]).expect("even");
        assert!(empty.check(&statement(vec![0])).is_err());
        assert!(empty.check(&statement(vec![])).is_ok());
    }
}
