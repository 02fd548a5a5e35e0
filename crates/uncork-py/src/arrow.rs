//! Tables that cross to and from Python by the Arrow C stream interface, without a copy.
//!
//! Specifications: <https://arrow.apache.org/docs/format/CStreamInterface.html> and
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use std::ffi::CStr;

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::DataError;

const STREAM: &CStr = c"arrow_array_stream";

/// A table that any reader of Arrow streams reads, such as `pyarrow.table(it)`.
#[pyclass(frozen, name = "Table")]
pub(crate) struct Table(Batches);

/// A table that Python passed: anything with `__arrow_c_stream__`.
pub(crate) struct Batches {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Table {
    /// All batches have this schema.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self(Batches { schema, batches })
    }
}

#[pymethods]
impl Table {
    /// The producer may ignore a requested schema: the consumer then casts or refuses.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<Result<_, ArrowError>> = self.0.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.0.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

impl FromPyObject<'_, '_> for Batches {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let capsule = object
            .getattr("__arrow_c_stream__")
            .map_err(|_| PyTypeError::new_err("expected a table that speaks Arrow's C stream"))?
            .call0()?;
        let stream = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds a valid `ArrowArrayStream` while the capsule lives, which
        // it does until the end of this function. Reading moves the stream out and leaves it released,
        // as the specification asks of a consumer.
        #[expect(unsafe_code, reason = "the C stream interface is a pointer")]
        let reader = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr().cast()) };
        let reader = reader.map_err(|error| DataError::from(&error))?;
        let schema = reader.schema();
        let batches: Result<_, _> = reader.collect();
        let batches = batches.map_err(|error| DataError::from(&error))?;
        Ok(Self { schema, batches })
    }
}
