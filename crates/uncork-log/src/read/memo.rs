//! Caches prefixes: a session's lines have the same text between their time and their message.

use crate::hash::Hash;
use crate::read::prefix::{Head, Prefix, Severity};
use crate::read::time::{Clock, Micros};

/// Size of the cache; a text's slot depends on its first bytes.
const SLOTS: usize = 256;
/// The number of first bytes that select a slot: they contain the process ID.
const KEY: usize = 16;
/// Longer texts are not cached.
const LONGEST: usize = 255;

/// Reads the prefix of a line, like [`Prefix::read`]; a text that it has read before is only compared.
#[derive(Debug, Clone)]
pub(crate) struct Memo {
    prefix: Prefix,
    clock: Clock,
    /// Empty if lines of this prefix have nothing in common.
    slots: Vec<Option<Box<Slot>>>,
    /// The server's identifier of the statement of the last line; 0 if the prefix does not contain it.
    query_id: i64,
}

#[derive(Debug, Clone)]
struct Slot {
    text: Box<[u8]>,
    pid: u32,
    severity: Severity,
    /// Where the parts of a text begin and end: user, database, application, host, SQLSTATE,
    /// session.
    ranges: [(u8, u8); 6],
}

impl Memo {
    pub(crate) fn new(prefix: Prefix) -> Self {
        let count = if prefix.begins_with_time() { SLOTS } else { 0 };
        let slots = vec![None; count];
        Self {
            prefix,
            clock: Clock::default(),
            slots,
            query_id: 0,
        }
    }

    pub(crate) fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    pub(crate) fn query_id(&self) -> i64 {
        self.query_id
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Read the prefix of a line; return it and where the message begins.
    pub(crate) fn read<'a>(&mut self, line: &'a [u8]) -> Option<(Head<'a>, usize)> {
        let known = !self.slots.is_empty();
        let Some((time, length)) = known.then(|| self.clock.read(line)).flatten() else {
            return self
                .prefix
                .read_with_query_id(line, &mut self.clock, &mut self.query_id);
        };
        let rest = &line[length..];
        let place = place(rest);
        if let Some(slot) = &self.slots[place]
            && rest.starts_with(&slot.text)
        {
            return Some((slot.head(rest, time), length + slot.text.len()));
        }
        let (head, message) = self.prefix.read(line, &mut self.clock)?;
        self.slots[place] = Slot::new(line, length, &head, message).map(Box::new);
        Some((head, message))
    }
}

impl Slot {
    fn new(line: &[u8], begin: usize, head: &Head<'_>, message: usize) -> Option<Self> {
        let text = line.get(begin..message)?;
        if text.len() > LONGEST {
            return None;
        }
        let base = text.as_ptr().addr();
        let range = |part: &[u8]| {
            if part.is_empty() {
                return Some((0, 0));
            }
            let begin = part.as_ptr().addr().checked_sub(base)?;
            Some((
                u8::try_from(begin).ok()?,
                u8::try_from(begin + part.len()).ok()?,
            ))
        };
        Some(Self {
            text: text.into(),
            pid: head.pid,
            severity: head.severity,
            ranges: [
                range(head.user)?,
                range(head.database)?,
                range(head.application)?,
                range(head.host)?,
                range(head.sqlstate)?,
                range(head.session)?,
            ],
        })
    }

    fn head<'a>(&self, rest: &'a [u8], time: Micros) -> Head<'a> {
        let [user, database, application, host, sqlstate, session] = self
            .ranges
            .map(|(begin, end)| &rest[usize::from(begin)..usize::from(end)]);
        Head {
            time: Some(time),
            pid: self.pid,
            session,
            user,
            database,
            application,
            host,
            sqlstate,
            severity: self.severity,
        }
    }
}

/// Return the slot of a text.
fn place(rest: &[u8]) -> usize {
    let mut hash = Hash::new();
    hash.add(&rest[..rest.len().min(KEY)], 0);
    #[expect(clippy::cast_possible_truncation, reason = "its last bits are taken")]
    let place = hash.get() as usize;
    place % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_would_be_read() {
        for text in [
            "%m [%p] %q%u@%d %a ",
            "%t:%r:%u@%d:[%p]: ",
            "%m [%p] %e %c ",
            "%n [%p] ",
            "%u %m ",
        ] {
            let prefix = Prefix::parse(text).expect("is a prefix");
            let mut memo = Memo::new(prefix.clone());
            let mut found = 0;
            for number in 0..2_000_usize {
                let line = line(text, number);
                let expected = prefix.read(line.as_bytes(), &mut Clock::default());
                assert_eq!(memo.read(line.as_bytes()), expected, "{line}");
                found += usize::from(expected.is_some());
            }
            assert!(found > 1_500, "{text}");
        }
    }

    fn line(prefix: &str, number: usize) -> String {
        let time = format!(
            "2026-05-31 08:00:{:02}.{:03} UTC",
            number % 60,
            number % 1_000
        );
        let severity = ["LOG", "ERROR", "STATEMENT", "nonsense"][number % 7 % 4];
        let head = prefix
            .replace("%m", &time)
            .replace("%t", &time)
            .replace("%n", &format!("17{number:08}.{:03}", number % 1_000))
            .replace("%p", &(number % 40).to_string())
            .replace("%q", "")
            .replace("%u", ["ada", "b"][number % 2])
            .replace("%d", "shop")
            .replace("%a", ["", "web app", "psql"][number % 3])
            .replace("%r", "10.0.0.7(5432)")
            .replace("%e", ["00000", "23505"][number % 2])
            .replace("%c", &format!("{:x}.{:x}", number % 40 * 7, number % 40));
        format!("{head}{severity}:  duration: 0.{number:03} ms")
    }
}
