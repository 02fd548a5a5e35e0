//! pgbench's script language: parse it, evaluate it, draw the same random numbers.
//!
//! Pure: text and seeds in, commands and values out; no clock, file, network or environment. Semantics follow pgbench
//! of PostgreSQL 18; each item documents its differences.
//!
//! ```
//! use uncork_script::{Action, Defaults, Script, Session, Streams, Symbols, Value};
//!
//! // A load has one table of symbols, which its scripts share.
//! let mut symbols = Symbols::new();
//! let text = "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;";
//! let script = Script::parse("select-only", text, &mut symbols)?;
//! script.check_extended()?; // for the extended and the prepared protocol
//!
//! // A client has its own streams of random numbers, derived as pgbench derives them, and a session.
//! let streams = Streams::new(42, 8, None);
//! let mut client = streams.client(0);
//! let mut session = Session::new(&symbols, client.function);
//! session.define_defaults(
//!     &symbols,
//!     &Defaults {
//!         scale: 1,
//!         client_id: 0,
//!         default_seed: streams.default_seed(),
//!         random_seed: streams.random_seed(),
//!     },
//! );
//! if let Some(scale) = symbols.lookup("scale") {
//!     session.set(scale, Value::from_text("20")); // -D scale=20
//! }
//!
//! // An operation: choose a script, and walk through its commands.
//! assert_eq!(client.choose.pick(&[1]), 0);
//! session.save(); // to go back to, if the operation must be tried again
//! let (mut at, mut query) = (0, Vec::new());
//! while let Some(command) = script.commands.get(at) {
//!     at += 1;
//!     match &command.action {
//!         Action::Sql(sql) => session.write_query(sql, &mut query), // and send it
//!         Action::Set { variable, expression } => session.assign(*variable, expression)?,
//!         Action::Sleep(sleep) => drop(session.sleep_ns(sleep)?), // and wait so long
//!         Action::Branch { condition, otherwise } => {
//!             if !session.truth(condition)? {
//!                 at = *otherwise;
//!             }
//!         }
//!         Action::Jump(target) => at = *target,
//!         Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {}
//!     }
//! }
//! assert!(query.starts_with(b"SELECT abalance FROM pgbench_accounts WHERE aid = "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The extended protocol sends `Sql::numbered`, with the values that [`Session::write_parameter`] writes for each of
//! `Sql::parameters`. A captured row goes through [`Capture::slot`] to [`Session::set_text`].
//!
//! # Differences from pgbench
//!
//! - `\shell` and `\setshell` are rejected; `debug()` prints nothing.
//! - Errors that can never be avoided are reported when the script is parsed, where pgbench finds them during the run:
//!   impossible variable names, too many arguments, misplaced pipelines, unterminated quotes.
//! - A retry restores variables as well as random numbers (see [`Session::restore`]).
//! - Variables given as text do not support hexadecimal numbers.

mod arithmetic;
mod error;
mod expression;
mod function;
mod grammar;
mod hash;
mod lexer;
mod meta;
mod number;
mod prng;
mod scan;
mod script;
mod session;
mod sql;
mod streams;
mod symbols;
mod value;

pub use error::{EvaluationError, ScriptError};
pub use expression::Expression;
pub use meta::Sleep;
pub use number::{write_double, write_integer};
pub use prng::Prng;
pub use script::{Action, Command, Script};
pub use session::{Defaults, Session};
pub use sql::{Capture, MOST_PARAMETERS, Piece, Sql};
pub use streams::{ClientStreams, Streams};
pub use symbols::{Slot, Symbols, is_variable_name};
pub use value::{Text, Value};
