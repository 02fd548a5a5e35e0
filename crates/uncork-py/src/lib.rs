//! The boundary to Python: convert, map errors, let other threads run. Nothing is decided here.

mod arrow;
mod errors;
mod event_files;
mod freeing;
mod grammar;
mod log_extra_tables;
mod log_portions;
mod log_tables;
mod logs;
mod objects;
mod stacks;
mod system;
mod tables;
mod wait;

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use uncork_load::{Control, Measure, Messages};
use uncork_model::{BlockPlan, LoadPlan, PLAN_VERSION, StatementKind};

use crate::arrow::{Batches, Table};
use crate::errors::{DataError, histogram_error, install_error, load_error, plan_error};
use crate::system::SampleAnswer;
use crate::wait::wait;

/// How often lines about single errors and statements are passed on: with their limit, at most 2,000
/// a second.
const MESSAGES_EVERY: Duration = Duration::from_millis(250);

/// Logs with many templates need many small allocations, by several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The compiled core of uncork. Only `uncork._native` imports it.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::grammar::Grammar;
    #[pymodule_export]
    use super::log_portions::{
        LogPortions, begin_of_log, begin_of_object, cut_log, gather_logs, is_complete_portion,
    };
    #[pymodule_export]
    use super::logs::{LogFollower, LogProfile, read_logs};
    #[pymodule_export]
    use super::stacks::{draw_stacks, read_stacks, sum_stacks, write_stacks};
    #[pymodule_export]
    use super::system::{Sampler, start_sampler};
    #[pymodule_export]
    use super::{
        Lease, add_histograms, build_info, check_load, hdr_log, install_postgres, merge_histograms,
        planned_operations, run_block, run_load, summarize,
    };
}

/// Return versions, profile and platform of the build as JSON.
#[pyfunction]
fn build_info(py: Python<'_>) -> Bound<'_, PyBytes> {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let information = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "plan_version": PLAN_VERSION,
        "profile": profile,
        "postgresql_version": uncork_server::POSTGRESQL_VERSION,
        "target": target,
    });
    PyBytes::new(py, information.to_string().as_bytes())
}

/// Return the folder of the pinned `PostgreSQL` in a cache folder; fetch it if necessary.
#[pyfunction]
fn install_postgres(py: Python<'_>, cache_dir: PathBuf) -> PyResult<OsString> {
    // An interrupted download continues until the process ends; it leaves no partial files.
    let install = move || uncork_server::install(&cache_dir);
    let installed = wait(py, install, || Ok(()), || false)?;
    installed
        .map(PathBuf::into_os_string)
        .map_err(|error| install_error(&error))
}

/// Check a plan and its scripts without connecting to a server.
#[pyfunction]
fn check_load(plan: &[u8], parameters: Batches) -> PyResult<()> {
    let plan = LoadPlan::parse(plan).map_err(|error| plan_error(&error))?;
    let parameters = tables::parameters(parameters)?;
    uncork_load::check(&plan, &parameters).map_err(|error| load_error(&error))
}

/// Lets a load continue whose plan requires it; see [`uncork_load::Lease`].
#[pyclass(frozen)]
#[derive(Default)]
struct Lease(uncork_load::Lease);

#[pymethods]
impl Lease {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn renew(&self) {
        self.0.renew();
    }
}

/// Return how many operations a plan's part is to begin; `None` if the server decides.
#[pyfunction]
fn planned_operations(plan: &[u8]) -> PyResult<Option<u64>> {
    let plan = LoadPlan::parse(plan).map_err(|error| plan_error(&error))?;
    uncork_load::planned(&plan).map_err(|error| load_error(&error))
}

/// Totals as JSON, statements, intervals, answers by status and interval, and the sampler's data if
/// it was requested.
type Answer<'py> = (
    Bound<'py, PyBytes>,
    Table,
    Table,
    Table,
    Option<SampleAnswer<'py>>,
);

/// Run one trial: takes a plan as JSON and a table of texts; returns totals as JSON, tables of
/// statements, of intervals and of answers by status and interval, and the sampler's data.
/// `progress` is called from this thread with JSON, and with the table of the intervals since the
/// last call if the plan's part has reservations: both outlive a process that is killed. `messages` is
/// called with a list of lines, as the plan's verbosity requires, and the number of those left out.
/// `stopped` is called several times a second; once it returns true, the trial ends as by Ctrl-C: only
/// the main thread receives that.
#[pyfunction]
#[pyo3(signature = (plan, parameters, progress=None, lease=None, messages=None, stopped=None))]
fn run_load<'py>(
    py: Python<'py>,
    plan: &[u8],
    parameters: Batches,
    progress: Option<&Bound<'py, PyAny>>,
    lease: Option<&Lease>,
    messages: Option<&Bound<'py, PyAny>>,
    stopped: Option<&Bound<'py, PyAny>>,
) -> PyResult<Answer<'py>> {
    let plan = LoadPlan::parse(plan).map_err(|error| plan_error(&error))?;
    let parameters = tables::parameters(parameters)?;
    let (keeps, intervals) = (plan.keep_interrupted, u64::from(plan.progress_intervals));
    let control = Control {
        lease: lease.map(|lease| lease.0.clone()).unwrap_or_default(),
        messages: Arc::new(Messages::new(plan.verbosity)),
        ..Control::default()
    };
    let watched = control.clone();
    let scripts = plan.scripts.iter().map(|script| script.name.clone());
    let scripts = plan
        .part
        .reservations
        .is_some()
        .then(|| scripts.collect::<Vec<_>>());
    let written = Cell::new(Instant::now());
    let check = || {
        if let Some(stopped) = stopped
            && stopped.call0()?.is_truthy()?
        {
            return Err(PyKeyboardInterrupt::new_err(()));
        }
        if let Some(messages) = messages
            && written.get().elapsed() >= MESSAGES_EVERY
        {
            written.set(Instant::now());
            write_messages(messages, &watched)?;
        }
        match progress {
            Some(progress) => tell(py, progress, &watched, intervals, scripts.as_deref()),
            None => Ok(()),
        }
    };
    let interrupt = control.interrupt.clone();
    let ended = wait(
        py,
        move || uncork_load::run(&plan, &parameters, &control),
        check,
        move || {
            interrupt.request();
            keeps
        },
    )?;
    let report = ended.map_err(|error| load_error(&error))?;
    if let Some(messages) = messages {
        write_messages(messages, &watched)?;
    }
    let totals = serde_json::to_vec(&report.totals).map_err(|error| DataError::from(&error))?;
    Ok((
        PyBytes::new(py, &totals),
        tables::statements(&report.statements)?,
        tables::series(&report.series)?,
        tables::statuses(&report.statuses)?,
        report
            .system
            .map(|seen| system::answer(py, &seen))
            .transpose()?,
    ))
}

/// For each arm its totals as JSON and its statements; a table of slices; the sampler's data.
type BlockAnswer<'py> = (
    Vec<(Bound<'py, PyBytes>, Table)>,
    Table,
    Option<SampleAnswer<'py>>,
);

/// Run one block: takes a plan as JSON and a table of texts for each arm; returns for each arm
/// totals as JSON and a table of statements, a table of slices, and the sampler's data.
#[pyfunction]
fn run_block<'py>(
    py: Python<'py>,
    plan: &[u8],
    parameters: Vec<Batches>,
) -> PyResult<BlockAnswer<'py>> {
    let plan = BlockPlan::parse(plan).map_err(|error| plan_error(&error))?;
    let parameters = parameters
        .into_iter()
        .map(tables::parameters)
        .collect::<Result<Vec<_>, _>>()?;
    let control = Control::default();
    let interrupt = control.interrupt.clone();
    let ended = wait(
        py,
        move || uncork_load::run_block(&plan, &parameters, &control),
        || Ok(()),
        move || {
            interrupt.request();
            false
        },
    )?;
    let report = ended.map_err(|error| load_error(&error))?;
    let arms = report
        .arms
        .iter()
        .map(|arm| {
            let totals =
                serde_json::to_vec(&arm.totals).map_err(|error| DataError::from(&error))?;
            Ok((
                PyBytes::new(py, &totals),
                tables::statements(&arm.statements)?,
            ))
        })
        .collect::<PyResult<Vec<_>>>()?;
    Ok((
        arms,
        tables::slices(&report.slices)?,
        report
            .system
            .map(|seen| system::answer(py, &seen))
            .transpose()?,
    ))
}

/// Pass the lines about single errors and statements that wait, and the number of those left out.
fn write_messages(messages: &Bound<'_, PyAny>, control: &Control) -> PyResult<()> {
    let (lines, left_out) = control.messages.take();
    if !lines.is_empty() || left_out > 0 {
        messages.call1((lines, left_out))?;
    }
    Ok(())
}

/// Report a trial's progress, if there is any; with the intervals of `scripts`, if they are given.
fn tell(
    py: Python<'_>,
    progress: &Bound<'_, PyAny>,
    control: &Control,
    intervals: u64,
    scripts: Option<&[String]>,
) -> PyResult<()> {
    while let Some(news) = control.board.progress(intervals) {
        let json = serde_json::to_vec(&news).map_err(|error| DataError::from(&error))?;
        let series = scripts
            .map(|scripts| tables::series(&control.board.reported(intervals, scripts)))
            .transpose()?;
        progress.call1((PyBytes::new(py, &json), series))?;
    }
    Ok(())
}

/// Write histograms as a log that `HdrHistogram`'s tools read: for each its tag, start and length
/// in seconds, and bytes.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]
fn hdr_log(
    py: Python<'_>,
    start_unix_s: f64,
    intervals: Vec<(String, f64, f64, Vec<u8>)>,
) -> PyResult<Bound<'_, PyBytes>> {
    let intervals =
        intervals.iter().map(
            |(tag, start_s, length_s, histogram)| uncork_load::LogInterval {
                tag,
                start_s: *start_s,
                length_s: *length_s,
                histogram,
            },
        );
    let log = uncork_load::interval_log(start_unix_s, intervals);
    let log = log.map_err(|error| histogram_error(&error))?;
    Ok(PyBytes::new(py, &log))
}

/// Summarise latencies that were measured elsewhere: takes nanoseconds as little-endian 64-bit integers, returns a
/// statement's row like [`run_load`].
#[pyfunction]
fn summarize(name: &str, latencies_ns: &[u8]) -> PyResult<Table> {
    let mut measure = Measure::default();
    for latency_ns in latencies_ns.as_chunks().0 {
        measure.success(u64::from_le_bytes(*latency_ns), 0);
    }
    tables::statements(&[measure.summary(StatementKind::Statement, "", name)])
}

/// Add up serialised histograms; return the sum, serialised, and its values at some quantiles.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]
fn add_histograms(
    py: Python<'_>,
    histograms: Vec<Vec<u8>>,
    quantiles: Vec<f64>,
) -> PyResult<(Bound<'_, PyBytes>, Vec<u64>)> {
    let histograms = histograms.iter().map(Vec::as_slice);
    let (sum, values) =
        uncork_load::add_up(histograms, &quantiles).map_err(|error| histogram_error(&error))?;
    Ok((PyBytes::new(py, &sum), values))
}

/// Add up serialised histograms and return the sum's quantiles as a table.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]
fn merge_histograms(histograms: Vec<Vec<u8>>) -> PyResult<Table> {
    let points = uncork_load::merge(histograms.iter().map(Vec::as_slice));
    tables::quantiles(&points.map_err(|error| histogram_error(&error))?)
}
