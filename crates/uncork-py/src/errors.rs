//! The core's errors as the exceptions of `uncork.errors`.

use std::error::Error;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use uncork_ingest::Error as Ingest;
use uncork_load::{HistogramError, LoadError as Load};
use uncork_model::PlanError;
use uncork_server::InstallError;

/// The exceptions, defined in Python.
mod python {
    pyo3::import_exception!(uncork.errors, ConnectError);
    pyo3::import_exception!(uncork.errors, LoadError);
    pyo3::import_exception!(uncork.errors, SetupError);
}

/// Data that cannot be converted.
#[derive(Debug)]
pub(crate) struct DataError(pub(crate) String);

impl<E: Error> From<&E> for DataError {
    fn from(error: &E) -> Self {
        Self(error.to_string())
    }
}

impl From<DataError> for PyErr {
    fn from(error: DataError) -> Self {
        python::LoadError::new_err(error.0)
    }
}

pub(crate) fn plan_error(error: &PlanError) -> PyErr {
    python::LoadError::new_err(error.to_string())
}

pub(crate) fn histogram_error(error: &HistogramError) -> PyErr {
    python::LoadError::new_err(error.to_string())
}

pub(crate) fn install_error(error: &InstallError) -> PyErr {
    python::SetupError::new_err(error.to_string())
}

/// What Python raised while it wrote events passes unchanged.
pub(crate) fn ingest_error(error: Ingest) -> PyErr {
    let message = error.to_string();
    match error {
        Ingest::Events(source) => match source.downcast::<PyErr>() {
            Ok(raised) => *raised,
            Err(_) => python::SetupError::new_err(message),
        },
        Ingest::Open { .. } => python::SetupError::new_err(message),
    }
}

pub(crate) fn load_error(error: &Load) -> PyErr {
    let message = error.to_string();
    match error {
        Load::Connect(_) => python::ConnectError::new_err(message),
        Load::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => python::LoadError::new_err(message),
    }
}

pub(crate) fn sampler_error(error: &std::io::Error) -> PyErr {
    python::SetupError::new_err(format!("the sampler cannot begin: {error}"))
}
