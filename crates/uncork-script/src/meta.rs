//! Backslash commands.

use crate::error::{Fault, nearest};
use crate::expression::Expression;
use crate::grammar::parse_expression;
use crate::lexer::Lexer;
use crate::sql::Capture;
use crate::symbols::{Slot, Symbols, is_variable_name};

/// A backslash command as it is written.
#[derive(Debug)]
pub(crate) enum Meta {
    Set {
        variable: Slot,
        expression: Expression,
    },
    Sleep(Sleep),
    If(Expression),
    Elif(Expression),
    Else,
    Endif,
    Capture(Capture),
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// How long `\sleep` waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// A constant, in nanoseconds.
    Fixed {
        /// Nanoseconds; a negative time counts as 0.
        ns: u64,
    },
    /// The value of a variable.
    Variable {
        /// The variable that has the number.
        slot: Slot,
        /// The unit of the number, in nanoseconds.
        unit_ns: u64,
    },
}

const COMMANDS: [&str; 11] = [
    "set",
    "sleep",
    "if",
    "elif",
    "else",
    "endif",
    "gset",
    "aset",
    "startpipeline",
    "syncpipeline",
    "endpipeline",
];

const SECOND_NS: u64 = 1_000_000_000;

/// Parse the command after a backslash, up to the end of its line. `None` for a backslash alone.
pub(crate) fn parse_meta(lexer: &mut Lexer, symbols: &mut Symbols) -> Result<Option<Meta>, Fault> {
    let Some(name) = lexer.word() else {
        return Ok(None);
    };
    let command = name.to_ascii_lowercase();
    let meta = match command.as_str() {
        "set" => set(lexer, symbols, &command)?,
        "if" => Meta::If(parse_expression(lexer, symbols, &command)?),
        "elif" => Meta::Elif(parse_expression(lexer, symbols, &command)?),
        "sleep" => Meta::Sleep(sleep(lexer, symbols)?),
        "gset" | "aset" => capture(lexer, &command)?,
        "else" => alone(lexer, &command, Meta::Else)?,
        "endif" => alone(lexer, &command, Meta::Endif)?,
        "startpipeline" => alone(lexer, &command, Meta::StartPipeline)?,
        "syncpipeline" => alone(lexer, &command, Meta::SyncPipeline)?,
        "endpipeline" => alone(lexer, &command, Meta::EndPipeline)?,
        "shell" | "setshell" => {
            return Err(lexer.fault(
                &format!(
                    "\\{command} is not supported: it would run a program inside the measured time"
                ),
                "run it before, and hand its result over with -D name=value, or use \\set",
            ));
        }
        _ => {
            let remedy = match nearest(name, &COMMANDS) {
                Some(candidate) => format!("did you mean \\{candidate}?"),
                None => format!("the commands are \\{}", COMMANDS.join(", \\")),
            };
            return Err(lexer.fault(&format!("invalid command \\{name}"), &remedy));
        }
    };
    Ok(Some(meta))
}

fn set(lexer: &mut Lexer, symbols: &mut Symbols, command: &str) -> Result<Meta, Fault> {
    let Some(name) = lexer.word() else {
        return Err(lexer.fault(
            "missing argument in command \"set\"",
            "write \\set name expression",
        ));
    };
    if !is_variable_name(name) {
        return Err(lexer.fault(
            &format!("invalid variable name: \"{name}\""),
            "it has letters, digits and underscores, and begins with no digit",
        ));
    }
    let variable = symbols.slot(name);
    Ok(Meta::Set {
        variable,
        expression: parse_expression(lexer, symbols, command)?,
    })
}

/// Return the command, if no word follows it.
fn alone(lexer: &mut Lexer, command: &str, meta: Meta) -> Result<Meta, Fault> {
    match lexer.word() {
        None => Ok(meta),
        Some(word) => Err(lexer.fault(
            &format!("unexpected argument in command \"{command}\""),
            &format!("remove \"{word}\""),
        )),
    }
}

fn capture(lexer: &mut Lexer, command: &str) -> Result<Meta, Fault> {
    let prefix = lexer.word().unwrap_or("").to_owned();
    if !prefix.is_empty()
        && let Some(word) = lexer.word()
    {
        return Err(lexer.fault(
            &format!("too many arguments in command \"{command}\""),
            &format!("it takes one prefix; remove \"{word}\""),
        ));
    }
    if !prefix.is_empty() && !is_variable_name(&prefix) {
        return Err(lexer.fault(
            &format!("invalid prefix of variable names: \"{prefix}\""),
            "it has letters, digits and underscores, and begins with no digit",
        ));
    }
    Ok(Meta::Capture(Capture {
        all: command == "aset",
        prefix,
    }))
}

fn sleep(lexer: &mut Lexer, symbols: &mut Symbols) -> Result<Sleep, Fault> {
    let Some(time) = lexer.word() else {
        return Err(lexer.fault(
            "missing argument in command \"sleep\"",
            "write \\sleep number [us|ms|s], or \\sleep :variable [us|ms|s]",
        ));
    };
    if let Some(name) = time.strip_prefix(':') {
        if !is_variable_name(name) {
            return Err(lexer.fault(&format!("invalid variable name: \"{name}\""), "write :name"));
        }
        let slot = symbols.slot(name);
        let unit_ns = unit(lexer, None)?;
        return Ok(Sleep::Variable { slot, unit_ns });
    }
    let unsigned = time.strip_prefix(['+', '-']).unwrap_or(time);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = unsigned.split_at(digits);
    let invalid = lexer.fault(
        &format!("invalid sleep time, must be an integer ({time})"),
        "use a smaller unit for a part: 1500 ms",
    );
    if number.is_empty() || suffix.starts_with(|first: char| !first.is_alphabetic()) {
        return Err(invalid);
    }
    let written = (!suffix.is_empty()).then_some(suffix);
    let unit_ns = unit(lexer, written)?;
    let ns = if time.starts_with('-') {
        0
    } else {
        number
            .parse::<u64>()
            .unwrap_or(u64::MAX)
            .saturating_mul(unit_ns)
    };
    Ok(Sleep::Fixed { ns })
}

/// Return the unit of time in nanoseconds: `written` after the number, or the next word, or a
/// second.
fn unit(lexer: &mut Lexer, written: Option<&str>) -> Result<u64, Fault> {
    let unit = match written {
        Some(suffix) => suffix,
        None => match lexer.word() {
            Some(word) => word,
            None => return Ok(SECOND_NS),
        },
    };
    let ns = match unit.to_ascii_lowercase().as_str() {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND_NS,
        _ => {
            return Err(lexer.fault(
                &format!("unrecognized time unit, must be us, ms or s ({unit})"),
                "write \\sleep number [us|ms|s]",
            ));
        }
    };
    match lexer.word() {
        None => Ok(ns),
        Some(word) => Err(lexer.fault(
            "too many arguments in command \"sleep\"",
            &format!("it takes a number and a unit; remove \"{word}\""),
        )),
    }
}
