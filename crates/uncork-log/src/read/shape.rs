//! Recognises lines that look like the first one of an entry.
//!
//! A server puts a tab before the further lines of an entry, but collectors remove tabs. So a line that the prefix
//! does not match is not necessarily a further line: if it looks like the first line of an entry with another prefix,
//! the entry before it has ended.

use crate::read::prefix::{REACH, Severity, heading};
use crate::read::time::{Clock, epoch};

/// How far after the time the process ID may be.
const NEAR: usize = 64;
const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Whether a line looks like the first one of an entry, whatever its prefix: either it begins with a point in time,
/// followed by a severity or a process ID; or it has a severity after a possible prefix.
pub(crate) fn looks_like_head(line: &[u8]) -> bool {
    let Some(first) = line.first() else {
        return false;
    };
    if !(first.is_ascii_alphanumeric() || is_bracket(*first)) {
        return false;
    }
    let reach = &line[..line.len().min(REACH)];
    // Every first line has a colon, and most further lines have none.
    if memchr::memchr(b':', reach).is_none() {
        return false;
    }
    let lead = reach
        .iter()
        .take_while(|byte| is_bracket(**byte) || **byte == b' ')
        .count();
    if let Some(length) = time(&reach[lead..]) {
        let rest = &reach[lead + length..];
        return has_severity(rest) || has_process(&rest[..rest.len().min(NEAR)]);
    }
    heading(reach).is_some_and(|before| before.is_empty() || can_be_prefix(before))
}

fn is_bracket(byte: u8) -> bool {
    matches!(byte, b'[' | b'<' | b'(' | b'{' | b'|')
}

/// Return the length of the point in time at the beginning of a text.
fn time(text: &[u8]) -> Option<usize> {
    let first = text.first()?;
    if first.is_ascii_digit() {
        let found = Clock::default().read(text);
        return found
            .or_else(|| epoch(text).filter(|(_, length)| *length > 11))
            .map(|(_, length)| length);
    }
    // `Nov 30 21:10:20`, as syslog writes it.
    let clock = text.get(7..15)?;
    let fits = MONTHS.iter().any(|name| text.starts_with(name))
        && (clock[2], clock[5]) == (b':', b':')
        && clock[0].is_ascii_digit();
    fits.then_some(15)
}

/// Whether a text contains a severity: in English, or any word before a colon and two spaces, as servers write them in
/// other languages.
fn has_severity(text: &[u8]) -> bool {
    memchr::memchr_iter(b':', text).any(|colon| {
        let behind = &text[colon + 1..];
        if behind.starts_with(b"  ") && colon > 0 && text[colon - 1] != b' ' {
            return true;
        }
        let begin = text[..colon]
            .iter()
            .rposition(|byte| !(byte.is_ascii_uppercase() || byte.is_ascii_digit()))
            .map_or(0, |before| before + 1);
        behind.first().is_none_or(|next| *next == b' ')
            && Severity::named(&text[begin..colon]).is_some()
    })
}

/// Whether a text contains a number in brackets.
fn has_process(text: &[u8]) -> bool {
    memchr::memchr_iter(b'[', text).any(|open| {
        let digits = text[open + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        digits > 0 && text.get(open + 1 + digits) == Some(&b']')
    })
}

/// Whether the text before a severity can be a prefix: it contains no quotes, but a process ID, a point in time,
/// `name=` or `user@database`.
fn can_be_prefix(before: &[u8]) -> bool {
    if before
        .iter()
        .any(|byte| matches!(byte, b'\'' | b'"' | b'`' | b'\\'))
    {
        return false;
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let between_names = memchr::memchr2_iter(b'=', b'@', before).any(|at| {
        let behind = before.get(at + 1);
        at > 0
            && is_name(&before[at - 1])
            && behind.is_some_and(|byte| is_name(byte) || matches!(byte, b',' | b'[' | b' '))
    });
    between_names || has_process(before) || (0..before.len()).any(|at| is_time_at(before, at))
}

fn is_time_at(text: &[u8], at: usize) -> bool {
    let fresh = at == 0 || !text[at - 1].is_ascii_digit();
    fresh && text[at].is_ascii_digit() && Clock::default().read(&text[at..]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_are_known_whatever_their_prefix() {
        for line in [
            "2025-11-30 21:10:20.101 UTC [55] LOG:  ready",
            "2025-11-30 21:10:20.101 UTC [55] usr=u,db=d,appli=web LOG:  duration: 1 ms",
            "2025-11-30 21:10:20 CET:192.168.1.201(50906):gilles@bench:[65]:FATAL:  no",
            "< 2025-11-30 21:10:20.101 UTC >LOG:  ready",
            "[2025-11-30 21:10:20.1 UTC] [65] [psql [2]] <me>  LOG:  x",
            "1669575482.096 65 692cb2bb.37 LOG:  x",
            "2025-11-30T21:10:20.101Z [55] STATEMENT:  SELECT 1",
            "2025-11-30 21:10:20.101 UTC LOG: one space",
            // Severities of other languages.
            "2025-11-30 21:10:20.101 CET [55] FEHLER:  Relation existiert nicht",
            "2025-11-30 21:10:20.101 CET [55] ОШИБКА:  x",
            "2025-11-30 21:10:20.101 CET D\u{c9}TAIL:  x",
            // Other programs that write to the same stream.
            "2026-05-31 08:00:00,123 INFO: no action. I am (node1), the leader with the lock",
            "2026-05-31 08:00:00.123 UTC [55] LOG C-0x5: (nodb)/(nouser)@unix(77):6432 closing",
            "Nov 30 21:10:20 db1 sshd[99]: Accepted publickey for ada",
            // Without a time.
            "LOG:  ready",
            "ERROR:  no",
            "[55] LOG:  ready",
            "user=me db=shop host=[local] pid=65 time=2025-11-30 21:10:20.1 UTC LOG:  x",
            "user=me,db=shop,app= LOG:  x",
            "me@shop ERROR:  no",
            "65 2025-11-30 21:10:20.1 UTC LOG:  x",
        ] {
            assert!(looks_like_head(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn further_lines_without_their_tab_are_not() {
        for line in [
            "",
            "\t2025-11-30 21:10:20.101 UTC [55] LOG:  ready",
            "  FROM t",
            "FROM orders",
            "WHERE id = $1",
            "WHERE at >= '2025-11-30 21:10:20' AND level = 'LOG:  x'",
            "'2025-11-30 21:10:20 UTC [55] LOG:  x',",
            "-- LOG:  x",
            "2025-11-30 21:10:20",
            "2025-11-30 21:10:20, 2025-11-30 21:10:21)",
            "12345, 67890",
            "1669575482",
            "AND a = b AND note = 'ERROR:  x'",
            "Seq Scan on t  (cost=0.00..1.01 rows=1 width=4)",
            "Index Cond: (id = 5)",
            "Buffers: shared hit=3",
            "Process 7: SELECT 1",
            "RAISE LOG 'x';",
            "x := 'LOG:  ';",
        ] {
            assert!(!looks_like_head(line.as_bytes()), "{line}");
        }
    }
}
