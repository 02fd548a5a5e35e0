//! Scripts: parses text to commands, with control flow as jumps.

use crate::error::{EvaluationError, Fault, ScriptError};
use crate::expression::Expression;
use crate::lexer::{Lexer, Lines};
use crate::meta::{Meta, Sleep, parse_meta};
use crate::scan::{End, Scanner};
use crate::sql::{Capture, MOST_PARAMETERS, Sql};
use crate::symbols::{Slot, Symbols};

/// A parsed script. Commands run in order except for jumps, which all lead forward; the operation
/// ends after the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The script's name, as messages show it.
    pub name: String,
    /// Its commands.
    pub commands: Vec<Command>,
}

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The line on which it begins, counted from 1.
    pub line: usize,
    /// What it does.
    pub action: Action,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send SQL.
    Sql(Sql),
    /// Set a variable.
    Set {
        /// The variable.
        variable: Slot,
        /// Its value.
        expression: Expression,
    },
    /// Wait.
    Sleep(Sleep),
    /// Continue with the next command if the condition holds.
    Branch {
        /// The condition.
        condition: Expression,
        /// The index of the command to continue with otherwise.
        otherwise: usize,
    },
    /// Continue with the command at this index; the index after the last one is the end.
    Jump(usize),
    /// Begin a pipeline: send without waiting for answers.
    StartPipeline,
    /// Send a synchronisation point inside a pipeline.
    SyncPipeline,
    /// End a pipeline: send a synchronisation point and wait for all answers.
    EndPipeline,
}

impl Script {
    /// Parse `text`; the variables that it names are entered in `symbols`.
    ///
    /// # Errors
    ///
    /// If pgbench would reject the script, or a command in it can never succeed; if it would run a program (`\shell`,
    /// `\setshell`); or if a quote or comment is not terminated.
    pub fn parse(name: &str, text: &str, symbols: &mut Symbols) -> Result<Self, ScriptError> {
        parse(text, symbols)
            .and_then(|commands| {
                check_pipelines(&commands)?;
                Ok(Self {
                    name: name.to_owned(),
                    commands,
                })
            })
            .map_err(|fault| ScriptError::new(name, fault))
    }

    /// Check the script for the extended and the prepared protocol.
    ///
    /// # Errors
    ///
    /// If a command has more than [`MOST_PARAMETERS`] parameters.
    pub fn check_extended(&self) -> Result<(), ScriptError> {
        for command in &self.commands {
            if let Action::Sql(sql) = &command.action
                && sql.parameters.len() > MOST_PARAMETERS
            {
                let message = format!(
                    "statement has too many arguments ({}, maximum is {MOST_PARAMETERS}); \
                     use the simple protocol, or fewer variables",
                    sql.parameters.len()
                );
                return Err(ScriptError::new(
                    &self.name,
                    Fault::new(command.line, message),
                ));
            }
        }
        Ok(())
    }

    /// Whether it has a pipeline, which the simple protocol does not support.
    #[must_use]
    pub fn uses_pipeline(&self) -> bool {
        self.any(|action| matches!(action, Action::StartPipeline))
    }

    /// Whether rows are captured in variables.
    #[must_use]
    pub fn has_capture(&self) -> bool {
        self.any(|action| {
            matches!(
                action,
                Action::Sql(Sql {
                    capture: Some(_),
                    ..
                })
            )
        })
    }

    /// Whether it sleeps.
    #[must_use]
    pub fn sleeps(&self) -> bool {
        self.any(|action| matches!(action, Action::Sleep(_)))
    }

    fn any(&self, property: impl Fn(&Action) -> bool) -> bool {
        self.commands
            .iter()
            .any(|command| property(&command.action))
    }

    /// Return the message of an error in the command at this index: `name:line: ` and the reason.
    #[must_use]
    pub fn locate(&self, index: usize, error: &EvaluationError) -> String {
        let line = self.commands.get(index).map_or(1, |command| command.line);
        format!("{}:{line}: {error}", self.name)
    }
}

/// An open `\if`.
struct Open {
    line: usize,
    /// The branch that leads to the next `\elif`, `\else` or `\endif`; `None` after `\else`.
    branch: Option<usize>,
    /// The jumps that lead to the `\endif`.
    jumps: Vec<usize>,
}

struct Builder {
    commands: Vec<Command>,
    open: Vec<Open>,
    /// The SQL command that a capture would belong to: the last one, if nothing came between.
    capturable: Option<usize>,
}

fn parse(text: &str, symbols: &mut Symbols) -> Result<Vec<Command>, Fault> {
    let lines = Lines::of(text);
    let mut scanner = Scanner::new(text, &lines);
    let mut builder = Builder {
        commands: Vec::new(),
        open: Vec::new(),
        capturable: None,
    };
    let mut empty = true;
    loop {
        let stretch = scanner.next()?;
        if !stretch.text.is_empty() {
            empty = false;
            builder.capturable = Some(builder.commands.len());
            let action = Action::Sql(Sql::new(stretch.text, symbols));
            builder.commands.push(Command {
                line: stretch.line,
                action,
            });
        }
        match stretch.end {
            End::Semicolon => {}
            End::Text => break,
            End::Backslash => {
                let line = lines.line(scanner.position - 1);
                let mut lexer = Lexer::new(text, &lines, scanner.position);
                let meta = parse_meta(&mut lexer, symbols)?;
                scanner.position = lexer.position();
                if let Some(meta) = meta {
                    empty = false;
                    builder.meta(line, meta)?;
                }
            }
        }
    }
    if let Some(open) = builder.open.last() {
        return Err(Fault::new(
            open.line,
            "\\if without matching \\endif; end it with \\endif",
        ));
    }
    if empty {
        return Err(Fault::new(
            1,
            "empty command list for script; give it at least one command",
        ));
    }
    Ok(builder.commands)
}

impl Builder {
    fn push(&mut self, line: usize, action: Action) {
        self.commands.push(Command { line, action });
    }

    fn meta(&mut self, line: usize, meta: Meta) -> Result<(), Fault> {
        if let Meta::Capture(capture) = meta {
            return self.capture(line, capture);
        }
        self.capturable = None;
        match meta {
            Meta::Capture(_) => {}
            Meta::Set {
                variable,
                expression,
            } => {
                self.push(
                    line,
                    Action::Set {
                        variable,
                        expression,
                    },
                );
            }
            Meta::Sleep(sleep) => self.push(line, Action::Sleep(sleep)),
            Meta::StartPipeline => self.push(line, Action::StartPipeline),
            Meta::SyncPipeline => self.push(line, Action::SyncPipeline),
            Meta::EndPipeline => self.push(line, Action::EndPipeline),
            Meta::If(condition) => {
                let branch = Some(self.commands.len());
                self.open.push(Open {
                    line,
                    branch,
                    jumps: Vec::new(),
                });
                self.push(
                    line,
                    Action::Branch {
                        condition,
                        otherwise: 0,
                    },
                );
            }
            Meta::Elif(condition) => {
                self.end_branch(line, "\\elif")?;
                let branch = self.commands.len();
                self.push(
                    line,
                    Action::Branch {
                        condition,
                        otherwise: 0,
                    },
                );
                if let Some(open) = self.open.last_mut() {
                    open.branch = Some(branch);
                }
            }
            Meta::Else => self.end_branch(line, "\\else")?,
            Meta::Endif => {
                let Some(open) = self.open.pop() else {
                    return Err(Fault::new(
                        line,
                        "\\endif without matching \\if; remove it, or put \\if before it",
                    ));
                };
                let end = self.commands.len();
                for index in open.jumps.into_iter().chain(open.branch) {
                    self.lead(index, end);
                }
            }
        }
        Ok(())
    }

    /// Attach a capture to the SQL command before it.
    fn capture(&mut self, line: usize, capture: Capture) -> Result<(), Fault> {
        let command = if capture.all { "aset" } else { "gset" };
        let before = self
            .capturable
            .and_then(|index| self.commands.get_mut(index));
        if let Some(Command {
            action: Action::Sql(sql),
            ..
        }) = before
            && sql.capture.is_none()
        {
            sql.capture = Some(capture);
            return Ok(());
        }
        Err(Fault::new(
            line,
            format!(
                "\\{command} must follow an SQL command; put it behind the one whose row is wanted"
            ),
        ))
    }

    /// End the branch before `\elif` or `\else` with a jump to the `\endif`.
    fn end_branch(&mut self, line: usize, name: &str) -> Result<(), Fault> {
        let next = self.commands.len() + 1;
        let Some(open) = self.open.last_mut() else {
            return Err(Fault::new(
                line,
                format!("{name} without matching \\if; remove it, or put \\if before it"),
            ));
        };
        let Some(branch) = open.branch.take() else {
            return Err(Fault::new(
                line,
                format!("{name} after \\else; \\else is the last part of an \\if"),
            ));
        };
        open.jumps.push(next - 1);
        self.push(line, Action::Jump(0));
        self.lead(branch, next);
        Ok(())
    }

    /// Set the target of a branch or jump.
    fn lead(&mut self, index: usize, target: usize) {
        match &mut self.commands[index].action {
            Action::Branch { otherwise, .. } => *otherwise = target,
            Action::Jump(place) => *place = target,
            _ => {}
        }
    }
}

/// Reject what is misplaced on every path through the script: a pipeline in a pipeline, its end or a synchronisation
/// point outside, a capture inside, the script's end inside. What depends on the path is left to the run.
fn check_pipelines(commands: &[Command]) -> Result<(), Fault> {
    /// Whether a command can be reached outside, and inside, a pipeline.
    #[derive(Clone, Copy, Default)]
    struct Reached {
        outside: bool,
        inside: bool,
    }
    let mut reached = vec![Reached::default(); commands.len() + 1];
    reached[0].outside = true;
    let mut started = 1;
    for (index, command) in commands.iter().enumerate() {
        let here = reached[index];
        let only_inside = here.inside && !here.outside;
        let only_outside = here.outside && !here.inside;
        let misplaced = match &command.action {
            Action::StartPipeline if only_inside => {
                Some("\\startpipeline: already in pipeline mode; end the other with \\endpipeline")
            }
            Action::SyncPipeline if only_outside => {
                Some("\\syncpipeline: not in pipeline mode; put \\startpipeline before it")
            }
            Action::EndPipeline if only_outside => {
                Some("\\endpipeline: not in pipeline mode; put \\startpipeline before it")
            }
            Action::Sql(Sql {
                capture: Some(capture),
                ..
            }) if only_inside => Some(if capture.all {
                "\\aset is not allowed in pipeline mode; put the command outside of the pipeline"
            } else {
                "\\gset is not allowed in pipeline mode; put the command outside of the pipeline"
            }),
            _ => None,
        };
        if let Some(message) = misplaced {
            return Err(Fault::new(command.line, message));
        }
        let after = match command.action {
            Action::StartPipeline => {
                started = command.line;
                Reached {
                    outside: false,
                    inside: true,
                }
            }
            Action::EndPipeline => Reached {
                outside: true,
                inside: false,
            },
            _ => here,
        };
        let targets = match command.action {
            Action::Jump(target) => [target, target],
            Action::Branch { otherwise, .. } => [index + 1, otherwise],
            _ => [index + 1, index + 1],
        };
        for target in targets {
            reached[target].outside |= after.outside;
            reached[target].inside |= after.inside;
        }
    }
    if reached[commands.len()].inside && !reached[commands.len()].outside {
        return Err(Fault::new(
            started,
            "end of script reached with pipeline open; put \\endpipeline behind its last command",
        ));
    }
    Ok(())
}
