//! Opens logs: files, archives and streams in; what they tell, gathered by several threads, out.

mod blocks;
mod control;
mod crew;
mod error;
mod events;
mod follow;
mod pool;
mod range;
mod scanned;
mod unpack;
mod unwrapped;

pub use control::Control;
pub use crew::{FileReport, Report, Request, gather};
pub use error::Error;
pub use follow::Follower;
pub use scanned::LineKinds;
