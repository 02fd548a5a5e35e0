//! Recognises entries of uncork's own monitoring, which are not part of the user's load.

use crate::gather::example::QUERY_TEXT;
use crate::read::entry::Entry;
use crate::read::message::{Message, Step};

/// The application name of monitoring sessions (`uncork profile db` and similar). `uncork load` is the user's load,
/// and has another name.
const APPLICATION: &[u8] = b"uncork watch";
/// The mark after the first word of each monitoring statement, for logs without application names.
const MARK: &[u8] = b"/* uncork */";
/// The beginning of the statement that is prepared to be planned, whose text is the application's.
const PLANNED: &[u8] = b"PREPARE uncork_plan AS ";

/// Whether a monitoring session wrote an entry with this message.
pub(crate) fn is_own(entry: &Entry<'_>, message: &Message<'_>) -> bool {
    let text = match *message {
        Message::Duration {
            what: Step::Plan,
            text,
            ..
        } => text.strip_prefix(QUERY_TEXT).unwrap_or_default(),
        Message::Duration { text, .. } | Message::Statement { text, .. } => text,
        _ => b"",
    };
    entry.head.application == APPLICATION || is_marked(text) || is_marked(entry.statement)
}

fn is_marked(sql: &[u8]) -> bool {
    // A statement that begins with a line end is logged with a tab after it.
    let sql = match sql.first() {
        Some(b'\n') => sql.trim_ascii_start(),
        _ => sql,
    };
    let word = sql
        .iter()
        .take_while(|byte| byte.is_ascii_uppercase())
        .count();
    let rest = sql.get(word..).unwrap_or_default();
    rest.strip_prefix(b" ")
        .is_some_and(|rest| rest.starts_with(MARK))
        || sql.starts_with(PLANNED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_a_watching_session_are_known_by_their_mark() {
        for sql in [
            "SELECT /* uncork */ pg_catalog.version()",
            "\nSELECT /* uncork */ a.pid",
            "\n\tSET /* uncork */ jit = off",
            "EXPLAIN /* uncork */ (VERBOSE, GENERIC_PLAN) SELECT 1",
            "BEGIN /* uncork */ READ ONLY; SELECT 1",
            "PREPARE uncork_plan AS SELECT 1",
        ] {
            assert!(is_marked(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "",
            "SELECT",
            "SELECT 1",
            "SELECT 1 /* uncork */",
            "/* app */ SELECT 1",
            "SELECT '/* uncork */'",
        ] {
            assert!(!is_marked(sql.as_bytes()), "{sql}");
        }
    }
}
