//! Converts Arrow tables: parameters from Python, results to Python.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::DataType;
use pyo3::prelude::*;
use uncork_load::QuantilePoint;
use uncork_model::{
    Column, IntervalCounts, LatencyQuantiles, Parameters, SeriesRow, SliceRow, StatementSummary,
    StatusRow,
};

use crate::arrow::{Batches, Table};
use crate::errors::DataError;

/// Take over a table of nullable texts.
pub(crate) fn parameters(table: Batches) -> Result<Parameters, DataError> {
    let Batches { schema, batches } = table;
    let mut columns = vec![Column::default(); schema.fields().len()];
    for batch in &batches {
        for ((column, array), field) in columns.iter_mut().zip(batch.columns()).zip(schema.fields())
        {
            append(column, array).map_err(|found| {
                DataError(format!(
                    "parameter column \"{}\" holds {found}; parameters are texts, as the server \
                     would read them",
                    field.name()
                ))
            })?;
        }
    }
    Parameters::new(columns).map_err(|error| DataError::from(&error))
}

fn append<'a>(column: &mut Column, array: &'a ArrayRef) -> Result<(), &'a DataType> {
    match array.data_type() {
        DataType::Utf8 => array
            .as_string::<i32>()
            .iter()
            .for_each(|value| column.push(value)),
        DataType::LargeUtf8 => array
            .as_string::<i64>()
            .iter()
            .for_each(|value| column.push(value)),
        DataType::Utf8View => array
            .as_string_view()
            .iter()
            .for_each(|value| column.push(value)),
        DataType::Null => (0..array.len()).for_each(|_| column.push(None)),
        other => return Err(other),
    }
    Ok(())
}

/// The statement table.
pub(crate) fn statements(rows: &[StatementSummary]) -> PyResult<Table> {
    let counts = |get: fn(&StatementSummary) -> u64| -> ArrayRef {
        Arc::new(
            rows.iter()
                .map(|row| Some(get(row)))
                .collect::<UInt64Array>(),
        )
    };
    let latencies = |get: fn(&LatencyQuantiles) -> u64| -> ArrayRef {
        Arc::new(
            rows.iter()
                .map(|row| row.latency.as_ref().map(get))
                .collect::<UInt64Array>(),
        )
    };
    let kinds = rows.iter().map(|row| row.kind.word());
    let scripts = rows.iter().map(|row| row.script.as_str());
    let names = rows.iter().map(|row| row.name.as_str());
    let lines = rows.iter().map(|row| row.line);
    let squares = rows.iter().map(|row| row.sum_squares);
    let histograms = rows.iter().map(|row| row.histogram.as_slice());
    table(vec![
        ("kind", Arc::new(StringArray::from_iter_values(kinds))),
        ("script", Arc::new(StringArray::from_iter_values(scripts))),
        ("name", Arc::new(StringArray::from_iter_values(names))),
        ("line", Arc::new(lines.collect::<UInt64Array>())),
        ("executions", counts(|row| row.executions)),
        ("errors", counts(|row| row.errors)),
        ("rows", counts(|row| row.rows)),
        ("sum_ns", counts(|row| row.sum_ns)),
        (
            "sum_squares_ns2",
            Arc::new(Float64Array::from_iter_values(squares)),
        ),
        ("min_ns", latencies(|latency| latency.min_ns)),
        ("max_ns", latencies(|latency| latency.max_ns)),
        ("p50_ns", latencies(|latency| latency.p50_ns)),
        ("p90_ns", latencies(|latency| latency.p90_ns)),
        ("p95_ns", latencies(|latency| latency.p95_ns)),
        ("p99_ns", latencies(|latency| latency.p99_ns)),
        ("p999_ns", latencies(|latency| latency.p999_ns)),
        ("p9999_ns", latencies(|latency| latency.p9999_ns)),
        (
            "histogram",
            Arc::new(BinaryArray::from_iter_values(histograms)),
        ),
    ])
}

/// The table of intervals.
pub(crate) fn series(rows: &[SeriesRow]) -> PyResult<Table> {
    let numbers = |get: fn(&SeriesRow) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(get)))
    };
    let counts = |get: fn(&IntervalCounts) -> u64| -> ArrayRef {
        let values = rows.iter().map(|row| get(&row.counts));
        Arc::new(UInt64Array::from_iter_values(values))
    };
    let scripts = rows.iter().map(|row| row.script.as_str());
    let histograms = rows
        .iter()
        .map(|row| (!row.histogram.is_empty()).then_some(row.histogram.as_slice()));
    table(vec![
        ("interval", numbers(|row| row.interval)),
        ("start_ns", numbers(|row| row.start_ns)),
        ("script", Arc::new(StringArray::from_iter_values(scripts))),
        ("started", counts(|counts| counts.started)),
        ("succeeded", counts(|counts| counts.succeeded)),
        ("failed", counts(|counts| counts.failed)),
        ("skipped", counts(|counts| counts.skipped)),
        ("retries", counts(|counts| counts.retries)),
        ("statements", counts(|counts| counts.statements)),
        ("histogram", Arc::new(histograms.collect::<BinaryArray>())),
    ])
}

/// The table of answers by status and interval.
pub(crate) fn statuses(rows: &[StatusRow]) -> PyResult<Table> {
    let numbers = |get: fn(&StatusRow) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(get)))
    };
    table(vec![
        ("interval", numbers(|row| row.interval)),
        ("start_ns", numbers(|row| row.start_ns)),
        ("length_ns", numbers(|row| row.length_ns)),
        ("status", numbers(|row| u64::from(row.status))),
        ("answers", numbers(|row| row.answers)),
    ])
}

/// The table of slices of a block.
pub(crate) fn slices(rows: &[SliceRow]) -> PyResult<Table> {
    let numbers = |get: fn(&SliceRow) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(get)))
    };
    let waited = rows.iter().map(|row| row.waited_ns);
    table(vec![
        ("arm", numbers(|row| row.arm as u64)),
        ("cycle", numbers(|row| row.cycle as u64)),
        ("begun_ns", numbers(|row| row.begun_ns)),
        ("elapsed_ns", numbers(|row| row.elapsed_ns)),
        ("started", numbers(|row| row.started)),
        ("succeeded", numbers(|row| row.succeeded)),
        ("sum_ns", numbers(|row| row.sum_ns)),
        ("waited_ns", Arc::new(waited.collect::<UInt64Array>())),
    ])
}

/// The quantile table.
pub(crate) fn quantiles(points: &[QuantilePoint]) -> PyResult<Table> {
    let quantiles = points.iter().map(|point| point.quantile);
    let values = points.iter().map(|point| point.value_ns);
    let counts = points.iter().map(|point| point.cumulative_count);
    table(vec![
        (
            "quantile",
            Arc::new(Float64Array::from_iter_values(quantiles)),
        ),
        ("value_ns", Arc::new(UInt64Array::from_iter_values(values))),
        (
            "cumulative_count",
            Arc::new(UInt64Array::from_iter_values(counts)),
        ),
    ])
}

/// Build a table from columns.
pub(crate) fn table(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
    let batch = RecordBatch::try_from_iter(columns).map_err(|error| DataError::from(&error))?;
    let schema = batch.schema();
    Ok(Table::new(schema, vec![batch]))
}
