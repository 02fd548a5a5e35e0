//! Reads who sent a statement from the comment at its end or its beginning.
//!
//! Two formats are common. sqlcommenter's, which OpenTelemetry, Django, `SQLAlchemy` and Rails write, has URL-encoded values
//! in quotes: `route='%2Forders',traceparent='00-…'`. Marginalia's, the older format of Rails, has plain ones:
//! `application:Shop,controller:orders,action:show`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::hash::Hash;

/// The longest name that is kept, in bytes.
const LONGEST: usize = 120;
/// Tags that name a route, in the order of preference.
const ROUTES: [&[u8]; 3] = [b"http.route", b"route", b"endpoint"];
/// Tags with the path of a request, which can contain values.
const PATHS: [&[u8]; 2] = [b"path", b"url"];
/// Tags that name an application.
const APPLICATIONS: [&[u8]; 4] = [b"application", b"app_name", b"app", b"service.name"];
/// How the trace IDs of `uncork load` begin: `unck`.
const OWN: &[u8] = b"756e636b";
/// The length of a W3C `traceparent`.
const PARENT: usize = 55;
/// Digits of a trace ID that name a load of uncork and one of its requests.
const GROUP: usize = 16;

/// What a statement's comment says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tags {
    /// The route, else controller and action, else a job, else the path; empty if unknown.
    pub(crate) route: Vec<u8>,
    /// Whether the route is the path of a request.
    pub(crate) is_path: bool,
    /// The application; empty if unknown.
    pub(crate) application: Vec<u8>,
    /// The trace's ID: 32 lower-case hexadecimal digits; empty if unknown.
    pub(crate) trace: Vec<u8>,
}

/// Return the insides of the comments that can have tags: those at a statement's end and at its beginning.
pub(crate) fn comments(sql: &[u8]) -> impl Iterator<Item = &[u8]> {
    let last = last_comment(sql).into_iter();
    last.chain(first_comment(sql))
}

/// A comment divided around the trace that it names, which is another one in each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traced<'a> {
    before: &'a [u8],
    /// The trace's ID; `None` if the comment names no trace, and `before` is all of it.
    pub(crate) trace: Option<&'a [u8]>,
    after: &'a [u8],
}

impl<'a> Traced<'a> {
    pub(crate) fn of(comment: &'a [u8]) -> Self {
        static MARK: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("traceparent='"));
        let traced = MARK.find(comment).and_then(|at| {
            let (before, rest) = comment.split_at(at + MARK.needle().len());
            let (parent, after) = rest.split_at_checked(PARENT)?;
            let trace = (after.first() == Some(&b'\'')).then(|| trace(parent))?;
            Some(Self {
                before,
                trace: Some(trace?),
                after,
            })
        });
        traced.unwrap_or(Self {
            before: comment,
            trace: None,
            after: b"",
        })
    }

    /// Hash what decides which sender the comment names: all but the trace, unless uncork began it.
    pub(crate) fn hash(&self, origin: u32) -> u64 {
        let mut hash = Hash::new();
        hash.add(&origin.to_le_bytes(), 0);
        hash.add(self.before, 1);
        hash.add(self.trace.map_or(b"", group_of), 2);
        hash.add(self.after, u64::from(self.trace.is_some()));
        hash.get()
    }

    /// Whether all comments with this hash name the same sender, because the trace is the whole value of a tag.
    pub(crate) fn is_typical(&self, comment: &[u8]) -> bool {
        self.trace.is_none() || quoted(comment).is_some()
    }
}

/// Return the digits that name a load of uncork and one of its requests; empty if another program began the trace.
fn group_of(trace: &[u8]) -> &[u8] {
    match trace.get(..GROUP) {
        Some(group) if group.starts_with(OWN) => group,
        _ => b"",
    }
}

impl Tags {
    /// Read the inside of a comment; `None` if it has no tags.
    pub(crate) fn read(comment: &[u8]) -> Option<Self> {
        let (pairs, encoded) = match quoted(comment) {
            Some(pairs) => (pairs, true),
            None => (plain(comment)?, false),
        };
        let value = |names: &[&[u8]]| {
            let of = |name: &&[u8]| {
                pairs
                    .iter()
                    .find(|(key, value)| key == name && !value.is_empty())
            };
            let (_, value) = names.iter().find_map(of)?;
            Some(if encoded {
                cut(&decoded(value))
            } else {
                cut(value)
            })
        };
        let joined: Vec<Vec<u8>> = [&b"controller"[..], b"action"]
            .iter()
            .filter_map(|name| value(&[name]))
            .collect();
        let joined = (!joined.is_empty()).then(|| cut(&joined.join(&b'#')));
        let route = value(&ROUTES).or(joined).or_else(|| value(&[b"job"]));
        let path = if route.is_none() { value(&PATHS) } else { None };
        let found = Self {
            is_path: path.is_some(),
            route: route
                .or_else(|| path.map(|path| without_values(&path)))
                .unwrap_or_default(),
            application: value(&APPLICATIONS).unwrap_or_default(),
            trace: value(&[b"traceparent"])
                .and_then(|parent| trace(&parent).map(<[u8]>::to_vec))
                .unwrap_or_default(),
        };
        (found != Self::default()).then_some(found)
    }

    /// The digits that name a load of uncork and one of its requests; empty if another program began the trace.
    pub(crate) fn group(&self) -> &[u8] {
        group_of(&self.trace)
    }
}

/// Return the inside of the comment at a statement's end.
fn last_comment(sql: &[u8]) -> Option<&[u8]> {
    let mut sql = sql.trim_ascii_end();
    while let Some(rest) = sql.strip_suffix(b";") {
        sql = rest.trim_ascii_end();
    }
    let sql = sql.strip_suffix(b"*/")?;
    // Building a searcher for two bytes would take longer than this.
    let begin = memchr::memrchr_iter(b'/', sql).find(|at| sql.get(at + 1) == Some(&b'*'))?;
    Some(&sql[begin + 2..])
}

/// Return the inside of the comment at a statement's beginning.
fn first_comment(sql: &[u8]) -> Option<&[u8]> {
    let sql = sql.trim_ascii_start().strip_prefix(b"/*")?;
    let end = memchr::memmem::find(sql, b"*/")?;
    Some(&sql[..end])
}

/// Keys and values as they are written.
type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Parse `key='value',…`; `None` if the comment is something else.
fn quoted(comment: &[u8]) -> Option<Pairs<'_>> {
    let mut found = Pairs::new();
    let mut rest = comment.trim_ascii();
    while !rest.is_empty() {
        let equals = memchr::memchr(b'=', rest)?;
        let key = rest[..equals].trim_ascii();
        if !is_key(key) {
            return None;
        }
        rest = rest[equals + 1..].trim_ascii_start().strip_prefix(b"'")?;
        let mut at = 0;
        loop {
            at += memchr::memchr2(b'\'', b'\\', &rest[at..])?;
            if rest[at] == b'\'' {
                break;
            }
            at = (at + 2).min(rest.len());
        }
        found.push((key, &rest[..at]));
        rest = rest[at + 1..].trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    }
    (!found.is_empty()).then_some(found)
}

/// Parse `key:value,…`; `None` if the comment is something else.
fn plain(comment: &[u8]) -> Option<Pairs<'_>> {
    let pairs = comment.trim_ascii().split(|byte| *byte == b',');
    pairs
        .map(|pair| {
            let colon = memchr::memchr(b':', pair)?;
            let (key, value) = (pair[..colon].trim_ascii(), pair[colon + 1..].trim_ascii());
            is_key(key).then_some((key, value))
        })
        .collect()
}

fn is_key(key: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-%".contains(byte);
    key.first()
        .is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && key.iter().all(allowed)
}

/// Undo the encoding of a value: `%2F`, and `\'`.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        rest = match (first, byte) {
            (b'%', Some(byte)) => {
                out.push(byte);
                &after[2..]
            }
            (b'\\', _) if after.first() == Some(&b'\'') => after,
            _ => {
                out.push(*first);
                after
            }
        };
    }
    out
}

/// Return the first bytes of a name, without half a character.
fn cut(name: &[u8]) -> Vec<u8> {
    let mut end = name.len().min(LONGEST);
    while end < name.len() && end > 0 && name[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    name[..end].to_vec()
}

/// Return a path with `?` instead of segments that are numbers or identifiers, and without a query.
fn without_values(path: &[u8]) -> Vec<u8> {
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#'));
    let segments = path[..end.unwrap_or(path.len())].split(|byte| *byte == b'/');
    let is_value = |segment: &[u8]| {
        let digits = segment.iter().filter(|byte| byte.is_ascii_digit()).count();
        let hexadecimal = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
        digits > 0
            && (digits == segment.len() || segment.len() >= 16 && segment.iter().all(hexadecimal))
    };
    let shown: Vec<&[u8]> = segments
        .map(|segment| if is_value(segment) { b"?" } else { segment })
        .collect();
    shown.join(&b'/')
}

/// Return the trace's ID of a W3C `traceparent`; `None` if it is not valid.
fn trace(parent: &[u8]) -> Option<&[u8]> {
    let mut parts = parent.split(|byte| *byte == b'-');
    let [version, trace, span] = [parts.next()?, parts.next()?, parts.next()?];
    let is_hex = |text: &[u8], length| {
        let digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        text.len() == length && text.iter().all(digit)
    };
    let is_valid = is_hex(version, 2)
        && version != b"ff"
        && is_hex(trace, 32)
        && is_hex(span, 16)
        && trace.iter().any(|digit| *digit != b'0');
    is_valid.then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEPARENT: &str =
        "traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'";

    fn tags_of(sql: &[u8]) -> Option<Tags> {
        comments(sql).find_map(Tags::read)
    }

    fn route(sql: &str) -> Option<(String, bool)> {
        let found = tags_of(sql.as_bytes())?;
        let text = String::from_utf8(found.route).expect("is text");
        Some((text, found.is_path))
    }

    #[test]
    fn routes_are_read_from_both_formats_at_both_ends() {
        for (sql, name) in [
            ("SELECT 1 /*route='%2Forders%2F%7Bid%7D'*/", "/orders/{id}"),
            (
                "SELECT 1 /*db_driver='psycopg', route='%2Forders'*/ ; ",
                "/orders",
            ),
            ("/*route='%2Forders'*/ SELECT 1", "/orders"),
            (
                "/*route='%2Forders'*/ SELECT /* fast */ 1 /* a remark */",
                "/orders",
            ),
            (
                "SELECT 1 /*action='index',controller='orders',framework='rails'*/",
                "orders#index",
            ),
            (
                "SELECT 1 /*application:Shop,controller:orders,action:show*/",
                "orders#show",
            ),
            ("SELECT 1 /*action='%2Fa%2Fb'*/", "/a/b"),
            ("SELECT 1 /*job='MailJob'*/", "MailJob"),
            ("SELECT 1 /*route='it\\'s'*/", "it's"),
        ] {
            assert_eq!(route(sql), Some((name.to_owned(), false)), "{sql}");
        }
    }

    #[test]
    fn other_comments_have_no_tags() {
        for sql in [
            "SELECT 1",
            "SELECT 1 /* just a remark */",
            "SELECT 1 /* see: the manual, chapter 3 */",
            "/*+ IndexScan(t) */ SELECT 1",
            "SELECT 1 /* route='a",
            "SELECT '/*route=''a''*/'",
            "SELECT 1 /*route=''*/",
            "SELECT 1 /*db_driver='psycopg'*/",
            "SELECT 1 /*route='a' or something*/",
            "SELECT 1 /*traceparent='00-00000000000000000000000000000000-c532cb4098ac3dd2-01'*/",
            "*/",
            "/*/",
            "",
        ] {
            assert_eq!(tags_of(sql.as_bytes()), None, "{sql}");
        }
    }

    #[test]
    fn comments_that_differ_in_their_trace_have_one_hash() {
        let hash = |comment: &str| Traced::of(comment.as_bytes()).hash(7);
        let parent = "traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'";
        let comment = format!("route='a',{parent},x='1'");
        let other = comment.replace("5bd66ef5", "4ad66ef4");
        assert_eq!(hash(&comment), hash(&other));
        let own = |load: &str| comment.replace("5bd66ef5095369c7", &format!("756e636b{load}"));
        assert_eq!(hash(&own("095369c7")), hash(&own("095369c7")));
        for different in [
            other.replace("'a'", "'b'"),
            other.replace("'1'", "'2'"),
            other.replace("00-4a", "00-4A"),
            own("095369c7"),
            own("195369c7"),
        ] {
            assert_ne!(hash(&comment), hash(&different), "{different}");
        }
        assert!(Traced::of(comment.as_bytes()).is_typical(comment.as_bytes()));
        let plain = format!("action:{parent}");
        assert!(!Traced::of(plain.as_bytes()).is_typical(plain.as_bytes()));
    }

    #[test]
    fn paths_are_shown_without_values() {
        for (path, shown) in [
            ("%2Forders%2F17%2Flines%3Fpage%3D2", "/orders/?/lines"),
            (
                "%2Fusers%2F0b5c7f0e-6c0e-4a3f-9b51-8b1d4a1c2f3e",
                "/users/?",
            ),
            ("%2Fv2%2Fcafe", "/v2/cafe"),
        ] {
            let sql = format!("SELECT 1 /*path='{path}'*/");
            assert_eq!(route(&sql), Some((shown.to_owned(), true)));
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let sql = format!("SELECT 1 /*route='x{}'*/", "é".repeat(200));
        let (name, _) = route(&sql).expect("has a route");
        assert_eq!(name.len(), 119);
    }

    #[test]
    fn traces_of_uncork_name_a_load_and_its_request() {
        let tags = |sql: &str| tags_of(sql.as_bytes()).expect("has tags");
        let other = tags(&format!("SELECT 1 /*{TRACEPARENT}*/"));
        assert_eq!(other.trace, b"5bd66ef5095369c7b0d1f8f4bd33716a");
        assert_eq!(other.group(), b"");
        let own = TRACEPARENT.replace("5bd66ef5", "756e636b");
        assert_eq!(
            tags(&format!("SELECT 1 /*{own}*/")).group(),
            b"756e636b095369c7"
        );
        for wrong in [
            "00-5bd66ef5-01",
            "ff-",
            "00-5BD66EF5095369C7B0D1F8F4BD33716A-c532cb4098ac3dd2-01",
        ] {
            assert_eq!(trace(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
