//! Converts gathered logs to tables.

mod loops;
mod series;
mod servers;

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use uncork_ingest::Report;
use uncork_log::{
    BOUNDS, Blocking, Connections, Errors, Example, Gathered, Incident, Origin, Party, Repetitions,
    Template, Texts, Times,
};
use uncork_stacks::in_parts;

use crate::arrow::Table;
use crate::log_extra_tables::{hours, query_ids};
use crate::tables::table;

/// From this number of templates on, their distributions take longer than starting threads.
pub(crate) const MANY: usize = 1_000;

/// Gathered logs, and how their texts are prepared.
pub(crate) struct Shown<'a> {
    pub(crate) report: &'a Report,
    pub(crate) texts: Texts,
}

impl Shown<'_> {
    /// Return all tables by name. That of examples takes as long as all others, and is made beside them.
    pub(crate) fn all(&self) -> PyResult<Vec<(&'static str, Table)>> {
        let spread = in_parts(self.report.gathered.templates.all(), MANY, |part| {
            part.iter().map(Spread::of).collect()
        });
        thread::scope(|scope| {
            let examples = scope.spawn(|| self.examples(&spread));
            let mut all = Vec::from(self.others(&spread)?);
            let examples = examples
                .join()
                .unwrap_or_else(|panic| resume_unwind(panic))?;
            all.push(("log_examples", examples));
            Ok(all)
        })
    }

    fn others(&self, spread: &[Spread]) -> PyResult<[(&'static str, Table); 19]> {
        let gathered = &self.report.gathered;
        Ok([
            ("log_templates", templates(gathered, spread, self.texts)?),
            ("log_origins", self.origins()?),
            ("log_series", self.series()?),
            ("log_errors", self.errors()?),
            ("log_failed_statements", failed(gathered)?),
            ("log_activity", self.activity()?),
            ("log_incidents", self.incidents()?),
            ("log_transactions", self.transactions()?),
            ("log_pool", self.pool()?),
            ("log_slowest", self.slowest()?),
            ("log_hours", hours(gathered)?),
            ("log_sessions", self.sessions()?),
            ("log_vacuums", self.vacuums()?),
            ("log_query_ids", query_ids(gathered)?),
            ("log_blocking", self.blocking()?),
            ("log_loops", self.loops()?),
            ("log_routes", self.routes()?),
            ("log_templates_by_server", self.templates_by_server()?),
            ("log_hours_by_server", self.hours_by_server()?),
        ])
    }

    /// The five columns that name the origin of each row.
    pub(crate) fn origin_columns<T>(
        &self,
        rows: &[T],
        origin: impl Fn(&T) -> &Origin,
    ) -> [(&'static str, ArrayRef); 5] {
        let name = |kind, part: fn(&Origin) -> &[u8]| {
            texts(rows, |row| self.texts.name(kind, part(origin(row))))
        };
        let plain = |part: fn(&Origin) -> &[u8]| texts(rows, |row| text(part(origin(row))));
        [
            ("user", name("user", |of| &of.user)),
            ("database", plain(|of| &of.database)),
            ("application", plain(|of| &of.application)),
            ("host", name("host", |of| &of.host)),
            ("server", self.servers(rows, |row| origin(row).server)),
        ]
    }

    /// The column that names the server of each row.
    pub(crate) fn servers<T>(&self, rows: &[T], server: impl Fn(&T) -> u32) -> ArrayRef {
        texts(rows, |row| {
            self.report.servers[server(row) as usize].as_str()
        })
    }

    fn origins(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let all = gathered.origins.all();
        let rows: Vec<_> = (0..)
            .zip(gathered.templates.all())
            .flat_map(|(number, template)| {
                let origins = template.origins().into_iter();
                origins.map(move |(origin, times)| (number, &all[origin as usize], times))
            })
            .collect();
        let mut columns = vec![(
            "template",
            template_numbers(&rows, |row: &(u32, _, _)| row.0),
        )];
        columns.extend(self.origin_columns(&rows, |row| row.1));
        columns.extend([
            ("executions", numbers(&rows, |row| row.2.count)),
            ("sum_us", numbers(&rows, |row| row.2.micros)),
            ("max_us", numbers(&rows, |row| row.2.max)),
        ]);
        table(columns)
    }

    fn examples(&self, spread: &[Spread]) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let mut rows: Vec<(u32, &str, Cow<'_, Example>)> = Vec::new();
        for ((number, template), spread) in (0..).zip(gathered.templates.all()).zip(spread) {
            let median = spread.quantiles.map_or(0, |all| all[0]);
            let near = template.more.by_duration.nearest(median);
            for (kind, example) in [
                ("slowest", template.more.slowest.as_ref().map(Cow::Borrowed)),
                ("median", near.map(Cow::Owned)),
                ("newest", template.more.newest.as_ref().map(Cow::Borrowed)),
                ("plan", template.more.plan.as_ref().map(Cow::Borrowed)),
            ] {
                rows.extend(example.map(|example| (number, kind, example)));
            }
        }
        table(vec![
            ("template", template_numbers(&rows, |row| row.0)),
            ("kind", texts(&rows, |row| row.1)),
            ("duration_us", numbers(&rows, |row| row.2.micros)),
            ("time_us", instants(&rows, |row| row.2.time)),
            ("file", numbers(&rows, |row| row.2.place.0.into())),
            ("offset", numbers(&rows, |row| row.2.place.1)),
            (
                "text",
                texts(&rows, |row| {
                    let (text, lines) = (&row.2.text, self.is_lines(row.2.place.0));
                    match row.1 {
                        "plan" => self.texts.plan(text, lines),
                        _ => self.texts.statement(text, lines),
                    }
                }),
            ),
            (
                "parameters",
                texts(&rows, |row| self.data(row.2.place.0, &row.2.parameters)),
            ),
        ])
    }

    fn errors(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let (errors, notices) = (kinds(&gathered.errors), kinds(&gathered.notices));
        let rows: Vec<_> = (0_u32..).zip(errors.into_iter().chain(notices)).collect();
        let example = |part: usize| {
            texts(&rows, move |(_, (_, facts))| {
                let example = facts.example.as_ref();
                example.map_or_else(String::new, |((file, _), parts)| {
                    let (text, lines) = (&parts[part], self.is_lines(*file));
                    match part {
                        0 => self.texts.message(text, lines),
                        4 => self.texts.statement(text, lines),
                        _ => self.texts.data(text, lines),
                    }
                })
            })
        };
        let place = |get: fn(&uncork_log::Place) -> u64| {
            perhaps(&rows, move |(_, (_, facts))| {
                facts.example.as_ref().map(|(place, _)| get(place))
            })
        };
        table(vec![
            ("error", template_numbers(&rows, |row| row.0)),
            (
                "severity",
                texts(&rows, |(_, (kind, _))| {
                    format!("{:?}", kind.severity).to_uppercase()
                }),
            ),
            (
                "sqlstate",
                texts(&rows, |(_, (kind, _))| text(&kind.sqlstate)),
            ),
            (
                "message",
                texts(&rows, |(_, (kind, _))| text(&kind.message)),
            ),
            ("server", self.servers(&rows, |(_, (kind, _))| kind.server)),
            ("count", numbers(&rows, |(_, (_, facts))| facts.count)),
            (
                "first_us",
                instants(&rows, |(_, (_, facts))| facts.seen.map(|seen| seen.0)),
            ),
            (
                "last_us",
                instants(&rows, |(_, (_, facts))| facts.seen.map(|seen| seen.1)),
            ),
            ("file", place(|place| place.0.into())),
            ("offset", place(|place| place.1)),
            ("example", example(0)),
            ("detail", example(1)),
            ("hint", example(2)),
            ("context", example(3)),
            ("statement", example(4)),
        ])
    }

    fn activity(&self) -> PyResult<Table> {
        let activity = &self.report.gathered.activity;
        let mut rows: Vec<(&str, String, u32, u32, Times)> = Vec::new();
        let mut add = |kind, by: &HashMap<(u32, Box<[u8]>), Times>| {
            rows.extend(by.iter().map(|((server, name), times)| {
                let name = match kind {
                    "connection" => self.texts.name("host", name),
                    _ => text(name).into_owned(),
                };
                (kind, name, u32::MAX, *server, *times)
            }));
        };
        add("lock wait", &activity.waits.by);
        add("connection", &activity.received.by);
        add("cancellation", &activity.cancelled.by);
        let vacuums = activity.vacuums.by.iter();
        rows.extend(vacuums.map(|((server, (analyze, name)), times)| {
            let kind = if *analyze {
                "autoanalyze"
            } else {
                "autovacuum"
            };
            (kind, text(name).into_owned(), u32::MAX, *server, *times)
        }));
        for (kind, by) in [
            ("waiting statement", &activity.waiting),
            ("temporary file", &activity.files.by),
        ] {
            rows.extend(by.iter().map(|((server, template), times)| {
                (kind, String::new(), *template, *server, *times)
            }));
        }
        rows.sort_by(|one, other| {
            let key = |row: &'_ (&'static str, String, u32, u32, Times)| (row.2, row.3);
            (one.0, other.4.micros, &one.1, key(one)).cmp(&(
                other.0,
                one.4.micros,
                &other.1,
                key(other),
            ))
        });
        table(vec![
            ("kind", texts(&rows, |row| row.0)),
            ("name", texts(&rows, |row| &row.1)),
            ("template", template_numbers(&rows, |row| row.2)),
            ("server", self.servers(&rows, |row| row.3)),
            ("count", numbers(&rows, |row| row.4.count)),
            ("sum", numbers(&rows, |row| row.4.micros)),
            ("max", numbers(&rows, |row| row.4.max)),
        ])
    }

    fn incidents(&self) -> PyResult<Table> {
        let activity = &self.report.gathered.activity;
        let waits = activity.longest_waits.all().iter().map(|one| (true, one));
        let files = activity.largest_files.all().iter().map(|one| (false, one));
        let rows: Vec<(bool, &Incident)> = waits.chain(files).collect();
        let waits = rows.iter().map(|row| Some(row.0)).collect::<BooleanArray>();
        table(vec![
            ("is_wait", Arc::new(waits)),
            ("amount", numbers(&rows, |row| row.1.amount)),
            ("time_us", instants(&rows, |row| row.1.time)),
            ("pid", numbers(&rows, |row| row.1.pid.into())),
            (
                "server",
                self.servers(&rows, |row| {
                    let file = self.report.files.get(row.1.place.0 as usize);
                    file.map_or(0, |file| file.server)
                }),
            ),
            ("file", numbers(&rows, |row| row.1.place.0.into())),
            ("offset", numbers(&rows, |row| row.1.place.1)),
            ("what", texts(&rows, |row| text(&row.1.what))),
            (
                "detail",
                texts(&rows, |row| self.data(row.1.place.0, &row.1.detail)),
            ),
            (
                "statement",
                texts(&rows, |row| {
                    let lines = self.is_lines(row.1.place.0);
                    self.texts.statement(&row.1.statement, lines)
                }),
            ),
            ("relation", texts(&rows, |row| text(&row.1.relation))),
            (
                "holder",
                texts(&rows, |row| {
                    let lines = self.is_lines(row.1.place.0);
                    self.texts.statement(&row.1.holder, lines)
                }),
            ),
        ])
    }

    fn transactions(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let all = gathered.origins.all();
        let rows: Vec<_> = gathered
            .transactions
            .iter()
            .map(|(origin, of)| (&all[*origin as usize], of))
            .collect();
        let mut columns = Vec::from(self.origin_columns(&rows, |row| row.0));
        columns.extend([
            ("transactions", numbers(&rows, |row| row.1.elapsed.count)),
            ("elapsed_us", numbers(&rows, |row| row.1.elapsed.micros)),
            ("elapsed_max_us", numbers(&rows, |row| row.1.elapsed.max)),
            ("statements", numbers(&rows, |row| row.1.statements.micros)),
            (
                "statements_p50",
                perhaps(&rows, |row| row.1.histogram.quantile(0.5)),
            ),
            ("statements_max", numbers(&rows, |row| row.1.statements.max)),
            ("sum_us", numbers(&rows, |row| row.1.micros)),
            ("pauses", numbers(&rows, |row| row.1.pauses.count)),
            ("pause_sum_us", numbers(&rows, |row| row.1.pauses.micros)),
            ("pause_max_us", numbers(&rows, |row| row.1.pauses.max)),
            ("repeated_wait_us", numbers(&rows, |row| row.1.repeated)),
            ("file", numbers(&rows, |row| row.1.place.0.into())),
            ("offset", numbers(&rows, |row| row.1.place.1)),
        ]);
        table(columns)
    }

    fn blocking(&self) -> PyResult<Table> {
        let gathered = &self.report.gathered;
        let rows = &gathered.blocking;
        let template = |get: fn(&Blocking) -> Party<u32>| {
            template_numbers(rows, move |one| get(one).template.unwrap_or(u32::MAX))
        };
        let name = |get: fn(&Blocking) -> Party<u32>, part: fn(&Origin) -> &[u8]| {
            texts(rows, move |one| {
                let origin = get(one)
                    .origin
                    .map(|number| &gathered.origins.all()[number as usize]);
                origin.map_or_else(Cow::default, |origin| text(part(origin)))
            })
        };
        let user = |get: fn(&Blocking) -> Party<u32>| {
            texts(rows, move |one| {
                let origin = get(one)
                    .origin
                    .map(|number| &gathered.origins.all()[number as usize]);
                origin.map_or_else(String::new, |origin| self.texts.name("user", &origin.user))
            })
        };
        table(vec![
            ("waiting_template", template(|one| one.waiting)),
            (
                "waiting_application",
                name(|one| one.waiting, |of| &of.application),
            ),
            ("waiting_user", user(|one| one.waiting)),
            ("holding_template", template(|one| one.holding)),
            (
                "holding_application",
                name(|one| one.holding, |of| &of.application),
            ),
            ("holding_user", user(|one| one.holding)),
            (
                "server",
                self.servers(rows, |one| {
                    let origin = one.waiting.origin.or(one.holding.origin);
                    origin.map_or(0, |number| gathered.origins.all()[number as usize].server)
                }),
            ),
            ("waits", numbers(rows, |one| one.waits.count)),
            ("sum_us", numbers(rows, |one| one.waits.micros)),
            ("max_us", numbers(rows, |one| one.waits.max)),
        ])
    }

    fn pool(&self) -> PyResult<Table> {
        let connections = self.report.gathered.pool.connections.iter();
        let mut rows: Vec<(&Connections, Times)> =
            connections.map(|(which, times)| (which, *times)).collect();
        rows.sort_by(|one, other| one.0.cmp(other.0));
        table(vec![
            ("side", texts(&rows, |row| row.0.side.name())),
            ("database", texts(&rows, |row| text(&row.0.database))),
            (
                "user",
                texts(&rows, |row| self.texts.name("user", &row.0.user)),
            ),
            (
                "host",
                texts(&rows, |row| self.texts.name("host", &row.0.host)),
            ),
            (
                "ended",
                texts(&rows, |row| {
                    text(row.0.ended.as_deref().unwrap_or_default())
                }),
            ),
            ("server", self.servers(&rows, |row| row.0.server)),
            ("count", numbers(&rows, |row| row.1.count)),
            ("sum_us", numbers(&rows, |row| row.1.micros)),
            ("max_us", numbers(&rows, |row| row.1.max)),
        ])
    }

    pub(crate) fn is_lines(&self, file: u32) -> bool {
        let log = self.report.files.get(file as usize);
        log.is_some_and(|log| log.prefix.is_some())
    }

    pub(crate) fn data(&self, file: u32, bytes: &[u8]) -> String {
        self.texts.data(bytes, self.is_lines(file))
    }
}

/// Convert bytes of a log to text; invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

pub(crate) fn numbers<T>(rows: &[T], get: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(get)))
}

fn perhaps<T>(rows: &[T], get: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<UInt64Array>())
}

pub(crate) fn instants<T>(rows: &[T], get: impl Fn(&T) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<Int64Array>())
}

pub(crate) fn texts<'a, T, S: AsRef<str>>(rows: &'a [T], get: impl Fn(&'a T) -> S) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(get)))
}

/// Convert numbers of templates; [`u32::MAX`] stands for none.
pub(crate) fn template_numbers<T>(rows: &[T], get: impl Fn(&T) -> u32) -> ArrayRef {
    let numbers = rows.iter().map(get);
    Arc::new(
        numbers
            .map(|number| (number != u32::MAX).then_some(number))
            .collect::<UInt32Array>(),
    )
}

/// The distribution of a template's durations: the quantiles 0.5, 0.95 and 0.99, and the counts in each bucket of the
/// published histogram.
#[derive(Clone)]
struct Spread {
    quantiles: Option<[u64; 3]>,
    parts: [u64; 10],
}

impl Spread {
    fn of(template: &Template) -> Self {
        let histogram = &template.histogram;
        let buckets = histogram.buckets();
        let mut parts = [0; 10];
        for (top, count) in &buckets {
            parts[BOUNDS.partition_point(|bound| bound <= top)] += count;
        }
        // The bucket of the longest durations may extend beyond them.
        let max = template.executions.max;
        let quantiles = histogram.quantiles([0.5, 0.95, 0.99], &buckets);
        Self {
            quantiles: quantiles.map(|all| all.map(|one| one.min(max))),
            parts,
        }
    }
}

fn templates(gathered: &Gathered, spread: &[Spread], show: Texts) -> PyResult<Table> {
    let rows = gathered.templates.all();
    let quantile = |place: usize| perhaps(spread, move |one| one.quantiles.map(|all| all[place]));
    let mut repeated: HashMap<u32, Repetitions> = HashMap::new();
    for ((number, _), of) in &gathered.repetitions {
        repeated.entry(*number).or_default().merge(of);
    }
    let numbered: Vec<u32> = (0..).take(rows.len()).collect();
    let repetition = |get: fn(&Repetitions) -> u64| -> ArrayRef {
        perhaps(&numbered, |number| repeated.get(number).map(get))
    };
    let mut columns = vec![
        ("template", template_numbers(&numbered, |number| *number)),
        ("text", texts(rows, |row| show.template(&row.more.text))),
        ("executions", numbers(rows, |row| row.executions.count)),
        ("sum_us", numbers(rows, |row| row.executions.micros)),
        ("max_us", numbers(rows, |row| row.executions.max)),
        ("p50_us", quantile(0)),
        ("p95_us", quantile(1)),
        ("p99_us", quantile(2)),
        ("parses", numbers(rows, |row| row.more.parses.count)),
        ("parse_sum_us", numbers(rows, |row| row.more.parses.micros)),
        ("parse_max_us", numbers(rows, |row| row.more.parses.max)),
        ("binds", numbers(rows, |row| row.more.binds.count)),
        ("bind_sum_us", numbers(rows, |row| row.more.binds.micros)),
        ("bind_max_us", numbers(rows, |row| row.more.binds.max)),
        ("plans", numbers(rows, |row| row.more.plans.count)),
        ("rows_plans", numbers(rows, |row| row.more.rows.count)),
        ("rows_sum", numbers(rows, |row| row.more.rows.micros)),
        ("rows_max", numbers(rows, |row| row.more.rows.max)),
        ("cut", numbers(rows, |row| row.more.cut)),
        (
            "first_us",
            instants(rows, |row| row.seen.map(|seen| seen.0)),
        ),
        ("last_us", instants(rows, |row| row.seen.map(|seen| seen.1))),
        ("lists", numbers(rows, |row| row.more.elements.count)),
        ("list_elements", numbers(rows, |row| row.more.elements.sum)),
        (
            "list_max",
            numbers(rows, |row| row.more.elements.max.into()),
        ),
        ("repeated_rows", repetition(|of| of.rows)),
        ("repeated_executions", repetition(|of| of.executions)),
        ("repeated_longest", repetition(|of| of.longest.into())),
        ("repeated_elapsed_us", repetition(|of| of.elapsed)),
        ("repeated_sum_us", repetition(|of| of.micros)),
        ("repeated_groups", repetition(|of| of.bursts.groups)),
        ("repeated_at_once", repetition(|of| of.bursts.at_once)),
    ];
    let names = [
        "under_1ms",
        "under_5ms",
        "under_10ms",
        "under_25ms",
        "under_50ms",
        "under_100ms",
        "under_500ms",
        "under_1s",
        "under_10s",
        "over_10s",
    ];
    for (place, name) in names.into_iter().enumerate() {
        columns.push((name, numbers(spread, |one| one.parts[place])));
    }
    table(columns)
}

fn kinds(errors: &Errors) -> Vec<(&uncork_log::Kind, &uncork_log::Facts)> {
    let mut kinds: Vec<_> = errors.all().collect();
    kinds.sort_by(|one, other| (other.1.count, one.0).cmp(&(one.1.count, other.0)));
    kinds
}

fn failed(gathered: &Gathered) -> PyResult<Table> {
    let mut rows = Vec::new();
    for (number, (_, facts)) in (0_u32..).zip(kinds(&gathered.errors)) {
        let mut templates: Vec<_> = facts.templates.iter().collect();
        templates.sort_unstable();
        rows.extend(
            templates
                .into_iter()
                .map(|(template, count)| (number, *template, *count)),
        );
    }
    table(vec![
        ("error", template_numbers(&rows, |row| row.0)),
        ("template", template_numbers(&rows, |row| row.1)),
        ("count", numbers(&rows, |row| row.2)),
    ])
}
