//! The slowest executions of all statements.

use crate::form::{Form, FormError, Reader, form};
use crate::gather::example::{Example, Execution};

/// How many are kept.
const KEPT: usize = 100;
/// The maximum length of their texts; the slowest of each template is kept at greater length.
const TEXT: usize = 1_024;

/// One execution, with the numbers of its template and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slow {
    /// The execution.
    pub example: Example,
    /// The number of its template.
    pub template: u32,
    /// The number of its origin.
    pub origin: u32,
}

/// The slowest executions, the slowest first.
#[derive(Debug, Clone, Default)]
pub struct Slowest {
    all: Vec<Slow>,
    /// The duration of the last one, once all places are taken: most executions are faster.
    limit: u64,
}

impl Slowest {
    /// Keep an execution if it is one of the slowest.
    pub(crate) fn add(&mut self, execution: &Execution<'_>, template: u32) {
        if execution.micros < self.limit {
            return;
        }
        let mut slow = match self.all.pop() {
            Some(last) if self.all.len() == KEPT - 1 => {
                if last.example.slowness() > (execution.micros, std::cmp::Reverse(execution.place))
                {
                    self.all.push(last);
                    return;
                }
                last
            }
            other => {
                self.all.extend(other);
                Slow {
                    example: Example::default(),
                    template,
                    origin: execution.origin,
                }
            }
        };
        execution.replace(&mut slow.example);
        slow.example.text.truncate(TEXT);
        slow.example.parameters.truncate(TEXT);
        (slow.template, slow.origin) = (template, execution.origin);
        self.insert(slow);
    }

    fn insert(&mut self, slow: Slow) {
        let key = slow.example.slowness();
        let place = self
            .all
            .partition_point(|other| other.example.slowness() > key);
        self.all.insert(place, slow);
        self.all.truncate(KEPT);
        if self.all.len() == KEPT {
            self.limit = self.all[KEPT - 1].example.micros;
        }
    }

    /// Add those of another collection, whose numbers of templates and origins the arguments map to the numbers here.
    pub(crate) fn merge(&mut self, other: Self, templates: &[u32], origins: &[u32]) {
        for slow in other.all {
            self.insert(Slow {
                template: templates[slow.template as usize],
                origin: origins[slow.origin as usize],
                ..slow
            });
        }
    }

    /// All of them, the slowest first.
    #[must_use]
    pub fn all(&self) -> &[Slow] {
        &self.all
    }
}

form!(Slow {
    example,
    template,
    origin
});

impl Form for Slowest {
    fn write(&self, out: &mut Vec<u8>) {
        self.all.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut slowest = Self::default();
        for slow in Vec::read(from)? {
            slowest.insert(slow);
        }
        Ok(slowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::message::Step;

    fn execution(number: u64) -> Execution<'static> {
        Execution {
            step: Step::Statement,
            micros: number * 7_919 % 1_000,
            time: None,
            origin: 0,
            place: (0, number),
            text: b"SELECT 1",
            parameters: b"",
            query_id: 0,
        }
    }

    #[test]
    fn the_slowest_are_kept_whatever_the_order_and_the_parts() {
        let mut whole = Slowest::default();
        for number in 0..2_000 {
            whole.add(&execution(number), 0);
        }
        let mut parts = Slowest::default();
        for part in 0..4 {
            let mut one = Slowest::default();
            for number in (0..2_000).rev().filter(|number| number % 4 == part) {
                one.add(&execution(number), 0);
            }
            parts.merge(one, &[0], &[0]);
        }
        assert_eq!(parts.all(), whole.all());
        // Each duration occurs twice; the first in the log comes first.
        let micros: Vec<u64> = whole.all().iter().map(|one| one.example.micros).collect();
        let expected: Vec<u64> = (950..1_000).rev().flat_map(|micros| [micros; 2]).collect();
        assert_eq!(micros, expected);
        assert!(whole.all()[0].example.place < whole.all()[1].example.place);
    }
}
