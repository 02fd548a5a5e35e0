//! Examples of executions, as they are in the log.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::read::message::Step;
use crate::read::time::Micros;

/// How many examples are drawn for each template, so that one is near any quantile.
const DRAWN: usize = 4;
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

/// Examples drawn at random by their place, so that they do not depend on how the log is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drawn(Vec<(u64, Example)>);

impl Drawn {
    /// Return the ticket from which on nothing is drawn any more.
    pub(crate) fn limit(&self) -> u64 {
        match self.0.last() {
            Some((last, _)) if self.0.len() == DRAWN => *last,
            _ => u64::MAX,
        }
    }

    /// Keep an execution if its ticket is among the smallest.
    pub(crate) fn draw(&mut self, ticket: u64, execution: &Execution<'_>) {
        let example = if self.0.len() < DRAWN {
            execution.example()
        } else {
            let Some((_, mut last)) = self.0.pop() else {
                return;
            };
            execution.replace(&mut last);
            last
        };
        self.insert(ticket, example);
    }

    fn insert(&mut self, ticket: u64, example: Example) {
        let place = self.0.partition_point(|(other, _)| *other < ticket);
        self.0.insert(place, (ticket, example));
        self.0.truncate(DRAWN);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (ticket, example) in other.0 {
            if ticket < self.limit() {
                self.insert(ticket, example);
            }
        }
    }

    /// Return all examples, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = &Example> {
        self.0.iter().map(|(_, example)| example)
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

/// Return a pseudo-random number for a place, always the same (the finaliser of `SplitMix64`).
pub(crate) fn ticket((file, offset): Place) -> u64 {
    let mut number = offset ^ u64::from(file) << 48;
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

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
