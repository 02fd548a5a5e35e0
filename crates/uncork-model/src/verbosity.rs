//! Which single events of a trial are reported while it runs.

use serde::Deserialize;

/// Which lines a trial writes for a person who watches it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verbosity {
    /// None.
    #[default]
    Quiet,
    /// One for each error and each retry.
    Errors,
    /// Also one for each step of an operation: what is sent, and that it was answered.
    Steps,
}
