//! What was gathered from portions of logs, for processes that share out the work.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use uncork_ingest::{Control, Portion};
use uncork_log::{Prefix, Texts};

use crate::errors::{DataError, ingest_error};
use crate::logs::{LogProfile, read_request};
use crate::objects::PythonObjects;
use crate::wait::wait;

/// Read logs, and return what was gathered as bytes: see [`LogPortions`]. Takes a request as JSON.
#[pyfunction]
#[pyo3(signature = (request, objects=None))]
pub(crate) fn gather_logs<'py>(
    py: Python<'py>,
    request: &[u8],
    objects: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut request = read_request(request, None)?;
    request.objects = objects.map(|source| Arc::new(PythonObjects(source)) as _);
    let control = Control::default();
    let stopped = control.clone();
    let stored = wait(
        py,
        move || uncork_ingest::gather_portion(&request, &control),
        || Ok(()),
        move || {
            stopped.stop();
            true
        },
    )?;
    Ok(PyBytes::new(py, &stored.map_err(ingest_error)?))
}

/// Return whether the logs of what [`gather_logs`] has returned were read to their ends.
#[pyfunction]
pub(crate) fn is_complete_portion(py: Python<'_>, stored: &[u8]) -> bool {
    py.detach(|| uncork_ingest::is_complete(stored))
}

/// Return where a log can be cut into parts of about `size` bytes, each of which begins with an entry, and the prefix
/// of its lines. Empty if it must be read as a whole.
#[pyfunction]
#[pyo3(signature = (path, prefix, size))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]
pub(crate) fn cut_log(
    py: Python<'_>,
    path: PathBuf,
    prefix: Option<&str>,
    size: u64,
) -> PyResult<(Vec<u64>, Option<String>)> {
    let prefix = prefix.map(Prefix::parse).transpose();
    let prefix = prefix.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let cut = py.detach(|| uncork_ingest::cut_points(&path, prefix.as_ref(), size));
    cut.map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Return when the first entry of a log was logged, in microseconds since 1970 in UTC; `None` if that is unknown.
#[pyfunction]
#[pyo3(signature = (path, prefix))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]
pub(crate) fn begin_of_log(
    py: Python<'_>,
    path: PathBuf,
    prefix: Option<&str>,
) -> PyResult<Option<i64>> {
    let prefix = prefix.map(Prefix::parse).transpose();
    let prefix = prefix.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let begin = py.detach(|| uncork_ingest::begins_at(&path, prefix.as_ref()));
    begin.map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Return when the first entry of a log was logged, from its first bytes, as [`begin_of_log`] does. `written_s` is when
/// the log was last written, in seconds since 1970.
#[pyfunction]
#[pyo3(signature = (beginning, written_s, prefix))]
pub(crate) fn begin_of_object(
    py: Python<'_>,
    beginning: &[u8],
    written_s: i64,
    prefix: Option<&str>,
) -> PyResult<Option<i64>> {
    let prefix = prefix.map(Prefix::parse).transpose();
    let prefix = prefix.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(py.detach(|| uncork_ingest::begins_with(beginning, written_s, prefix.as_ref())))
}

/// Joins portions of logs, in their order.
#[pyclass(name = "LogPortions", frozen)]
pub(crate) struct LogPortions {
    joined: Mutex<Portion>,
    texts: Texts,
}

#[pymethods]
impl LogPortions {
    /// Begin with nothing. The request, as JSON, says what is filtered, and how texts are shown.
    #[new]
    fn new(request: &[u8]) -> PyResult<Self> {
        let request = read_request(request, None)?;
        Ok(Self {
            joined: Mutex::new(Portion::new(request.filter.as_ref())),
            texts: request.texts,
        })
    }

    /// Add the portion that follows.
    fn add(&self, py: Python<'_>, stored: &[u8]) -> PyResult<()> {
        let added = py.detach(|| {
            let mut joined = self.lock()?;
            Ok::<_, DataError>(joined.add(stored).and_then(|()| joined.settle()))
        })?;
        added.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Return the names of the servers, by number.
    fn servers(&self) -> PyResult<Vec<String>> {
        Ok(self.lock()?.servers().to_vec())
    }

    /// Return all that was added as one portion, whose size does not grow with the logs.
    fn store<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let stored = py.detach(|| Ok::<_, DataError>(self.lock()?.store()))?;
        Ok(PyBytes::new(py, &stored))
    }

    /// Return what the logs have shown, and begin with nothing again.
    fn profile(&self, py: Python<'_>) -> PyResult<LogProfile> {
        let report = py.detach(|| {
            let joined = std::mem::take(&mut *self.lock()?);
            Ok::<_, DataError>(joined.report())
        })?;
        Ok(LogProfile::new(report, self.texts))
    }
}

impl LogPortions {
    fn lock(&self) -> Result<std::sync::MutexGuard<'_, Portion>, DataError> {
        self.joined.lock().map_err(|error| DataError::from(&error))
    }
}
