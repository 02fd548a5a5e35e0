//! Stacks of any profiler: reads profiles to folded stacks, compares them, draws flame graphs, and
//! writes formats of other tools.
//!
//! A *stack* is written folded: its frames from the root on, separated by `;`. The name of a kernel
//! frame ends with [`KERNEL`]. Nothing here opens a file or reads a clock, and any bytes result in
//! a profile or in one [`ReadError`].

mod branches;
mod draw;
mod error;
mod export;
mod folded;
mod format;
mod json;
mod perf;
mod pprof;
mod profile;
mod proto;
mod pyroscope;
mod side_by_side;
mod speedscope;
mod tree;

pub use draw::{Drawing, draw};
pub use error::{DrawError, ReadError};
pub use export::{to_folded, to_pprof, to_speedscope};
pub use folded::Folded;
pub use format::{Format, read};
pub use profile::{KERNEL, Limits, Measure, Row, Stacks};
pub use side_by_side::{in_parts, processors, side_by_side};
pub use tree::{Entry, FrameTotals, Tree};
