//! Merges what was gathered apart, and templates: rare ones to limit memory, and templates that turn out to be the same.

mod stored;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::gather::blocking::{Blocking, Party};
use crate::gather::filter::Sieve;
use crate::gather::loops::{LoopOf, Loops};
use crate::gather::sequence::Repetitions;
use crate::gather::{Gathered, RARE, REJECTED};

impl Gathered {
    /// Add what was gathered elsewhere.
    pub fn merge(&mut self, other: Self) {
        self.scale.merge(&other.scale);
        self.coarse.merge(&other.coarse);
        let origins: Vec<u32> = other
            .origins
            .all()
            .iter()
            .map(|origin| self.origins.adopt(origin))
            .collect();
        let templates = self
            .templates
            .merge(other.templates, &self.coarse, &origins);
        self.errors.merge(other.errors, &self.scale, &templates);
        self.notices.merge(other.notices, &self.scale, &templates);
        self.activity.merge(other.activity, &self.scale, &templates);
        self.background.merge(other.background);
        self.sessions.merge(other.sessions, &origins);
        self.pool.merge(other.pool, &self.scale);
        self.executions.merge(&self.scale, other.executions);
        self.hours.merge(&self.scale, other.hours);
        self.routes.merge(other.routes, &templates);
        self.slowest.merge(other.slowest, &templates, &origins);
        for (one, series) in other.origins.applications().iter().zip(other.applications) {
            let application = self.origins.application(one.server, &one.name);
            self.application(application, |own, scale| own.merge(scale, series));
        }
        for (sum, step) in self.steps.iter_mut().zip(&other.steps) {
            sum.merge(step);
        }
        if let (Some(sieve), Some(other)) = (&mut self.sieve, &other.sieve) {
            sieve.merge(other);
        }
        self.rare += other.rare;
        self.entries += other.entries;
        self.outside += other.outside;
        self.untimed += other.untimed;
        self.own += other.own;
        self.heads += other.heads;
        self.continuations += other.continuations;
        self.foreign += other.foreign;
        self.rejected += other.rejected;
        self.rejected_lines.extend(other.rejected_lines);
        self.rejected_lines.sort_unstable();
        self.rejected_lines.truncate(REJECTED);
    }

    /// Count the executions that wait to be counted: before templates are used, and after the last entry.
    pub fn settle(&mut self) {
        self.templates.settle(&self.coarse);
    }

    /// Merge the templates with the least time if there are more than `most`: half of them are kept.
    pub fn bound(&mut self, most: usize) {
        if self.templates.len() <= most {
            return;
        }
        self.settle();
        let all = self.templates.all();
        let mut order: Vec<u32> = (0..).take(all.len()).collect();
        order.sort_unstable_by_key(|number| {
            let template = &all[*number as usize];
            let rare = *template.more.text == *RARE;
            (rare, Reverse(template.executions.micros), *number)
        });
        let mut groups: Vec<u32> = (0..).take(all.len()).collect();
        let (_, rare) = order.split_at(most / 2);
        let Some(first) = rare.first() else {
            return;
        };
        for number in rare {
            groups[*number as usize] = *first;
        }
        let count = rare.len() as u64;
        self.templates.call(*first, RARE);
        *self = std::mem::take(self).join(&groups);
        self.rare += count;
    }

    /// Merge templates: `groups` maps the number of each template to the number of the template that it becomes part
    /// of.
    #[must_use]
    pub fn join(mut self, groups: &[u32]) -> Self {
        if groups
            .iter()
            .zip(0..)
            .all(|(group, number)| *group == number)
        {
            return self;
        }
        self.templates.rename(groups);
        let mut joined = Self {
            file: self.file,
            server: self.server,
            range: self.range,
            sieve: self.sieve.as_ref().map(Sieve::fresh),
            ..Self::default()
        };
        let repetitions = std::mem::take(&mut self.repetitions);
        let transactions = std::mem::take(&mut self.transactions);
        let blocking = std::mem::take(&mut self.blocking);
        let loops = std::mem::take(&mut self.loops);
        let busiest = std::mem::take(&mut self.busiest);
        let all = self.templates.all().iter();
        let names: Vec<Box<[u8]>> = all
            .filter(|_| !blocking.is_empty() || !loops.is_empty())
            .map(|template| template.more.text.clone())
            .collect();
        let texts: Vec<Box<[u8]>> = repetitions
            .iter()
            .map(|((number, _), _)| self.templates.all()[*number as usize].more.text.clone())
            .collect();
        joined.origins.begin_server(self.server);
        joined.merge(self);
        // Origins keep their numbers: they are adopted in order.
        joined.transactions = transactions;
        joined.busiest = busiest;
        let number = |of: Party<u32>| Party {
            template: of
                .template
                .map(|number| joined.templates.known(&names[number as usize])),
            ..of
        };
        let blocking = blocking.into_iter().map(|one| Blocking {
            waiting: number(one.waiting),
            holding: number(one.holding),
            ..one
        });
        joined.blocking = blocking.collect();
        joined.join_loops(loops, &names);
        let mut all: BTreeMap<(u32, u32), Repetitions> = BTreeMap::new();
        for (((_, server), repetition), text) in repetitions.into_iter().zip(texts) {
            let of = (joined.templates.known(&text), server);
            all.entry(of).or_default().merge(&repetition);
        }
        joined.repetitions = all.into_iter().collect();
        joined
    }

    /// Keep loops by the numbers of templates that others became part of; `names` are the texts of the old numbers.
    fn join_loops(&mut self, loops: Vec<((LoopOf<u32>, u32), Loops)>, names: &[Box<[u8]>]) {
        let mut all: BTreeMap<(LoopOf<u32>, u32), Loops> = BTreeMap::new();
        for ((of, server), found) in loops {
            let mut number = |old: u32| self.templates.known(&names[old as usize]);
            let of = LoopOf {
                in_transaction: of.in_transaction,
                parent: of.parent.map(&mut number),
                template: number(of.template),
            };
            all.entry((of, server)).or_default().merge(&found);
        }
        self.loops = all.into_iter().collect();
    }
}
