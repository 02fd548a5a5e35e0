//! Parses bytes to entries: lines, formats, prefixes, times, and wrappers such as syslog.

pub(crate) mod bouncer;
pub(crate) mod csv;
pub(crate) mod dialect;
pub(crate) mod entry;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod memo;
pub(crate) mod message;
pub(crate) mod origin;
pub(crate) mod prefix;
pub(crate) mod shape;
pub(crate) mod time;
pub(crate) mod unwrap;
