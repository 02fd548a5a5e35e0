//! Reads logs for Python, and returns them as tables.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Deserialize;
use serde_json::json;
use uncork_ingest::{Control, Follower, Report, Request};
use uncork_log::{AVERAGES, By, CHECKPOINT, Checkpoints, Filter, Prefix, RARE, Step, Texts, Times};

use crate::errors::{DataError, ingest_error};
use crate::event_files::PythonFiles;
use crate::freeing::free;
use crate::log_extra_tables::{quantiles, quantiles_of};
use crate::log_tables::{Shown, text};
use crate::objects::PythonObjects;
use crate::wait::wait;

/// A template's text and the text of one of its statements.
type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Which logs to read, as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogRequest {
    paths: Vec<PathBuf>,
    /// The server that wrote each path; empty if all were written by one server without a name.
    servers: Vec<String>,
    /// The names of all servers by number. Empty if the servers of these paths are all that there are.
    all_servers: Vec<String>,
    /// The part of the only path to read, in bytes.
    range: Option<(u64, u64)>,
    prefix: Option<String>,
    threads: usize,
    from_us: Option<i64>,
    until_us: Option<i64>,
    filter: Option<FilterRequest>,
    /// The salt of pseudonyms, if no data is to be shown.
    salt: Option<u64>,
}

/// Which entries to gather, as JSON: patterns of names, and ranges of the time of day in microseconds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterRequest {
    database: Vec<String>,
    user: Vec<String>,
    application: Vec<String>,
    host: Vec<String>,
    time_of_day: Vec<(i64, i64)>,
}

impl FilterRequest {
    fn filter(self) -> Filter {
        let patterns = [&self.database, &self.user, &self.application, &self.host];
        Filter::new(patterns.map(Vec::as_slice), self.time_of_day)
    }
}

/// Gathered logs.
#[pyclass(name = "LogProfile", frozen)]
pub(crate) struct LogProfile {
    report: Mutex<Report>,
    texts: Texts,
}

/// Nobody waits until what was gathered is freed: of logs with 50,000 templates that takes 0.1 s.
impl Drop for LogProfile {
    fn drop(&mut self) {
        if let Ok(report) = self.report.get_mut() {
            free(std::mem::take(report));
        }
    }
}

/// Read logs: takes a request as JSON. `progress` is called from this thread with the bytes read
/// and the entries gathered. `events` begins the files of all entries, and is called from any thread.
/// `objects` fetches the objects among the paths, and is called from one thread.
#[pyfunction]
#[pyo3(signature = (request, progress=None, events=None, objects=None))]
pub(crate) fn read_logs(
    py: Python<'_>,
    request: &[u8],
    progress: Option<&Bound<'_, PyAny>>,
    events: Option<Py<PyAny>>,
    objects: Option<Py<PyAny>>,
) -> PyResult<LogProfile> {
    let mut request = read_request(request, events)?;
    request.objects = objects.map(|source| Arc::new(PythonObjects(source)) as _);
    let texts = request.texts;
    let control = Control::default();
    let (watched, stopped) = (control.clone(), control.clone());
    let check = || match progress {
        Some(progress) => progress
            .call1((watched.bytes(), watched.entries()))
            .map(|_| ()),
        None => Ok(()),
    };
    let report = wait(
        py,
        move || uncork_ingest::gather(&request, &control),
        check,
        move || {
            stopped.stop();
            true
        },
    )?;
    // What the threads gathered was merged: a third of the memory is free.
    free(());
    Ok(LogProfile::new(report.map_err(ingest_error)?, texts))
}

pub(crate) fn read_request(request: &[u8], events: Option<Py<PyAny>>) -> PyResult<Request> {
    let request: LogRequest =
        serde_json::from_slice(request).map_err(|error| DataError::from(&error))?;
    let prefix = request.prefix.as_deref().map(Prefix::parse).transpose();
    Ok(Request {
        paths: request.paths,
        servers: request.servers,
        all_servers: request.all_servers,
        range: request.range,
        objects: None,
        prefix: prefix.map_err(|error| PyValueError::new_err(error.to_string()))?,
        threads: request.threads,
        from: request.from_us,
        until: request.until_us,
        filter: request.filter.map(FilterRequest::filter),
        events: events.map(|files| Arc::new(PythonFiles(files)) as _),
        texts: request.salt.map_or(Texts::default(), Texts::anonymous),
    })
}

/// Logs that are followed while they grow.
#[pyclass(name = "LogFollower", frozen)]
pub(crate) struct LogFollower {
    follower: Mutex<Option<Follower>>,
    control: Control,
    texts: Texts,
}

#[pymethods]
impl LogFollower {
    #[new]
    #[pyo3(signature = (request, events=None))]
    fn new(request: &[u8], events: Option<Py<PyAny>>) -> PyResult<Self> {
        let request = read_request(request, events)?;
        let texts = request.texts;
        let follower = Follower::new(request).map_err(ingest_error)?;
        Ok(Self {
            follower: Mutex::new(Some(follower)),
            control: Control::default(),
            texts,
        })
    }

    /// Follow another path too, which a server writes; its name may be empty.
    fn add(&self, py: Python<'_>, path: PathBuf, server: &str) -> PyResult<()> {
        py.detach(|| self.with(|follower| follower.add(path, server)))
    }

    /// Read what has been written since, up to a limit. Returns whether there may be more.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.with(|follower| follower.poll(&self.control)))
    }

    /// Return bytes read and entries gathered so far.
    fn progress(&self) -> (u64, u64) {
        (self.control.bytes(), self.control.entries())
    }

    /// Return what was gathered so far.
    fn profile(&self, py: Python<'_>) -> PyResult<LogProfile> {
        let report = py.detach(|| self.with(|follower| follower.report()))?;
        Ok(self.profile_of(report))
    }

    /// End, and return what was gathered.
    fn finish(&self, py: Python<'_>) -> PyResult<LogProfile> {
        let report = py.detach(|| {
            let follower = self.lock()?.take();
            let follower = follower.ok_or_else(ended)?;
            follower.finish().map_err(ingest_error)
        });
        Ok(self.profile_of(report?))
    }
}

// Whoever has the lock may wait for Python, to write events: wait for the lock detached.
impl LogFollower {
    fn lock(&self) -> Result<std::sync::MutexGuard<'_, Option<Follower>>, DataError> {
        let follower = self.follower.lock();
        follower.map_err(|error| DataError::from(&error))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Follower) -> T) -> PyResult<T> {
        let mut follower = self.lock()?;
        Ok(work(follower.as_mut().ok_or_else(ended)?))
    }

    fn profile_of(&self, report: Report) -> LogProfile {
        LogProfile::new(report, self.texts)
    }
}

fn ended() -> DataError {
    DataError("the logs are no longer followed".into())
}

#[pymethods]
impl LogProfile {
    /// Return, as JSON, what was read: files, counts, the time spanned.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let report = self.report()?;
        let gathered = &report.gathered;
        let files: Vec<_> = report
            .files
            .iter()
            .map(|file| {
                json!({
                    "name": file.name,
                    "server": report.servers[file.server as usize],
                    "bytes": file.bytes,
                    "dialect": file.dialect,
                    "prefix": file.prefix,
                    "entries": file.entries,
                    "first_us": file.seen.map(|seen| seen.0),
                    "last_us": file.seen.map(|seen| seen.1),
                    "lines": file.lines,
                    "heads": file.kinds.heads,
                    "continuations": file.kinds.continuations,
                    "foreign": file.kinds.foreign,
                    "rejected": file.kinds.rejected,
                    "trouble": file.trouble,
                })
            })
            .collect();
        let steps: serde_json::Map<_, _> = Step::ALL
            .iter()
            .zip(&gathered.steps)
            .map(|(step, times)| (step.name().to_owned(), times_json(times)))
            .collect();
        let activity = &gathered.activity;
        let mut points = Checkpoints::default();
        for of in activity.checkpoints.values() {
            points.merge(of.clone(), &gathered.scale);
        }
        let rejected: Vec<_> = gathered
            .rejected_lines
            .iter()
            .map(|(file, offset, line)| {
                let known = report.files.get(*file as usize);
                let number = known.and_then(|known| known.line_number(*offset));
                json!({"file": file, "line": number, "text": self.texts.data(line, false)})
            })
            .collect();
        let left_out: Vec<_> = gathered
            .left_out()
            .iter()
            .map(|one| {
                let name = match one.by {
                    By::User | By::Host => self.texts.name(one.by.name(), &one.name),
                    _ => text(&one.name).into_owned(),
                };
                json!({"by": one.by.name(), "name": name, "entries": one.entries})
            })
            .collect();
        let averages = AVERAGES.iter().zip(&gathered.pool.averages);
        let pool: serde_json::Map<_, _> = averages
            .map(|(name, average)| ((*name).to_owned(), times_json(&average.all)))
            .collect();
        let facts = json!({
            "files": files,
            "stopped": report.stopped,
            "entries": gathered.entries,
            "outside": gathered.outside,
            "untimed": gathered.untimed,
            "left_out": left_out,
            "own": gathered.own,
            "rare": gathered.rare,
            "foreign": gathered.foreign,
            "rejected": gathered.rejected,
            "rejected_lines": rejected,
            "first_us": gathered.scale.span().map(|span| span.0),
            "last_us": gathered.scale.span().map(|span| span.1),
            "bucket_s": gathered.scale.seconds(),
            "hour_s": gathered.hours.seconds().max(gathered.scale.seconds()),
            "template_bucket_s": gathered.coarse.seconds(),
            "steps": steps,
            "quantiles_us": quantiles(gathered),
            "servers": servers(&report),
            "withheld": withheld(&report),
            "peak": peak(&report),
            "most_sessions": most_sessions(&report),
            "session_quantiles_us": activity.lengths.quantiles([0.5, 0.95], &activity.lengths.buckets()),
            "sessions": times_json(&activity.ended),
            "connections": activity.received.all().count,
            "still_waiting": activity.still_waiting,
            "deadlocks": activity.deadlocks,
            "pool": pool,
            "checkpoints": checkpoints(&points),
        });
        Ok(PyBytes::new(py, facts.to_string().as_bytes()))
    }

    /// Return, for each template by number, its text and the text of one of its statements.
    fn statements<'py>(&self, py: Python<'py>) -> PyResult<Vec<Pair<'py>>> {
        let report = self.report()?;
        let templates = report.gathered.templates.all();
        Ok(templates
            .iter()
            .map(|template| {
                let example = template.more.slowest.as_ref();
                let statement = match example {
                    // The template for rare statements has no statement of its own.
                    Some(example) if *template.more.text != *RARE => &example.text,
                    _ => &*template.more.text,
                };
                (
                    PyBytes::new(py, &template.more.text),
                    PyBytes::new(py, statement),
                )
            })
            .collect())
    }

    /// Return the identity of each template in events, by number.
    fn statement_ids(&self) -> PyResult<Vec<u64>> {
        let report = self.report()?;
        Ok(report.gathered.templates.identities().collect())
    }

    /// Merge templates: for each by number, the number of the template that it becomes part of.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments from Python arrive by value"
    )]
    fn join(&self, groups: Vec<u32>) -> PyResult<()> {
        let mut report = self.report()?;
        let count = report.gathered.templates.all().len();
        if groups.len() != count || groups.iter().any(|group| *group as usize >= count) {
            return Err(PyValueError::new_err("not a group for each template"));
        }
        let gathered = std::mem::take(&mut report.gathered);
        report.gathered = gathered.join(&groups);
        Ok(())
    }

    /// Return all tables by name.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = py.detach(|| {
            let shown = Shown {
                report: &*self.report()?,
                texts: self.texts,
            };
            shown.all()
        });
        let tables = PyDict::new(py);
        for (name, table) in all? {
            tables.set_item(name, table)?;
        }
        Ok(tables)
    }
}

impl LogProfile {
    pub(crate) fn new(report: Report, texts: Texts) -> Self {
        Self {
            report: Mutex::new(report),
            texts,
        }
    }

    fn report(&self) -> PyResult<std::sync::MutexGuard<'_, Report>> {
        let report = self.report.lock();
        report.map_err(|error| DataError::from(&error).into())
    }
}

/// Return when each server had most executions and most sessions.
fn servers(report: &Report) -> Vec<serde_json::Value> {
    let all = (0..).zip(&report.servers);
    all.map(|(number, name)| {
        let mut busiest = report.gathered.busiest.iter();
        let of = busiest.find(|(server, _)| *server == number);
        let of = of.map(|(_, found)| *found).unwrap_or_default();
        let peak = of
            .second
            .map(|(second, count)| json!({"second": second, "count": count}));
        let sessions = of
            .sessions
            .map(|(count, time)| json!({"count": count, "time_us": time}));
        let points = report.gathered.activity.checkpoints.get(&number);
        let hours = (report.servers.len() > 1)
            .then(|| report.gathered.hours.all().nth(number as usize))
            .flatten();
        let sum = hours.map(|(_, hours)| hours.sum());
        let sum = sum.filter(|sum| sum.count() > 0);
        json!({
            "name": name,
            "peak": peak,
            "most_sessions": sessions,
            "quantiles_us": sum.as_ref().map(quantiles_of),
            "checkpoints": points.map(checkpoints),
        })
    })
    .collect()
}

fn checkpoints(points: &Checkpoints) -> serde_json::Value {
    let reasons = points.reasons.iter();
    let reasons: HashMap<_, _> = reasons
        .map(|(reason, count)| (text(reason), *count))
        .collect();
    let all: serde_json::Map<_, _> = [
        ("all", &points.all),
        ("write", &points.write),
        ("sync", &points.sync),
        ("buffers", &points.buffers),
        ("distance_kib", &points.distance),
    ]
    .into_iter()
    .chain(CHECKPOINT.into_iter().zip(&points.details))
    .map(|(name, times)| (name.to_owned(), times_json(times)))
    .chain([("reasons".to_owned(), json!(reasons))])
    .collect();
    all.into()
}

/// Return the second in which most executions of one server ended; the first of several.
fn peak(report: &Report) -> Option<serde_json::Value> {
    let all = report.gathered.busiest.iter();
    let seconds = all.filter_map(|(server, of)| Some((of.second?, *server)));
    let most = seconds
        .max_by_key(|((second, count), server)| (*count, Reverse(*second), Reverse(*server)));
    most.map(|((second, count), server)| {
        let server = &report.servers[server as usize];
        json!({"second": second, "count": count, "server": server})
    })
}

/// Return the names of the servers of which nothing is known that follows from the order of entries.
fn withheld(report: &Report) -> Vec<&str> {
    let numbers = report.withheld.iter();
    numbers
        .filter_map(|number| report.servers.get(*number as usize))
        .map(String::as_str)
        .collect()
}

/// Return how many sessions of one server were open at once.
fn most_sessions(report: &Report) -> Option<serde_json::Value> {
    let all = report.gathered.busiest.iter();
    let sessions = all.filter_map(|(server, of)| Some((of.sessions?, *server)));
    let most = sessions.max_by_key(|((count, _), server)| (*count, Reverse(*server)));
    most.map(|((count, time), server)| {
        let server = &report.servers[server as usize];
        json!({"count": count, "time_us": time, "server": server})
    })
}

fn times_json(times: &Times) -> serde_json::Value {
    json!({"count": times.count, "sum": times.micros, "max": times.max})
}
