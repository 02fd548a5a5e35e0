//! Reads logs from files, archives and streams, with several threads that gather entries.

mod beginning;
mod blocks;
mod control;
mod crew;
mod error;
mod events;
mod follow;
mod objects;
mod order;
mod overlap;
mod pool;
mod portion;
mod range;
mod scanned;
mod unpack;
mod unwrapped;

pub use beginning::{begins_at, begins_with};
pub use control::Control;
pub use crew::{FileReport, Report, Request, gather};
pub use error::Error;
pub use events::{EventFile, EventFiles, WriteError};
pub use follow::Follower;
pub use objects::Objects;
pub use portion::{Portion, gather_portion, is_complete};
pub use range::cut_points;
pub use scanned::LineKinds;
