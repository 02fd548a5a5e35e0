//! Failed operations by the statement that failed and its code, with the first message of each.

use std::collections::BTreeMap;

use uncork_model::FailureTotals;

use super::Shape;
use crate::Failure;

/// How many kinds of failures have a count of their own. The counts by code hold all of them.
const MOST_KINDS: usize = 100;
/// The longest message kept, in characters.
const LONGEST_MESSAGE: usize = 500;

/// Where a failure happened: the script, and the statement, if a statement failed.
type Place = (usize, Option<usize>);

/// The counts of one thread, or of all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures {
    places: BTreeMap<Place, BTreeMap<String, (u64, String)>>,
    kinds: usize,
}

impl Failures {
    /// Count a failed operation of a script.
    pub(crate) fn add(&mut self, script: usize, failure: &Failure) {
        let statement = failure.place.and_then(|place| place.statement);
        self.count((script, statement), &failure.code, 1, &failure.message);
    }

    fn count(&mut self, place: Place, code: &str, number: u64, message: &str) {
        // The key is copied only for the first of its kind.
        let known = self.places.get_mut(&place).and_then(|it| it.get_mut(code));
        if let Some((count, _)) = known {
            *count += number;
        } else if self.kinds < MOST_KINDS {
            let message = message.chars().take(LONGEST_MESSAGE).collect();
            let codes = self.places.entry(place).or_default();
            codes.insert(code.to_owned(), (number, message));
            self.kinds += 1;
        }
    }

    /// Add another thread's counts.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (place, codes) in &other.places {
            for (code, (number, message)) in codes {
                self.count(*place, code, *number, message);
            }
        }
    }

    /// All counts, the largest first.
    pub(crate) fn totals(&self, shape: &Shape) -> Vec<FailureTotals> {
        let mut totals: Vec<_> = self
            .places
            .iter()
            .flat_map(|(&(script, statement), codes)| {
                let facts = statement.and_then(|number| shape.statements.get(number));
                codes
                    .iter()
                    .map(move |(code, (number, message))| FailureTotals {
                        code: code.clone(),
                        number: *number,
                        script: shape.scripts.get(script).cloned().unwrap_or_default(),
                        line: facts.and_then(|facts| facts.line),
                        statement: facts.map(|facts| facts.name.clone()),
                        message: message.clone(),
                    })
            })
            .collect();
        totals.sort_by_key(|one| std::cmp::Reverse(one.number));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FailedAt, StatementFacts};

    fn failure(code: &str, statement: Option<usize>, message: &str) -> Failure {
        Failure {
            code: code.to_owned(),
            message: message.to_owned(),
            place: Some(FailedAt {
                command: 0,
                statement,
            }),
        }
    }

    fn shape() -> Shape {
        let statement = |name: &str, line| StatementFacts {
            script: 0,
            name: name.to_owned(),
            place: String::new(),
            line: Some(line),
        };
        Shape {
            scripts: vec!["s".to_owned()],
            statements: vec![statement("SELECT 1", 1), statement("SELECT 2", 2)],
            ..Shape::default()
        }
    }

    #[test]
    fn counts_of_threads_add_up_and_keep_the_first_message() {
        let (mut one, mut other) = (Failures::default(), Failures::default());
        one.add(0, &failure("42P01", Some(1), "first"));
        one.add(0, &failure("08006", None, "gone"));
        other.add(0, &failure("42P01", Some(1), "second"));
        other.add(0, &failure("42P01", Some(0), "other"));
        one.merge(&other);
        let found: Vec<_> = one
            .totals(&shape())
            .into_iter()
            .map(|it| (it.code, it.number, it.line, it.statement, it.message))
            .collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                ("42P01".into(), 2, Some(2), text("SELECT 2"), "first".into()),
                ("08006".into(), 1, None, None, "gone".into()),
                ("42P01".into(), 1, Some(1), text("SELECT 1"), "other".into()),
            ]
        );
    }

    #[test]
    fn kinds_and_messages_are_bounded() {
        let mut failures = Failures::default();
        for number in 0..2 * MOST_KINDS {
            let code = number.to_string();
            failures.add(0, &failure(&code, None, &"é".repeat(2 * LONGEST_MESSAGE)));
        }
        let totals = failures.totals(&shape());
        assert_eq!(totals.len(), MOST_KINDS);
        assert_eq!(totals[0].message.chars().count(), LONGEST_MESSAGE);
    }
}
