//! Examples of executions, as they are in the log.

pub(crate) mod by_duration;

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::form::form;
use crate::read::message::Step;
use crate::read::time::Micros;

/// The maximum length of an example.
const EXAMPLE: usize = 16_384;

/// The position of an entry: the file's number and the offset in it, in bytes.
pub type Place = (u32, u64);

/// One execution, as it is in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Example {
    /// Duration, in microseconds.
    pub micros: u64,
    /// When it was logged, that is, when it ended.
    pub time: Option<Micros>,
    /// Its place in the log.
    pub place: Place,
    /// Its text.
    pub text: Vec<u8>,
    /// Its parameters, if they are logged.
    pub parameters: Vec<u8>,
}

/// An execution, or another step of running a statement.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// The step.
    pub step: Step,
    /// Duration, in microseconds.
    pub micros: u64,
    /// When it was logged.
    pub time: Option<Micros>,
    /// The number of its origin.
    pub origin: u32,
    /// Its place in the log.
    pub place: Place,
    /// Its text.
    pub text: &'a [u8],
    /// Its parameters.
    pub parameters: &'a [u8],
    /// The server's query ID; 0 if it is not logged.
    pub query_id: i64,
}

impl Execution<'_> {
    pub(crate) fn example(&self) -> Example {
        let mut example = Example::default();
        self.replace(&mut example);
        example
    }

    /// Overwrite an example with this execution.
    pub(crate) fn replace(&self, example: &mut Example) {
        (example.micros, example.time, example.place) = (self.micros, self.time, self.place);
        for (to, from) in [
            (&mut example.text, self.text),
            (&mut example.parameters, self.parameters),
        ] {
            to.clear();
            to.extend_from_slice(&from[..from.len().min(EXAMPLE)]);
        }
    }

    /// The minute in which it ended.
    pub(crate) fn minute(&self) -> Option<i64> {
        self.time.map(minute)
    }
}

impl Example {
    /// Order examples by duration; the first of equal ones is the greatest.
    pub(crate) fn slowness(&self) -> (u64, Reverse<Place>) {
        (self.micros, Reverse(self.place))
    }

    /// Order examples by the minute in which they ended; the first of a minute is the greatest.
    pub(crate) fn age(&self) -> (Option<i64>, Reverse<Place>) {
        (self.time.map(minute), Reverse(self.place))
    }
}

/// Ranges of durations, one bit each: a quarter of an octave, so that the longest duration of a range exceeds the shortest
/// by at most a quarter, or by 32 microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ranges([u64; 3]);

impl Ranges {
    pub(crate) fn has(self, range: u8) -> bool {
        self.0[usize::from(range / 64) % 3] >> (range % 64) & 1 == 1
    }

    fn add(&mut self, range: u8) {
        self.0[usize::from(range / 64) % 3] |= 1 << (range % 64);
    }
}

fn minute(time: Micros) -> i64 {
    time.div_euclid(60_000_000)
}

/// The beginning of a text plan of `auto_explain`.
pub(crate) const QUERY_TEXT: &[u8] = b"Query Text: ";
/// The beginning of the line of parameters.
const QUERY_PARAMETERS: &[u8] = b"Query Parameters: ";

/// The statement and parameters of an `auto_explain` plan, in text or JSON format.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Explained<'a> {
    pub(crate) statement: Cow<'a, [u8]>,
    /// Empty if the plan contains none (`auto_explain.log_parameter_max_length`).
    pub(crate) parameters: Cow<'a, [u8]>,
}

impl<'a> Explained<'a> {
    pub(crate) fn read(plan: &'a [u8]) -> Self {
        if let Some(rest) = plan.strip_prefix(QUERY_TEXT) {
            // Further lines of the statement begin with a tab, like lines of the plan; the plan begins with the first
            // line that contains an estimate.
            let end = memchr::memmem::find(rest, b"  (cost=").map_or(rest.len(), |cost| {
                memchr::memrchr(b'\n', &rest[..cost]).unwrap_or(cost)
            });
            let (statement, parameters) = split(&rest[..end]);
            return Self {
                statement: Cow::Borrowed(statement),
                parameters: Cow::Borrowed(parameters),
            };
        }
        match json_text(plan, b"\"Query Text\": \"") {
            Some(statement) => Self {
                statement: Cow::Owned(statement),
                parameters: Cow::Owned(
                    json_text(plan, b"\"Query Parameters\": \"").unwrap_or_default(),
                ),
            },
            None => Self {
                statement: Cow::Borrowed(plan),
                parameters: Cow::Borrowed(b""),
            },
        }
    }
}

/// Split the text before a plan into statement and parameters.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    // Use the first match: later ones are inside a parameter's value.
    let found = memchr::memmem::find_iter(text, QUERY_PARAMETERS)
        .find(|at| matches!(text[..*at], [.., b'\n'] | [.., b'\n', b'\t']));
    match found {
        Some(at) => (
            text[..at].trim_ascii_end(),
            text[at + QUERY_PARAMETERS.len()..].trim_ascii_end(),
        ),
        None => (text.trim_ascii_end(), b""),
    }
}

/// Return the JSON string after a mark, or `None` if there is none.
fn json_text(plan: &[u8], mark: &[u8]) -> Option<Vec<u8>> {
    let begin = memchr::memmem::find(plan, mark)? + mark.len();
    let mut text = Vec::new();
    let mut bytes = plan[begin..].iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => match bytes.next() {
                Some(b'n') => text.push(b'\n'),
                Some(b't') => text.push(b'\t'),
                Some(other) => text.push(*other),
                None => break,
            },
            other => text.push(*other),
        }
    }
    Some(text)
}

/// Return a text plan without its line of parameters, which are shown separately.
pub(crate) fn without_parameters(plan: &[u8]) -> Cow<'_, [u8]> {
    let explained = Explained::read(plan);
    match (explained.parameters, plan.strip_prefix(QUERY_TEXT)) {
        (Cow::Borrowed(parameters), Some(rest)) if !parameters.is_empty() => {
            let end = parameters.as_ptr().addr() - rest.as_ptr().addr() + parameters.len();
            let statement = &rest[..explained.statement.len()];
            Cow::Owned([QUERY_TEXT, statement, &rest[end..]].concat())
        }
        _ => Cow::Borrowed(plan),
    }
}

/// Return how many rows a plan's first node returned, if executions were measured (`auto_explain.log_analyze`).
pub(crate) fn rows_of(plan: &[u8]) -> Option<u64> {
    let behind =
        |text: &'_ [u8], mark: &[u8]| memchr::memmem::find(text, mark).map(|at| at + mark.len());
    let digits = match behind(plan, b"(actual ") {
        Some(actual) => &plan[actual..][behind(&plan[actual..], b"rows=")?..],
        None => &plan[behind(plan, b"\"Actual Rows\": ")?..],
    };
    let end = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

form!(Example {
    micros,
    time,
    place,
    text,
    parameters
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::histogram;

    #[test]
    fn parameters_of_a_plan_are_no_part_of_its_statement() {
        let tree = "\n\tSeq Scan on t  (cost=0.1..0.2 rows=9 width=4)\n\t  Filter: (a = $1)";
        for (before, statement, parameters) in [
            ("SELECT $1", "SELECT $1", ""),
            (
                "SELECT $1,\n\t$2\n\tQuery Parameters: $1 = '5', $2 = 'Query Parameters: '",
                "SELECT $1,\n\t$2",
                "$1 = '5', $2 = 'Query Parameters: '",
            ),
            (
                "SELECT $1\n\tQuery Parameters: $1 = 'a\n\tQuery Parameters: b'",
                "SELECT $1",
                "$1 = 'a\n\tQuery Parameters: b'",
            ),
            // In a CSV or JSON log, where lines have no tab, and with a value of two lines.
            (
                "SELECT $1\nQuery Parameters: $1 = 'a\nb'",
                "SELECT $1",
                "$1 = 'a\nb'",
            ),
            (
                "SELECT 'Query Parameters: '",
                "SELECT 'Query Parameters: '",
                "",
            ),
        ] {
            let plan = format!("Query Text: {before}{tree}");
            let found = Explained::read(plan.as_bytes());
            assert_eq!(
                (&*found.statement, &*found.parameters),
                (statement.as_bytes(), parameters.as_bytes()),
                "{plan}"
            );
            assert_eq!(
                String::from_utf8_lossy(&without_parameters(plan.as_bytes())),
                format!("Query Text: {statement}{tree}")
            );
        }
        let json =
            br#"{ "Query Text": "SELECT \"a\" = $1", "Query Parameters": "$1 = 'b'", "Plan": {} }"#;
        let found = Explained::read(json);
        assert_eq!(&*found.statement, b"SELECT \"a\" = $1");
        assert_eq!(&*found.parameters, b"$1 = 'b'");
        assert_eq!(without_parameters(json), &json[..]);
    }

    #[test]
    fn ranges_of_durations_are_narrow_and_ascend() {
        let durations =
            (0..100_000).chain((17..41).flat_map(|octave| [(1 << octave) - 1, 1 << octave]));
        let mut shortest = (0, 0);
        for micros in durations.chain([u64::MAX]) {
            let found = histogram::range(micros);
            assert!(found == shortest.0 || found == shortest.0 + 1 || micros > 1 << 17);
            if found != shortest.0 {
                shortest = (found, micros);
            }
            if micros < 100_000 {
                assert!(micros - shortest.1 < (shortest.1 / 4).max(32), "{micros}");
            }
            assert!(found < 192);
        }
    }

    #[test]
    fn rows_are_those_of_the_first_node() {
        for (plan, rows) in [
            (
                "Query Text: SELECT 1\nLimit  (cost=0.1..0.2 rows=9 width=4) (actual time=0.1..0.2 rows=5 loops=1)\n  \
                 ->  Seq Scan on t  (cost=0.1..0.2 rows=9 width=4) (actual rows=7 loops=1)",
                Some(5),
            ),
            (
                "Result  (cost=0.1..0.2 rows=9 width=4) (actual rows=3.00 loops=1)",
                Some(3),
            ),
            (
                "{\n \"Plan\": {\n  \"Plan Rows\": 9,\n  \"Actual Rows\": 12,\n",
                Some(12),
            ),
            ("Result  (cost=0.1..0.2 rows=9 width=4)", None),
        ] {
            assert_eq!(rows_of(plan.as_bytes()), rows, "{plan}");
        }
    }
}
