//! What is gathered of each template: how often, how long, when, by whom, and examples.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::hash::{Hash, HashedMap};
use crate::histogram::Histogram;
use crate::message::Step;
use crate::sequence::Control;
use crate::series::{Scale, Series};
use crate::skeleton::skeleton;
use crate::template::Stripper;
use crate::time::Micros;

/// How many examples are drawn for each template, so that one is near any quantile.
const DRAWN: usize = 4;
/// How many statements are known by their skeletons; beyond, they are stripped again.
const SKELETONS: usize = 200_000;
/// So many origins are searched one by one.
const FEW_ORIGINS: usize = 32;
/// An example longer than this is cut.
const EXAMPLE: usize = 16_384;

/// How often something happened, and how long it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// In sum, in microseconds.
    pub micros: u64,
    /// The longest, in microseconds.
    pub max: u64,
}

impl Times {
    /// Counts one of them.
    pub fn add(&mut self, micros: u64) {
        self.merge(&Self {
            count: 1,
            micros,
            max: micros,
        });
    }

    /// Counts others.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.micros += other.micros;
        self.max = self.max.max(other.max);
    }
}

/// How long the lists of a template's executions were: the size of its batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    /// Executions with a list.
    pub count: u64,
    /// Elements in sum.
    pub sum: u64,
    /// The shortest list; [`u32::MAX`] without any.
    pub min: u32,
    /// The longest list.
    pub max: u32,
}

impl Default for Elements {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            min: u32::MAX,
            max: 0,
        }
    }
}

impl Elements {
    fn add(&mut self, elements: u32) {
        self.merge(&Self {
            count: 1,
            sum: u64::from(elements),
            min: elements,
            max: elements,
        });
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// Where an entry stands: the file's number and the place in it, in bytes.
pub type Place = (u32, u64);

/// One execution, as the log has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Example {
    /// How long it took, in microseconds.
    pub micros: u64,
    /// When it was logged: when it had ended.
    pub time: Option<Micros>,
    /// Where it stands.
    pub place: Place,
    /// Its text.
    pub text: Vec<u8>,
    /// Its parameters, if the log has them.
    pub parameters: Vec<u8>,
}

/// What is gathered of one template.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// Its text without literals.
    pub text: Box<[u8]>,
    /// What stands for it in any collection, and what it does to a transaction.
    pub(crate) identity: (u64, Control),
    /// Plans of `auto_explain`.
    pub plans: Times,
    /// The slowest execution that has a plan; its text is the plan.
    pub plan: Option<Example>,
    /// Statements and executions.
    pub executions: Times,
    /// Parse of the extended protocol.
    pub parses: Times,
    /// Bind of the extended protocol.
    pub binds: Times,
    /// How long executions took.
    pub histogram: Histogram,
    /// Executions over time.
    pub series: Series,
    /// When the first and the last execution was logged.
    pub seen: Option<(Micros, Micros)>,
    /// Executions by the number of their origin.
    pub origins: Vec<(u32, Times)>,
    /// Where each origin stands, once they are many.
    places: HashedMap<usize>,
    /// How long their lists were.
    pub elements: Elements,
    /// Executions whose text was cut short.
    pub cut: u64,
    /// The longest execution; of several the first.
    pub slowest: Option<Example>,
    /// The last execution.
    pub newest: Option<Example>,
    /// Some executions, drawn by the place where they stand: the same ones however a log is read.
    pub drawn: Vec<(u64, Example)>,
}

/// An execution, or another step of running a statement.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// Which step.
    pub step: Step,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// When it was logged.
    pub time: Option<Micros>,
    /// Who sent it.
    pub origin: u32,
    /// Where it stands.
    pub place: Place,
    /// Its text.
    pub text: &'a [u8],
    /// Its parameters.
    pub parameters: &'a [u8],
}

impl Execution<'_> {
    fn example(&self) -> Example {
        let mut example = Example::default();
        self.replace(&mut example);
        example
    }

    /// Makes an example of it in the place of another one.
    fn replace(&self, example: &mut Example) {
        (example.micros, example.time, example.place) = (self.micros, self.time, self.place);
        for (to, from) in [
            (&mut example.text, self.text),
            (&mut example.parameters, self.parameters),
        ] {
            to.clear();
            to.extend_from_slice(&from[..from.len().min(EXAMPLE)]);
        }
    }

    /// Orders executions by when they ended; where a log has no times, by where they stand.
    fn age(&self) -> (Option<Micros>, Place) {
        (self.time, self.place)
    }
}

/// Templates by number.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    stripper: Stripper,
    /// For each skeleton its template, how many elements its list has, whether it was cut short.
    skeletons: HashedMap<(u32, u32, bool)>,
    numbers: HashMap<Box<[u8]>, u32>,
    all: Vec<Template>,
}

impl Templates {
    /// The number of a statement's template, how long its list is, and whether it was cut short.
    pub fn number(&mut self, sql: &[u8]) -> (u32, u32, bool) {
        let skeleton = skeleton(sql);
        if let Some(known) = self.skeletons.get(&skeleton) {
            return *known;
        }
        let stripped = self.stripper.strip(sql);
        let (elements, cut) = (stripped.elements, !stripped.complete);
        let number = if let Some(number) = self.numbers.get(stripped.text) {
            *number
        } else {
            let text: Box<[u8]> = stripped.text.into();
            Self::push(&mut self.numbers, &mut self.all, text)
        };
        if self.skeletons.len() >= SKELETONS {
            self.skeletons.clear();
        }
        self.skeletons.insert(skeleton, (number, elements, cut));
        (number, elements, cut)
    }

    fn push(
        numbers: &mut HashMap<Box<[u8]>, u32>,
        all: &mut Vec<Template>,
        text: Box<[u8]>,
    ) -> u32 {
        let number = u32::try_from(all.len()).unwrap_or(u32::MAX);
        numbers.insert(text.clone(), number);
        let mut hash = Hash::new();
        hash.add(&text, 0);
        all.push(Template {
            identity: (hash.get(), Control::of(&text)),
            text,
            ..Template::default()
        });
        number
    }

    /// Counts an execution or another step. `bucket` is where its time lies in the scale.
    pub fn add(&mut self, execution: &Execution<'_>, scale: &Scale, bucket: Option<i64>) -> u32 {
        let text = match execution.step {
            Step::Plan => statement_of(execution.text),
            _ => Cow::Borrowed(execution.text),
        };
        let (number, elements, cut) = self.number(&text);
        let template = &mut self.all[number as usize];
        match execution.step {
            Step::Plan => template.explain(execution),
            Step::Parse => template.parses.add(execution.micros),
            Step::Bind => template.binds.add(execution.micros),
            _ => {
                template.execute(execution, scale, bucket);
                if elements > 0 {
                    template.elements.add(elements);
                }
                template.cut += u64::from(cut);
            }
        }
        number
    }

    /// What stands for each template in any collection, by number.
    pub fn identities(&self) -> impl Iterator<Item = u64> {
        self.all.iter().map(|template| template.identity.0)
    }

    /// What stands for a template in any collection, and what it does to a transaction.
    pub(crate) fn identity(&self, number: u32) -> (u64, Control) {
        self.all[number as usize].identity
    }

    /// The number of a template by its text; [`u32::MAX`] if there is none.
    pub(crate) fn known(&self, text: &[u8]) -> u32 {
        self.numbers.get(text).copied().unwrap_or(u32::MAX)
    }

    /// Gives a template another text.
    pub(crate) fn call(&mut self, number: u32, text: &[u8]) {
        self.all[number as usize].text = text.into();
    }

    /// Gives each template the text of another one: merged elsewhere, equal ones become one.
    pub(crate) fn rename(&mut self, groups: &[u32]) {
        let texts: Vec<Box<[u8]>> = groups
            .iter()
            .map(|group| self.all[*group as usize].text.clone())
            .collect();
        for (template, text) in self.all.iter_mut().zip(texts) {
            template.text = text;
        }
    }

    /// All of them, by number.
    #[must_use]
    pub fn all(&self) -> &[Template] {
        &self.all
    }

    /// Adds another collection's templates. `origins` gives for each of its origins the number here;
    /// returned is for each of its templates the number here.
    pub fn merge(&mut self, other: Self, scale: &Scale, origins: &[u32]) -> Vec<u32> {
        other
            .all
            .into_iter()
            .map(|template| {
                let number = match self.numbers.get(&template.text) {
                    Some(number) => *number,
                    None => Self::push(&mut self.numbers, &mut self.all, template.text.clone()),
                };
                self.all[number as usize].merge(template, scale, origins);
                number
            })
            .collect()
    }
}

impl Template {
    fn execute(&mut self, execution: &Execution<'_>, scale: &Scale, bucket: Option<i64>) {
        let micros = execution.micros;
        self.executions.add(micros);
        self.histogram.add(micros);
        if let (Some(time), Some(bucket)) = (execution.time, bucket) {
            self.series.add(scale, bucket, micros);
            self.see((time, time));
        }
        self.by_origin(execution.origin).add(micros);
        let key = (micros, std::cmp::Reverse(execution.place));
        if self.slowest.as_ref().is_none_or(|one| key > one.slowness()) {
            self.slowest = Some(execution.example());
        }
        match &mut self.newest {
            None => self.newest = Some(execution.example()),
            Some(newest) if execution.age() > newest.age() => execution.replace(newest),
            Some(_) => {}
        }
        let ticket = ticket(execution.place);
        if self.drawn.len() < DRAWN || self.drawn.last().is_some_and(|(last, _)| ticket < *last) {
            self.draw(ticket, execution.example());
        }
    }

    fn explain(&mut self, execution: &Execution<'_>) {
        self.plans.add(execution.micros);
        let key = (execution.micros, std::cmp::Reverse(execution.place));
        if self.plan.as_ref().is_none_or(|one| key > one.slowness()) {
            self.plan = Some(execution.example());
        }
    }

    /// The times of an origin. Few origins send one template, and mostly the last one again.
    fn by_origin(&mut self, origin: u32) -> &mut Times {
        let key = u64::from(origin);
        let place = if self.origins.len() <= FEW_ORIGINS {
            self.origins.iter().rposition(|(other, _)| *other == origin)
        } else {
            self.places.get(&key).copied()
        };
        let place = place.unwrap_or_else(|| {
            self.origins.push((origin, Times::default()));
            let place = self.origins.len() - 1;
            if place == FEW_ORIGINS {
                let all = self.origins.iter().enumerate();
                self.places = all
                    .map(|(place, (origin, _))| (u64::from(*origin), place))
                    .collect();
            } else if place > FEW_ORIGINS {
                self.places.insert(key, place);
            }
            place
        });
        &mut self.origins[place].1
    }

    fn see(&mut self, (first, last): (Micros, Micros)) {
        let seen = self.seen.get_or_insert((first, last));
        *seen = (seen.0.min(first), seen.1.max(last));
    }

    /// Keeps the examples with the smallest tickets.
    fn draw(&mut self, ticket: u64, example: Example) {
        let place = self.drawn.partition_point(|(other, _)| *other < ticket);
        self.drawn.insert(place, (ticket, example));
        self.drawn.truncate(DRAWN);
    }

    fn merge(&mut self, other: Self, scale: &Scale, origins: &[u32]) {
        self.executions.merge(&other.executions);
        self.parses.merge(&other.parses);
        self.binds.merge(&other.binds);
        self.histogram.merge(&other.histogram);
        self.series.merge(scale, other.series);
        if let Some(seen) = other.seen {
            self.see(seen);
        }
        for (origin, times) in other.origins {
            self.by_origin(origins[origin as usize]).merge(&times);
        }
        self.elements.merge(&other.elements);
        self.cut += other.cut;
        self.plans.merge(&other.plans);
        self.plan = self
            .plan
            .take()
            .into_iter()
            .chain(other.plan)
            .max_by_key(Example::slowness);
        self.slowest = self
            .slowest
            .take()
            .into_iter()
            .chain(other.slowest)
            .max_by_key(Example::slowness);
        self.newest = self
            .newest
            .take()
            .into_iter()
            .chain(other.newest)
            .max_by_key(Example::age);
        for (ticket, example) in other.drawn {
            self.draw(ticket, example);
        }
    }
}

impl Example {
    fn slowness(&self) -> (u64, std::cmp::Reverse<Place>) {
        (self.micros, std::cmp::Reverse(self.place))
    }

    fn age(&self) -> (Option<Micros>, Place) {
        (self.time, self.place)
    }
}

/// The statement that a plan of `auto_explain` begins with, as text or as JSON.
pub(crate) fn statement_of(plan: &[u8]) -> Cow<'_, [u8]> {
    if let Some(rest) = plan.strip_prefix(b"Query Text: ") {
        // Further lines of the statement begin with a tab like those of the plan; the plan's first
        // line is the first one with an estimate or with JSON.
        let end = memchr::memmem::find(rest, b"  (cost=").map_or(rest.len(), |cost| {
            memchr::memrchr(b'\n', &rest[..cost]).unwrap_or(cost)
        });
        return Cow::Borrowed(rest[..end].trim_ascii_end());
    }
    let Some(begin) = memchr::memmem::find(plan, b"\"Query Text\": \"") else {
        return Cow::Borrowed(plan);
    };
    let mut text = Vec::new();
    let mut bytes = plan[begin + 15..].iter();
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
    Cow::Owned(text)
}

/// A number drawn for a place, the same each time (the finaliser of `SplitMix64`).
fn ticket((file, offset): Place) -> u64 {
    let mut number = offset ^ u64::from(file) << 48;
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
