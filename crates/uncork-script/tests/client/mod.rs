//! A client without a server: runs scripts, notes what it would send, and is handed the rows.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;

use uncork_script::{Action, Defaults, Script, Session, Sql, Streams, Symbols, Value};

/// A captured row: columns by name; none for SQL's null.
pub(crate) type Row = BTreeMap<&'static str, Option<String>>;

pub(crate) struct Client {
    pub(crate) session: Session,
}

impl Client {
    pub(crate) fn new(
        symbols: &Symbols,
        streams: &Streams,
        index: usize,
        defined: &[(&str, &str)],
    ) -> Self {
        let mut session = Session::new(symbols, streams.client(index).function);
        let defaults = Defaults {
            scale: 1,
            client_id: i64::try_from(index).expect("few clients"),
            default_seed: streams.default_seed(),
            random_seed: streams.random_seed(),
        };
        session.define_defaults(symbols, &defaults);
        for (name, value) in defined {
            if let Some(slot) = symbols.lookup(name) {
                session.set(slot, Value::from_text(*value));
            }
        }
        Self { session }
    }

    /// Run the script once; the requests as the simple protocol sends them, or what went wrong.
    pub(crate) fn run(
        &mut self,
        script: &Script,
        symbols: &Symbols,
        rows: &[Row],
    ) -> Result<Vec<String>, String> {
        self.walk(script, symbols, rows, |session, sql| {
            let mut buffer = Vec::new();
            session.write_query(sql, &mut buffer);
            String::from_utf8(buffer).expect("UTF-8")
        })
    }

    /// The same by the extended protocol: each request with its parameters as a server logs them.
    pub(crate) fn run_extended(
        &mut self,
        script: &Script,
        symbols: &Symbols,
        rows: &[Row],
    ) -> Result<Vec<(String, String)>, String> {
        self.walk(script, symbols, rows, |session, sql| {
            let parameters = (1..).zip(&sql.parameters).map(|(number, slot)| {
                let mut buffer = Vec::new();
                if session.write_parameter(*slot, &mut buffer) {
                    format!(
                        "${number} = '{}'",
                        String::from_utf8(buffer).expect("UTF-8")
                    )
                } else {
                    format!("${number} = NULL")
                }
            });
            let list = parameters.collect::<Vec<_>>().join(", ");
            let list = if list.is_empty() {
                "NULL".into()
            } else {
                format!("parameters: {list}")
            };
            (sql.numbered.clone(), list)
        })
    }

    fn walk<Request>(
        &mut self,
        script: &Script,
        symbols: &Symbols,
        rows: &[Row],
        send: impl Fn(&Session, &Sql) -> Request,
    ) -> Result<Vec<Request>, String> {
        let mut rows = rows.iter();
        let mut requests = Vec::new();
        let mut at = 0;
        while let Some(command) = script.commands.get(at) {
            let here = at;
            let located = |error| script.locate(here, &error);
            at += 1;
            match &command.action {
                Action::Sql(sql) => {
                    requests.push(send(&self.session, sql));
                    if let Some(capture) = &sql.capture {
                        for (column, value) in rows.next().expect("a row for each capture") {
                            if let Some(slot) = capture.slot(symbols, column).map_err(located)? {
                                let text = value.as_deref().unwrap_or("");
                                self.session.set_text(slot, text.as_bytes());
                            }
                        }
                    }
                }
                Action::Set {
                    variable,
                    expression,
                } => {
                    self.session
                        .assign(*variable, expression)
                        .map_err(located)?;
                }
                Action::Sleep(sleep) => {
                    self.session.sleep_ns(sleep).map_err(located)?;
                }
                Action::Branch {
                    condition,
                    otherwise,
                } => {
                    if !self.session.truth(condition).map_err(located)? {
                        at = *otherwise;
                    }
                }
                Action::Jump(target) => at = *target,
                Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {}
            }
        }
        Ok(requests)
    }
}
