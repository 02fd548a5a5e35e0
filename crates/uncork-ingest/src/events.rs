//! Writes all entries of logs as a table: one Parquet file per scanning thread.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    StringBuilder, TimestampMicrosecondBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use uncork_log::{Entry, EntryRow, Gathered, Side, Sink, Texts};

/// Rows per batch, and the bytes of their texts.
const BATCH: usize = 8_192;
const BATCH_BYTES: usize = 8 << 20;
/// Rows per row group, and its bytes in memory.
const GROUP: usize = 131_072;
const GROUP_BYTES: usize = 48 << 20;

/// The text columns, in order.
const TEXTS: [&str; 16] = [
    "severity",
    "sqlstate",
    "kind",
    "step",
    "session",
    "user",
    "database",
    "application",
    "host",
    "statement",
    "parameters",
    "message",
    "detail",
    "hint",
    "context",
    "plan",
];

/// Writes entries as rows.
#[derive(Debug)]
pub(crate) struct Events {
    writer: ArrowWriter<File>,
    schema: Arc<Schema>,
    texts: Texts,
    times: TimestampMicrosecondBuilder,
    files: UInt32Builder,
    pids: UInt32Builder,
    /// The offset, the duration, bytes, the statement's ID.
    numbers: [UInt64Builder; 4],
    columns: [StringBuilder; TEXTS.len()],
    rows: usize,
    bytes: usize,
    trouble: Option<io::Error>,
}

impl Events {
    /// Begin the file of one part in a folder.
    pub(crate) fn create(folder: &Path, part: usize, texts: Texts) -> io::Result<Self> {
        let mut fields = vec![
            Field::new(
                "time",
                DataType::Timestamp(TimeUnit::Microsecond, None),
                true,
            ),
            Field::new("file", DataType::UInt32, false),
            Field::new("offset", DataType::UInt64, false),
            Field::new("pid", DataType::UInt32, true),
            Field::new("duration_us", DataType::UInt64, true),
            Field::new("bytes", DataType::UInt64, true),
            Field::new("statement_id", DataType::UInt64, true),
        ];
        let columns = TEXTS.iter();
        fields.extend(columns.map(|name| Field::new(*name, DataType::Utf8, true)));
        let schema = Arc::new(Schema::new(fields));
        let file = File::create_new(folder.join(format!("events-{part}.parquet")))?;
        let level = ZstdLevel::try_new(1).map_err(io::Error::other)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(GROUP))
            .build();
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
        Ok(Self {
            writer: writer.map_err(io::Error::other)?,
            schema,
            texts,
            times: TimestampMicrosecondBuilder::new(),
            files: UInt32Builder::new(),
            pids: UInt32Builder::new(),
            numbers: Default::default(),
            columns: Default::default(),
            rows: 0,
            bytes: 0,
            trouble: None,
        })
    }

    /// Whether rows could not be written; [`Self::finish`] returns the first error.
    pub(crate) fn is_broken(&self) -> bool {
        self.trouble.is_some()
    }

    /// Write what is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush();
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        self.writer.close().map_err(row)?;
        Ok(())
    }

    fn push(
        &mut self,
        entry: &Entry<'_>,
        row: &EntryRow<'_>,
        file: u32,
        lines: bool,
        id: Option<u64>,
    ) {
        let (head, texts) = (&entry.head, self.texts);
        self.times.append_option(head.time);
        self.files.append_value(file);
        self.pids.append_option((head.pid != 0).then_some(head.pid));
        let [offsets, durations, sizes, statements] = &mut self.numbers;
        offsets.append_value(entry.offset);
        durations.append_option(row.micros);
        sizes.append_option(row.bytes);
        statements.append_option(id);
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let values: [String; TEXTS.len()] = [
            head.severity.name().to_owned(),
            lossy(head.sqlstate),
            row.kind.to_owned(),
            row.step.map_or("", uncork_log::Step::name).to_owned(),
            lossy(head.session),
            texts.name("user", head.user),
            lossy(head.database),
            lossy(head.application),
            texts.name("host", head.host),
            texts.statement(row.statement, lines),
            texts.data(&row.parameters, lines),
            texts.message(row.message, lines),
            texts.data(row.detail, lines),
            texts.data(entry.hint, lines),
            texts.data(entry.context, lines),
            texts.plan(row.plan, lines),
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.bytes += value.len();
            column.append_option((!value.is_empty()).then_some(value));
        }
        self.rows += 1;
        if self.rows >= BATCH || self.bytes >= BATCH_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let (times, files, pids) = (self.times.finish(), self.files.finish(), self.pids.finish());
        let [offsets, durations, sizes, statements] = &mut self.numbers;
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(files),
            Arc::new(offsets.finish()),
            Arc::new(pids),
            Arc::new(durations.finish()),
            Arc::new(sizes.finish()),
            Arc::new(statements.finish()),
        ];
        for column in &mut self.columns {
            arrays.push(Arc::new(column.finish()));
        }
        (self.rows, self.bytes) = (0, 0);
        if self.trouble.is_none() {
            self.trouble = self.write(arrays).err();
        }
    }

    fn write(&mut self, arrays: Vec<ArrayRef>) -> io::Result<()> {
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(row)?;
        if self.writer.in_progress_size() >= GROUP_BYTES {
            self.writer.flush().map_err(row)?;
        }
        Ok(())
    }
}

/// Return the system's error, without the library's context.
fn row(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// Gathers entries, and writes them as rows.
pub(crate) struct Recording<'a> {
    pub(crate) gathered: &'a mut Gathered,
    pub(crate) events: &'a mut Events,
    pub(crate) file: u32,
    /// Whether the log is plain text, where further lines of a text begin with a tab.
    pub(crate) lines: bool,
}

impl Sink for Recording<'_> {
    fn entry(&mut self, entry: &Entry<'_>) {
        let (own, skips) = (self.gathered.own, self.gathered.skips(&entry.head));
        self.gathered.entry(entry);
        if !skips {
            let row = EntryRow::read(entry);
            // Entries of uncork's own monitoring are not gathered, but they are in the table of all
            // entries.
            let id = if self.gathered.own > own {
                None
            } else {
                self.gathered.statement_id(&row)
            };
            self.events.push(entry, &row, self.file, self.lines, id);
        }
    }

    fn rejected(&mut self, offset: u64, line: &[u8]) {
        self.gathered.rejected(offset, line);
    }

    fn lines(&mut self, heads: u64, continuations: u64) {
        self.gathered.lines(heads, continuations);
    }

    fn pooler(&mut self, entry: &Entry<'_>, side: Option<Side>) {
        let skips = self.gathered.skips(&entry.head);
        self.gathered.pooler(entry, side);
        if !skips {
            let row = EntryRow::pooler(entry);
            self.events.push(entry, &row, self.file, false, None);
        }
    }

    fn foreign(&mut self) {
        self.gathered.foreign();
    }
}
