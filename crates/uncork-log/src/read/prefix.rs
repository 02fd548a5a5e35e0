//! Parses the prefix of plain-text lines: `log_line_prefix`, and the severity.

mod detect;
mod stops;

pub use detect::detect;
pub(crate) use detect::heading;

use crate::read::time::{Clock, Micros, epoch};

/// The longest possible prefix; a longer one is text.
pub(crate) const REACH: usize = 1_024;
/// How many ends of text fields are tried on a line. A line that fits needs few; on another one, each field multiplies
/// the number of possible ends.
const TRIES: u32 = 2_000;

/// What is known of a line besides its head while its prefix is read.
struct Aside {
    /// The server's identifier of the statement; 0 if the prefix does not contain it.
    query_id: i64,
    /// How many more ends of text fields may be tried.
    tries: u32,
}

impl Aside {
    fn new() -> Self {
        Self {
            query_id: 0,
            tries: TRIES,
        }
    }
}

/// A parsed `log_line_prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// Its text, as in the server's settings.
    text: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(Vec<u8>),
    Field(Field),
    /// `%q`: processes without a session stop here.
    Quit,
    /// Processes without a session may stop here, or anywhere in the literal that follows. In the place of a `%q` that
    /// a prefix derived from lines of sessions cannot show.
    MayQuit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// `%m`, `%t`, `%n`.
    Time,
    /// `%s`.
    SessionStart,
    /// `%p`.
    Pid,
    /// `%l`, `%P`, `%x`, `%S`: an unused number.
    Number,
    /// `%Q`.
    QueryId,
    /// `%u`.
    User,
    /// `%d`.
    Database,
    /// `%a`.
    Application,
    /// `%h`, `%r`.
    Host,
    /// `%e`.
    SqlState,
    /// `%c`.
    Session,
    /// `%b`, `%L`: an unused text, the same in most lines of a session.
    Label,
    /// `%i`, `%v`: an unused text.
    Text,
}

/// The contents of a line's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// When it was written.
    pub time: Option<Micros>,
    /// The process that wrote it; 0 if the prefix does not contain it.
    pub pid: u32,
    /// The session ID (`%c`); empty if the prefix does not contain it.
    pub session: &'a [u8],
    /// Empty if there is none, or the prefix does not contain it.
    pub user: &'a [u8],
    /// Empty if there is none, or the prefix does not contain it.
    pub database: &'a [u8],
    /// Empty if there is none, or the prefix does not contain it.
    pub application: &'a [u8],
    /// A name, an address or `[local]`, without the port; empty if the prefix does not contain it.
    pub host: &'a [u8],
    /// Empty if the prefix does not contain it.
    pub sqlstate: &'a [u8],
    /// The severity, or the kind of addition.
    pub severity: Severity,
}

impl Head<'_> {
    pub(crate) fn new() -> Self {
        Self {
            time: None,
            pid: 0,
            session: b"",
            user: b"",
            database: b"",
            application: b"",
            host: b"",
            sqlstate: b"",
            severity: Severity::Log,
        }
    }
}

/// The severity of a message, or the kind of an addition to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// `DEBUG`, `DEBUG1` to `DEBUG5`.
    Debug,
    /// `LOG`.
    Log,
    /// `INFO`.
    Info,
    /// `NOTICE`.
    Notice,
    /// `WARNING`.
    Warning,
    /// `ERROR`.
    Error,
    /// `FATAL`.
    Fatal,
    /// `PANIC`.
    Panic,
    /// `DETAIL`: an addition.
    Detail,
    /// `HINT`: an addition.
    Hint,
    /// `CONTEXT`: an addition.
    Context,
    /// `STATEMENT`: an addition.
    Statement,
    /// `QUERY`: an addition.
    Query,
    /// `LOCATION`, `BACKTRACE`: an addition.
    Location,
}

impl Severity {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Log => "LOG",
            Self::Info => "INFO",
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Panic => "PANIC",
            Self::Detail => "DETAIL",
            Self::Hint => "HINT",
            Self::Context => "CONTEXT",
            Self::Statement => "STATEMENT",
            Self::Query => "QUERY",
            Self::Location => "LOCATION",
        }
    }

    /// Whether such a line adds to the message before it.
    #[must_use]
    pub fn is_addition(self) -> bool {
        self >= Self::Detail
    }

    /// Parse a severity.
    #[must_use]
    pub fn named(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"LOG" => Self::Log,
            b"ERROR" => Self::Error,
            b"DETAIL" => Self::Detail,
            b"STATEMENT" => Self::Statement,
            b"HINT" => Self::Hint,
            b"CONTEXT" => Self::Context,
            b"QUERY" => Self::Query,
            b"FATAL" => Self::Fatal,
            b"WARNING" => Self::Warning,
            b"NOTICE" => Self::Notice,
            b"INFO" => Self::Info,
            b"PANIC" => Self::Panic,
            b"LOCATION" | b"BACKTRACE" => Self::Location,
            b"DEBUG" | b"DEBUG1" | b"DEBUG2" | b"DEBUG3" | b"DEBUG4" | b"DEBUG5" => Self::Debug,
            _ => return None,
        })
    }
}

/// A `log_line_prefix` has an unknown escape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("%{0} is no escape of log_line_prefix")]
pub struct UnknownEscape(pub char);

impl Prefix {
    /// Parse a `log_line_prefix` as in the server's settings. If it has no `%q`, it also reads lines that end before
    /// the fields of a session: a prefix derived from lines of sessions does not show where a `%q` is.
    ///
    /// # Errors
    ///
    /// [`UnknownEscape`] if it has an escape that no server knows.
    pub fn parse(text: &str) -> Result<Self, UnknownEscape> {
        let prefix = Self::parse_exactly(text)?;
        let shows_stop = prefix.items.contains(&Item::Quit);
        Ok(if shows_stop {
            prefix
        } else {
            prefix.with_possible_stops()
        })
    }

    /// Parse a `log_line_prefix`; only lines that have all of it are read, unless it has a `%q`.
    fn parse_exactly(text: &str) -> Result<Self, UnknownEscape> {
        let mut items: Vec<Item> = Vec::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '%' {
                push_literal(&mut items, character);
                continue;
            }
            // A width, as in `%-10u`, pads with spaces, which are trimmed.
            while characters
                .next_if(|next| *next == '-' || next.is_ascii_digit())
                .is_some()
            {}
            match characters.next() {
                Some('%') => push_literal(&mut items, '%'),
                Some('q') => items.push(Item::Quit),
                Some(escape) => {
                    items.push(Item::Field(field(escape).ok_or(UnknownEscape(escape))?));
                }
                None => return Err(UnknownEscape(' ')),
            }
        }
        Ok(Self {
            text: text.to_owned(),
            items,
        })
    }

    /// Let processes without a session stop wherever a `%q` may be.
    fn with_possible_stops(self) -> Self {
        Self {
            items: stops::marked(&self.items),
            ..self
        }
    }

    /// The prefix, as in the server's settings.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Read the prefix of a line; return it and where the message begins.
    pub fn read<'a>(&self, line: &'a [u8], clock: &mut Clock) -> Option<(Head<'a>, usize)> {
        let mut head = Head::new();
        let mut aside = Aside::new();
        let message = read_items(&self.items, line, 0, clock, &mut head, &mut aside)?;
        Some((head, message))
    }

    /// Read the same, and the server's identifier of the statement; 0 if the prefix does not contain it. It is no part
    /// of the head, because heads are copied often.
    pub(crate) fn read_with_query_id<'a>(
        &self,
        line: &'a [u8],
        clock: &mut Clock,
        query_id: &mut i64,
    ) -> Option<(Head<'a>, usize)> {
        let mut head = Head::new();
        let mut aside = Aside::new();
        *query_id = 0;
        let message = read_items(&self.items, line, 0, clock, &mut head, &mut aside)?;
        *query_id = aside.query_id;
        Some((head, message))
    }

    /// Whether lines contain their time.
    pub(crate) fn has_time(&self) -> bool {
        self.items.contains(&Item::Field(Field::Time))
    }

    /// Return the prefix of the same lines with a time and a space before it. Its text stays as in the server's
    /// settings.
    #[must_use]
    pub(crate) fn behind_time(&self) -> Self {
        let before = [Item::Field(Field::Time), Item::Literal(vec![b' '])];
        Self {
            text: self.text.clone(),
            items: before.into_iter().chain(self.items.clone()).collect(),
        }
    }

    /// Whether lines begin with their time, and the rest of the prefix is the same in many lines.
    pub(crate) fn begins_with_time(&self) -> bool {
        let varies = |item: &Item| {
            matches!(
                item,
                Item::Field(
                    Field::Time
                        | Field::SessionStart
                        | Field::Number
                        | Field::QueryId
                        | Field::Text
                )
            )
        };
        match self.items.split_first() {
            Some((Item::Field(Field::Time), rest)) => !rest.iter().any(varies),
            _ => false,
        }
    }

    /// Whether the values read from a line can be what the server writes: it writes no process ID 0, every SQLSTATE is
    /// a known one or has letters, a session ID has hexadecimal digits, and names of users and databases hardly contain brackets or equals signs, or begin with the type of a session's process.
    fn is_plausible(&self, head: &Head<'_>) -> bool {
        let certain = self.items.iter().take_while(|item| **item != Item::Quit);
        let names_pid = certain
            .into_iter()
            .any(|item| *item == Item::Field(Field::Pid));
        let is_name = |name: &[u8]| !name.iter().any(|byte| matches!(byte, b'[' | b']' | b'='));
        (head.pid > 0 || !names_pid)
            && is_name(head.user)
            && is_name(head.database)
            && !head.user.starts_with(detect::CLIENT.as_bytes())
            && (head.sqlstate.is_empty() || detect::is_sqlstate(head.sqlstate))
            && head
                .session
                .iter()
                .all(|byte| byte.is_ascii_hexdigit() || *byte == b'.')
    }

    /// Return how many useful fields the prefix has.
    fn fields(&self) -> usize {
        self.items
            .iter()
            .filter(|item| matches!(item, Item::Field(field) if !matches!(field, Field::Label | Field::Text | Field::Number | Field::QueryId)))
            .count()
    }
}

fn push_literal(items: &mut Vec<Item>, character: char) {
    if !matches!(items.last(), Some(Item::Literal(_))) {
        items.push(Item::Literal(Vec::new()));
    }
    if let Some(Item::Literal(text)) = items.last_mut() {
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn field(escape: char) -> Option<Field> {
    Some(match escape {
        'm' | 't' | 'n' => Field::Time,
        's' => Field::SessionStart,
        'p' => Field::Pid,
        'l' | 'P' | 'x' | 'S' => Field::Number,
        'Q' => Field::QueryId,
        'u' => Field::User,
        'd' => Field::Database,
        'a' => Field::Application,
        'h' | 'r' => Field::Host,
        'e' => Field::SqlState,
        'c' => Field::Session,
        'b' | 'L' => Field::Label,
        'i' | 'v' => Field::Text,
        _ => return None,
    })
}

/// Read items from a position of a line; return where the message begins.
fn read_items<'a>(
    items: &[Item],
    line: &'a [u8],
    mut at: usize,
    clock: &mut Clock,
    head: &mut Head<'a>,
    aside: &mut Aside,
) -> Option<usize> {
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Literal(text) => {
                line.get(at..)?.starts_with(text).then_some(())?;
                at += text.len();
            }
            Item::Quit => {
                let before = *head;
                let rest = &items[index + 1..];
                if let Some(message) = read_items(rest, line, at, clock, head, aside) {
                    return Some(message);
                }
                *head = before;
                return severity(line, at, head);
            }
            Item::MayQuit => {
                let before = *head;
                let rest = &items[index + 1..];
                if let Some(message) = read_items(rest, line, at, clock, head, aside) {
                    return Some(message);
                }
                *head = before;
                return stopped_early(rest, line, at, head);
            }
            Item::Field(Field::Time) => {
                let text = line.get(at..)?;
                let (time, length) = clock.read(text).or_else(|| epoch(text))?;
                head.time = Some(time);
                at += length;
            }
            Item::Field(Field::SessionStart) => {
                at += clock
                    .clone()
                    .read(line.get(at..)?)
                    .map_or(0, |(_, length)| length);
            }
            Item::Field(Field::Pid) => {
                let (number, end) = number(line, at)?;
                head.pid = u32::try_from(number).ok()?;
                at = end;
            }
            Item::Field(Field::QueryId) => {
                if let Some((_, end)) = number(line, at) {
                    aside.query_id = signed(&line[at..end]);
                    at = end;
                }
            }
            Item::Field(Field::Number) => at = number(line, at).map_or(at, |(_, end)| end),
            Item::Field(field) => {
                let rest = (*field, &items[index + 1..]);
                return read_text(rest, line, at, clock, head, aside);
            }
        }
    }
    severity(line, at, head)
}

/// Read the severity behind any part of the literal that comes next; return where the message begins.
fn stopped_early<'a>(
    rest: &[Item],
    line: &'a [u8],
    at: usize,
    head: &mut Head<'a>,
) -> Option<usize> {
    if !(head.sqlstate.is_empty() || detect::is_sqlstate(head.sqlstate)) {
        return None;
    }
    let literal: &[u8] = match rest.first() {
        Some(Item::Literal(text)) => text,
        _ => b"",
    };
    let text = line.get(at..)?;
    let same = literal
        .iter()
        .zip(text)
        .take_while(|(expected, byte)| expected == byte)
        .count();
    (0..=same)
        .rev()
        .find_map(|part| severity(line, at + part, head))
}

/// Read a text field and everything after it, at most so many tries. The field ends where the rest of the prefix fits first. If nothing fits,
/// the values read so far are meaningless.
fn read_text<'a>(
    (field, rest): (Field, &[Item]),
    line: &'a [u8],
    at: usize,
    clock: &mut Clock,
    head: &mut Head<'a>,
    aside: &mut Aside,
) -> Option<usize> {
    let reach = &line[..line.len().min(at + REACH)];
    let is_client = field == Field::Label
        && line
            .get(at..)
            .is_some_and(|text| text.starts_with(detect::CLIENT.as_bytes()));
    let mut end = if is_client {
        at + detect::CLIENT.len()
    } else {
        at
    };
    loop {
        end = match rest.first() {
            Some(Item::Literal(text)) => end + find(reach.get(end..)?, text)?,
            _ if end <= reach.len() => end,
            _ => return None,
        };
        set(head, field, &line[at..end]);
        aside.tries = aside.tries.checked_sub(1)?;
        if let Some(message) = read_items(rest, line, end, clock, head, aside) {
            return Some(message);
        }
        end += 1;
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    match wanted {
        [only] => text.iter().position(|byte| byte == only),
        [first, ..] => {
            let mut from = 0;
            loop {
                from += text.get(from..)?.iter().position(|byte| byte == first)?;
                if text[from..].starts_with(wanted) {
                    return Some(from);
                }
                from += 1;
            }
        }
        [] => Some(0),
    }
}

fn set<'a>(head: &mut Head<'a>, field: Field, text: &'a [u8]) {
    let text = text.trim_ascii();
    let text = if text == b"[unknown]" { b"" } else { text };
    match field {
        Field::User => head.user = text,
        Field::Database => head.database = text,
        Field::Application => head.application = text,
        Field::Host => head.host = without_port(text),
        Field::SqlState => head.sqlstate = text,
        Field::Session => head.session = text,
        _ => {}
    }
}

/// Return `10.0.0.1(5432)` of `%r` without its port.
pub(crate) fn without_port(host: &[u8]) -> &[u8] {
    match host {
        [.., b')'] => host
            .iter()
            .rposition(|byte| *byte == b'(')
            .map_or(host, |end| &host[..end]),
        _ => host,
    }
}

fn number(line: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut end = at;
    while line.get(end) == Some(&b' ') {
        end += 1;
    }
    if line.get(end) == Some(&b'-') {
        end += 1;
    }
    let begin = end;
    let mut number = 0_u64;
    while let Some(byte) = line.get(end).filter(|byte| byte.is_ascii_digit()) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        end += 1;
    }
    (end > begin).then_some((number, end))
}

/// Parse an integer with a sign; 0 if it is none.
pub(crate) fn signed(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text.trim_ascii());
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Read the severity at a position of a line; return where the message begins.
fn severity(line: &[u8], at: usize, head: &mut Head<'_>) -> Option<usize> {
    let rest = line.get(at..)?;
    let rest = &rest[..rest.len().min(12)];
    let length = rest.iter().position(|byte| *byte == b':')?;
    head.severity = Severity::named(&rest[..length])?;
    let mut message = at + length + 1;
    while line.get(message) == Some(&b' ') && message < at + length + 3 {
        message += 1;
    }
    Some(message)
}

#[cfg(test)]
mod tests;
