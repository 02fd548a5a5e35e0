//! The stored form of choices.

use crate::form::form_choice;
use crate::read::message::Step;
use crate::read::prefix::Severity;

form_choice!(Step {
    Statement,
    Parse,
    Bind,
    Execute,
    Fetch,
    Plan,
    Function,
    Unknown
});
form_choice!(Severity {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Error,
    Fatal,
    Panic,
    Detail,
    Hint,
    Context,
    Statement,
    Query,
    Location
});
