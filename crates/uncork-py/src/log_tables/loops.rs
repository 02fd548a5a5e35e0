//! Converts the loops of gathered logs to a table.

use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array};
use pyo3::prelude::*;

use super::{Shown, numbers, template_numbers};
use crate::arrow::Table;
use crate::tables::table;

impl Shown<'_> {
    /// Return what clients repeat with other statements in between.
    pub(super) fn loops(&self) -> PyResult<Table> {
        let rows = &self.report.gathered.loops;
        let flags = rows.iter().map(|((of, _), _)| Some(of.in_transaction));
        let squares = rows.iter().map(|(_, found)| Some(found.squares));
        table(vec![
            (
                "template",
                template_numbers(rows, |((of, _), _)| of.template),
            ),
            (
                "parent",
                template_numbers(rows, |((of, _), _)| of.parent.unwrap_or(u32::MAX)),
            ),
            ("server", self.servers(rows, |((_, server), _)| *server)),
            ("in_transaction", Arc::new(flags.collect::<BooleanArray>())),
            ("stretches", numbers(rows, |(_, found)| found.stretches)),
            ("executions", numbers(rows, |(_, found)| found.executions)),
            ("parents", numbers(rows, |(_, found)| found.parents)),
            ("squares", Arc::new(squares.collect::<Float64Array>())),
            ("longest", numbers(rows, |(_, found)| found.longest.into())),
            ("elapsed_us", numbers(rows, |(_, found)| found.elapsed)),
            ("groups", numbers(rows, |(_, found)| found.bursts.groups)),
            ("at_once", numbers(rows, |(_, found)| found.bursts.at_once)),
            ("sum_us", numbers(rows, |(_, found)| found.micros)),
            ("file", numbers(rows, |(_, found)| found.place.0.into())),
            ("offset", numbers(rows, |(_, found)| found.place.1)),
        ])
    }
}
