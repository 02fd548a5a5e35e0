//! All entries of logs as tables, for files that Python writes.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use uncork_ingest::{EventFile, EventFiles, WriteError};

use crate::arrow::Table;

/// An object of Python that begins files. Its exceptions pass unchanged.
#[derive(Debug)]
pub(crate) struct PythonFiles(pub(crate) Py<PyAny>);

/// A file that it began.
#[derive(Debug)]
struct PythonFile(Py<PyAny>);

impl EventFiles for PythonFiles {
    fn create(&self, part: usize, schema: &SchemaRef) -> Result<Box<dyn EventFile>, WriteError> {
        let empty = Table::new(schema.clone(), Vec::new());
        let file = attached(|py| self.0.call_method1(py, "create", (part, empty)))?;
        Ok(Box::new(PythonFile(file)))
    }
}

impl EventFile for PythonFile {
    fn write(&mut self, schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<(), WriteError> {
        let table = Table::new(schema.clone(), batches);
        attached(|py| self.0.call_method1(py, "write", (table,)))?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), WriteError> {
        attached(|py| self.0.call_method0(py, "close"))?;
        Ok(())
    }
}

/// Call Python from a thread of the core.
fn attached<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, WriteError> {
    match Python::try_attach(call) {
        Some(done) => Ok(done?),
        None => Err("Python is shutting down".into()),
    }
}
