//! All requests of a trial as bytes, made before anything is measured.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use uncork_model::{LoadPlan, Parameters, Protocol, Statement};

use super::literal::{highest_parameter, pieces, substitute};
use crate::{LoadError, Request, Step};

/// All requests, end to end in one buffer, cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes: Vec<u8>,
    /// Where request `n` ends; it starts where the one before ends.
    ends: Vec<usize>,
    statements: Vec<Rows>,
    begin: usize,
    protocol: Protocol,
    /// For each statement, the messages that prepare it, with its name.
    preparations: Vec<(String, Vec<u8>)>,
}

/// The requests of one statement: one a row of parameters, or a single one without parameters.
#[derive(Debug)]
struct Rows {
    first: usize,
    count: u64,
}

impl Requests {
    /// Encodes all requests of a plan.
    pub(crate) fn encode(plan: &LoadPlan, parameters: &Parameters) -> Result<Self, LoadError> {
        let mut bytes = BytesMut::new();
        let mut ends = Vec::new();
        let mut statements = Vec::new();
        let mut preparations = Vec::new();
        for (number, statement) in plan.statements.iter().enumerate() {
            parameters.check(statement)?;
            let encoder = Encoder::new(plan.protocol, number, statement, parameters)?;
            let rows = if statement.parameters.is_empty() {
                1
            } else {
                parameters.rows()
            };
            statements.push(Rows {
                first: ends.len(),
                count: rows as u64,
            });
            for row in 0..rows {
                encoder
                    .request(row, &mut bytes)
                    .map_err(|problem| encoder.error(problem))?;
                ends.push(bytes.len());
            }
            if plan.protocol == Protocol::Prepared {
                let preparation = encoder
                    .preparation()
                    .map_err(|problem| encoder.error(problem))?;
                preparations.push((statement.name.clone(), preparation));
            }
        }
        let begin = ends.len();
        for text in ["BEGIN", "COMMIT", "ROLLBACK"] {
            frontend::query(text, &mut bytes).map_err(|source| LoadError::System {
                action: "encode a request",
                source,
            })?;
            ends.push(bytes.len());
        }
        let bytes = bytes.to_vec();
        let protocol = plan.protocol;
        let shared = Shared {
            bytes,
            ends,
            statements,
            begin,
            protocol,
            preparations,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// The bytes of a request.
    pub(crate) fn get(&self, request: Request) -> &[u8] {
        let shared = &*self.shared;
        let number = match request.step {
            Step::Statement(statement) => {
                let rows = &shared.statements[statement];
                // The remainder is less than a count that came from a usize.
                rows.first + usize::try_from(request.operation % rows.count).unwrap_or(0)
            }
            Step::Begin => shared.begin,
            Step::Commit => shared.begin + 1,
            Step::Rollback => shared.begin + 2,
        };
        let start = if number == 0 {
            0
        } else {
            shared.ends[number - 1]
        };
        &shared.bytes[start..shared.ends[number]]
    }

    /// For each statement its name and the messages that prepare it; empty unless prepared.
    pub(crate) fn preparations(&self) -> &[(String, Vec<u8>)] {
        &self.shared.preparations
    }

    /// Whether requests end with a `Sync` message.
    pub(crate) fn synchronizes(&self) -> bool {
        self.shared.protocol != Protocol::Simple
    }
}

struct Encoder<'a> {
    protocol: Protocol,
    server_name: String,
    statement: &'a Statement,
    parameters: &'a Parameters,
    pieces: Vec<super::literal::Piece>,
}

impl<'a> Encoder<'a> {
    fn new(
        protocol: Protocol,
        number: usize,
        statement: &'a Statement,
        parameters: &'a Parameters,
    ) -> Result<Self, LoadError> {
        let server_name = match protocol {
            Protocol::Prepared => format!("uncork_{number}"),
            Protocol::Simple | Protocol::Extended => String::new(),
        };
        let pieces = pieces(&statement.sql);
        let encoder = Self {
            protocol,
            server_name,
            statement,
            parameters,
            pieces,
        };
        let used = highest_parameter(&encoder.pieces);
        let bound = statement.parameters.len();
        if used != bound {
            let problem = format!("its text uses {used} parameters, but {bound} are bound");
            return Err(encoder.error(problem));
        }
        Ok(encoder)
    }

    fn error(&self, problem: String) -> LoadError {
        LoadError::Encode {
            statement: self.statement.name.clone(),
            problem,
        }
    }

    fn value(&self, row: usize, number: usize) -> Option<&'a str> {
        let column = self.statement.parameters[number - 1];
        self.parameters.columns()[column].get(row)
    }

    fn request(&self, row: usize, bytes: &mut BytesMut) -> Result<(), String> {
        if self.protocol == Protocol::Simple {
            let value = |number| self.value(row, number);
            let text = substitute(&self.statement.sql, &self.pieces, value);
            return frontend::query(&text, bytes).map_err(|error| error.to_string());
        }
        if self.protocol == Protocol::Extended {
            self.parse(bytes)?;
        }
        let values = (1..=self.statement.parameters.len()).map(|number| self.value(row, number));
        frontend::bind(
            "",
            &self.server_name,
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
        })?;
        frontend::execute("", 0, bytes).map_err(|error| error.to_string())?;
        frontend::sync(bytes);
        Ok(())
    }

    fn parse(&self, bytes: &mut BytesMut) -> Result<(), String> {
        frontend::parse(&self.server_name, &self.statement.sql, [], bytes)
            .map_err(|error| error.to_string())
    }

    fn preparation(&self) -> Result<Vec<u8>, String> {
        let mut bytes = BytesMut::new();
        self.parse(&mut bytes)?;
        frontend::sync(&mut bytes);
        Ok(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use uncork_model::Column;

    use super::*;

    fn plan(protocol: &str, sql: &str, parameters: &str) -> LoadPlan {
        let text = format!(
            r#"{{"driver": "fake", "clients": 1, "threads": 1, "protocol": "{protocol}",
            "statements": [{{"name": "s", "sql": "{sql}", "parameters": {parameters}}}],
            "stop": {{"operations": 1}}, "deadline_ns": 1, "fake": {{"latencies_ns": [1]}}}}"#
        );
        LoadPlan::parse(text.as_bytes()).expect("valid")
    }

    fn table() -> Parameters {
        Parameters::new(vec![[Some("7"), None].into_iter().collect::<Column>()]).expect("even")
    }

    fn statement(operation: u64) -> Request {
        Request {
            step: Step::Statement(0),
            operation,
        }
    }

    #[test]
    fn rows_are_used_in_turn() {
        let requests = Requests::encode(&plan("simple", "SELECT $1", "[0]"), &table());
        let requests = requests.expect("encodes");
        assert_eq!(requests.get(statement(0)), b"Q\0\0\0\x0fSELECT '7'\0");
        assert_eq!(requests.get(statement(3)), b"Q\0\0\0\x10SELECT NULL\0");
        let begin = Request {
            step: Step::Begin,
            operation: 5,
        };
        assert_eq!(requests.get(begin), b"Q\0\0\0\x0aBEGIN\0");
        assert!(!requests.synchronizes());
    }

    #[test]
    fn each_protocol_sends_its_messages() {
        let tags = |protocol| {
            let requests = Requests::encode(&plan(protocol, "SELECT $1", "[0]"), &table());
            let requests = requests.expect("encodes");
            let mut rest = requests.get(statement(1));
            let mut tags = Vec::new();
            while let [tag, a, b, c, d, ..] = *rest {
                tags.push(char::from(tag));
                rest = &rest[1 + u32::from_be_bytes([a, b, c, d]) as usize..];
            }
            (
                tags.into_iter().collect::<String>(),
                requests.preparations().len(),
            )
        };
        assert_eq!(tags("simple"), ("Q".to_owned(), 0));
        assert_eq!(tags("extended"), ("PBES".to_owned(), 0));
        assert_eq!(tags("prepared"), ("BES".to_owned(), 1));
    }

    #[test]
    fn a_mismatch_of_parameters_is_named() {
        for (sql, parameters) in [
            ("SELECT $2", "[0]"),
            ("SELECT 1", "[0]"),
            ("SELECT $1", "[]"),
        ] {
            let error = Requests::encode(&plan("extended", sql, parameters), &table());
            let error = error.expect_err(sql).to_string();
            assert!(error.contains("statement \"s\""), "{error}");
        }
    }
}
