//! Converts the slowest executions, hours, sessions, vacuums, routes and query IDs of gathered logs to tables.

use std::sync::Arc;

use arrow_array::{Int64Array, UInt64Array};
use pyo3::prelude::*;
use uncork_log::{Gathered, Histogram, Origin, Sender, Slow, Times, VACUUM};
use uncork_stacks::in_parts;

use crate::arrow::Table;
use crate::log_tables::{MANY, Shown, instants, numbers, template_numbers, text, texts};
use crate::tables::table;

impl Shown<'_> {
    pub(crate) fn slowest(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let rows: Vec<(&Slow, &Origin)> = gathered
            .slowest
            .all()
            .iter()
            .map(|one| (one, &gathered.origins.all()[one.origin as usize]))
            .collect();
        let mut columns = vec![
            ("duration_us", numbers(&rows, |row| row.0.example.micros)),
            ("time_us", instants(&rows, |row| row.0.example.time)),
            ("template", template_numbers(&rows, |row| row.0.template)),
        ];
        columns.extend(self.origin_columns(&rows, |row| row.1));
        columns.extend([
            ("file", numbers(&rows, |row| row.0.example.place.0.into())),
            ("offset", numbers(&rows, |row| row.0.example.place.1)),
            (
                "text",
                texts(&rows, |row| {
                    let example = &row.0.example;
                    let lines = self.is_lines(example.place.0);
                    self.texts.statement(&example.text, lines)
                }),
            ),
            (
                "parameters",
                texts(&rows, |row| {
                    let example = &row.0.example;
                    self.data(example.place.0, &example.parameters)
                }),
            ),
        ]);
        table(columns)
    }

    pub(crate) fn sessions(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let all = gathered.origins.all();
        let mut rows: Vec<(&Origin, u64, Times)> = gathered
            .sessions
            .by
            .iter()
            .map(|(origin, (begun, ended))| (&all[*origin as usize], *begun, *ended))
            .collect();
        rows.sort_by(|one, other| one.0.cmp(other.0));
        let mut columns = Vec::from(self.origin_columns(&rows, |row| row.0));
        columns.extend([
            ("begun", numbers(&rows, |row| row.1)),
            ("ended", numbers(&rows, |row| row.2.count)),
            ("sum_us", numbers(&rows, |row| row.2.micros)),
            ("max_us", numbers(&rows, |row| row.2.max)),
        ]);
        table(columns)
    }

    pub(crate) fn routes(&self) -> PyResult<Table> {
        let routes = &self.report.gathered.routes;
        let rows = routes.all();
        let sender =
            |row: &(u32, u32, Times, Times)| -> &Sender { &routes.senders()[row.0 as usize].0 };
        let requests = rows
            .iter()
            .map(|row| routes.senders()[row.0 as usize].1.count());
        table(vec![
            (
                "route",
                texts(&rows, |row| match sender(row) {
                    of if of.is_path => self.texts.name("path", &of.route),
                    of => text(&of.route).into_owned(),
                }),
            ),
            (
                "tagged_application",
                texts(&rows, |row| text(&sender(row).application)),
            ),
            (
                "application",
                texts(&rows, |row| text(&sender(row).session)),
            ),
            ("server", self.servers(&rows, |row| sender(row).server)),
            ("trace", texts(&rows, |row| text(&sender(row).trace))),
            ("template", template_numbers(&rows, |row| row.1)),
            ("executions", numbers(&rows, |row| row.2.count)),
            ("sum_us", numbers(&rows, |row| row.2.micros)),
            ("max_us", numbers(&rows, |row| row.2.max)),
            ("rows_plans", numbers(&rows, |row| row.3.count)),
            ("rows_sum", numbers(&rows, |row| row.3.micros)),
            ("requests", Arc::new(requests.collect::<UInt64Array>())),
        ])
    }

    pub(crate) fn vacuums(&self) -> PyResult<Table> {
        let mut rows: Vec<_> = self.report.gathered.background.vacuums.iter().collect();
        rows.sort_unstable();
        let kind = |analyze: bool| {
            if analyze { "autoanalyze" } else { "autovacuum" }
        };
        let mut columns = vec![
            ("kind", texts(&rows, |((_, analyze, _), _)| kind(*analyze))),
            ("name", texts(&rows, |((.., name), _)| text(name))),
            ("server", self.servers(&rows, |((server, ..), _)| *server)),
        ];
        for (place, name) in VACUUM.into_iter().enumerate() {
            let values = rows.iter().map(|(_, values)| values[place]);
            columns.push((name, Arc::new(UInt64Array::from_iter_values(values))));
        }
        table(columns)
    }
}

/// Return the distribution of all durations: the quantiles 0.5, 0.95 and 0.99.
pub(crate) fn quantiles(gathered: &Gathered) -> Option<[u64; 3]> {
    let templates = gathered.templates.all();
    let parts = in_parts(templates, MANY, |part| {
        let mut sum = Histogram::default();
        for template in part {
            sum.merge(&template.histogram);
        }
        vec![sum]
    });
    let mut all = Histogram::default();
    for part in &parts {
        all.merge(part);
    }
    let max = templates.iter().map(|one| one.executions.max).max();
    let max = max.unwrap_or_default();
    let found = all.quantiles([0.5, 0.95, 0.99], &all.buckets());
    found.map(|quantiles| quantiles.map(|one| one.min(max)))
}

/// Return the quantiles 0.5, 0.95 and 0.99 of one distribution.
pub(crate) fn quantiles_of(histogram: &Histogram) -> [u64; 3] {
    let found = histogram.quantiles([0.5, 0.95, 0.99], &histogram.buckets());
    found.unwrap_or_default()
}

pub(crate) fn hours(gathered: &Gathered) -> PyResult<Table> {
    let hours = gathered.hours.together();
    let rows: Vec<(i64, &Histogram)> = hours.all().collect();
    let quantiles: Vec<[u64; 3]> = rows.iter().map(|row| quantiles_of(row.1)).collect();
    table(vec![
        ("start_us", instants(&rows, |row| Some(row.0 * 1_000_000))),
        ("executions", numbers(&rows, |row| row.1.count())),
        ("p50_us", numbers(&quantiles, |row| row[0])),
        ("p95_us", numbers(&quantiles, |row| row[1])),
        ("p99_us", numbers(&quantiles, |row| row[2])),
    ])
}

pub(crate) fn query_ids(gathered: &Gathered) -> PyResult<Table> {
    let ids = gathered.templates.query_ids().iter();
    let mut rows: Vec<(u32, i64, u64)> = ids
        .map(|((number, id), executions)| (*number, *id, *executions))
        .collect();
    rows.sort_unstable();
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
    table(vec![
        ("template", template_numbers(&rows, |row| row.0)),
        ("query_id", Arc::new(ids)),
        ("executions", numbers(&rows, |row| row.2)),
    ])
}
