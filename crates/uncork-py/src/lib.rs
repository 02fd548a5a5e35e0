//! The boundary to Python: convert, map errors, let other threads run. Nothing is decided here.

mod errors;
mod tables;
mod wait;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyTable;
use serde_json::json;
use uncork_load::Interrupt;
use uncork_model::{LoadPlan, PLAN_VERSION};

use crate::errors::{DataError, histogram_error, install_error, load_error, plan_error};
use crate::wait::wait;

/// The compiled core of uncork. Only `uncork._native` imports it.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::{build_info, install_postgres, merge_histograms, run_load};
}

/// Say, as JSON, what was built: versions, profile, platform.
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

/// Return the folder of the pinned `PostgreSQL` under a cache folder, fetched if necessary.
#[pyfunction]
fn install_postgres(py: Python<'_>, cache_dir: PathBuf) -> PyResult<OsString> {
    // An interrupted download goes on until the process ends; it leaves nothing half-made.
    let installed = wait(py, move || uncork_server::install(&cache_dir), || {})?;
    installed
        .map(PathBuf::into_os_string)
        .map_err(|error| install_error(&error))
}

/// Carry out one trial: a plan as JSON and a table of texts in, totals as JSON and a table of
/// statements out.
#[pyfunction]
fn run_load<'py>(
    py: Python<'py>,
    plan: &[u8],
    parameters: PyTable,
) -> PyResult<(Bound<'py, PyBytes>, PyTable)> {
    let plan = LoadPlan::parse(plan).map_err(|error| plan_error(&error))?;
    let parameters = tables::parameters(parameters)?;
    let interrupt = Arc::new(Interrupt::default());
    let request = Arc::clone(&interrupt);
    let report = wait(
        py,
        move || uncork_load::run(&plan, &parameters, &interrupt),
        move || request.request(),
    )?;
    let report = report.map_err(|error| load_error(&error))?;
    let totals = serde_json::to_vec(&report.totals).map_err(|error| DataError::from(&error))?;
    Ok((
        PyBytes::new(py, &totals),
        tables::statements(&report.statements)?,
    ))
}

/// Add up serialised histograms and return the sum's quantiles as a table.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]
fn merge_histograms(histograms: Vec<Vec<u8>>) -> PyResult<PyTable> {
    let points = uncork_load::merge(histograms.iter().map(Vec::as_slice));
    tables::quantiles(&points.map_err(|error| histogram_error(&error))?)
}
