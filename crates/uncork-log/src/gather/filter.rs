//! Which entries are gathered: by database, user, application, host and time of day.

use std::sync::Arc;

use crate::form::{Form, FormError, Reader, form, form_choice};
use crate::hash::{Hash, HashedMap};
use crate::read::prefix::Head;
use crate::read::time::Micros;

/// How many origins are remembered with their verdict; beyond, verdicts are found anew.
const ORIGINS: usize = 20_000;
/// How many names of filtered-out entries are distinguished.
const NAMES: usize = 1_000;
/// The name that stands for all others.
const OTHERS: &[u8] = b"(others)";
const DAY: Micros = 86_400_000_000;
/// The verdict on entries that pass.
const PASSES: u32 = u32::MAX;

/// A property of entries that a filter tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    /// The database's name.
    Database,
    /// The user's name.
    User,
    /// The application's name.
    Application,
    /// The client's host.
    Host,
    /// The time of day, in UTC.
    TimeOfDay,
}

impl By {
    /// The properties that are names, in the order in which they are tested.
    const NAMES: [Self; 4] = [Self::Database, Self::User, Self::Application, Self::Host];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::User => "user",
            Self::Application => "application",
            Self::Host => "host",
            Self::TimeOfDay => "time of day",
        }
    }

    fn of<'a>(self, head: &Head<'a>) -> &'a [u8] {
        match self {
            Self::Database => head.database,
            Self::User => head.user,
            Self::Application => head.application,
            Self::Host => head.host,
            Self::TimeOfDay => b"",
        }
    }
}

/// Which entries pass: an entry has to pass the test of each property.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Tests of names, in the order of [`By::NAMES`].
    names: [Names; 4],
    /// Ranges of the time of day, in microseconds after midnight in UTC: from the first, inclusive, to the second,
    /// exclusive; a range whose end is not after its beginning spans midnight. Empty for the whole day.
    times: Vec<(Micros, Micros)>,
}

/// A test of names. `*` in a pattern stands for any text.
#[derive(Debug, Clone, Default)]
struct Names {
    /// A name must match one of these, unless there are none.
    wanted: Vec<Box<[u8]>>,
    /// A name must match none of these.
    unwanted: Vec<Box<[u8]>>,
}

impl Filter {
    /// Create a filter from patterns of databases, users, applications and hosts, and from ranges of the time of day.
    /// A pattern after `!` excludes names.
    #[must_use]
    pub fn new(patterns: [&[String]; 4], times: Vec<(Micros, Micros)>) -> Self {
        Self {
            names: patterns.map(Names::new),
            times,
        }
    }

    /// Return the first property whose test the names in an entry's head do not pass.
    fn fails(&self, head: &Head<'_>) -> Option<By> {
        let mut tests = By::NAMES.into_iter().zip(&self.names);
        tests
            .find(|(by, names)| !names.pass(by.of(head)))
            .map(|(by, _)| by)
    }

    fn passes_at(&self, time: Option<Micros>) -> bool {
        let within = |time: Micros| {
            let time = time.rem_euclid(DAY);
            self.times.iter().any(|(from, until)| {
                if from < until {
                    (*from..*until).contains(&time)
                } else {
                    time >= *from || time < *until
                }
            })
        };
        self.times.is_empty() || time.is_some_and(within)
    }
}

impl Names {
    fn new(patterns: &[String]) -> Self {
        let mut names = Self::default();
        for pattern in patterns {
            match pattern.strip_prefix('!') {
                Some(pattern) => names.unwanted.push(pattern.as_bytes().into()),
                None => names.wanted.push(pattern.as_bytes().into()),
            }
        }
        names
    }

    fn pass(&self, name: &[u8]) -> bool {
        let any = |patterns: &[Box<[u8]>]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.wanted.is_empty() || any(&self.wanted)) && !any(&self.unwanted)
    }
}

/// Whether a pattern matches a whole text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&[u8]> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = memchr::memmem::find(rest, part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Entries that did not pass, by the property whose test they failed first, and their name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The property.
    pub by: By,
    /// The name; empty if the entries have none, or for the time of day.
    pub name: Box<[u8]>,
    /// Number of entries.
    pub entries: u64,
}

/// Tests entries, and counts the entries that do not pass.
#[derive(Debug, Clone)]
pub(crate) struct Sieve {
    filter: Arc<Filter>,
    /// By origin, the place in `left_out`, or [`PASSES`].
    verdicts: HashedMap<u32>,
    /// The verdict on the origin of the last entry: sessions write many in a row.
    last: Option<(u64, u32)>,
    left_out: Vec<LeftOut>,
}

impl Sieve {
    pub(crate) fn new(filter: Filter) -> Self {
        Self {
            filter: Arc::new(filter),
            verdicts: HashedMap::default(),
            last: None,
            left_out: Vec::new(),
        }
    }

    /// Return a sieve with the same filter that has tested nothing.
    pub(crate) fn fresh(&self) -> Self {
        Self {
            filter: self.filter.clone(),
            verdicts: HashedMap::default(),
            last: None,
            left_out: Vec::new(),
        }
    }

    /// Whether an entry passes.
    pub(crate) fn passes(&mut self, head: &Head<'_>) -> bool {
        self.verdict(head) == PASSES
    }

    /// Count an entry that does not pass.
    pub(crate) fn count(&mut self, head: &Head<'_>) {
        let verdict = self.verdict(head) as usize;
        if let Some(left_out) = self.left_out.get_mut(verdict) {
            left_out.entries += 1;
        }
    }

    /// Entries that did not pass, in no particular order.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for theirs in &other.left_out {
            let place = self.place(theirs.by, &theirs.name) as usize;
            self.left_out[place].entries += theirs.entries;
        }
    }

    fn verdict(&mut self, head: &Head<'_>) -> u32 {
        let mut hash = Hash::new();
        for by in By::NAMES {
            hash.add(by.of(head), 0);
        }
        let hash = hash.get();
        let verdict = match self.last {
            Some((last, verdict)) if last == hash => verdict,
            _ => self.judge(hash, head),
        };
        self.last = Some((hash, verdict));
        if verdict == PASSES && !self.filter.passes_at(head.time) {
            return self.place(By::TimeOfDay, b"");
        }
        verdict
    }

    fn judge(&mut self, hash: u64, head: &Head<'_>) -> u32 {
        if let Some(verdict) = self.verdicts.get(&hash) {
            return *verdict;
        }
        let verdict = match self.filter.fails(head) {
            None => PASSES,
            Some(by) => self.place(by, by.of(head)),
        };
        if self.verdicts.len() >= ORIGINS {
            self.verdicts.clear();
        }
        self.verdicts.insert(hash, verdict);
        verdict
    }

    /// Return the place of a name in `left_out`.
    fn place(&mut self, by: By, name: &[u8]) -> u32 {
        let mut all = self.left_out.iter();
        let place = match all.position(|one| one.by == by && *one.name == *name) {
            Some(place) => place,
            None if self.left_out.len() >= NAMES && name != OTHERS => {
                return self.place(by, OTHERS);
            }
            None => {
                self.left_out.push(LeftOut {
                    by,
                    name: name.into(),
                    entries: 0,
                });
                self.left_out.len() - 1
            }
        };
        u32::try_from(place).unwrap_or(PASSES)
    }
}

form_choice!(By {
    Database,
    User,
    Application,
    Host,
    TimeOfDay
});
form!(LeftOut { by, name, entries });

impl Form for Sieve {
    fn write(&self, out: &mut Vec<u8>) {
        self.left_out.write(out);
    }

    /// Read what a sieve has counted; to be merged into the sieve that has the filter.
    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut sieve = Self::new(Filter::default());
        sieve.left_out = Vec::read(from)?;
        Ok(sieve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fits) in [
            ("shop", "shop", true),
            ("shop", "shops", false),
            ("shop*", "shops", true),
            ("*shop", "my shop", true),
            ("10.0.*.7", "10.0.255.7", true),
            ("10.0.*.7", "10.0.7", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("one*end", "onend", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                fits,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn an_entry_has_to_pass_every_test_and_is_counted_under_the_first_that_it_fails() {
        let databases = patterns(&["shop", "stock*", "!stock_old"]);
        let users = patterns(&["!backup"]);
        let mut sieve = Sieve::new(Filter::new([&databases, &users, &[], &[]], Vec::new()));
        let mut passed = Vec::new();
        for (database, user) in [
            ("shop", "ada"),
            ("stock_new", "ada"),
            ("stock_old", "ada"),
            ("shop", "backup"),
            ("other", "backup"),
            ("other", "ada"),
            ("", ""),
        ] {
            let head = Head {
                database: database.as_bytes(),
                user: user.as_bytes(),
                ..Head::new()
            };
            if sieve.passes(&head) {
                passed.push((database, user));
            } else {
                sieve.count(&head);
            }
        }
        assert_eq!(passed, [("shop", "ada"), ("stock_new", "ada")]);
        let mut twice = sieve.fresh();
        twice.merge(&sieve);
        twice.merge(&sieve);
        let mut counts: Vec<(By, String, u64)> = twice
            .left_out()
            .iter()
            .map(|one| {
                let name = String::from_utf8_lossy(&one.name).into_owned();
                (one.by, name, one.entries)
            })
            .collect();
        counts.sort();
        let expected = [
            (By::Database, "", 2),
            (By::Database, "other", 4),
            (By::Database, "stock_old", 2),
            (By::User, "backup", 2),
        ];
        assert_eq!(
            counts,
            expected.map(|(by, name, count)| (by, name.to_owned(), count))
        );
    }

    #[test]
    fn a_time_of_day_may_span_midnight() {
        const HOUR: Micros = 3_600_000_000;
        for (range, passing) in [
            ((8 * HOUR, 17 * HOUR), vec![8, 12, 16]),
            ((22 * HOUR, 6 * HOUR), vec![0, 5, 22, 23]),
        ] {
            let filter = Filter::new([&[], &[], &[], &[]], vec![range]);
            let hours = [0, 5, 6, 7, 8, 12, 16, 17, 21, 22, 23];
            let found: Vec<i64> = hours
                .into_iter()
                .filter(|hour| filter.passes_at(Some(20_000 * DAY + hour * HOUR)))
                .collect();
            assert_eq!(found, passing);
            assert!(!filter.passes_at(None));
        }
    }
}
