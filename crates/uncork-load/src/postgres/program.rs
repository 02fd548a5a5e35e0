//! Compiles a plan: scripts to instructions, statements to requests.

use std::fmt;

use uncork_model::{
    BatchForm, LoadPlan, Parameters, PlanError, Prepare, Protocol, RecordedPlan, ScriptPlan,
};
use uncork_script::{Action, Capture, Expression, Script, Session, Sleep, Slot, Symbols};

use super::request::{
    Request, SYNC, parse_message, plan_request, query, script_request, server_name,
};
use crate::LoadError;
use crate::recorder::{Shape, StatementFacts};

/// Everything that is sent, and in which order.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) scripts: Vec<Routine>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) symbols: Symbols,
    pub(crate) shape: Shape,
    pub(crate) begin: Vec<u8>,
    pub(crate) commit: Vec<u8>,
    pub(crate) rollback: Vec<u8>,
    /// Operations send all their statements without waiting.
    pub(crate) ahead: bool,
    /// How often an operation is tried; 0 is unlimited.
    pub(crate) max_tries: u32,
    /// The values of recorded operations.
    pub(crate) recorded: Option<RecordedValues>,
}

/// The values that script variables have in each recorded operation.
#[derive(Debug)]
pub(crate) struct RecordedValues {
    plan: RecordedPlan,
    variables: Vec<Slot>,
    values: Parameters,
}

impl RecordedValues {
    fn new(
        plan: &RecordedPlan,
        values: &Parameters,
        symbols: &mut Symbols,
    ) -> Result<Self, LoadError> {
        let (named, columns) = (plan.variables.len(), values.columns().len());
        let (operations, rows) = (plan.scripts.len(), values.rows());
        if named != columns || (columns > 0 && operations != rows) {
            return Err(PlanError::Invalid(format!(
                "{named} variables of {operations} recorded operations need as many parameters, but the table \
                 has {columns} columns and {rows} rows"
            ))
            .into());
        }
        Ok(Self {
            variables: plan
                .variables
                .iter()
                .map(|name| symbols.slot(name))
                .collect(),
            plan: plan.clone(),
            values: values.clone(),
        })
    }

    /// Give the variables the values of an operation.
    pub(crate) fn set(&self, operation: u64, session: &mut Session) {
        let row = self.plan.row(operation);
        for (&slot, column) in self.variables.iter().zip(self.values.columns()) {
            match column.get(row) {
                Some(value) => session.set_text(slot, value.as_bytes()),
                None => session.clear(slot),
            }
        }
    }
}

/// One script.
#[derive(Debug)]
pub(crate) struct Routine {
    name: String,
    pub(crate) code: Vec<Instruction>,
    lines: Vec<usize>,
}

/// A step of a script.
#[derive(Debug)]
pub(crate) enum Instruction {
    /// Send a statement.
    Send(usize),
    /// Begin the transaction around a plan's statements.
    Begin,
    /// Commit it.
    Commit,
    /// Set a variable.
    Set(Slot, Expression),
    /// Wait.
    Sleep(Sleep),
    /// Jump unless a condition holds.
    Branch(Expression, usize),
    /// Jump.
    Jump(usize),
    /// Begin a pipeline: send without waiting.
    StartPipeline,
    /// Send a `Sync`, and do not wait for it.
    SyncPipeline,
    /// Send a `Sync` and wait for all answers.
    EndPipeline,
}

/// One statement.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) request: Request,
    /// The `Parse` message that must precede it, in the prepared protocol.
    pub(crate) preparation: Option<Vec<u8>>,
    /// Number of executions in a row.
    pub(crate) times: usize,
    /// Whether they are sent without waiting.
    pub(crate) pipelined: bool,
    /// Whether its request ends with a `Sync`.
    pub(crate) synchronizes: bool,
    /// Whether its request contains COPY data.
    pub(crate) copies: bool,
    pub(crate) capture: Option<Capture>,
}

impl Routine {
    /// The script's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A message with the place in the script.
    pub(crate) fn located(&self, at: usize, problem: &dyn fmt::Display) -> String {
        match self.lines.get(at) {
            Some(line) => format!("{}:{line}: {problem}", self.name),
            None => format!("{}: {problem}", self.name),
        }
    }
}

impl Program {
    /// Compile a plan's scripts and encode their requests.
    pub(crate) fn compile(plan: &LoadPlan, parameters: &Parameters) -> Result<Self, LoadError> {
        let mut program = Self {
            scripts: Vec::new(),
            statements: Vec::new(),
            symbols: Symbols::new(),
            shape: Shape {
                answers: false,
                logins: Vec::new(),
                scripts: plan.scripts.iter().map(|it| it.name.clone()).collect(),
                statements: Vec::new(),
            },
            begin: encoded("BEGIN")?,
            commit: encoded("COMMIT")?,
            rollback: encoded("ROLLBACK")?,
            ahead: plan.pipeline_depth > 1,
            max_tries: plan.max_tries,
            recorded: None,
        };
        if let Some(recorded) = &plan.recorded {
            let values = RecordedValues::new(recorded, parameters, &mut program.symbols)?;
            program.recorded = Some(values);
        }
        for name in plan.variables.keys() {
            program.symbols.slot(name);
        }
        for script in &plan.scripts {
            let routine = match &script.text {
                Some(text) => program.script(plan, script, text)?,
                None => program.statements(plan, script, parameters)?,
            };
            program.scripts.push(routine);
        }
        Ok(program)
    }

    /// Return the name and the `Parse` request of each statement to prepare when a connection is
    /// opened; nothing unless statements are prepared in advance.
    pub(crate) fn preparations(&self, plan: &LoadPlan) -> Vec<(String, Vec<u8>)> {
        if plan.prepare == Prepare::FirstUse {
            return Vec::new();
        }
        let statements = self.statements.iter().zip(&self.shape.statements);
        statements
            .filter_map(|(statement, facts)| {
                let parse = statement.preparation.as_ref()?;
                Some((facts.place.clone(), [parse.as_slice(), SYNC].concat()))
            })
            .collect()
    }

    fn script(
        &mut self,
        plan: &LoadPlan,
        script: &ScriptPlan,
        text: &str,
    ) -> Result<Routine, LoadError> {
        let parsed = Script::parse(&script.name, text, &mut self.symbols)
            .map_err(|error| LoadError::Script(error.to_string()))?;
        let refuse = |problem: &str| LoadError::Script(format!("{}: {problem}", script.name));
        if plan.protocol == Protocol::Simple {
            if parsed.uses_pipeline() {
                return Err(refuse(
                    "\\startpipeline needs the extended or the prepared protocol (-M extended or \
                     -M prepared)",
                ));
            }
        } else {
            parsed
                .check_extended()
                .map_err(|error| LoadError::Script(error.to_string()))?;
        }
        if self.ahead && (parsed.uses_pipeline() || parsed.has_capture() || parsed.sleeps()) {
            return Err(refuse(
                "a pipeline depth above 1 sends an operation without waiting, which excludes \
                 \\gset, \\aset, \\sleep and pipelines of its own",
            ));
        }
        let mut routine = Routine {
            name: script.name.clone(),
            code: Vec::new(),
            lines: Vec::new(),
        };
        for command in parsed.commands {
            let instruction = match command.action {
                Action::Sql(sql) => {
                    let number = self.statements.len();
                    let place = format!("{}:{}", script.name, command.line);
                    let encode = |problem| LoadError::Encode {
                        statement: place.clone(),
                        problem,
                    };
                    let preparation = match plan.protocol {
                        Protocol::Prepared => {
                            let server_name = server_name(plan.protocol, number);
                            Some(parse_message(&server_name, &sql.numbered).map_err(encode)?)
                        }
                        Protocol::Simple | Protocol::Extended => None,
                    };
                    let (capture, name) = (sql.capture.clone(), sql.text.clone());
                    let request = script_request(plan.protocol, number, sql).map_err(encode)?;
                    self.statements.push(Statement {
                        request,
                        preparation,
                        times: 1,
                        pipelined: false,
                        synchronizes: plan.protocol != Protocol::Simple,
                        copies: false,
                        capture,
                    });
                    self.shape.statements.push(StatementFacts {
                        script: self.scripts.len(),
                        name,
                        place,
                        line: Some(command.line as u64),
                    });
                    Instruction::Send(number)
                }
                Action::Set {
                    variable,
                    expression,
                } => Instruction::Set(variable, expression),
                Action::Sleep(sleep) => Instruction::Sleep(sleep),
                Action::Branch {
                    condition,
                    otherwise,
                } => Instruction::Branch(condition, otherwise),
                Action::Jump(target) => Instruction::Jump(target),
                Action::StartPipeline => Instruction::StartPipeline,
                Action::SyncPipeline => Instruction::SyncPipeline,
                Action::EndPipeline => Instruction::EndPipeline,
            };
            routine.code.push(instruction);
            routine.lines.push(command.line);
        }
        Ok(routine)
    }

    fn statements(
        &mut self,
        plan: &LoadPlan,
        script: &ScriptPlan,
        parameters: &Parameters,
    ) -> Result<Routine, LoadError> {
        let mut code = Vec::new();
        if script.transaction {
            code.push(Instruction::Begin);
        }
        for (place, statement) in script.statements.iter().enumerate() {
            code.extend(pauses(script, place));
            parameters.check(statement)?;
            let number = self.statements.len();
            let encode = |problem| LoadError::Encode {
                statement: statement.name.clone(),
                problem,
            };
            let request =
                plan_request(plan.protocol, number, statement, parameters).map_err(encode)?;
            let batch = statement.batch;
            let copies = batch.is_some_and(|batch| batch.form == BatchForm::Copy);
            let pipelined = batch.is_some_and(|batch| batch.pipelined);
            if pipelined && (copies || plan.protocol == Protocol::Simple) {
                return Err(encode(
                    "a pipelined batch needs the extended or the prepared protocol, and no COPY"
                        .to_owned(),
                ));
            }
            let preparation = if plan.protocol == Protocol::Prepared && !copies {
                let name = server_name(plan.protocol, number);
                Some(parse_message(&name, &statement.sql).map_err(encode)?)
            } else {
                None
            };
            self.statements.push(Statement {
                request,
                preparation,
                times: batch.map_or(1, |batch| batch.times),
                pipelined,
                synchronizes: plan.protocol != Protocol::Simple && !copies,
                copies,
                capture: None,
            });
            self.shape.statements.push(StatementFacts {
                script: self.scripts.len(),
                name: statement.name.clone(),
                place: statement.name.clone(),
                line: None,
            });
            code.push(Instruction::Send(number));
        }
        code.extend(pauses(script, script.statements.len()));
        if script.transaction {
            code.push(Instruction::Commit);
        }
        Ok(Routine {
            name: script.name.clone(),
            code,
            lines: Vec::new(),
        })
    }
}

/// The pauses of a script before a statement.
fn pauses(script: &ScriptPlan, before: usize) -> impl Iterator<Item = Instruction> {
    let here = script
        .pauses
        .iter()
        .filter(move |pause| pause.before == before);
    here.map(|pause| Instruction::Sleep(Sleep::Fixed { ns: pause.ns }))
}

fn encoded(sql: &str) -> Result<Vec<u8>, LoadError> {
    query(sql)
        .map_err(|problem| PlanError::Invalid(format!("{sql} cannot be encoded: {problem}")).into())
}
