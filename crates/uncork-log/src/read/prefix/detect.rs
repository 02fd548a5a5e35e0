//! Detects the prefix of lines.

use std::collections::BTreeSet;

use super::{Clock, Prefix, Severity};

/// Prefixes that servers and providers use by default; others are derived from the lines.
const KNOWN: [&str; 16] = [
    "%m [%p] %q%u@%d %a ",
    "%m [%p] %q%u@%d ",
    "%m [%p] ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t:%r:%u@%d:[%p]:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%t-%c-",
    "%t [%p]: [%l-1] ",
    "%t [%p]: ",
    "%t [%p] ",
    "%m ",
    "%t ",
    "< %m > ",
    "< %t >",
    "",
];

/// How many lines are examined.
const SAMPLE: usize = 1_000;
/// How many of them a prefix is derived from.
const READ_OFF: usize = 24;
/// What `%b` is on the lines of a session.
pub(super) const CLIENT: &str = "client backend";
/// The most digits that a process ID has.
const LONGEST_PID: usize = 10;

/// Find the prefix that fits lines, if there is one. Continuation lines among them do no harm.
#[must_use]
pub fn detect<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Prefix> {
    let lines: Vec<&[u8]> = lines
        .into_iter()
        .filter(|line| heading(line).is_some())
        .take(SAMPLE)
        .collect();
    let mut search = Search {
        lines,
        tried: Vec::new(),
        best: None,
    };
    for text in KNOWN {
        search.attempt(text.to_owned());
    }
    let step = (search.lines.len() / READ_OFF).max(1);
    let lines = search.lines.iter().step_by(step);
    let read_off: Vec<String> = lines.filter_map(|line| read_off(line)).collect();
    for text in &read_off {
        for text in with_quit(text) {
            search.attempt(text);
        }
    }
    if !search.fits_all() {
        // Words that do not look like a field's value may still be one, if they differ from line to line.
        for text in read_off.iter().map(|text| without_words(text)) {
            for text in with_quit(&text) {
                search.attempt(text);
            }
        }
    }
    search.best()
}

/// Tries prefixes on lines, and keeps the one that fits most of them; of several, the one with the most fields.
struct Search<'a> {
    lines: Vec<&'a [u8]>,
    tried: Vec<String>,
    best: Option<(usize, usize, Prefix)>,
}

impl Search<'_> {
    fn attempt(&mut self, text: String) {
        if self.tried.contains(&text) {
            return;
        }
        let Ok(prefix) = Prefix::parse_exactly(&text) else {
            return;
        };
        self.tried.push(text);
        let mut clock = Clock::default();
        let fits = self
            .lines
            .iter()
            .filter(|line| {
                let read = prefix.read(line, &mut clock);
                read.is_some_and(|(head, _)| prefix.is_plausible(&head))
            })
            .count();
        let fields = prefix.fields();
        if fits > 0
            && self
                .best
                .as_ref()
                .is_none_or(|(most, told, _)| (fits, fields) > (*most, *told))
        {
            self.best = Some((fits, fields, prefix));
        }
    }

    fn fits_all(&self) -> bool {
        self.best
            .as_ref()
            .is_some_and(|(fits, ..)| *fits == self.lines.len())
    }

    /// Return the best prefix, unless it fits so few lines that it may do so by chance. The lines need not contain any
    /// of a process without a session, so such a process may stop at other places too.
    fn best(self) -> Option<Prefix> {
        let lines = self.lines.len();
        self.best
            .filter(|(fits, ..)| fits * 2 > lines)
            .map(|(.., prefix)| prefix.with_possible_stops())
    }
}

/// Return the text before the severity, if the line has one.
pub(crate) fn heading(line: &[u8]) -> Option<&[u8]> {
    let reach = &line[..line.len().min(super::REACH)];
    memchr::memmem::find_iter(reach, b":  ")
        .find_map(|end| {
            let begin = reach[..end]
                .iter()
                .rposition(|byte| !byte.is_ascii_uppercase())?
                + 1;
            let begin = if end == begin { return None } else { begin };
            Severity::named(&reach[begin..end]).map(|_| &reach[..begin])
        })
        .or_else(|| {
            let end = reach.iter().position(|byte| *byte == b':')?;
            Severity::named(&reach[..end]).map(|_| &reach[..0])
        })
}

/// Return the prefix and its variants with a `%q` at each possible place: before an escape, or behind a space that
/// follows the process ID.
fn with_quit(text: &str) -> Vec<String> {
    let escapes = text.match_indices('%').map(|(place, _)| place).skip(1);
    let spaces = text.match_indices(' ').map(|(place, _)| place + 1);
    let pid = text.find("%p").unwrap_or(text.len());
    let places: BTreeSet<usize> = escapes
        .chain(spaces.filter(|place| (pid..text.len()).contains(place)))
        .collect();
    let mut all: Vec<String> = places
        .into_iter()
        .map(|place| format!("{}%q{}", &text[..place], &text[place..]))
        .collect();
    all.insert(0, text.to_owned());
    all
}

/// Return a prefix with a text field in the place of each word that no equals sign follows.
fn without_words(prefix: &str) -> String {
    let mut general = String::new();
    let mut rest = prefix;
    while let Some(next) = rest.chars().next() {
        let length = rest
            .find(|next: char| !(next.is_alphanumeric() || matches!(next, '_' | '.' | '-')))
            .unwrap_or(rest.len());
        if next == '%' {
            let escape: String = rest.chars().take(2).collect();
            general.push_str(&escape);
            rest = &rest[escape.len()..];
        } else if next.is_alphabetic() {
            let is_name = rest[length..].starts_with('=');
            general.push_str(if is_name { &rest[..length] } else { "%b" });
            rest = &rest[length..];
        } else {
            general.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    general
}

/// Derive a prefix from a line: times, numbers in brackets, `name=value`, `user@database`,
/// addresses.
fn read_off(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(heading(line)?).ok()?;
    let mut prefix = String::new();
    let mut seen = Seen::default();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let previous = prefix.chars().next_back();
        let fresh = previous.is_none_or(|before| !before.is_alphanumeric());
        let (escape, length) = fresh
            .then(|| seen.field(rest, &prefix))
            .flatten()
            .unwrap_or_else(|| (String::new(), 0));
        if length > 0 || !escape.is_empty() {
            prefix.push_str(&escape);
            at += length;
            // What follows a field is a literal, whatever it looks like.
            if let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
                push_escaped(&mut prefix, next);
                at += next.len_utf8();
            }
        } else {
            let next = rest.chars().next()?;
            push_escaped(&mut prefix, next);
            at += next.len_utf8();
        }
    }
    Some(prefix)
}

fn push_escaped(prefix: &mut String, character: char) {
    if character == '%' {
        prefix.push('%');
    }
    prefix.push(character);
}

/// The fields found on a line so far.
#[derive(Default)]
struct Seen {
    time: bool,
    pid: bool,
    user: bool,
}

impl Seen {
    /// Return the escape for the field at the beginning of a text, and its length.
    fn field(&mut self, rest: &str, before: &str) -> Option<(String, usize)> {
        if let Some((_, length)) = Clock::default().read(rest.as_bytes()) {
            let escape = match (
                std::mem::replace(&mut self.time, true),
                rest.as_bytes().get(19),
            ) {
                (true, _) => "%s",
                (false, Some(b'.')) => "%m",
                (false, _) => "%t",
            };
            return Some((escape.to_owned(), length));
        }
        if let Some((_, length)) = crate::read::time::epoch(rest.as_bytes()) {
            self.time = true;
            return Some(("%n".to_owned(), length));
        }
        let word = |end: fn(char) -> bool| rest.find(end).unwrap_or(rest.len());
        if let Some(escape) = named(before) {
            let bracketed = rest.starts_with('[').then(|| rest.find(']')).flatten();
            let length = bracketed.map_or_else(
                || {
                    let first =
                        word(|next| matches!(next, ' ' | ',' | ';' | ':' | ']' | ')' | '|' | '/'));
                    first + more_words(&rest[first..])
                },
                |end| end + 1,
            );
            // Other values have such names too, such as `state=idle`.
            let escape = match escape {
                "%e" if !is_sqlstate(rest[..length].trim().as_bytes()) => "%b",
                escape => escape,
            };
            return Some((escape.to_owned(), length));
        }
        let token = &rest[..word(|next| !next.is_ascii_alphanumeric())];
        if is_sqlstate(token.as_bytes()) {
            return Some(("%e".to_owned(), 5));
        }
        if rest.starts_with(CLIENT) {
            return Some(("%b".to_owned(), CLIENT.len()));
        }
        if let Some(length) = query_id(rest) {
            return Some(("%Q".to_owned(), length));
        }
        let digits = word(|next| !next.is_ascii_digit());
        let behind = rest[digits..].chars().next();
        if digits > 0 && !behind.is_some_and(|next| next == '.' || next.is_lowercase()) {
            let escape = if std::mem::replace(&mut self.pid, true) {
                "%l"
            } else {
                "%p"
            };
            return Some((escape.to_owned(), digits));
        }
        let length = word(|next| matches!(next, ' ' | ',' | ';' | '|' | '/'));
        let token = &rest[..length];
        if let Some((user, database)) = token.split_once('@')
            && !user.starts_with(['[', '(', '<'])
            && !std::mem::replace(&mut self.user, true)
        {
            let database = database
                .find([':', ']', ')'])
                .map_or(database, |end| &database[..end]);
            return Some(("%u@%d".to_owned(), user.len() + 1 + database.len()));
        }
        let token = token.trim_end_matches([':', '-', ']']);
        if let Some((start, pid)) = token.split_once('.')
            && [start, pid]
                .iter()
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
            && start.len() == 8
        {
            let pid = pid.len();
            return Some(("%c".to_owned(), 9 + pid));
        }
        if rest.starts_with("[local]") {
            return Some(("%r".to_owned(), 7));
        }
        let address = rest
            .find(|next: char| !(next.is_ascii_hexdigit() || matches!(next, '.' | '(' | ')')))
            .unwrap_or(rest.len());
        if rest[..address].matches('.').count() == 3 {
            return Some(("%r".to_owned(), address));
        }
        None
    }
}

/// Return the length of further words of a value, as in `app=PostgreSQL JDBC Driver,`: they begin with a letter, and
/// no equals sign follows.
fn more_words(text: &str) -> usize {
    let mut length = 0;
    while let Some(word) = text[length..].strip_prefix(' ') {
        let end = word
            .find(|next: char| !(next.is_alphanumeric() || matches!(next, '_' | '.' | '-')))
            .unwrap_or(word.len());
        let behind = word[end..].chars().next();
        if !word.starts_with(char::is_alphabetic)
            || !matches!(behind, None | Some(' ' | ',' | ';' | ']' | ')' | '|'))
        {
            break;
        }
        length += 1 + end;
    }
    length
}

/// Return the length of a query ID at the beginning of a text. It is 0, or it has a sign or more digits than a
/// process ID.
fn query_id(text: &str) -> Option<usize> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - digits.len();
    let length = digits
        .find(|next: char| !next.is_ascii_digit())
        .unwrap_or(digits.len());
    let behind = digits[length..].chars().next();
    let ends = behind.is_none_or(|next| !next.is_alphanumeric() && next != '.' && next != '-');
    let fits = length > LONGEST_PID || sign > 0 && length > 0 || &digits[..length] == "0";
    // A severity may follow directly.
    let ends = ends || length > LONGEST_PID && behind.is_some_and(char::is_uppercase);
    (fits && ends).then_some(sign + length)
}

/// The codes of `PostgreSQL` that have no letters (src/backend/utils/errcodes.txt). Any other number of five digits is a
/// process ID or the like.
const NUMERIC_STATES: [&[u8]; 116] = [
    b"00000", b"01000", b"01003", b"01004", b"01006", b"01007", b"01008", b"02000", b"02001",
    b"03000", b"08000", b"08001", b"08003", b"08004", b"08006", b"08007", b"09000", b"20000",
    b"21000", b"22000", b"22001", b"22002", b"22003", b"22004", b"22005", b"22007", b"22008",
    b"22009", b"22010", b"22011", b"22012", b"22013", b"22014", b"22015", b"22016", b"22018",
    b"22019", b"22021", b"22022", b"22023", b"22024", b"22025", b"22026", b"22027", b"22030",
    b"22031", b"22032", b"22033", b"22034", b"22035", b"22036", b"22037", b"22038", b"22039",
    b"23000", b"23001", b"23502", b"23503", b"23505", b"23514", b"24000", b"25000", b"25001",
    b"25002", b"25003", b"25004", b"25005", b"25006", b"25007", b"25008", b"26000", b"27000",
    b"28000", b"34000", b"38000", b"39000", b"40000", b"40001", b"40002", b"40003", b"42000",
    b"42501", b"42601", b"42602", b"42622", b"42701", b"42702", b"42703", b"42704", b"42710",
    b"42712", b"42723", b"42725", b"42803", b"42804", b"42809", b"42830", b"42846", b"42883",
    b"42939", b"44000", b"53000", b"53100", b"53200", b"53300", b"53400", b"54000", b"54001",
    b"54011", b"54023", b"55000", b"55006", b"57000", b"57014", b"58000", b"58030",
];

/// Whether a text is the code of an error, a warning or success. Codes with letters may be an application's own.
pub(super) fn is_sqlstate(text: &[u8]) -> bool {
    let is_upper_or_digit = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    if text.len() != 5 || !text.iter().all(is_upper_or_digit) {
        return false;
    }
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    match digits {
        5 => NUMERIC_STATES.contains(&text),
        0 => false,
        _ => true,
    }
}

/// Return the escape for a name before an equals sign or a colon. The value after an equals sign is never literal: what the first
/// lines have in common may differ later.
fn named(before: &str) -> Option<&'static str> {
    let name = before.strip_suffix(['=', ':'])?;
    let mut parts =
        name.rsplit(|character: char| !(character.is_alphanumeric() || character == '_'));
    let name = parts.next()?;
    // The letter of an escape is no name: `%e:`.
    if parts
        .next()
        .is_some_and(|_| before[..before.len() - 1 - name.len()].ends_with('%'))
    {
        return None;
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "user" | "usr" | "u" | "username" | "user_name" | "usename" | "role" | "login" => "%u",
        "db" | "database" | "d" | "dbname" | "datname" | "database_name" => "%d",
        "a" | "name" | "program" => "%a",
        app if app.starts_with("app") => "%a",
        "client" | "host" | "h" | "r" | "remote" | "ip" | "addr" | "client_addr"
        | "client_host" | "client_ip" | "remote_host" => "%h",
        "pid" | "p" | "process" => "%p",
        "queryid" | "query_id" | "qid" => "%Q",
        "line" | "l" | "xid" | "txid" | "tx" | "x" => "%l",
        "sqlstate" | "err" | "state" | "e" | "error_code" | "code" | "sql_error_code" => "%e",
        "session" | "sid" | "c" | "session_id" => "%c",
        "vxid" | "v" | "vtx" | "cmd" | "command" | "tag" | "backend" | "b" | "i" => "%i",
        "" => return None,
        _ if before.ends_with('=') => "%b",
        _ => return None,
    })
}
