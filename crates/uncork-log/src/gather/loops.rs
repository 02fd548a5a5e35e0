//! Finds templates that a session repeats although other statements come in between: a client that sends two
//! statements for each row of a query (`P A B A B …`) repeats both, though neither follows itself.
//!
//! Statements are followed in *stretches*: a transaction from `BEGIN` to its end, or, outside of transactions,
//! statements that follow each other at the pace of a program. Executions of a template in a row are left to
//! [`super::sequence::Repetitions`], so that nothing is counted twice.

use std::collections::HashMap;

use crate::form::{Form, FormError, Reader, form};
use crate::gather::example::Place;
use crate::gather::sequence::bursts::{Bursts, Pace, Step};
use crate::read::time::Micros;

/// The fewest executions of a template in a stretch that count as repeated, in a row or not; also the fewest for
/// each execution of the statement before them.
pub(super) const REPETITION: u32 = 10;
/// A longer pause, in microseconds, ends a stretch outside of transactions: a loop does not wait for a person or for
/// another service.
const LONGEST_GAP: u64 = 20_000;
/// A pause ends a stretch if it is longer than this many mean pauses of the stretch, and than `SHORT_GAP`
/// microseconds: it lies between two requests, not within a loop. The log's clock has milliseconds.
const UNUSUAL_GAP: u64 = 4;
const SHORT_GAP: u64 = 2_000;
/// The mean pauses before two repeated templates may differ by this factor and this many microseconds, the resolution
/// of the log's clock; each from at least so many executions.
const UNEVEN: u64 = 3;
const CLOCK: u64 = 1_000;
const COMPARABLE: u32 = 3;
/// How many templates are followed within a stretch.
const TEMPLATES: usize = 32;

/// What is repeated: a template, after which other one, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopOf<N> {
    /// Whether the template is repeated within transactions, or else outside of them.
    pub in_transaction: bool,
    /// The statement before the loop, which runs once for ten or more executions of `template`. `None` if there is
    /// none; never outside of transactions.
    pub parent: Option<N>,
    /// The repeated template.
    pub template: N,
}

/// Repetitions of a template with other statements in between.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loops {
    /// Number of transactions, or of stretches outside of transactions, that repeat the template.
    pub stretches: u64,
    /// Executions of the template in them, except those in a row.
    pub executions: u64,
    /// Executions of the parent in them.
    pub parents: u64,
    /// Sum of squares of the template's executions after each execution of the parent.
    pub squares: f64,
    /// The most executions in one stretch.
    pub longest: u32,
    /// Where the stretch with the most executions began; the first of several.
    pub place: Place,
    /// Time from the end of the statement before each execution to its own end, except the first one of a stretch,
    /// in microseconds.
    pub elapsed: u64,
    /// Duration of executions in that time, with their parse and bind. The rest is round trips to the client, unless
    /// `bursts` show that the client did not wait.
    pub micros: u64,
    /// Groups of all executions of the stretches.
    pub bursts: Bursts,
}

impl Loops {
    /// Add other loops of the same kind.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.longest > self.longest || other.longest == self.longest && other.place < self.place
        {
            (self.longest, self.place) = (other.longest, other.place);
        }
        self.stretches += other.stretches;
        self.executions += other.executions;
        self.parents += other.parents;
        self.squares += other.squares;
        self.elapsed += other.elapsed;
        self.micros += other.micros;
        self.bursts.merge(other.bursts);
    }
}

/// Executions of one template in a stretch.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    template: u64,
    /// The place of the member that ran before its first execution.
    before: Option<usize>,
    /// All executions, and the executions in no row of [`REPETITION`] or more.
    all: u32,
    executions: u32,
    elapsed: u64,
    micros: u64,
    /// Executions since the last one of the parent, and the sum of squares of these numbers.
    since: u32,
    squares: f64,
}

/// The statements of a session since its transaction began, or since its last pause.
#[derive(Debug, Clone, Default)]
pub(super) struct Stretch {
    in_transaction: bool,
    members: Vec<Member>,
    /// The templates of the members: these alone are searched.
    templates: Vec<u64>,
    /// The member that ran before the first template that was repeated.
    parent: Option<usize>,
    /// The member that ran last, and its executions in a row.
    last: usize,
    row: Member,
    ended: Option<Micros>,
    place: Place,
    /// Number of pauses between its statements, and their sum.
    gaps: u64,
    waited: u64,
    pace: Pace,
}

impl Stretch {
    /// Return whether a statement that follows after `gap` microseconds is not part of the stretch.
    pub(super) fn is_over(&self, gap: u64) -> bool {
        let unusual = gap > SHORT_GAP && gap * self.gaps > UNUSUAL_GAP * self.waited;
        !self.in_transaction
            && !self.members.is_empty()
            && (gap > LONGEST_GAP || unusual && self.gaps > 2)
    }

    /// Return when the last statement ended.
    pub(super) fn ended(&self) -> Option<Micros> {
        self.ended
    }

    /// Forget all statements, and begin again.
    pub(super) fn begin(&mut self, in_transaction: bool, time: Option<Micros>, place: Place) {
        self.forget();
        *self = Self {
            in_transaction,
            members: std::mem::take(&mut self.members),
            templates: std::mem::take(&mut self.templates),
            ended: time,
            place,
            ..Self::default()
        };
    }

    /// Add an execution that took `micros` and ended at `time`, `gap` microseconds after the last statement's end.
    pub(super) fn add(
        &mut self,
        template: u64,
        step: Step,
        gap: u64,
        time: Option<Micros>,
        place: Place,
    ) {
        if self.members.is_empty() && !self.in_transaction {
            self.place = place;
        }
        let micros = step.micros;
        if self.members.is_empty() {
            self.pace.begin(time);
        } else {
            self.pace.add(step, time);
        }
        self.ended = time;
        if self.row.executions > 0 {
            self.gaps += 1;
            self.waited += gap;
        }
        if self.row.executions > 0 && self.row.template == template {
            self.row.executions += 1;
            self.row.elapsed += gap + micros;
            self.row.micros += micros;
            return;
        }
        self.end_row();
        let found = self.templates.iter().position(|one| *one == template);
        let at = match found {
            Some(at) => {
                self.parent = self.parent.or(self.members[at].before);
                at
            }
            None if self.members.len() < TEMPLATES => {
                let before = (!self.members.is_empty()).then_some(self.last);
                self.templates.push(template);
                self.members.push(Member {
                    template,
                    before,
                    ..Member::default()
                });
                self.members.len() - 1
            }
            // Too many: what the stretch repeats began before.
            None => {
                self.row = Member::default();
                return;
            }
        };
        if self.parent == Some(at) {
            self.close();
        }
        self.last = at;
        let first = found.is_none();
        self.row = Member {
            template,
            executions: 1,
            elapsed: if first { 0 } else { gap + micros },
            micros: if first { 0 } else { micros },
            ..Member::default()
        };
    }

    /// Add the executions in a row that ended to their member, unless they are a repetition on their own.
    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.executions == 0 {
            return;
        }
        let member = &mut self.members[self.last];
        member.all += row.executions;
        if row.executions < REPETITION {
            member.executions += row.executions;
            member.since += row.executions;
            member.elapsed += row.elapsed;
            member.micros += row.micros;
        }
    }

    /// Close what followed the last execution of the parent.
    fn close(&mut self) {
        for member in &mut self.members {
            member.squares += f64::from(member.since) * f64::from(member.since);
            member.since = 0;
        }
    }

    /// Return whether the pauses before all repeated templates are alike. In a loop they are: each is a round trip. If
    /// clients send several statements per request, the pause before the first one is longer.
    fn is_even(&self) -> bool {
        let repeated = self
            .members
            .iter()
            .enumerate()
            .filter(|(at, member)| self.parent != Some(*at) && member.executions >= COMPARABLE);
        let pauses = repeated.map(|(_, member)| {
            member.elapsed.saturating_sub(member.micros) / u64::from(member.executions)
        });
        let (least, most) = pauses.fold((u64::MAX, 0), |(least, most), pause| {
            (least.min(pause), most.max(pause))
        });
        most <= UNEVEN.saturating_mul(least).saturating_add(CLOCK)
    }

    /// Count what the stretch repeats, and forget it; return how long the server waited for the client before
    /// repeated executions.
    pub(super) fn end(&mut self, found: &mut HashMap<LoopOf<u64>, Loops>) -> u64 {
        self.end_row();
        self.close();
        let mut waited = 0;
        if !self.in_transaction && !self.is_even() {
            self.forget();
            return 0;
        }
        for member in &self.members {
            if member.executions < REPETITION {
                continue;
            }
            let before = self.parent.map(|place| self.members[place]);
            let parent = before
                .filter(|one| one.template != member.template)
                .filter(|one| member.executions >= REPETITION.saturating_mul(one.all));
            if parent.is_none() && !self.in_transaction {
                continue;
            }
            waited += member.elapsed.saturating_sub(member.micros);
            let of = LoopOf {
                in_transaction: self.in_transaction,
                parent: parent.map(|one| one.template),
                template: member.template,
            };
            found.entry(of).or_default().merge(&Loops {
                stretches: 1,
                executions: member.executions.into(),
                parents: parent.map_or(0, |one| one.all.into()),
                squares: member.squares,
                longest: member.executions,
                place: self.place,
                elapsed: member.elapsed,
                micros: member.micros,
                bursts: self.pace.found,
            });
        }
        self.forget();
        waited
    }

    fn forget(&mut self) {
        self.members.clear();
        self.templates.clear();
    }
}

form!(LoopOf<u64> {
    in_transaction,
    parent,
    template
});
form!(Loops {
    stretches,
    executions,
    parents,
    squares,
    longest,
    place,
    elapsed,
    micros,
    bursts
});
form!(Member {
    template,
    before,
    all,
    executions,
    elapsed,
    micros,
    since,
    squares
});

impl Form for Stretch {
    fn write(&self, out: &mut Vec<u8>) {
        self.in_transaction.write(out);
        self.members.write(out);
        self.parent.write(out);
        self.last.write(out);
        self.row.write(out);
        self.ended.write(out);
        self.place.write(out);
        self.gaps.write(out);
        self.waited.write(out);
        self.pace.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let in_transaction = bool::read(from)?;
        let members: Vec<Member> = Vec::read(from)?;
        let stretch = Self {
            in_transaction,
            templates: members.iter().map(|one| one.template).collect(),
            parent: Form::read(from)?,
            last: usize::read(from)?,
            row: Member::read(from)?,
            ended: Form::read(from)?,
            place: Form::read(from)?,
            gaps: u64::read(from)?,
            waited: u64::read(from)?,
            pace: Pace::read(from)?,
            members,
        };
        let is_known = |place: usize| place < stretch.members.len();
        let mut places = stretch
            .members
            .iter()
            .filter_map(|one| one.before)
            .chain(stretch.parent)
            .chain((stretch.row.executions > 0).then_some(stretch.last));
        if !places.all(is_known) {
            return Err(FormError::Damaged);
        }
        Ok(stretch)
    }
}

#[cfg(test)]
mod tests;
