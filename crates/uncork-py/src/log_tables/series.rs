//! Converts the activity in gathered logs over time to a table.

use std::cmp::Reverse;

use pyo3::prelude::*;
use uncork_log::{AVERAGES, Scale, Series};

use super::{Shown, instants, numbers, template_numbers, text, texts};
use crate::arrow::Table;
use crate::tables::table;

/// How many templates have their executions over time published: those with the most time.
const TEMPLATE_SERIES: usize = 2_000;

/// What is counted in the buckets of a series: a kind, a name or a template, of one server or of all.
#[derive(Clone, Copy)]
struct Counted<'a> {
    kind: &'static str,
    name: &'a [u8],
    template: u32,
    server: Option<u32>,
}

/// Counted, the beginning of a bucket in microseconds, the count and the sum.
type Row<'a> = (Counted<'a>, i64, u64, u64);

impl Shown<'_> {
    /// Return counts over time.
    pub(super) fn series(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let activity = &gathered.activity;
        let scale = &gathered.scale;
        let of = |kind| Counted {
            kind,
            name: b"",
            template: u32::MAX,
            server: None,
        };
        let mut rows = Vec::new();
        let averages = AVERAGES.iter().zip(&gathered.pool.averages);
        for (kind, all) in [
            ("execution", &gathered.executions),
            ("lock wait", &activity.waits.series),
            ("temporary file", &activity.files.series),
            ("autovacuum", &activity.vacuums.series),
            ("connection", &activity.received.series),
        ]
        .into_iter()
        .chain(averages.map(|(name, average)| (*name, &average.series)))
        {
            for (server, series) in all.all() {
                let server = Some(server);
                points(&mut rows, Counted { server, ..of(kind) }, scale, series);
            }
        }
        for (server, checkpoints) in &activity.checkpoints {
            let counted = Counted {
                server: Some(*server),
                ..of("checkpoint")
            };
            points(&mut rows, counted, scale, &checkpoints.series);
        }
        let templates = gathered.templates.all();
        let mut order: Vec<u32> = (0..).take(templates.len()).collect();
        order.sort_by_key(|number| Reverse(templates[*number as usize].executions.micros));
        order.truncate(TEMPLATE_SERIES);
        for template in order {
            let series = &templates[template as usize].series;
            let counted = Counted {
                template,
                ..of("template")
            };
            points(&mut rows, counted, &gathered.coarse, series);
        }
        for (kind, facts) in gathered.errors.all() {
            let counted = Counted {
                server: Some(kind.server),
                ..of("error")
            };
            points(&mut rows, counted, scale, &facts.series);
        }
        let applications = gathered.origins.applications().iter();
        for (one, series) in applications.zip(&gathered.applications) {
            let counted = Counted {
                name: &one.name,
                server: Some(one.server),
                ..of("application")
            };
            points(&mut rows, counted, &gathered.coarse, series);
        }
        let server = |row: &Row<'_>| {
            let server = row.0.server;
            server.map_or("", |one| self.report.servers[one as usize].as_str())
        };
        table(vec![
            ("kind", texts(&rows, |row| row.0.kind)),
            ("name", texts(&rows, |row| text(row.0.name))),
            ("template", template_numbers(&rows, |row| row.0.template)),
            ("server", texts(&rows, server)),
            ("start_us", instants(&rows, |row| Some(row.1))),
            ("count", numbers(&rows, |row| row.2)),
            ("sum", numbers(&rows, |row| row.3)),
        ])
    }
}

fn points<'a>(rows: &mut Vec<Row<'a>>, of: Counted<'a>, scale: &Scale, series: &Series) {
    let length = scale.seconds() * 1_000_000;
    let points = series.points(scale).into_iter();
    rows.extend(points.map(|point| (of, point.bucket * length, point.count, point.micros)));
}
