//! Server and session activity: lock waits, temporary files, checkpoints, autovacuum, connections, cancellations.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::form::{Form, FormError, Reader, form, form_inner, form_tuple};
use crate::gather::background::{CHECKPOINT, checkpoint};
use crate::gather::blocking::relation::relation;
use crate::gather::example::Place;
use crate::gather::histogram::Histogram;
use crate::gather::series::{Scale, Series, ServerSeries};
use crate::gather::times::Times;
use crate::read::entry::Entry;
use crate::read::message::LockState;
use crate::read::time::Micros;

/// How many of the longest waits and largest files are kept individually.
const KEPT: usize = 100;
/// The maximum length of their texts.
const TEXT: usize = 1_024;

/// Counts by name, and their distribution over time.
#[derive(Debug, Clone)]
pub struct Tally<K> {
    /// For each server and name: the count, and the sum and maximum in its own unit.
    pub by: HashMap<(u32, K), Times>,
    /// Counts over time; sums are in the same unit.
    pub series: ServerSeries,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self {
            by: HashMap::new(),
            series: ServerSeries::default(),
        }
    }
}

impl<K: Eq + Hash> Tally<K> {
    fn add(&mut self, key: K, amount: u64, when: &When<'_>) {
        self.by.entry((when.server, key)).or_default().add(amount);
        if let Some(bucket) = when.bucket {
            let series = self.series.of(when.server);
            series.add(when.scale, bucket, amount);
        }
    }

    fn merge(&mut self, other: Self, scale: &Scale, key: impl Fn(K) -> K) {
        for ((server, name), times) in other.by {
            let which = (server, key(name));
            self.by.entry(which).or_default().merge(&times);
        }
        self.series.merge(scale, other.series);
    }

    /// The total over all names.
    #[must_use]
    pub fn all(&self) -> Times {
        self.by.values().fold(Times::default(), |mut sum, times| {
            sum.merge(times);
            sum
        })
    }
}

/// One wait for a lock, or one temporary file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Incident {
    /// Microseconds waited, or bytes written.
    pub amount: u64,
    /// Its place in the log.
    pub place: Place,
    /// When it was logged.
    pub time: Option<Micros>,
    /// The process concerned; 0 if the log does not identify it.
    pub pid: u32,
    /// The lock's name, or the message.
    pub what: Box<[u8]>,
    /// Who held the lock, and who waited for it.
    pub detail: Box<[u8]>,
    /// The statement during which it happened.
    pub statement: Box<[u8]>,
    /// The relation that a wait is about, by name or OID; empty if the log does not show it.
    pub relation: Box<[u8]>,
    /// The last statement of the session that held the lock, or its template if its text is not known; empty if the log
    /// does not show it.
    pub holder: Box<[u8]>,
    /// The place of the entry that first logged it.
    pub(crate) begun: Place,
}

/// The largest of many incidents.
#[derive(Debug, Clone, Default)]
pub struct TopIncidents(Vec<Incident>);

impl TopIncidents {
    fn add(&mut self, amount: u64, place: Place, incident: impl FnOnce() -> Incident) {
        let key = (std::cmp::Reverse(amount), place);
        let rank = self
            .0
            .partition_point(|one| (std::cmp::Reverse(one.amount), one.place) < key);
        if rank < KEPT {
            self.0.insert(rank, incident());
            self.0.truncate(KEPT);
        }
    }

    /// Set the statement of the session that held the lock, by the place of the entry that first logged a wait.
    pub(super) fn name_holders<'a>(&mut self, holder: impl Fn(Place) -> Option<&'a [u8]>) {
        for one in &mut self.0 {
            one.holder = holder(one.begun).map(cut).unwrap_or_default();
        }
    }

    /// Keep only some incidents.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&Incident) -> bool) {
        self.0.retain(is_kept);
    }

    /// The incidents, the largest first.
    #[must_use]
    pub fn all(&self) -> &[Incident] {
        &self.0
    }
}

/// Checkpoints and restartpoints.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    /// How many began, by reason.
    pub reasons: HashMap<Box<[u8]>, u64>,
    /// Total duration; over time.
    pub all: Times,
    /// Duration of writing.
    pub write: Times,
    /// Duration of syncing.
    pub sync: Times,
    /// Buffers written.
    pub buffers: Times,
    /// Kibibytes of WAL between two checkpoints.
    pub distance: Times,
    /// Checkpoints over time.
    pub series: Series,
    /// Further details, in the order of [`CHECKPOINT`]; only what messages contain is counted.
    pub details: [Times; CHECKPOINT.len()],
}

impl Checkpoints {
    /// Add other checkpoints.
    pub fn merge(&mut self, other: Self, scale: &Scale) {
        for (reason, count) in other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        for (ours, theirs) in [
            (&mut self.all, &other.all),
            (&mut self.write, &other.write),
            (&mut self.sync, &other.sync),
            (&mut self.buffers, &other.buffers),
            (&mut self.distance, &other.distance),
        ]
        .into_iter()
        .chain(self.details.iter_mut().zip(&other.details))
        {
            ours.merge(theirs);
        }
        self.series.merge(scale, other.series);
    }
}

/// Server and session activity.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// Waits that ended in any way, by lock, in microseconds.
    pub waits: Tally<Box<[u8]>>,
    /// The same by server and by the number of the waiting statement's template.
    pub waiting: HashMap<(u32, u32), Times>,
    /// Number of waits reported as going on. Waits whose end is not in the log are the difference
    /// to those that ended.
    pub still_waiting: u64,
    /// Deadlocks.
    pub deadlocks: u64,
    /// The longest waits, whether they ended or not. Each one appears once.
    pub longest_waits: TopIncidents,
    /// Temporary files by the number of their statement's template ([`u32::MAX`] if the log names
    /// no statement), in bytes.
    pub files: Tally<u32>,
    /// The largest temporary files.
    pub largest_files: TopIncidents,
    /// Checkpoints by server.
    pub checkpoints: BTreeMap<u32, Checkpoints>,
    /// Autovacuum runs by table, in microseconds; the flag marks runs that only analysed.
    pub vacuums: Tally<(bool, Box<[u8]>)>,
    /// Connections received, by host.
    pub received: Tally<Box<[u8]>>,
    /// Sessions that ended, and their durations.
    pub ended: Times,
    /// Distribution of these durations.
    pub lengths: Histogram,
    /// Cancelled statements by reason.
    pub cancelled: Tally<Box<[u8]>>,
}

/// When and where something happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When<'a> {
    pub(crate) server: u32,
    pub(crate) scale: &'a Scale,
    pub(crate) bucket: Option<i64>,
    pub(crate) time: Option<Micros>,
    pub(crate) place: Place,
}

impl Incident {
    /// Describe a wait for a lock, as one entry logs it.
    pub(crate) fn wait(
        pid: u32,
        what: &[u8],
        micros: u64,
        entry: &Entry<'_>,
        when: &When<'_>,
    ) -> Self {
        Self {
            amount: micros,
            place: when.place,
            time: when.time,
            pid,
            what: cut(what),
            detail: cut(entry.detail),
            statement: cut(entry.statement),
            relation: cut(&relation(what, entry.context)),
            holder: Box::default(),
            begun: when.place,
        }
    }
}

impl Activity {
    /// Count a wait for a lock. [`Self::waited`] keeps it, once the order of entries shows how it ended.
    pub(crate) fn lock(
        &mut self,
        state: LockState,
        what: &[u8],
        micros: u64,
        template: Option<u32>,
        when: &When<'_>,
    ) {
        if state == LockState::Waiting {
            self.still_waiting += 1;
            return;
        }
        self.waits.add(general(what), micros, when);
        if let Some(template) = template {
            let which = (when.server, template);
            self.waiting.entry(which).or_default().add(micros);
        }
    }

    /// Keep a wait for a lock if it is among the longest.
    pub(crate) fn waited(&mut self, wait: Incident) {
        self.longest_waits.add(wait.amount, wait.place, || wait);
    }

    pub(crate) fn file(
        &mut self,
        bytes: u64,
        template: Option<u32>,
        entry: &Entry<'_>,
        when: &When<'_>,
    ) {
        let key = template.unwrap_or(u32::MAX);
        self.files.add(key, bytes, when);
        self.largest_files.add(bytes, when.place, || Incident {
            amount: bytes,
            place: when.place,
            time: when.time,
            pid: entry.head.pid,
            what: cut(entry.message),
            statement: cut(entry.statement),
            begun: when.place,
            ..Incident::default()
        });
    }

    pub(crate) fn checkpoint_begins(&mut self, reason: &[u8], when: &When<'_>) {
        let points = self.checkpoints.entry(when.server).or_default();
        *points.reasons.entry(cut(reason)).or_default() += 1;
    }

    pub(crate) fn checkpoint_ends(
        &mut self,
        buffers: u64,
        [write, sync, all]: [u64; 3],
        distance: u64,
        message: &[u8],
        when: &When<'_>,
    ) {
        let points = self.checkpoints.entry(when.server).or_default();
        points.buffers.add(buffers);
        points.write.add(write);
        points.sync.add(sync);
        points.all.add(all);
        points.distance.add(distance);
        if let Some(bucket) = when.bucket {
            points.series.add(when.scale, bucket, all);
        }
        for (times, value) in points.details.iter_mut().zip(checkpoint(message)) {
            if let Some(value) = value {
                times.add(value);
            }
        }
    }

    pub(crate) fn vacuum(&mut self, analyze: bool, table: &[u8], micros: u64, when: &When<'_>) {
        self.vacuums.add((analyze, cut(table)), micros, when);
    }

    pub(crate) fn receive(&mut self, host: &[u8], when: &When<'_>) {
        self.received.add(cut(host), 0, when);
    }

    pub(crate) fn end(&mut self, micros: u64) {
        self.ended.add(micros);
        self.lengths.add(micros);
    }

    pub(crate) fn cancel(&mut self, why: &[u8], when: &When<'_>) {
        self.cancelled.add(cut(why), 0, when);
    }

    /// Add what was gathered elsewhere; `templates` maps the numbers of its templates to the numbers here.
    pub(crate) fn merge(&mut self, other: Self, scale: &Scale, templates: &[u32]) {
        let here = |number: u32| {
            let known = templates.get(number as usize);
            known.copied().unwrap_or(u32::MAX)
        };
        self.waits.merge(other.waits, scale, |name| name);
        for ((server, number), times) in other.waiting {
            let which = (server, here(number));
            self.waiting.entry(which).or_default().merge(&times);
        }
        self.still_waiting += other.still_waiting;
        self.deadlocks += other.deadlocks;
        for (ours, theirs) in [
            (&mut self.longest_waits, other.longest_waits),
            (&mut self.largest_files, other.largest_files),
        ] {
            for incident in theirs.0 {
                ours.add(incident.amount, incident.place, || incident.clone());
            }
        }
        self.files.merge(other.files, scale, here);
        for (server, points) in other.checkpoints {
            let of = self.checkpoints.entry(server).or_default();
            of.merge(points, scale);
        }
        self.ended.merge(&other.ended);
        self.vacuums.merge(other.vacuums, scale, |table| table);
        self.received.merge(other.received, scale, |host| host);
        self.lengths.merge(&other.lengths);
        self.cancelled.merge(other.cancelled, scale, |why| why);
    }
}

/// Return a lock's name without the numbers of what is locked: `ShareLock on transaction`.
fn general(what: &[u8]) -> Box<[u8]> {
    let words = what.split(|byte| *byte == b' ').filter(|word| {
        !word.is_empty() && !word[0].is_ascii_digit() && !matches!(word[0], b'(' | b'[')
    });
    let joined = words.collect::<Vec<_>>().join(&b' ');
    cut(&joined)
}

fn cut(text: &[u8]) -> Box<[u8]> {
    text[..text.len().min(TEXT)].into()
}

impl<K: Form + Ord + Hash> Form for Tally<K>
where
    (u32, K): Form,
{
    fn write(&self, out: &mut Vec<u8>) {
        self.by.write(out);
        self.series.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        Ok(Self {
            by: HashMap::read(from)?,
            series: ServerSeries::read(from)?,
        })
    }
}

form_tuple!(
    (u32, u32) { 0, 1 };
    (u32, Box<[u8]>) { 0, 1 };
    (bool, Box<[u8]>) { 0, 1 };
    (u32, (bool, Box<[u8]>)) { 0, 1 };
);
form_inner!(TopIncidents);
form!(Incident {
    amount,
    place,
    time,
    pid,
    what,
    detail,
    statement,
    relation,
    holder,
    begun
});
form!(Checkpoints {
    reasons,
    all,
    write,
    sync,
    buffers,
    distance,
    series,
    details
});
form!(Activity {
    waits,
    waiting,
    still_waiting,
    deadlocks,
    longest_waits,
    files,
    largest_files,
    checkpoints,
    vacuums,
    received,
    ended,
    lengths,
    cancelled
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_one_kind_fall_together() {
        for (what, name) in [
            (
                "ShareLock on transaction 259635360",
                "ShareLock on transaction",
            ),
            (
                "ExclusiveLock on tuple (0,1) of relation 16384 of database 5",
                "ExclusiveLock on tuple of relation of database",
            ),
            (
                "ExclusiveLock on advisory lock [5,0,42,1]",
                "ExclusiveLock on advisory lock",
            ),
        ] {
            assert_eq!(&*general(what.as_bytes()), name.as_bytes());
        }
    }

    #[test]
    fn the_greatest_are_kept_whatever_their_order() {
        let incident = |amount: u64| Incident {
            amount,
            place: (0, amount),
            ..Incident::default()
        };
        let mut greatest = TopIncidents::default();
        for number in 0..1_000 {
            let amount = number * 7_919 % 1_000;
            greatest.add(amount, (0, amount), || incident(amount));
        }
        let amounts: Vec<u64> = greatest.all().iter().map(|one| one.amount).collect();
        assert_eq!(amounts, (900..1_000).rev().collect::<Vec<_>>());
    }
}
