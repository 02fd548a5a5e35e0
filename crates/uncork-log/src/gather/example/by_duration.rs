//! Examples of one template by duration: many of them, of which each takes little memory.

use std::fmt;

use crate::form::{Form, FormError, Reader};
use crate::gather::example::{Example, Execution, Place, Ranges};
use crate::read::time::Micros;

/// The maximum length of an example's text, and of its parameters: a template may have dozens of examples.
const LONGEST: usize = 4_096;

/// Examples by duration: the first execution of each range of durations, so that one is near any quantile. They do not
/// depend on how the log is read.
///
/// Statements of one template differ in their literals. So an example has only what differs from the text of another
/// one: with many templates, memory that is used for the first time was a quarter of the time of reading.
#[derive(Clone, Default)]
pub struct ByDuration {
    ranges: Ranges,
    /// The text of the first example that was kept.
    base: Box<[u8]>,
    /// Examples by their range, in ascending order.
    examples: Vec<Short>,
}

/// An example without what its text shares with the base.
#[derive(Debug, Clone)]
struct Short {
    micros: u64,
    time: Option<Micros>,
    place: Place,
    /// What its text has between the shared beginning and the shared end, and then the parameters.
    own: Box<[u8]>,
    /// The lengths of the beginning and the end that its text shares with the base, and of what is between them.
    shared: [u16; 3],
    range: u8,
}

impl fmt::Debug for ByDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.all()).finish()
    }
}

impl PartialEq for ByDuration {
    fn eq(&self, other: &Self) -> bool {
        self.all().eq(other.all())
    }
}

impl Eq for ByDuration {}

impl ByDuration {
    /// Keep an execution as the example of its range.
    pub(crate) fn see(&mut self, range: u8, execution: &Execution<'_>) {
        let when = (execution.micros, execution.time, execution.place);
        self.put(range, when, execution.text, execution.parameters);
    }

    /// The ranges that have an example.
    pub(crate) fn ranges(&self) -> Ranges {
        self.ranges
    }

    /// Keep an example unless an earlier one has the same range.
    fn put(
        &mut self,
        range: u8,
        (micros, time, place): (u64, Option<Micros>, Place),
        text: &[u8],
        parameters: &[u8],
    ) {
        let found = self.examples.binary_search_by_key(&range, |one| one.range);
        if found.is_ok_and(|at| place >= self.examples[at].place) {
            return;
        }
        let text = &text[..text.len().min(LONGEST)];
        if self.examples.is_empty() {
            self.base = text.into();
        }
        let begin = alike(text.iter().zip(&self.base));
        let ends = text[begin..].iter().rev();
        let end = alike(ends.zip(self.base[begin..].iter().rev()));
        let middle = &text[begin..text.len() - end];
        let example = Short {
            micros,
            time,
            place,
            own: [middle, &parameters[..parameters.len().min(LONGEST)]]
                .concat()
                .into(),
            shared: [begin, end, middle.len()].map(|length| u16::try_from(length).unwrap_or(0)),
            range,
        };
        self.ranges.add(range);
        match found {
            Ok(at) => self.examples[at] = example,
            Err(at) => self.examples.insert(at, example),
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        if self.examples.is_empty() {
            *self = other;
            return;
        }
        for (range, one) in other.all() {
            self.put(
                range,
                (one.micros, one.time, one.place),
                &one.text,
                &one.parameters,
            );
        }
    }

    /// Return the example whose duration is nearest to one in microseconds.
    #[must_use]
    pub fn nearest(&self, micros: u64) -> Option<Example> {
        let all = self.examples.iter();
        let found = all.min_by_key(|one| (one.micros.abs_diff(micros), one.place))?;
        Some(self.whole(found))
    }

    /// Return all examples with their ranges, in ascending order.
    fn all(&self) -> impl Iterator<Item = (u8, Example)> + '_ {
        self.examples.iter().map(|one| (one.range, self.whole(one)))
    }

    fn whole(&self, one: &Short) -> Example {
        let [begin, end, middle] = one.shared.map(usize::from);
        let (middle, parameters) = one.own.split_at(middle);
        let last = &self.base[self.base.len() - end..];
        Example {
            micros: one.micros,
            time: one.time,
            place: one.place,
            text: [&self.base[..begin], middle, last].concat(),
            parameters: parameters.to_vec(),
        }
    }
}

/// Return how many of the first pairs are equal.
fn alike<'a>(pairs: impl Iterator<Item = (&'a u8, &'a u8)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}

impl Form for ByDuration {
    fn write(&self, out: &mut Vec<u8>) {
        self.examples.len().write(out);
        for (range, example) in self.all() {
            range.write(out);
            example.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut all = Self::default();
        for _ in 0..from.count()? {
            let range = u8::read(from)?;
            if range >= 192 {
                return Err(FormError::Damaged);
            }
            let one = Example::read(from)?;
            let when = (one.micros, one.time, one.place);
            all.put(range, when, &one.text, &one.parameters);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::histogram;
    use crate::read::message::Step;

    fn execution(micros: u64, offset: u64) -> Execution<'static> {
        Execution {
            step: Step::Statement,
            micros,
            time: None,
            origin: 0,
            place: (0, offset),
            text: b"SELECT 1",
            parameters: b"",
            query_id: 0,
        }
    }

    #[test]
    fn an_example_is_near_any_duration_in_whatever_parts_it_was_gathered() {
        let all: Vec<u64> = (0..2_000_u64)
            .map(|number| number * 7_919 % 1_000 * 1_000)
            .collect();
        let mut whole = ByDuration::default();
        let mut parts = [
            ByDuration::default(),
            ByDuration::default(),
            ByDuration::default(),
        ];
        for ((micros, offset), number) in all.iter().zip(0..).zip(0..) {
            let (range, one): (u8, Execution<'_>) =
                (histogram::range(*micros), execution(*micros, offset));
            whole.see(range, &one);
            let part: usize = number / 100 % 3;
            parts[part].see(range, &one);
        }
        for wanted in all {
            let found = whole.nearest(wanted).expect("is one").micros;
            assert!(found.abs_diff(wanted) * 4 <= wanted, "{found} for {wanted}");
        }
        let [mut one, two, three] = parts;
        one.merge(three);
        one.merge(two);
        assert_eq!(one, whole);
        assert_eq!(ByDuration::default().nearest(5), None);
    }

    #[test]
    fn texts_are_those_of_the_log() {
        let texts = [
            &b"SELECT 1 FROM t WHERE a = 1"[..],
            b"SELECT 23 FROM t WHERE a = 1",
            b"SELECT 1 FROM t",
            b"SELECT 1 FROM t WHERE a = 1 AND b = 1",
            b"aa",
            b"a",
            b"",
        ];
        for first in 0..texts.len() {
            let mut found = ByDuration::default();
            let mut other = ByDuration::default();
            for place in 0..texts.len() {
                let text = texts[(first + place) % texts.len()];
                let one = Execution {
                    text,
                    parameters: &text[..text.len() / 2],
                    ..execution(1_000 << place, place as u64)
                };
                let range = histogram::range(one.micros);
                [&mut found, &mut other][place % 2].see(range, &one);
            }
            found.merge(other);
            for place in 0..texts.len() {
                let text = texts[(first + place) % texts.len()];
                let one = found.nearest(1_000 << place).expect("is one");
                assert_eq!((&*one.text, one.place.1), (text, place as u64));
                assert_eq!(one.parameters, text[..text.len() / 2]);
            }
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let text = vec![b'x'; LONGEST + 1];
        let mut found = ByDuration::default();
        found.see(
            3,
            &Execution {
                text: &text,
                parameters: &text,
                ..execution(100, 0)
            },
        );
        let one = found.nearest(100).expect("is one");
        assert_eq!((one.text.len(), one.parameters.len()), (LONGEST, LONGEST));
    }
}
