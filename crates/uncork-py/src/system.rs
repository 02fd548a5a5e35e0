//! Runs the sampler for Python, and returns its data as tables.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, BooleanArray, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use uncork_model::SamplerPlan;
use uncork_sample::{Details, Modes, ProcessTick, Sampled, Stalls, Tick};

use crate::arrow::Table;
use crate::errors::{DataError, plan_error, sampler_error};
use crate::tables::table;

/// Facts as JSON, and tables by name.
pub(crate) type SampleAnswer<'py> = (Bound<'py, PyBytes>, Bound<'py, PyDict>);

/// A running sampler. It ends when it is stopped or dropped.
#[pyclass(frozen)]
pub(crate) struct Sampler {
    running: Mutex<Option<uncork_sample::Sampler>>,
}

/// Begin to sample machine and processes: takes a plan as JSON.
#[pyfunction]
pub(crate) fn start_sampler(py: Python<'_>, plan: &[u8]) -> PyResult<Sampler> {
    let plan = SamplerPlan::parse(plan).map_err(|error| plan_error(&error))?;
    let started = py.detach(|| uncork_sample::Sampler::start(&plan));
    Ok(Sampler {
        running: Mutex::new(Some(started.map_err(|error| sampler_error(&error))?)),
    })
}

#[pymethods]
impl Sampler {
    /// Pause or continue; off-time does not count.
    fn rest(&self, resting: bool) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sampler) = running.as_ref() {
            sampler.rest(resting);
        }
    }

    /// Stop, and return facts as JSON and tables by name; `None` if it was stopped before.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Option<SampleAnswer<'py>>> {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let seen = py.detach(|| running.map(uncork_sample::Sampler::stop));
        seen.map(|seen| answer(py, &seen)).transpose()
    }
}

pub(crate) fn answer<'py>(py: Python<'py>, seen: &Sampled) -> PyResult<SampleAnswer<'py>> {
    let facts = serde_json::to_vec(&seen.facts).map_err(|error| DataError::from(&error))?;
    let tables = PyDict::new(py);
    tables.set_item("system_samples", ticks(&seen.ticks)?)?;
    tables.set_item("system_processes", processes(seen)?)?;
    tables.set_item(
        "system_process_samples",
        process_ticks(&seen.process_ticks)?,
    )?;
    tables.set_item("system_devices", devices(seen)?)?;
    tables.set_item("system_groups", groups(seen)?)?;
    Ok((PyBytes::new(py, &facts), tables))
}

fn numbers<T>(rows: &[T], get: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<UInt64Array>())
}

fn places<T>(rows: &[T], get: impl Fn(&T) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(rows.iter().map(get)))
}

fn texts<'a, T>(rows: &'a [T], get: impl Fn(&'a T) -> &'a str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(get)))
}

fn ticks(rows: &[Tick]) -> PyResult<Table> {
    let order: Vec<u64> = (0..rows.len() as u64).collect();
    let known = |get: fn(&Tick) -> u64| numbers(rows, |row| Some(get(row)));
    let optional = |get: fn(&Tick) -> Option<u64>| numbers(rows, get);
    let mode = |get: fn(&Modes) -> u64| numbers(rows, |row| row.modes.as_ref().map(get));
    let stall = |get: fn(&Stalls) -> Option<u64>| numbers(rows, |row| get(&row.stalls));
    table(vec![
        ("tick", numbers(&order, |place| Some(*place))),
        ("end_ns", known(|row| row.end_ns)),
        ("length_ns", known(|row| row.length_ns)),
        ("late_ns", known(|row| row.late_ns)),
        ("cpus", optional(|row| row.cpus)),
        ("user_ns", mode(|modes| modes.user_ns)),
        ("nice_ns", mode(|modes| modes.nice_ns)),
        ("system_ns", mode(|modes| modes.system_ns)),
        ("idle_ns", mode(|modes| modes.idle_ns)),
        ("iowait_ns", mode(|modes| modes.iowait_ns)),
        ("irq_ns", mode(|modes| modes.irq_ns)),
        ("softirq_ns", mode(|modes| modes.softirq_ns)),
        ("steal_ns", mode(|modes| modes.steal_ns)),
        ("guest_ns", mode(|modes| modes.guest_ns)),
        ("running", optional(|row| row.running)),
        ("blocked", optional(|row| row.blocked)),
        ("switches", optional(|row| row.switches)),
        ("forks", optional(|row| row.forks)),
        ("cpu_some_ns", stall(|stalls| stalls.cpu_some_ns)),
        ("io_some_ns", stall(|stalls| stalls.io_some_ns)),
        ("io_full_ns", stall(|stalls| stalls.io_full_ns)),
        ("memory_some_ns", stall(|stalls| stalls.memory_some_ns)),
        ("memory_full_ns", stall(|stalls| stalls.memory_full_ns)),
        ("own_ns", known(|row| row.own_ns)),
    ])
}

fn processes(seen: &Sampled) -> PyResult<Table> {
    let rows = seen.processes.as_slice();
    let order: Vec<u64> = (0..rows.len() as u64).collect();
    table(vec![
        ("process", numbers(&order, |place| Some(*place))),
        ("pid", numbers(rows, |row| row.pid.map(u64::from))),
        ("role", texts(rows, |row| &row.role)),
        ("kind", texts(rows, |row| &row.kind)),
        ("seen_ns", numbers(rows, |row| Some(row.seen_ns))),
        ("ended_ns", numbers(rows, |row| row.ended_ns)),
    ])
}

fn process_ticks(rows: &[ProcessTick]) -> PyResult<Table> {
    let detail =
        |get: fn(&Details) -> Option<u64>| numbers(rows, |row| get(row.details.as_deref()?));
    table(vec![
        ("tick", places(rows, |row| row.tick)),
        ("process", places(rows, |row| row.process)),
        ("cpu_ns", numbers(rows, |row| Some(row.cpu_ns))),
        ("user_ns", detail(|details| details.user_ns)),
        ("system_ns", detail(|details| details.system_ns)),
        ("minor_faults", detail(|details| details.minor_faults)),
        ("major_faults", detail(|details| details.major_faults)),
        ("rss_bytes", detail(|details| details.rss_bytes)),
        ("pss_bytes", detail(|details| details.pss_bytes)),
        ("voluntary_switches", detail(|details| details.voluntary)),
        (
            "involuntary_switches",
            detail(|details| details.involuntary),
        ),
        ("read_calls", detail(|details| details.read_calls)),
        ("write_calls", detail(|details| details.write_calls)),
        ("read_bytes", detail(|details| details.read_bytes)),
        ("written_bytes", detail(|details| details.written_bytes)),
    ])
}

fn devices(seen: &Sampled) -> PyResult<Table> {
    let rows = seen.devices.as_slice();
    let network = rows.iter().map(|row| Some(row.network));
    table(vec![
        ("tick", places(rows, |row| row.tick)),
        ("network", Arc::new(network.collect::<BooleanArray>())),
        ("device", texts(rows, |row| &row.name)),
        ("reads", numbers(rows, |row| Some(row.reads))),
        ("read_bytes", numbers(rows, |row| Some(row.read_bytes))),
        ("read_ns", numbers(rows, |row| row.read_ns)),
        ("writes", numbers(rows, |row| Some(row.writes))),
        (
            "written_bytes",
            numbers(rows, |row| Some(row.written_bytes)),
        ),
        ("write_ns", numbers(rows, |row| row.write_ns)),
        ("busy_ns", numbers(rows, |row| row.busy_ns)),
        ("flushes", numbers(rows, |row| row.flushes)),
        ("lost", numbers(rows, |row| row.lost)),
    ])
}

fn groups(seen: &Sampled) -> PyResult<Table> {
    let rows = seen.groups.as_slice();
    table(vec![
        ("tick", places(rows, |row| row.tick)),
        ("role", texts(rows, |row| &row.role)),
        ("periods", numbers(rows, |row| Some(row.periods))),
        (
            "throttled_periods",
            numbers(rows, |row| Some(row.throttled_periods)),
        ),
        ("throttled_ns", numbers(rows, |row| Some(row.throttled_ns))),
        ("burst_periods", numbers(rows, |row| row.burst_periods)),
        ("burst_ns", numbers(rows, |row| row.burst_ns)),
    ])
}
