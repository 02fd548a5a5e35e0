//! Lines about an operation for a person who watches a load, in pgbench's words.

use uncork_script::Session;

use super::super::program::{Instruction, Program, Routine};
use crate::Failure;

/// An attempt that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    /// Which attempt it was, from 1.
    pub(super) number: u32,
    /// How many attempts are allowed; 0 is unlimited.
    pub(super) most: u32,
    /// Whether another attempt follows.
    pub(super) repeats: bool,
}

/// Return the line about a failed attempt of an operation.
pub(super) fn error_line(
    client: usize,
    script: usize,
    routine: &Routine,
    failure: &Failure,
    attempt: Attempt,
) -> String {
    let command = failure.place.map_or(0, |place| place.command);
    let kind = routine.code.get(command).map_or("SQL", word);
    let error = failure.text();
    let line = format!(
        "client {client} got an error in command {command} ({kind}) of script {script}; {error}"
    );
    if attempt.most == 1 {
        return line;
    }
    let Attempt { number, most, .. } = attempt;
    let most = if most == 0 {
        String::new()
    } else {
        format!("/{most}")
    };
    let then = if attempt.repeats {
        "repeats the transaction after the error"
    } else {
        "ends the failed transaction"
    };
    format!("{line}\nclient {client} {then} (try {number}{most})")
}

/// Return a command as it is carried out, with the values of its variables.
pub(super) fn step_text(instruction: &Instruction, values: &Session, program: &Program) -> String {
    match instruction {
        Instruction::Send(number) => {
            let facts = &program.shape.statements[*number];
            match &program.statements[*number].request {
                super::Request::Template(template) => {
                    format!("sending {}", template.text(values))
                }
                super::Request::Fixed(_) => format!("sending {}", facts.name),
            }
        }
        Instruction::Set(variable, _) => {
            format!("executing \\set {}", program.symbols.name(*variable))
        }
        other => format!("executing {}", word(other)),
    }
}

/// Return the kind of a command.
fn word(instruction: &Instruction) -> &'static str {
    match instruction {
        Instruction::Send(_) => "SQL",
        Instruction::Begin => "BEGIN",
        Instruction::Commit => "COMMIT",
        Instruction::Set(..) => "set",
        Instruction::Sleep(_) => "sleep",
        Instruction::Branch(..) => "if",
        Instruction::Jump(_) => "endif",
        Instruction::StartPipeline => "startpipeline",
        Instruction::SyncPipeline => "syncpipeline",
        Instruction::EndPipeline => "endpipeline",
    }
}
