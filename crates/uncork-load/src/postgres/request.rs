//! Encodes statements. Requests without variables are encoded before anything is measured; others
//! are assembled from encoded parts.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use uncork_model::{BatchForm, Parameters, Protocol, Statement};
use uncork_script::{Session, Sql};

use super::literal::{Piece, highest_parameter, pieces, substitute};
use super::rows::{array_literal, copy_line};

/// Execute the unnamed portal to its end.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
/// Describe the unnamed portal: the answer names the columns.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
/// The end of a series of messages of the extended protocol.
pub(crate) const SYNC: &[u8] = b"S\0\0\0\x04";

/// How a statement is sent. Requests of the extended and prepared protocols have no `Sync` in
/// [`Request::Template`], and end with one in [`Request::Fixed`].
#[derive(Debug)]
pub(crate) enum Request {
    /// Encoded in advance.
    Fixed(Fixed),
    /// Assembled when it is sent.
    Template(Box<Template>),
}

/// The requests of one statement, end to end.
#[derive(Debug)]
pub(crate) struct Fixed {
    bytes: Vec<u8>,
    /// Where request `n` ends; it starts where the previous one ends.
    ends: Vec<usize>,
    /// How many operations have requests of their own; later operations start over.
    operations: u64,
    /// Executions per operation.
    times: usize,
    /// Length of the `Sync` at a request's end, in bytes.
    sync: usize,
}

impl Fixed {
    /// Return the bytes of execution `execution` of operation `operation`, with or without `Sync`.
    pub(crate) fn get(&self, operation: u64, execution: usize, sync: bool) -> &[u8] {
        // The remainder is less than a count that came from a usize.
        let operation = usize::try_from(operation % self.operations).unwrap_or(0);
        let number = operation * self.times + execution;
        let start = if number == 0 {
            0
        } else {
            self.ends[number - 1]
        };
        let end = self.ends[number] - if sync { 0 } else { self.sync };
        &self.bytes[start..end]
    }
}

/// A statement of a script, with variables in it or columns to capture.
#[derive(Debug)]
pub(crate) struct Template {
    sql: Sql,
    protocol: Protocol,
    /// The `Parse` message, for the extended protocol.
    parse: Vec<u8>,
    /// `Bind` up to and including the number of parameters, without tag and length.
    bind: Vec<u8>,
    describe: bool,
}

impl Template {
    /// The statement as the simple protocol sends it.
    pub(crate) fn text(&self, variables: &Session) -> String {
        let mut text = Vec::new();
        variables.write_query(&self.sql, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Append the request, without `Sync`.
    pub(crate) fn write(&self, variables: &Session, out: &mut Vec<u8>) {
        if self.protocol == Protocol::Simple {
            let start = open(b'Q', out);
            variables.write_query(&self.sql, out);
            out.push(0);
            close(start, out);
            return;
        }
        out.extend_from_slice(&self.parse);
        let start = open(b'B', out);
        out.extend_from_slice(&self.bind);
        for &slot in &self.sql.parameters {
            let length = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if variables.write_parameter(slot, out) {
                let written = u32::try_from(out.len() - length - 4).unwrap_or(u32::MAX);
                out[length..length + 4].copy_from_slice(&written.to_be_bytes());
            }
        }
        // All columns of the answer in text format.
        out.extend_from_slice(&[0, 0]);
        close(start, out);
        if self.describe {
            out.extend_from_slice(DESCRIBE);
        }
        out.extend_from_slice(EXECUTE);
    }
}

/// Begin a message; return its position.
fn open(tag: u8, out: &mut Vec<u8>) -> usize {
    out.push(tag);
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// End the message that began at `start`.
fn close(start: usize, out: &mut [u8]) {
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// A statement's name on the server; empty for none.
pub(crate) fn server_name(protocol: Protocol, number: usize) -> String {
    match protocol {
        Protocol::Prepared => format!("uncork_{number}"),
        Protocol::Simple | Protocol::Extended => String::new(),
    }
}

/// The `Parse` message of a statement.
pub(crate) fn parse_message(name: &str, sql: &str) -> Result<Vec<u8>, String> {
    let mut bytes = BytesMut::new();
    frontend::parse(name, sql, [], &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes.to_vec())
}

/// Encode a query of the simple protocol.
pub(crate) fn query(sql: &str) -> Result<Vec<u8>, String> {
    let mut bytes = BytesMut::new();
    frontend::query(sql, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes.to_vec())
}

/// Encode statement number `number` of a script.
pub(crate) fn script_request(
    protocol: Protocol,
    number: usize,
    sql: Sql,
) -> Result<Request, String> {
    let name = server_name(protocol, number);
    let captures = sql.capture.is_some();
    if sql.parameters.is_empty() && !captures {
        let mut bytes = Vec::new();
        let sync = if protocol == Protocol::Simple {
            bytes = query(&sql.text)?;
            0
        } else {
            if protocol == Protocol::Extended {
                bytes = parse_message("", &sql.numbered)?;
            }
            bind_execute(&name, &[], &mut bytes)?;
            bytes.extend_from_slice(SYNC);
            SYNC.len()
        };
        return Ok(Request::Fixed(Fixed {
            ends: vec![bytes.len()],
            bytes,
            operations: 1,
            times: 1,
            sync,
        }));
    }
    let parse = if protocol == Protocol::Extended {
        parse_message("", &sql.numbered)?
    } else {
        Vec::new()
    };
    let count = u16::try_from(sql.parameters.len()).map_err(|_| "too many parameters")?;
    let mut bind = vec![0];
    bind.extend_from_slice(name.as_bytes());
    bind.extend_from_slice(&[0, 0, 0]);
    bind.extend_from_slice(&count.to_be_bytes());
    Ok(Request::Template(Box::new(Template {
        sql,
        protocol,
        parse,
        bind,
        describe: captures,
    })))
}

/// Encode a plan's statement, for all rows of its parameters.
pub(crate) fn plan_request(
    protocol: Protocol,
    number: usize,
    statement: &Statement,
    parameters: &Parameters,
) -> Result<Request, String> {
    let encoder = Encoder::new(protocol, number, statement, parameters)?;
    let (rows, times) = (encoder.rows, encoder.times);
    let per_operation = rows * times;
    let operations = if statement.parameters.is_empty() {
        1
    } else {
        parameters.rows() / per_operation
    };
    if operations == 0 {
        return Err(format!(
            "a batch takes {per_operation} rows of parameters, but the table has {}",
            parameters.rows()
        ));
    }
    let mut bytes = BytesMut::new();
    let mut ends = Vec::with_capacity(operations * times);
    for execution in 0..operations * times {
        encoder.request(execution * rows, &mut bytes)?;
        ends.push(bytes.len());
    }
    Ok(Request::Fixed(Fixed {
        bytes: bytes.to_vec(),
        ends,
        operations: operations as u64,
        times,
        sync: if encoder.synchronizes() {
            SYNC.len()
        } else {
            0
        },
    }))
}

fn bind_execute(name: &str, values: &[Option<&str>], bytes: &mut Vec<u8>) -> Result<(), String> {
    let mut buffer = BytesMut::new();
    bind(name, values.iter().copied(), &mut buffer)?;
    bytes.extend_from_slice(&buffer);
    bytes.extend_from_slice(EXECUTE);
    Ok(())
}

fn bind<'a>(
    name: &str,
    values: impl Iterator<Item = Option<&'a str>>,
    bytes: &mut BytesMut,
) -> Result<(), String> {
    frontend::bind(
        "",
        name,
        [],
        values,
        |value: Option<&str>, bytes| {
            let Some(value) = value else {
                return Ok(IsNull::Yes);
            };
            bytes.extend_from_slice(value.as_bytes());
            Ok(IsNull::No)
        },
        [],
        bytes,
    )
    .map_err(|error| match error {
        frontend::BindError::Conversion(error) => error.to_string(),
        frontend::BindError::Serialization(error) => error.to_string(),
    })
}

struct Encoder<'a> {
    protocol: Protocol,
    name: String,
    statement: &'a Statement,
    parameters: &'a Parameters,
    pieces: Vec<Piece>,
    rows: usize,
    times: usize,
    form: BatchForm,
}

impl<'a> Encoder<'a> {
    fn new(
        protocol: Protocol,
        number: usize,
        statement: &'a Statement,
        parameters: &'a Parameters,
    ) -> Result<Self, String> {
        let (rows, times, form) = statement.batch.map_or((1, 1, BatchForm::Scalar), |batch| {
            (batch.rows, batch.times, batch.form)
        });
        let encoder = Self {
            protocol,
            name: server_name(protocol, number),
            statement,
            parameters,
            pieces: pieces(&statement.sql),
            rows,
            times,
            form,
        };
        let used = highest_parameter(&encoder.pieces);
        let columns = statement.parameters.len();
        let bound = match form {
            BatchForm::Scalar | BatchForm::Arrays => columns,
            BatchForm::Values => columns * rows,
            BatchForm::Copy => 0,
        };
        if used != bound {
            return Err(format!(
                "its text uses {used} parameters, but {bound} are bound"
            ));
        }
        if form == BatchForm::Copy && columns == 0 {
            return Err("COPY needs at least one parameter column as its data".to_owned());
        }
        Ok(encoder)
    }

    /// Encode `COPY` in the simple protocol, where its data may follow without waiting.
    fn synchronizes(&self) -> bool {
        self.protocol != Protocol::Simple && self.form != BatchForm::Copy
    }

    /// Return the value of `$number` in the execution that begins at `row`.
    fn value(&self, row: usize, number: usize) -> Option<String> {
        let columns = &self.statement.parameters;
        let index = number - 1;
        match self.form {
            BatchForm::Arrays => {
                let column = &self.parameters.columns()[columns[index]];
                Some(array_literal(
                    (row..row + self.rows).map(|row| column.get(row)),
                ))
            }
            BatchForm::Scalar | BatchForm::Values | BatchForm::Copy => {
                let column = &self.parameters.columns()[columns[index % columns.len()]];
                column.get(row + index / columns.len()).map(str::to_owned)
            }
        }
    }

    fn request(&self, row: usize, bytes: &mut BytesMut) -> Result<(), String> {
        if self.form == BatchForm::Copy {
            return self.copy(row, bytes);
        }
        let used = highest_parameter(&self.pieces);
        let values: Vec<_> = (1..=used).map(|number| self.value(row, number)).collect();
        if self.protocol == Protocol::Simple {
            let value = |number: usize| values[number - 1].as_deref();
            let text = substitute(&self.statement.sql, &self.pieces, value);
            return frontend::query(&text, bytes).map_err(|error| error.to_string());
        }
        if self.protocol == Protocol::Extended {
            bytes.extend_from_slice(&parse_message("", &self.statement.sql)?);
        }
        bind(&self.name, values.iter().map(Option::as_deref), bytes)?;
        bytes.extend_from_slice(EXECUTE);
        bytes.extend_from_slice(SYNC);
        Ok(())
    }

    /// The statement, its data and their end in one message group: if the statement fails, the
    /// server skips the rest.
    fn copy(&self, row: usize, bytes: &mut BytesMut) -> Result<(), String> {
        frontend::query(&self.statement.sql, bytes).map_err(|error| error.to_string())?;
        let mut data = Vec::new();
        for row in row..row + self.rows {
            let columns = self.statement.parameters.iter();
            let values = columns.map(|&column| self.parameters.columns()[column].get(row));
            copy_line(values, &mut data);
        }
        for chunk in data.chunks(1 << 16) {
            frontend::CopyData::new(chunk)
                .map_err(|error| error.to_string())?
                .write(bytes);
        }
        frontend::copy_done(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use uncork_model::{Batch, Column};

    use super::*;

    fn table() -> Parameters {
        let column = |values: [Option<&'static str>; 4]| values.into_iter().collect::<Column>();
        Parameters::new(vec![
            column([Some("1"), Some("2"), None, Some("4")]),
            column([Some("a\tb"), Some("c\"d"), Some("e"), Some("")]),
        ])
        .expect("even")
    }

    fn statement(sql: &str, parameters: &[usize], batch: Option<Batch>) -> Statement {
        Statement {
            name: "s".to_owned(),
            sql: sql.to_owned(),
            parameters: parameters.to_vec(),
            batch,
        }
    }

    fn fixed(protocol: Protocol, statement: &Statement) -> Fixed {
        match plan_request(protocol, 0, statement, &table()) {
            Ok(Request::Fixed(fixed)) => fixed,
            other => panic!("{other:?}"),
        }
    }

    fn tags(mut rest: &[u8]) -> String {
        let mut tags = String::new();
        while let [tag, a, b, c, d, ..] = *rest {
            tags.push(char::from(tag));
            rest = &rest[1 + u32::from_be_bytes([a, b, c, d]) as usize..];
        }
        assert_eq!(rest, b"");
        tags
    }

    #[test]
    fn rows_are_used_in_turn() {
        let requests = fixed(Protocol::Simple, &statement("SELECT $1", &[0], None));
        assert_eq!(requests.get(0, 0, true), b"Q\0\0\0\x0fSELECT '1'\0");
        assert_eq!(requests.get(6, 0, true), b"Q\0\0\0\x10SELECT NULL\0");
    }

    #[test]
    fn each_protocol_sends_its_messages() {
        let sql = statement("SELECT $1", &[0], None);
        assert_eq!(tags(fixed(Protocol::Simple, &sql).get(1, 0, true)), "Q");
        assert_eq!(
            tags(fixed(Protocol::Extended, &sql).get(1, 0, true)),
            "PBES"
        );
        assert_eq!(tags(fixed(Protocol::Prepared, &sql).get(1, 0, true)), "BES");
        assert_eq!(tags(fixed(Protocol::Prepared, &sql).get(1, 0, false)), "BE");
    }

    #[test]
    fn batches_take_their_rows() {
        let batch = |rows, times, form| {
            Some(Batch {
                rows,
                times,
                form,
                pipelined: false,
            })
        };
        let values = fixed(
            Protocol::Simple,
            &statement(
                "VALUES ($1,$2),($3,$4)",
                &[0, 1],
                batch(2, 1, BatchForm::Values),
            ),
        );
        let text = values.get(1, 0, true);
        assert_eq!(&text[5..text.len() - 1], b"VALUES (NULL,'e'),('4','')");
        let arrays = fixed(
            Protocol::Simple,
            &statement("SELECT $1, $2", &[0, 1], batch(2, 2, BatchForm::Arrays)),
        );
        let text = arrays.get(7, 1, true);
        assert_eq!(
            &text[5..text.len() - 1],
            b"SELECT '{NULL,\"4\"}', '{\"e\",\"\"}'"
        );
        let copy = fixed(
            Protocol::Prepared,
            &statement("COPY t FROM STDIN", &[0, 1], batch(4, 1, BatchForm::Copy)),
        );
        assert_eq!(tags(copy.get(0, 0, true)), "Qdc");
        let many = plan_request(
            Protocol::Simple,
            0,
            &statement("SELECT $1", &[0], batch(1, 5, BatchForm::Scalar)),
            &table(),
        );
        assert!(many.expect_err("too few rows").contains("takes 5 rows"));
    }

    #[test]
    fn a_mismatch_of_parameters_is_named() {
        for (sql, parameters) in [
            ("SELECT $2", [0].as_slice()),
            ("SELECT 1", &[0]),
            ("SELECT $1", &[]),
        ] {
            let error = plan_request(
                Protocol::Extended,
                0,
                &statement(sql, parameters, None),
                &table(),
            );
            assert!(error.expect_err(sql).contains("parameters"));
        }
    }
}
