//! Reads, sums, draws and writes profiles for Python.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use uncork_stacks::{Drawing, Format, Limits, Measure, Row, Stacks, Tree, processors, read};

use crate::arrow::{Batches, Table};
use crate::errors::DataError;
use crate::tables::table;

/// Fewer stacks are combined faster than a thread starts.
const FEW: usize = 20_000;

/// Read a profile: takes bytes; returns its measures as JSON and a table of folded stacks.
#[pyfunction]
#[pyo3(signature = (data, format=None, times=false))]
pub(crate) fn read_stacks<'py>(
    py: Python<'py>,
    data: &[u8],
    format: Option<&str>,
    times: bool,
) -> PyResult<(Bound<'py, PyBytes>, Table)> {
    let format = format
        .map(|word| {
            Format::named(word)
                .ok_or_else(|| PyValueError::new_err(format!("\"{word}\" is not a known format")))
        })
        .transpose()?;
    let (facts, batches) = py.detach(|| {
        let (format, stacks) = read(data, format, times, Limits::default())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let measures: Vec<_> = stacks
            .measures
            .iter()
            .map(|one| json!({"name": one.name, "unit": one.unit}))
            .collect();
        let facts =
            json!({"format": format.word(), "measures": measures, "default": stacks.default});
        let batches = batches(stacks).map_err(|error| DataError::from(&error))?;
        Ok::<_, PyErr>((facts.to_string(), batches))
    })?;
    let schema = batches[0].schema();
    Ok((
        PyBytes::new(py, facts.as_bytes()),
        Table::new(schema, batches),
    ))
}

/// Build the batches of a folded table.
fn batches(mut stacks: Stacks) -> Result<Vec<RecordBatch>, ArrowError> {
    if !stacks.folded.is_empty() {
        // Hundreds of megabytes are not copied.
        return take(&mut stacks.folded)
            .into_iter()
            .map(|block| {
                let (count, ends) = (block.values.len(), ScalarBuffer::from(block.ends));
                let texts = Buffer::from_vec(block.texts.into_bytes());
                let stack = LargeStringArray::try_new(OffsetBuffer::new(ends), texts, None)?;
                let nobody = OffsetBuffer::new_zeroed(count);
                let process = LargeStringArray::try_new(nobody, Buffer::default(), None)?;
                let process: ArrayRef = Arc::new(process);
                batch(
                    Arc::new(Int64Array::new(ScalarBuffer::from(vec![0; count]), None)),
                    Arc::new(Int64Array::new_null(count)),
                    Arc::clone(&process),
                    process,
                    Arc::new(Int64Array::new_null(count)),
                    Arc::new(Int64Array::new(ScalarBuffer::from(block.values), None)),
                    Arc::new(stack),
                )
            })
            .collect();
    }
    let rows = &stacks.rows;
    let numbers = |get: fn(&Row) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(get).collect::<Int64Array>())
    };
    let whole = batch(
        numbers(|row| i64::try_from(row.measure).ok()),
        numbers(|row| row.pid.map(i64::from)),
        texts(rows.iter().map(|row| stacks.text(row.process))),
        texts(rows.iter().map(|row| stacks.text(row.route))),
        numbers(|row| row.time_ns),
        numbers(|row| Some(row.value)),
        texts(rows.iter().map(|row| stacks.text(row.stack))),
    )?;
    Ok(vec![whole])
}

fn batch(
    measure: ArrayRef,
    pid: ArrayRef,
    process: ArrayRef,
    route: ArrayRef,
    time_ns: ArrayRef,
    value: ArrayRef,
    stack: ArrayRef,
) -> Result<RecordBatch, ArrowError> {
    // All may be null, so that batches from any format have the same schema.
    RecordBatch::try_from_iter_with_nullable([
        ("measure", measure, true),
        ("pid", pid, true),
        ("process", process, true),
        ("route", route, true),
        ("time_ns", time_ns, true),
        ("value", value, true),
        ("stack", stack, true),
    ])
}

/// Build a text column in one allocation: growing one of hundreds of megabytes takes longer than all else.
fn texts<'a>(texts: impl ExactSizeIterator<Item = &'a str> + Clone) -> ArrayRef {
    let bytes = texts.clone().map(str::len).sum();
    let mut column = LargeStringBuilder::with_capacity(texts.len(), bytes);
    texts.for_each(|text| column.append_value(text));
    Arc::new(column.finish())
}

/// Draw stacks as a flame graph: takes a table of stacks and values and options as JSON, returns
/// SVG.
#[pyfunction]
pub(crate) fn draw_stacks<'py>(
    py: Python<'py>,
    stacks: Batches,
    options: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let drawing: Drawing = serde_json::from_slice(options)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let stacks = Columns::of(stacks)?;
    let svg = py.detach(|| uncork_stacks::draw(&stacks.tree(), &drawing));
    let svg = svg.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &svg))
}

/// Add up frames: takes a table of stacks and values; returns totals as JSON, a table of frames and
/// a table of kernel entries.
#[pyfunction]
pub(crate) fn sum_stacks(
    py: Python<'_>,
    stacks: Batches,
) -> PyResult<(Bound<'_, PyBytes>, Table, Table)> {
    let stacks = Columns::of(stacks)?;
    let (totals, frames, entries) = py.detach(|| {
        let tree = stacks.tree();
        let totals = json!({"total": tree.total(), "kernel": tree.in_kernel()});
        let frames = tree.frames();
        let numbers = |get: fn(&uncork_stacks::FrameTotals<'_>) -> i64| -> ArrayRef {
            Arc::new(
                frames
                    .iter()
                    .map(|one| Some(get(one)))
                    .collect::<Int64Array>(),
            )
        };
        let frames: Vec<(&str, ArrayRef)> = vec![
            (
                "name",
                Arc::new(
                    frames
                        .iter()
                        .map(|one| Some(one.name))
                        .collect::<StringArray>(),
                ),
            ),
            (
                "kernel",
                Arc::new(
                    frames
                        .iter()
                        .map(|one| Some(one.kernel))
                        .collect::<BooleanArray>(),
                ),
            ),
            ("own", numbers(|one| one.own[0])),
            ("total", numbers(|one| one.total[0])),
            ("own_before", numbers(|one| one.own[1])),
            ("total_before", numbers(|one| one.total[1])),
        ];
        let entries = tree.entries();
        let entries: Vec<(&str, ArrayRef)> = vec![
            (
                "user",
                Arc::new(
                    entries
                        .iter()
                        .map(|one| Some(one.user))
                        .collect::<StringArray>(),
                ),
            ),
            (
                "caller",
                Arc::new(
                    entries
                        .iter()
                        .map(|one| Some(one.caller))
                        .collect::<StringArray>(),
                ),
            ),
            (
                "kernel",
                Arc::new(
                    entries
                        .iter()
                        .map(|one| Some(one.kernel))
                        .collect::<StringArray>(),
                ),
            ),
            (
                "value",
                Arc::new(
                    entries
                        .iter()
                        .map(|one| Some(one.value))
                        .collect::<Int64Array>(),
                ),
            ),
        ];
        (totals.to_string(), frames, entries)
    });
    Ok((
        PyBytes::new(py, totals.as_bytes()),
        table(frames)?,
        table(entries)?,
    ))
}

/// Write stacks in a format that other tools read: `folded`, `speedscope` or `pprof`.
#[pyfunction]
pub(crate) fn write_stacks<'py>(
    py: Python<'py>,
    stacks: Batches,
    format: &str,
    name: &str,
    measure: &str,
    unit: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let stacks = Columns::of(stacks)?;
    let measure = Measure {
        name: measure.to_owned(),
        unit: unit.to_owned(),
    };
    let written = py.detach(|| match format {
        "folded" => Ok(uncork_stacks::to_folded(stacks.pairs())),
        "speedscope" => Ok(uncork_stacks::to_speedscope(name, &measure, stacks.pairs())),
        "pprof" => Ok(uncork_stacks::to_pprof(&measure, stacks.pairs())),
        _ => Err(PyValueError::new_err(format!(
            "\"{format}\" is not a format that can be written"
        ))),
    })?;
    Ok(PyBytes::new(py, &written))
}

/// Columns `stack`, `value` and, if there is one, `before`, batch by batch.
struct Columns(Vec<Batch>);

impl Columns {
    fn of(table: Batches) -> Result<Self, DataError> {
        table
            .batches
            .into_iter()
            .map(|batch| Self::batch(&batch))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn batch(batch: &RecordBatch) -> Result<Batch, DataError> {
        let number = |name: &str| {
            batch
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Int64Type>())
                .cloned()
        };
        let stacks = batch.column_by_name("stack").filter(|column| {
            column.as_string_opt::<i32>().is_some() || column.as_string_opt::<i64>().is_some()
        });
        match (stacks, number("value")) {
            (Some(stacks), Some(values)) => Ok((Arc::clone(stacks), values, number("before"))),
            _ => Err(DataError(
                "stacks have a column stack of texts and a column value of integers".into(),
            )),
        }
    }

    fn rows(&self) -> impl Iterator<Item = (&str, i64, i64)> {
        self.0
            .iter()
            .flat_map(|batch| rows(batch, 0..batch.1.len()))
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, i64)> {
        self.rows()
            .filter(|row| row.1 != 0)
            .map(|(stack, value, _)| (stack, value))
    }

    fn tree(&self) -> Tree<'_> {
        let all: usize = self.0.iter().map(|batch| batch.1.len()).sum();
        let parts = processors().min(all / FEW).max(1);
        Tree::joined(self.parts(all.div_ceil(parts).max(1)))
    }

    /// Return the rows in order, in parts of this size.
    fn parts(&self, most: usize) -> Vec<impl Iterator<Item = (&str, i64, i64)> + Send> {
        let mut parts = vec![Vec::new()];
        let mut room = most;
        for batch in &self.0 {
            let (mut start, end) = (0, batch.1.len());
            while start < end {
                if room == 0 {
                    parts.push(Vec::new());
                    room = most;
                }
                let next = end.min(start + room);
                room -= next - start;
                if let Some(part) = parts.last_mut() {
                    part.push((batch, start..next));
                }
                start = next;
            }
        }
        parts
            .into_iter()
            .map(|part| {
                part.into_iter()
                    .flat_map(|(batch, places)| rows(batch, places))
            })
            .collect()
    }
}

/// Stacks, their values, and their values before.
type Batch = (ArrayRef, Int64Array, Option<Int64Array>);

/// Return the rows of a batch.
fn rows(
    (stacks, values, before): &Batch,
    places: Range<usize>,
) -> Box<dyn Iterator<Item = (&str, i64, i64)> + Send + '_> {
    let row = move |place: usize| {
        let earlier = before.as_ref().map_or(0, |before| before.value(place));
        (values.value(place), earlier)
    };
    if let Some(texts) = stacks.as_string_opt::<i32>() {
        Box::new(places.map(move |place| {
            let (value, earlier) = row(place);
            (texts.value(place), value, earlier)
        }))
    } else {
        let texts = stacks.as_string::<i64>();
        Box::new(places.map(move |place| {
            let (value, earlier) = row(place);
            (texts.value(place), value, earlier)
        }))
    }
}
