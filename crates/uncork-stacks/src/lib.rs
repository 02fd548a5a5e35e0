//! Stacks of any profiler: bytes in, folded stacks out; from those differences, flame graphs and
//! what other tools read.
//!
//! A *stack* is written folded: its frames from the root on, with `;` in between. The name of a
//! frame of the kernel ends with [`KERNEL`]. Nothing here opens a file or looks at a clock, and
//! whatever bytes come in, they end in a profile or in one [`ReadError`].

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
pub use side_by_side::processors;
pub use tree::{Entry, FrameTotals, Tree};
