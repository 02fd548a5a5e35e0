//! Converts what each of several servers contributes to tables. They are empty if all logs are of one server, of which the
//! other tables show the same.

use std::collections::{BTreeMap, HashMap};

use arrow_array::ArrayRef;
use pyo3::prelude::*;
use uncork_log::{Histogram, Repetitions, Times};

use super::{Shown, instants, numbers, perhaps, template_numbers};
use crate::arrow::Table;
use crate::log_extra_tables::quantiles_of;
use crate::tables::table;

/// A template and a server, by number, and the executions there.
type OnServer = ((u32, u32), Times);

impl Shown<'_> {
    /// Return each template's executions by server.
    pub(super) fn templates_by_server(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let origins = gathered.origins.all();
        let mut rows: Vec<OnServer> = Vec::new();
        for (number, template) in (0..).zip(self.several(gathered.templates.all())) {
            let mut servers: BTreeMap<u32, Times> = BTreeMap::new();
            for (origin, times) in template.origins() {
                let server = origins[origin as usize].server;
                servers.entry(server).or_default().merge(&times);
            }
            let servers = servers.into_iter();
            rows.extend(servers.map(|(server, times)| ((number, server), times)));
        }
        let repeated: HashMap<(u32, u32), Repetitions> =
            gathered.repetitions.iter().copied().collect();
        let repetition = |get: fn(&Repetitions) -> u64| -> ArrayRef {
            perhaps(&rows, |(of, _)| repeated.get(of).map(get))
        };
        table(vec![
            ("template", template_numbers(&rows, |((one, _), _)| *one)),
            ("server", self.servers(&rows, |((_, server), _)| *server)),
            ("executions", numbers(&rows, |(_, times)| times.count)),
            ("sum_us", numbers(&rows, |(_, times)| times.micros)),
            ("max_us", numbers(&rows, |(_, times)| times.max)),
            ("repeated_rows", repetition(|of| of.rows)),
            ("repeated_executions", repetition(|of| of.executions)),
            ("repeated_longest", repetition(|of| of.longest.into())),
            ("repeated_elapsed_us", repetition(|of| of.elapsed)),
            ("repeated_sum_us", repetition(|of| of.micros)),
            ("repeated_groups", repetition(|of| of.bursts.groups)),
            ("repeated_at_once", repetition(|of| of.bursts.at_once)),
        ])
    }

    /// Return the durations of each server's executions by the hour.
    pub(super) fn hours_by_server(&self) -> PyResult<Table> {
        let hours: Vec<_> = self.report.gathered.hours.all().collect();
        let rows: Vec<(u32, i64, &Histogram)> = self
            .several(&hours)
            .iter()
            .flat_map(|(server, hours)| {
                let all = hours.all();
                all.map(|(begin, histogram)| (*server, begin, histogram))
            })
            .collect();
        let quantiles: Vec<[u64; 3]> = rows.iter().map(|row| quantiles_of(row.2)).collect();
        table(vec![
            ("server", self.servers(&rows, |row| row.0)),
            ("start_us", instants(&rows, |row| Some(row.1 * 1_000_000))),
            ("executions", numbers(&rows, |row| row.2.count())),
            ("p50_us", numbers(&quantiles, |row| row[0])),
            ("p95_us", numbers(&quantiles, |row| row[1])),
            ("p99_us", numbers(&quantiles, |row| row[2])),
        ])
    }

    /// Return all rows if there are several servers, else none.
    fn several<'a, T>(&self, rows: &'a [T]) -> &'a [T] {
        if self.report.servers.len() > 1 {
            rows
        } else {
            &[]
        }
    }
}
