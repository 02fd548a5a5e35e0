//! Executions by who sent them, as the comments in statements name it.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

use crate::form::{Form, FormError, Reader, form};
use crate::gather::times::Times;
use crate::hash::{Hash, HashedMap, PairHasher};
use crate::read::origin::Origin;
use crate::template::tags::{Tags, Traced, comments};

/// How many senders are distinguished; others are counted together.
const SENDERS: usize = 2_000;
/// How many pairs of sender and template are kept.
const PAIRS: usize = 50_000;
/// How many comments are remembered.
const COMMENTS: usize = 4_096;
/// How many requests of a sender are counted exactly.
const EXACT: usize = 1_024;
/// The route that stands for all others.
const OTHERS: &[u8] = b"(others)";

/// Who sent statements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sender {
    /// The number of the server that ran them.
    pub server: u32,
    /// The session's `application_name`; empty if it is not logged.
    pub session: Box<[u8]>,
    /// The application that the comment names; empty if none.
    pub application: Box<[u8]>,
    /// The route, controller and action, job, or path that the comment names; empty if none.
    pub route: Box<[u8]>,
    /// Whether the route is the path of a request, which can contain values.
    pub is_path: bool,
    /// The first half of the trace's ID if `uncork load` began the trace; else empty.
    pub trace: Box<[u8]>,
}

/// Counts different traces: exactly up to a number, by the smallest hashes beyond it (Bar-Yossef and others, *Counting
/// Distinct Elements in a Data Stream*, 2002), with a standard error of 3 %. The result depends on no order.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    smallest: BTreeSet<u64>,
}

impl Requests {
    fn add(&mut self, hash: u64) {
        if self.smallest.len() >= EXACT && self.smallest.last().is_some_and(|last| hash >= *last) {
            return;
        }
        self.smallest.insert(hash);
        if self.smallest.len() > EXACT {
            self.smallest.pop_last();
        }
    }

    fn merge(&mut self, other: Self) {
        for hash in other.smallest {
            self.add(hash);
        }
    }

    /// The number of traces; `None` if the comments name none.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        let last = self.smallest.last()?;
        let many = self.smallest.len() as u64;
        if self.smallest.len() < EXACT {
            return Some(many);
        }
        let estimate = u128::from(many - 1) * u128::from(u64::MAX) / u128::from((*last).max(1));
        Some(u64::try_from(estimate).unwrap_or(u64::MAX))
    }
}

/// Executions by sender and template.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    numbers: HashedMap<u32>,
    senders: Vec<(Sender, Requests)>,
    /// Durations, and the rows that plans show, by the numbers of a sender and a template.
    by: HashMap<(u32, u32), (Times, Times), BuildHasherDefault<PairHasher>>,
    /// What comments say, by the hash of a comment without its trace and of its session's origin.
    said: HashedMap<Said>,
}

/// What a comment with tags says: who sent the statement, and whether its trace is a tag.
#[derive(Debug, Clone, Copy)]
struct Said {
    sender: u32,
    is_tag: bool,
}

impl Routes {
    /// Find who sent a statement, by its comments; `None` if they do not name the sender. `origin` is the number of its
    /// session's origin.
    pub(crate) fn sender(
        &mut self,
        sql: &[u8],
        server: u32,
        origin: u32,
        origins: &[Origin],
    ) -> Option<u32> {
        comments(sql).find_map(|comment| {
            let traced = Traced::of(comment);
            let hash = traced.hash(origin);
            if let Some(said) = self.said.get(&hash).copied() {
                if let (Some(trace), true) = (traced.trace, said.is_tag) {
                    self.request(said.sender, trace);
                }
                return Some(said.sender);
            }
            let tags = Tags::read(comment)?;
            let session = &origins[origin as usize].application;
            let sender = self.number(&tags, server, session);
            if traced.is_typical(comment) {
                if self.said.len() >= COMMENTS {
                    self.said.clear();
                }
                let is_tag = traced.trace == Some(&tags.trace);
                self.said.insert(hash, Said { sender, is_tag });
            }
            Some(sender)
        })
    }

    /// Count the request that a trace names.
    fn request(&mut self, sender: u32, trace: &[u8]) {
        let mut hash = Hash::new();
        hash.add(trace, 0);
        self.senders[sender as usize].1.add(hash.get());
    }

    /// Find the sender with these tags, in a session of an application, and count its request.
    fn number(&mut self, tags: &Tags, server: u32, session: &[u8]) -> u32 {
        let hash = hash_of(
            server,
            [session, &tags.application, &tags.route, tags.group()],
            tags.is_path,
        );
        let number = self.numbers.get(&hash).copied().unwrap_or_else(|| {
            self.find(Sender {
                server,
                session: session.into(),
                application: tags.application.as_slice().into(),
                route: tags.route.as_slice().into(),
                is_path: tags.is_path,
                trace: tags.group().into(),
            })
        });
        if !tags.trace.is_empty() {
            self.request(number, &tags.trace);
        }
        number
    }

    fn find(&mut self, sender: Sender) -> u32 {
        let parts = [
            &*sender.session,
            &*sender.application,
            &*sender.route,
            &*sender.trace,
        ];
        let hash = hash_of(sender.server, parts, sender.is_path);
        if let Some(number) = self.numbers.get(&hash) {
            return *number;
        }
        if self.senders.len() >= SENDERS && *sender.route != *OTHERS {
            return self.find(Sender {
                server: sender.server,
                route: OTHERS.into(),
                ..Sender::default()
            });
        }
        let number = u32::try_from(self.senders.len()).unwrap_or(u32::MAX);
        self.senders.push((sender, Requests::default()));
        self.numbers.insert(hash, number);
        number
    }

    /// Count an execution.
    pub(crate) fn execute(&mut self, sender: u32, template: u32, micros: u64) {
        if let Some((times, _)) = self.pair(sender, template) {
            times.add(micros);
        }
    }

    /// Count the rows that an execution returned.
    pub(crate) fn returned(&mut self, sender: u32, template: u32, rows: u64) {
        if let Some((_, of)) = self.pair(sender, template) {
            of.add(rows);
        }
    }

    fn pair(&mut self, sender: u32, template: u32) -> Option<&mut (Times, Times)> {
        let key = (sender, template);
        let has_room = self.by.len() < PAIRS || self.by.contains_key(&key);
        has_room.then(|| self.by.entry(key).or_default())
    }

    /// Add those of another collection; `templates` maps its templates to the numbers here.
    pub(crate) fn merge(&mut self, other: Self, templates: &[u32]) {
        let mut numbers = Vec::with_capacity(other.senders.len());
        for (sender, requests) in other.senders {
            let number = self.find(sender);
            self.senders[number as usize].1.merge(requests);
            numbers.push(number);
        }
        for ((sender, template), (times, rows)) in other.by {
            let (sender, template) = (numbers[sender as usize], templates[template as usize]);
            if let Some(of) = self.pair(sender, template) {
                of.0.merge(&times);
                of.1.merge(&rows);
            }
        }
    }

    /// All senders with their requests, by number.
    #[must_use]
    pub fn senders(&self) -> &[(Sender, Requests)] {
        &self.senders
    }

    /// Return, in the order of senders' names and templates: the numbers of a sender and a template, durations, and the
    /// rows that plans show.
    #[must_use]
    pub fn all(&self) -> Vec<(u32, u32, Times, Times)> {
        let mut all: Vec<_> = self
            .by
            .iter()
            .map(|((sender, template), (times, rows))| (*sender, *template, *times, *rows))
            .collect();
        all.sort_by_key(|one| (&self.senders[one.0 as usize].0, one.1));
        all
    }
}

fn hash_of(server: u32, parts: [&[u8]; 4], is_path: bool) -> u64 {
    let mut hash = Hash::new();
    for part in parts {
        hash.add(part, 0);
    }
    hash.add(&server.to_le_bytes(), u64::from(is_path));
    hash.get()
}

form!(Sender {
    server,
    session,
    application,
    route,
    is_path,
    trace
});

impl Form for Routes {
    fn write(&self, out: &mut Vec<u8>) {
        self.senders.len().write(out);
        for (sender, requests) in &self.senders {
            sender.write(out);
            let hashes: Vec<u64> = requests.smallest.iter().copied().collect();
            hashes.write(out);
        }
        let mut pairs: Vec<_> = self.by.iter().collect();
        pairs.sort_unstable_by_key(|one| one.0);
        pairs.len().write(out);
        for ((sender, template), (times, rows)) in pairs {
            sender.write(out);
            template.write(out);
            times.write(out);
            rows.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut routes = Self::default();
        for number in 0..from.count()? {
            let sender = Sender::read(from)?;
            let smallest = Vec::read(from)?.into_iter().collect();
            if routes.find(sender) as usize != number {
                return Err(FormError::Damaged);
            }
            routes.senders[number].1 = Requests { smallest };
        }
        for _ in 0..from.count()? {
            let key: (u32, u32) = (Form::read(from)?, Form::read(from)?);
            if key.0 as usize >= routes.senders.len() {
                return Err(FormError::Damaged);
            }
            let times = Times::read(from)?;
            routes.by.insert(key, (times, Times::read(from)?));
        }
        Ok(routes)
    }
}

impl Routes {
    /// The numbers of all templates here.
    pub(crate) fn templates(&self) -> impl Iterator<Item = u32> {
        self.by.keys().map(|key| key.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(route: usize, trace: u64) -> Tags {
        Tags {
            route: format!("/{route}").into_bytes(),
            trace: format!("{trace:032x}").into_bytes(),
            ..Tags::default()
        }
    }

    fn gather(numbers: impl Iterator<Item = u64>, routes: usize) -> Routes {
        let mut found = Routes::default();
        for number in numbers {
            let route = usize::try_from(number).expect("is small") % routes;
            let sender = found.number(&tags(route, number / 4 + 1), 0, b"shop");
            found.execute(sender, u32::try_from(number % 3).expect("is small"), number);
        }
        found
    }

    #[test]
    fn parts_in_any_order_give_the_same_counts() {
        let whole = gather(0..40_000, 2);
        let mut sum = Routes::default();
        for part in [2, 0, 1, 3] {
            sum.merge(gather(part * 10_000..(part + 1) * 10_000, 2), &[0, 1, 2]);
        }
        let shown = |of: &Routes| {
            let all = of.all().into_iter();
            all.map(|(sender, template, times, _)| {
                let (sender, requests) = &of.senders()[sender as usize];
                (sender.route.clone(), template, times, requests.count())
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(shown(&sum), shown(&whole));
        let counted: u64 = whole.all().iter().map(|one| one.2.count).sum();
        assert_eq!(counted, 40_000);
    }

    #[test]
    fn requests_are_exact_up_to_a_thousand_and_close_beyond() {
        assert_eq!(Requests::default().count(), None);
        for (many, least, most) in [(4, 1, 1), (4_000, 1_000, 1_000), (200_000, 45_000, 55_000)] {
            let found = gather(0..many, 1).senders()[0]
                .1
                .count()
                .expect("has traces");
            assert!((least..=most).contains(&found), "{many}: {found}");
        }
    }

    #[test]
    fn too_many_routes_are_counted_together() {
        let found = gather(0..10_000, 10_000);
        assert_eq!(found.senders().len(), SENDERS + 1);
        let others = found.senders().last().expect("is one");
        assert_eq!(*others.0.route, *OTHERS);
        let counted: u64 = found.all().iter().map(|one| one.2.count).sum();
        assert_eq!(counted, 10_000);
    }
}
