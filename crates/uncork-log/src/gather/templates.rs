//! Templates of statements and their counts: how often, how long, when, by whom, and examples.

mod stored;
mod waiting;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::gather::example::by_duration::ByDuration;
use crate::gather::example::{Example, Execution, Ranges, rows_of};
use crate::gather::histogram::{self, Histogram};
use crate::gather::series::{Scale, Series};
use crate::gather::templates::waiting::{Run, Waiting};
use crate::gather::times::Times;
use crate::hash::{FlatMap, Hash, HashedMap};
use crate::read::message::Step;
use crate::read::time::Micros;
use crate::template::Stripper;
use crate::template::control::Control;
use crate::template::skeleton::skeleton;

/// How many statements are cached by their skeletons; others are stripped again.
const SKELETONS: usize = 200_000;
/// The template of statements without words: empty statements, and comments alone.
const EMPTY: &[u8] = b"(empty statement)";
/// Up to this number, origins are searched linearly.
const FEW_ORIGINS: usize = 32;

/// How many pairs of template and query ID are kept.
const QUERY_IDS: usize = 200_000;

/// Lengths of the lists in a template's executions, that is, batch sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    /// Executions with a list.
    pub count: u64,
    /// Sum of the lengths.
    pub sum: u64,
    /// The shortest list; [`u32::MAX`] if there is none.
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

/// The counts of one template. What each execution changes is stored here, the rest behind a pointer: with many
/// templates, memory access dominates the time.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// Executions and their durations.
    pub executions: Times,
    /// Distribution of durations.
    pub histogram: Histogram,
    /// Executions over time.
    pub series: Series,
    /// When the first and the last execution was logged.
    pub seen: Option<(Micros, Micros)>,
    /// The origin of the last executions, and their durations.
    last: (u32, Times),
    /// What changes rarely.
    pub more: Box<TemplateDetails>,
}

/// The part of a template that changes rarely.
#[derive(Debug, Clone, Default)]
pub struct TemplateDetails {
    /// The template's text without literals.
    pub text: Box<[u8]>,
    /// An identity that is the same in any collection, and whether the template begins or ends a
    /// transaction.
    pub(crate) identity: (u64, Control),
    /// Plans of `auto_explain`.
    pub plans: Times,
    /// Rows that executions returned, if their plans contain the number.
    pub rows: Times,
    /// The slowest execution with a plan; its text is the plan.
    pub plan: Option<Example>,
    /// Parse of the extended protocol.
    pub parses: Times,
    /// Bind of the extended protocol.
    pub binds: Times,
    /// Executions by the number of their origin.
    origins: Vec<(u32, Times)>,
    /// The index of each origin, once they are many.
    places: HashedMap<usize>,
    /// Lengths of their lists.
    pub elements: Elements,
    /// Executions whose text was truncated.
    pub cut: u64,
    /// The longest execution; the first of several.
    pub slowest: Option<Example>,
    /// The first execution of the last minute that had any.
    pub newest: Option<Example>,
    /// Examples of many durations.
    pub by_duration: ByDuration,
}

/// What a statement's skeleton shows: its template, and what distinguishes it from other statements of the template.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// An identity of the template that is the same in any collection. It is also part of the template, whose memory is
    /// rarely in a cache.
    pub(crate) identity: u64,
    /// The template's number.
    pub(crate) number: u32,
    /// The length of the statement's list; 0 if it has none.
    pub(crate) elements: u32,
    /// Whether the statement begins or ends a transaction.
    pub(crate) control: Control,
    /// Whether its text was truncated.
    pub(crate) cut: bool,
}

/// What decides whether an execution becomes an example of its template. It is apart from the template, whose memory is
/// rarely in a cache, and never crosses a cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Wanted {
    /// Whether there was any execution.
    any: bool,
    /// The longest duration.
    longest: u64,
    /// The minute of the newest example.
    minute: Option<i64>,
    /// The ranges of durations that have an example.
    ranges: Ranges,
}

/// Templates by number.
///
/// Executions are counted late: [`Self::settle`] before the counts are used.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    stripper: Stripper,
    skeletons: FlatMap<Known>,
    numbers: HashMap<Box<[u8]>, u32>,
    all: Vec<Template>,
    /// What each template still wants as examples.
    wanted: Vec<Wanted>,
    waiting: Waiting,
    /// Executions by template and the server's query ID, if it is logged.
    query_ids: HashMap<(u32, i64), u64>,
}

impl Templates {
    /// Find a statement's template.
    pub(crate) fn find(&mut self, sql: &[u8]) -> Known {
        let skeleton = skeleton(sql);
        if let Some(known) = self.skeletons.get(skeleton) {
            return known;
        }
        let stripped = self.stripper.strip(sql);
        let (elements, cut) = (stripped.elements, !stripped.complete);
        // Clients send them to check that a connection works.
        let text = match stripped.text {
            b"" => EMPTY,
            text => text,
        };
        let number = if let Some(number) = self.numbers.get(text) {
            *number
        } else {
            let text: Box<[u8]> = text.into();
            self.push(text)
        };
        if self.skeletons.len() >= SKELETONS {
            self.skeletons.clear();
        }
        let (identity, control) = self.all[number as usize].more.identity;
        let known = Known {
            identity,
            number,
            elements,
            control,
            cut,
        };
        self.skeletons.insert(skeleton, known);
        known
    }

    fn push(&mut self, text: Box<[u8]>) -> u32 {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.numbers.insert(text.clone(), number);
        self.all.push(Template::new(text));
        self.wanted.push(Wanted::default());
        number
    }

    /// Count an execution or another step. `statement` differs from the execution's text if that is a plan. The scale
    /// includes its time.
    pub(crate) fn add(
        &mut self,
        execution: &Execution<'_>,
        statement: &[u8],
        scale: &Scale,
    ) -> Known {
        let known = self.find(statement);
        let number = known.number as usize;
        match execution.step {
            Step::Plan => self.all[number].explain(execution),
            Step::Parse => self.all[number].more.parses.add(execution.micros),
            Step::Bind => self.all[number].more.binds.add(execution.micros),
            _ => {
                self.execute(execution, known.number, scale);
                if execution.query_id != 0 {
                    let key = (known.number, execution.query_id);
                    identify(&mut self.query_ids, key, 1);
                }
                if known.elements > 0 {
                    self.all[number].more.elements.add(known.elements);
                }
                if known.cut {
                    self.all[number].more.cut += 1;
                }
            }
        }
        known
    }

    /// Keep an execution as an example if it is one, and count it, at once or later.
    fn execute(&mut self, execution: &Execution<'_>, template: u32, scale: &Scale) {
        let number = template as usize;
        self.wanted[number].keep(execution, &mut self.all[number]);
        let (micros, origin) = (execution.micros, execution.origin);
        let Some(time) = execution.time else {
            self.all[number].count(micros, origin, None, scale);
            return;
        };
        let run = Run {
            time,
            micros,
            origin,
            template,
        };
        if let Some(runs) = self.waiting.add(run) {
            count(&mut self.all, runs, scale);
        }
    }

    /// Count the executions that wait.
    pub(crate) fn settle(&mut self, scale: &Scale) {
        count(&mut self.all, self.waiting.take(), scale);
    }

    /// Return their number.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Return the identity of each template, by number; it is the same in any collection.
    pub fn identities(&self) -> impl Iterator<Item = u64> {
        self.all.iter().map(|template| template.more.identity.0)
    }

    /// Return the number of a template by its text; [`u32::MAX`] if there is none.
    pub(crate) fn known(&self, text: &[u8]) -> u32 {
        self.numbers.get(text).copied().unwrap_or(u32::MAX)
    }

    /// Change the text of a template.
    pub(crate) fn call(&mut self, number: u32, text: &[u8]) {
        self.all[number as usize].more.text = text.into();
    }

    /// Give each template the text of another: merged into another collection, templates with equal
    /// texts become one.
    pub(crate) fn rename(&mut self, groups: &[u32]) {
        let texts: Vec<Box<[u8]>> = groups
            .iter()
            .map(|group| self.all[*group as usize].more.text.clone())
            .collect();
        for (template, text) in self.all.iter_mut().zip(texts) {
            template.more.text = text;
        }
    }

    /// Executions by template and the server's query ID, in no particular order.
    #[must_use]
    pub fn query_ids(&self) -> &HashMap<(u32, i64), u64> {
        &self.query_ids
    }

    /// All of them, by number.
    ///
    /// # Panics
    ///
    /// If executions still wait to be counted.
    #[must_use]
    pub fn all(&self) -> &[Template] {
        self.assert_settled();
        &self.all
    }

    fn assert_settled(&self) {
        assert!(self.waiting.is_empty(), "all executions are counted");
    }

    /// Add another collection's templates. `origins` maps the numbers of its origins to the numbers here; returned is
    /// the same map for its templates.
    pub fn merge(&mut self, mut other: Self, scale: &Scale, origins: &[u32]) -> Vec<u32> {
        self.settle(scale);
        other.settle(scale);
        let adopt = |template: Template| {
            let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
            match self.numbers.entry(template.more.text.clone()) {
                Entry::Occupied(known) => {
                    let place = *known.get() as usize;
                    self.all[place].merge(template, scale, origins);
                    self.wanted[place] = Wanted::of(&self.all[place]);
                    *known.get()
                }
                Entry::Vacant(none) => {
                    none.insert(number);
                    self.wanted.push(Wanted::of(&template));
                    self.all.push(template.adopted(scale, origins));
                    number
                }
            }
        };
        let numbers: Vec<u32> = other.all.into_iter().map(adopt).collect();
        for ((number, id), executions) in other.query_ids {
            let key = (numbers[number as usize], id);
            identify(&mut self.query_ids, key, executions);
        }
        numbers
    }
}

/// Count executions in their templates.
fn count(all: &mut [Template], runs: impl Iterator<Item = Run>, scale: &Scale) {
    for run in runs {
        let (micros, origin, time) = (run.micros, run.origin, Some(run.time));
        all[run.template as usize].count(micros, origin, time, scale);
    }
}

/// Count executions with a query ID, unless there are too many.
fn identify(all: &mut HashMap<(u32, i64), u64>, key: (u32, i64), executions: u64) {
    if all.len() < QUERY_IDS || all.contains_key(&key) {
        *all.entry(key).or_default() += executions;
    }
}

impl Template {
    fn new(text: Box<[u8]>) -> Self {
        let mut hash = Hash::new();
        hash.add(&text, 0);
        Self {
            more: Box::new(TemplateDetails {
                identity: (hash.get(), Control::of(&text)),
                text,
                ..TemplateDetails::default()
            }),
            ..Self::default()
        }
    }

    fn count(&mut self, micros: u64, origin: u32, time: Option<Micros>, scale: &Scale) {
        self.executions.add(micros);
        self.histogram.add(micros);
        if let Some(time) = time {
            self.series.add(scale, scale.bucket(time), micros);
            self.see((time, time));
        }
        if self.last.0 != origin {
            self.more.settle(&mut self.last);
            self.last.0 = origin;
        }
        self.last.1.add(micros);
    }

    fn explain(&mut self, execution: &Execution<'_>) {
        let more = &mut self.more;
        more.plans.add(execution.micros);
        if let Some(rows) = rows_of(execution.text) {
            more.rows.add(rows);
        }
        let key = (execution.micros, Reverse(execution.place));
        if more.plan.as_ref().is_none_or(|one| key > one.slowness()) {
            more.plan = Some(execution.example());
        }
    }

    fn see(&mut self, (first, last): (Micros, Micros)) {
        let seen = self.seen.get_or_insert((first, last));
        *seen = (seen.0.min(first), seen.1.max(last));
    }

    /// Return executions by the number of their origin, in ascending order.
    #[must_use]
    pub fn origins(&self) -> Vec<(u32, Times)> {
        let mut all = self.more.origins.clone();
        match all.iter_mut().find(|(origin, _)| *origin == self.last.0) {
            Some((_, times)) => times.merge(&self.last.1),
            None if self.last.1.count > 0 => all.push(self.last),
            None => {}
        }
        all.sort_unstable_by_key(|(origin, _)| *origin);
        all
    }

    fn merge(&mut self, mut other: Self, scale: &Scale, origins: &[u32]) {
        self.more.settle(&mut self.last);
        other.more.settle(&mut other.last);
        self.executions.merge(&other.executions);
        self.histogram.merge(&other.histogram);
        self.series.merge(scale, other.series);
        if let Some(seen) = other.seen {
            self.see(seen);
        }
        self.more.merge(*other.more, origins);
    }

    /// Convert for another collection.
    fn adopted(mut self, scale: &Scale, origins: &[u32]) -> Self {
        self.more.settle(&mut self.last);
        for (origin, _) in &mut self.more.origins {
            *origin = origins[*origin as usize];
        }
        let more = &mut self.more;
        if !more.places.is_empty() {
            let all = more.origins.iter().enumerate();
            more.places = all
                .map(|(place, (origin, _))| (u64::from(*origin), place))
                .collect();
        }
        self.series.rescale(scale);
        self
    }
}

impl Wanted {
    /// Return what a template whose executions are counted still wants.
    fn of(template: &Template) -> Self {
        let more = &template.more;
        Self {
            any: template.executions.count > 0,
            longest: template.executions.max,
            minute: more.newest.as_ref().and_then(|newest| newest.age().0),
            ranges: more.by_duration.ranges(),
        }
    }

    /// Keep an execution as each kind of example that it is. The template's memory is touched only then.
    fn keep(&mut self, execution: &Execution<'_>, template: &mut Template) {
        let micros = execution.micros;
        if micros >= self.longest {
            self.longest = micros;
            template.more.slow(execution);
        }
        let minute = execution.minute();
        if minute > self.minute || !self.any {
            (self.any, self.minute) = (true, minute);
            match &mut template.more.newest {
                Some(newest) => execution.replace(newest),
                none => *none = Some(execution.example()),
            }
        }
        let range = histogram::range(micros);
        if !self.ranges.has(range) {
            template.more.by_duration.see(range, execution);
            self.ranges = template.more.by_duration.ranges();
        }
    }
}

impl TemplateDetails {
    /// Keep the longest execution.
    fn slow(&mut self, execution: &Execution<'_>) {
        let key = (execution.micros, Reverse(execution.place));
        match &mut self.slowest {
            None => self.slowest = Some(execution.example()),
            Some(slowest) if key > slowest.slowness() => execution.replace(slowest),
            Some(_) => {}
        }
    }

    /// Add the durations of one origin.
    fn settle(&mut self, (origin, times): &mut (u32, Times)) {
        if times.count > 0 {
            self.by_origin(*origin).merge(&std::mem::take(times));
        }
    }

    /// Return the durations of an origin. Few origins send one template, and usually the last one
    /// again.
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

    fn merge(&mut self, other: Self, origins: &[u32]) {
        self.parses.merge(&other.parses);
        self.binds.merge(&other.binds);
        for (origin, times) in other.origins {
            self.by_origin(origins[origin as usize]).merge(&times);
        }
        self.elements.merge(&other.elements);
        self.cut += other.cut;
        self.plans.merge(&other.plans);
        self.rows.merge(&other.rows);
        self.plan = greatest(self.plan.take(), other.plan, Example::slowness);
        self.slowest = greatest(self.slowest.take(), other.slowest, Example::slowness);
        self.newest = greatest(self.newest.take(), other.newest, Example::age);
        self.by_duration.merge(other.by_duration);
    }
}

/// Return the greater of two optional examples.
fn greatest<K: Ord>(
    one: Option<Example>,
    other: Option<Example>,
    key: impl FnMut(&Example) -> K,
) -> Option<Example> {
    one.into_iter().chain(other).max_by_key(key)
}
