//! Reads logs of `PostgreSQL`: bytes in, what they tell in figures out.

mod csv;
mod entry;
mod errors;
mod gather;
mod hash;
mod histogram;
mod json;
mod lines;
mod message;
mod origin;
mod prefix;
mod series;
mod skeleton;
mod template;
mod templates;
mod time;

pub use csv::Csv;
pub use entry::{Entry, Sink};
pub use errors::{Errors, Facts, Kind};
pub use gather::Gathered;
pub use histogram::Histogram;
pub use json::Json;
pub use lines::Lines;
pub use message::{LockState, Message, Step};
pub use origin::{Origin, Origins};
pub use prefix::{Head, Prefix, Severity, UnknownEscape, detect};
pub use series::{Point, Scale, Series};
pub use skeleton::skeleton;
pub use template::{Stripped, Stripper};
pub use templates::{Elements, Example, Execution, Place, Template, Templates, Times};
pub use time::{Clock, Micros};
