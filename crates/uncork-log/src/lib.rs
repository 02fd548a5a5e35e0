//! Reads logs of `PostgreSQL` and `PgBouncer`: bytes in, counts, templates and events out.

mod gather;
mod hash;
mod read;
mod template;
mod texts;

pub use gather::activity::{Activity, Checkpoints, Incident, Tally, TopIncidents};
pub use gather::blocking::{Blocking, Party};
pub use gather::entry_row::EntryRow;
pub use gather::errors::{Errors, Facts, Kind};
pub use gather::event::Event;
pub use gather::example::{Drawn, Example, Execution, Place};
pub use gather::histogram::Histogram;
pub use gather::loops::{LoopOf, Loops};
pub use gather::pool::{AVERAGES, Average, Connections, Pool};
pub use gather::replay::Replay;
pub use gather::sequence::{Repetitions, Transactions};
pub use gather::series::{Point, Scale, Series};
pub use gather::templates::{Elements, Template, TemplateDetails, Templates};
pub use gather::times::Times;
pub use gather::{Gathered, RARE};
pub use read::bouncer::{Bouncer, PoolMessage, Side};
pub use read::csv::Csv;
pub use read::dialect::Dialect;
pub use read::entry::{Entry, Sink};
pub use read::json::Json;
pub use read::lines::Lines;
pub use read::message::{LockState, Message, Step};
pub use read::origin::{Origin, Origins};
pub use read::prefix::{Head, Prefix, Severity, UnknownEscape, detect};
pub use read::time::{Clock, Micros, Written};
pub use read::unwrap::Unwrapper;
pub use template::control::Control;
pub use template::skeleton::skeleton;
pub use template::{Stripped, Stripper};
pub use texts::Texts;
