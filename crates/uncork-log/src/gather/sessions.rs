//! Sessions: how long they lasted, by their origin, and how many were open at once.

use std::collections::{HashMap, HashSet};

use crate::form::{form, form_tuple};
use crate::gather::times::Times;
use crate::read::prefix::Head;
use crate::read::time::Micros;

/// How many sessions are remembered if the log shows only their ends.
const SPANS: usize = 1_000_000;

/// Sessions by the number of their origin.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    /// Number of sessions that began, and the durations of ended sessions, in microseconds.
    pub by: HashMap<u32, (u64, Times)>,
}

impl Sessions {
    pub(crate) fn begin(&mut self, origin: u32) {
        self.by.entry(origin).or_default().0 += 1;
    }

    pub(crate) fn end(&mut self, origin: u32, micros: u64) {
        self.by.entry(origin).or_default().1.add(micros);
    }

    /// Add those of another collection; `origins` maps its numbers to the numbers here.
    pub(crate) fn merge(&mut self, other: Self, origins: &[u32]) {
        for (origin, (begun, ended)) in other.by {
            let of = self.by.entry(origins[origin as usize]).or_default();
            of.0 += begun;
            of.1.merge(&ended);
        }
    }
}

/// Return the origin of a session from the message about its beginning or end, which contains names that the prefix
/// may lack: `user=ada database=shop application_name=psql SSL enabled (…)`, `user=ada database=shop host=[local]`.
pub(crate) fn origin<'a>(head: &Head<'a>, message: &'a [u8]) -> Head<'a> {
    let mut origin = *head;
    // Where a value begins, and which one; it ends where the next key or one of the endings begins.
    let mut open: Option<(usize, &[u8])> = None;
    let mut from = message.iter().position(|byte| *byte == b'=').unwrap_or(0);
    from = message[..from]
        .iter()
        .rposition(|byte| *byte == b' ')
        .unwrap_or(0);
    while from < message.len() {
        let rest = &message[from..];
        let key = KEYS.into_iter().find(|key| rest.starts_with(key));
        if key.is_some() || ENDINGS.iter().any(|ending| rest.starts_with(ending)) {
            if let Some((begin, key)) = open {
                put(&mut origin, key, &message[begin..from]);
            }
            open = key.map(|key| (from + key.len(), key));
        }
        from += 1;
        from += memchr::memchr(b' ', &message[from..]).unwrap_or(message.len() - from);
    }
    if let Some((begin, key)) = open {
        put(&mut origin, key, &message[begin..]);
    }
    origin
}

const KEYS: [&[u8]; 4] = [b" user=", b" database=", b" application_name=", b" host="];
const ENDINGS: [&[u8]; 3] = [b" port=", b" SSL enabled", b" GSS ("];

fn put<'a>(origin: &mut Head<'a>, key: &[u8], value: &'a [u8]) {
    match key {
        b" user=" => origin.user = value,
        b" database=" => origin.database = value,
        b" application_name=" => origin.application = value,
        _ => origin.host = value,
    }
}

/// Counts the sessions that are open, in the order of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenSessions {
    /// Sessions whose beginning is in the log, by process.
    begun: HashSet<u64>,
    /// Sessions that a fatal error has ended; the log may show their end as well.
    failed: HashSet<u64>,
    /// Sessions that began in the log, less all that ended.
    level: i64,
    /// The highest level so far, and when it was reached.
    highest: (i64, Option<Micros>),
    /// Sessions that ended in the log without beginning in it: they were open at its start.
    before: i64,
    /// Beginning and end of sessions, as long as the log shows only ends.
    spans: Vec<(Micros, Micros)>,
    /// Whether a beginning and an end were seen.
    seen: (bool, bool),
}

impl OpenSessions {
    pub(crate) fn begin(&mut self, process: u64, time: Option<Micros>) {
        self.seen.0 = true;
        self.spans = Vec::new();
        self.failed.remove(&process);
        // A process that begins again has ended, even if the log does not show it.
        if self.begun.insert(process) {
            self.level += 1;
        }
        if self.level > self.highest.0 {
            self.highest = (self.level, time);
        }
    }

    pub(crate) fn end(&mut self, process: u64, time: Option<Micros>, micros: u64) {
        self.seen.1 = true;
        if !self.failed.remove(&process) {
            if !self.begun.remove(&process) {
                self.before += 1;
            }
            self.level -= 1;
        }
        let (Some(end), Ok(micros)) = (time, i64::try_from(micros)) else {
            return;
        };
        if !self.seen.0 && self.spans.len() < SPANS {
            self.spans.push((end.saturating_sub(micros), end));
        }
    }

    /// A fatal error ends the session, if its beginning is in the log.
    pub(crate) fn fail(&mut self, process: u64) {
        if self.begun.remove(&process) {
            self.failed.insert(process);
            self.level -= 1;
        }
    }

    /// The server has started: no session is open.
    pub(crate) fn restart(&mut self) {
        let open = i64::try_from(self.begun.len()).unwrap_or(0);
        self.begun.clear();
        self.failed.clear();
        self.level -= open;
    }

    /// Return how many sessions were open at once at least, and since when. `None` if the log does not show both
    /// beginnings and ends.
    pub(crate) fn most(&self) -> Option<(u64, Option<Micros>)> {
        match self.seen {
            (_, false) => None,
            (true, true) => {
                let (level, time) = self.highest;
                let most = u64::try_from(level + self.before).unwrap_or(0);
                Some((most, time))
            }
            (false, true) => most_of(&self.spans),
        }
    }
}

/// Return how many spans overlap at most, and from when on. `None` if there are none, or if not all were remembered.
fn most_of(spans: &[(Micros, Micros)]) -> Option<(u64, Option<Micros>)> {
    if spans.len() >= SPANS {
        return None;
    }
    let mut changes: Vec<(Micros, i64)> = spans
        .iter()
        .flat_map(|(begin, end)| [(*begin, 1), (*end, -1)])
        .collect();
    changes.sort_unstable();
    let mut level = 0;
    let levels = changes.into_iter().map(|(time, change)| {
        level += change;
        (level, std::cmp::Reverse(time))
    });
    let (most, std::cmp::Reverse(time)) = levels.max()?;
    Some((u64::try_from(most).unwrap_or(0), Some(time)))
}

form!(Sessions { by });
form!(OpenSessions {
    begun,
    failed,
    level,
    highest,
    before,
    spans,
    seen
});
form_tuple!(
    (u64, Times) { 0, 1 };
    (i64, Option<Micros>) { 0, 1 };
    (bool, bool) { 0, 1 };
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_message_or_else_from_the_prefix() {
        let head = Head {
            user: b"prefix",
            application: b"psql",
            ..Head::new()
        };
        for (message, names) in [
            (
                "connection authorized: user=ada database=my shop application_name=web app SSL enabled (protocol=TLSv1.3)",
                ["ada", "my shop", "web app", ""],
            ),
            (
                "disconnection: session time: 0:00:01.000 user=ada database=shop host=10.0.0.7 port=4711",
                ["ada", "shop", "psql", "10.0.0.7"],
            ),
            (
                "disconnection: session time: 0:00:01.000 user=ada database=shop host=[local]",
                ["ada", "shop", "psql", "[local]"],
            ),
            ("connection authorized", ["prefix", "", "psql", ""]),
        ] {
            let origin = origin(&head, message.as_bytes());
            let found = [
                origin.user,
                origin.database,
                origin.application,
                origin.host,
            ];
            assert_eq!(found, names.map(str::as_bytes), "{message}");
        }
    }

    #[test]
    fn sessions_that_were_open_at_the_start_count_too() {
        let mut open = OpenSessions::default();
        for process in 0..5 {
            open.begin(process, Some(10));
        }
        assert_eq!(open.most(), None);
        for process in 0..5 {
            open.end(process, Some(20), 10);
        }
        // Three others had begun before the log did.
        for process in 10..13 {
            open.end(process, Some(30), 1_000);
        }
        assert_eq!(open.most(), Some((8, Some(10))));
    }

    #[test]
    fn a_fatal_error_ends_a_session_once() {
        let mut open = OpenSessions::default();
        for process in 0..6 {
            open.begin(process, Some(1));
            open.fail(process);
            if process % 2 == 0 {
                open.end(process, Some(2), 1);
            }
        }
        assert_eq!(open.most(), Some((1, Some(1))));
        // The same process identifiers again.
        for process in 0..2 {
            open.begin(process, Some(3));
        }
        assert_eq!(open.most(), Some((2, Some(3))));
    }

    #[test]
    fn a_restart_ends_all_sessions() {
        let mut open = OpenSessions::default();
        for life in 0..3 {
            for process in 0..4 {
                open.begin(100 * life + process, Some(1));
            }
            open.end(100 * life, Some(2), 1);
            open.restart();
        }
        assert_eq!(open.most(), Some((4, Some(1))));
    }

    #[test]
    fn ends_alone_tell_how_many_overlapped() {
        let mut open = OpenSessions::default();
        for (process, begin, end) in [(1, 0, 10), (2, 10, 20), (3, 12, 14), (4, 13, 30)] {
            open.end(
                process,
                Some(end),
                u64::try_from(end - begin).expect("is positive"),
            );
        }
        assert_eq!(open.most(), Some((3, Some(13))));
    }
}
