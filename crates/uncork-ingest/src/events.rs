//! Makes tables of all entries of logs, one series of tables per scanning thread, for others to write.

use std::borrow::Cow;
use std::fmt::Debug;
use std::mem::take;
use std::sync::Arc;

use arrow_array::builder::{
    StringBuilder, TimestampMicrosecondBuilder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::UInt16Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use uncork_log::{Entry, EntryRow, Gathered, Side, Sink, Texts};

/// Rows per batch, and the bytes of their texts.
const BATCH: usize = 8_192;
const BATCH_BYTES: usize = 4 << 20;
/// Rows per table, and the bytes of their texts. A table becomes a row group of the file.
const TABLE: usize = 32_768;
const TABLE_BYTES: usize = 8 << 20;

/// Why entries cannot be written, in the words of who writes them.
pub type WriteError = Box<dyn std::error::Error + Send + Sync>;

/// Where all entries go: one file per scanning thread.
pub trait EventFiles: Debug + Send + Sync {
    /// Begin the file of one part. All its tables have this schema.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    fn create(&self, part: usize, schema: &SchemaRef) -> Result<Box<dyn EventFile>, WriteError>;
}

/// The file of one part. It is not used again after an error.
pub trait EventFile: Debug + Send {
    /// Write one table.
    ///
    /// # Errors
    ///
    /// If it cannot be written, for example because the disk is full.
    fn write(&mut self, schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<(), WriteError>;

    /// Complete the file.
    ///
    /// # Errors
    ///
    /// If it cannot be completed.
    fn close(self: Box<Self>) -> Result<(), WriteError>;
}

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
    file: Box<dyn EventFile>,
    schema: SchemaRef,
    texts: Texts,
    times: TimestampMicrosecondBuilder,
    files: UInt32Builder,
    pids: UInt32Builder,
    servers: Names,
    /// The offset, the duration, bytes, the statement's ID.
    numbers: [UInt64Builder; 4],
    columns: [StringBuilder; TEXTS.len()],
    /// Rows of the next batch, and the bytes of their texts.
    rows: usize,
    bytes: usize,
    /// The batches of the next table, their rows and bytes.
    batches: Vec<RecordBatch>,
    table_rows: usize,
    table_bytes: usize,
    trouble: Option<WriteError>,
}

impl Events {
    /// Begin the file of one part.
    pub(crate) fn create(
        files: &dyn EventFiles,
        part: usize,
        texts: Texts,
    ) -> Result<Self, WriteError> {
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
            Field::new_dictionary("server", DataType::UInt16, DataType::Utf8, true),
        ];
        let columns = TEXTS.iter();
        fields.extend(columns.map(|name| Field::new(*name, DataType::Utf8, true)));
        let schema = Arc::new(Schema::new(fields));
        Ok(Self {
            file: files.create(part, &schema)?,
            schema,
            texts,
            times: TimestampMicrosecondBuilder::new(),
            files: UInt32Builder::new(),
            pids: UInt32Builder::new(),
            servers: Names::default(),
            numbers: Default::default(),
            columns: Default::default(),
            rows: 0,
            bytes: 0,
            batches: Vec::new(),
            table_rows: 0,
            table_bytes: 0,
            trouble: None,
        })
    }

    /// Whether rows could not be written; [`Self::finish`] returns the first error.
    pub(crate) fn is_broken(&self) -> bool {
        self.trouble.is_some()
    }

    /// Write what is left, and complete the file.
    pub(crate) fn finish(mut self) -> Result<(), WriteError> {
        self.end_batch();
        self.write_table();
        match self.trouble {
            Some(trouble) => Err(trouble),
            None => self.file.close(),
        }
    }

    fn push(
        &mut self,
        entry: &Entry<'_>,
        row: &EntryRow<'_>,
        (file, server): (u32, &str),
        lines: bool,
        id: Option<u64>,
    ) {
        let (head, texts) = (&entry.head, self.texts);
        self.times.append_option(head.time);
        self.files.append_value(file);
        self.pids.append_option((head.pid != 0).then_some(head.pid));
        self.servers.push(server);
        let [offsets, durations, sizes, statements] = &mut self.numbers;
        offsets.append_value(entry.offset);
        durations.append_option(row.micros);
        sizes.append_option(row.bytes);
        statements.append_option(id);
        let lossy = String::from_utf8_lossy;
        let values: [Cow<'_, str>; TEXTS.len()] = [
            head.severity.name().into(),
            lossy(head.sqlstate),
            row.kind.into(),
            row.step.map_or("", uncork_log::Step::name).into(),
            lossy(head.session),
            texts.name("user", head.user).into(),
            lossy(head.database),
            lossy(head.application),
            texts.name("host", head.host).into(),
            texts.statement(row.statement, lines).into(),
            texts.data(&row.parameters, lines).into(),
            texts.message(row.message, lines).into(),
            texts.data(row.detail, lines).into(),
            texts.data(entry.hint, lines).into(),
            texts.data(entry.context, lines).into(),
            texts.plan(row.plan, lines).into(),
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.bytes += value.len();
            column.append_option((!value.is_empty()).then_some(value));
        }
        self.rows += 1;
        if self.rows >= BATCH || self.bytes >= BATCH_BYTES {
            self.end_batch();
            if self.table_rows >= TABLE || self.table_bytes >= TABLE_BYTES {
                self.write_table();
            }
        }
    }

    fn end_batch(&mut self) {
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
            self.servers.finish(),
        ];
        for column in &mut self.columns {
            arrays.push(Arc::new(column.finish()));
        }
        self.table_rows += take(&mut self.rows);
        self.table_bytes += take(&mut self.bytes);
        match RecordBatch::try_new(self.schema.clone(), arrays) {
            Ok(batch) => self.batches.push(batch),
            Err(error) => self.trouble = self.trouble.take().or(Some(error.into())),
        }
    }

    fn write_table(&mut self) {
        let batches = take(&mut self.batches);
        (self.table_rows, self.table_bytes) = (0, 0);
        if self.trouble.is_none()
            && let Err(error) = self.file.write(&self.schema, batches)
        {
            self.trouble = Some(error);
        }
    }
}

/// A column of names that repeat from row to row, each of which is written once.
#[derive(Debug, Default)]
struct Names {
    all: Vec<String>,
    /// The place of the last row's name in `all`.
    last: usize,
    rows: UInt16Builder,
}

impl Names {
    /// Add a row; an empty name is null.
    fn push(&mut self, name: &str) {
        if name.is_empty() {
            self.rows.append_null();
            return;
        }
        if self.all.get(self.last).is_none_or(|last| last != name) {
            let known = self.all.iter().position(|one| one == name);
            self.last = known.unwrap_or_else(|| {
                self.all.push(name.to_owned());
                self.all.len() - 1
            });
        }
        self.rows.append_option(u16::try_from(self.last).ok());
    }

    /// Return the rows so far, and begin again.
    fn finish(&mut self) -> ArrayRef {
        let names = StringArray::from_iter_values(&self.all);
        Arc::new(DictionaryArray::<UInt16Type>::new(
            self.rows.finish(),
            Arc::new(names),
        ))
    }
}

/// Gathers entries, and writes them as rows.
pub(crate) struct Recording<'a> {
    pub(crate) gathered: &'a mut Gathered,
    pub(crate) events: &'a mut Events,
    pub(crate) file: u32,
    /// The name of the server that wrote the file; empty if it has none.
    pub(crate) server: &'a str,
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
            let source = (self.file, self.server);
            self.events.push(entry, &row, source, self.lines, id);
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
            let source = (self.file, self.server);
            self.events.push(entry, &row, source, false, None);
        }
    }

    fn foreign(&mut self) {
        self.gathered.foreign();
    }
}
