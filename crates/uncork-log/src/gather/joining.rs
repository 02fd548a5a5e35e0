//! Merges templates: rare ones to limit memory, and templates that turn out to be the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::gather::blocking::{Blocking, Party};
use crate::gather::filter::Sieve;
use crate::gather::loops::{LoopOf, Loops};
use crate::gather::{Gathered, RARE};

impl Gathered {
    /// Merge the templates with the least time if there are more than `most`: half of them are kept.
    pub fn bound(&mut self, most: usize) {
        let all = self.templates.all();
        if all.len() <= most {
            return;
        }
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
            range: self.range,
            sieve: self.sieve.as_ref().map(Sieve::fresh),
            ..Self::default()
        };
        let repetitions = std::mem::take(&mut self.repetitions);
        let transactions = std::mem::take(&mut self.transactions);
        let blocking = std::mem::take(&mut self.blocking);
        let loops = std::mem::take(&mut self.loops);
        let (peak, most_sessions) = (self.peak, self.most_sessions);
        let all = self.templates.all().iter();
        let names: Vec<Box<[u8]>> = all
            .filter(|_| !blocking.is_empty() || !loops.is_empty())
            .map(|template| template.more.text.clone())
            .collect();
        let texts: Vec<Box<[u8]>> = repetitions
            .iter()
            .map(|(number, _)| self.templates.all()[*number as usize].more.text.clone())
            .collect();
        joined.merge(self);
        // Origins keep their numbers: they are adopted in order.
        joined.transactions = transactions;
        (joined.peak, joined.most_sessions) = (peak, most_sessions);
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
        for ((_, repetition), text) in repetitions.into_iter().zip(texts) {
            let number = joined.templates.known(&text);
            match joined.repetitions.iter_mut().find(|(of, _)| *of == number) {
                Some((_, of)) => of.merge(&repetition),
                None => joined.repetitions.push((number, repetition)),
            }
        }
        joined
            .repetitions
            .sort_unstable_by_key(|(number, _)| *number);
        joined
    }

    /// Keep loops by the numbers of templates that others became part of; `names` are the texts of the old numbers.
    fn join_loops(&mut self, loops: Vec<(LoopOf<u32>, Loops)>, names: &[Box<[u8]>]) {
        let mut all: BTreeMap<LoopOf<u32>, Loops> = BTreeMap::new();
        for (of, found) in loops {
            let mut number = |old: u32| self.templates.known(&names[old as usize]);
            let of = LoopOf {
                in_transaction: of.in_transaction,
                parent: of.parent.map(&mut number),
                template: number(of.template),
            };
            all.entry(of).or_default().merge(&found);
        }
        self.loops = all.into_iter().collect();
    }
}
