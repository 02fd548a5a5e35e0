//! Which statements waited for which: the waiting statement, and the last statement of the session that held the lock.

pub(crate) mod relation;

use crate::form::form;
use crate::gather::times::Times;

/// One side of a wait, by the identities of its template and its origin, or by their numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Party<N> {
    /// The waiting statement's template; for the holder, the template of the last statement that had ended in its
    /// transaction. `None` if the log does not show it.
    pub template: Option<N>,
    /// Its origin; `None` if the log does not show it.
    pub origin: Option<N>,
}

/// Waits of one party for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// Who waited.
    pub waiting: Party<u32>,
    /// Who held the lock.
    pub holding: Party<u32>,
    /// Number of waits, and the duration of those that ended. A wait for several holders counts for each of them.
    pub waits: Times,
}

/// Parse the process IDs of `Process holding the lock: 7. Wait queue: 8.`, `Processes holding the lock: 7, 9. …`.
pub(crate) fn holders(detail: &[u8]) -> Vec<u32> {
    let Some(at) = memchr::memmem::find(detail, b" holding the lock: ") else {
        return Vec::new();
    };
    let list = &detail[at + 19..];
    let end = memchr::memchr(b'.', list).unwrap_or(list.len());
    list[..end]
        .split(|byte| *byte == b',')
        .filter_map(|pid| std::str::from_utf8(pid.trim_ascii()).ok()?.parse().ok())
        .collect()
}

form!(Party<u64> { template, origin });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_those_before_the_queue() {
        assert_eq!(holders(b"Process holding the lock: 7. Wait queue: 8."), [7]);
        assert_eq!(
            holders(b"Processes holding the lock: 7, 9. Wait queue: 8, 10."),
            [7, 9]
        );
        assert_eq!(holders(b"Process holding the lock: 7"), [7]);
        assert!(holders(b"something else").is_empty());
    }
}
