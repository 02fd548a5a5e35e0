//! What is gathered of a pooler: connections, why they ended, its averages.

use std::collections::HashMap;

use crate::gather::series::{Scale, Series};
use crate::gather::times::Times;
use crate::read::bouncer::{PoolMessage, Side, Stats};
use crate::read::entry::Entry;

/// How many kinds of connections are told apart.
const KINDS: usize = 10_000;

/// Which connections: whose, of which database and user, and why they ended (nothing of those that began).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Connections {
    /// Whose.
    pub side: Side,
    /// The database's name.
    pub database: Box<[u8]>,
    /// The user's name.
    pub user: Box<[u8]>,
    /// Why they ended; None of those that began.
    pub ended: Option<Box<[u8]>>,
}

/// One of a pooler's averages.
#[derive(Debug, Clone, Default)]
pub struct Average {
    /// How many lines told it, their sum and maximum.
    pub all: Times,
    /// The same over time.
    pub series: Series,
}

/// What a pooler tells.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// How many connections, and for how long they were open, in microseconds.
    pub connections: HashMap<Connections, Times>,
    /// Of each second: transactions, queries, and in microseconds of all clients together the time in
    /// transactions, in queries, and waiting for a server's connection.
    pub averages: [Average; 5],
}

/// The names of a pooler's averages, in their order.
pub const AVERAGES: [&str; 5] = [
    "pool transactions",
    "pool queries",
    "pool transaction time",
    "pool query time",
    "pool wait",
];

impl Pool {
    /// Counts what an entry says. Returns whether it said something that is counted.
    pub(crate) fn add(
        &mut self,
        entry: &Entry<'_>,
        side: Option<Side>,
        scale: &Scale,
        bucket: Option<i64>,
    ) -> bool {
        match (PoolMessage::read(entry.message), side) {
            (PoolMessage::Opened, Some(side)) => self.connection(entry, side, None, 0),
            (PoolMessage::Closed { why, age }, Some(side)) => {
                self.connection(entry, side, Some(why), age.saturating_mul(1_000_000));
            }
            (PoolMessage::Stats(stats), _) => self.average(stats, scale, bucket),
            _ => return false,
        }
        true
    }

    fn connection(&mut self, entry: &Entry<'_>, side: Side, ended: Option<&[u8]>, micros: u64) {
        let head = &entry.head;
        let mut which = Connections {
            side,
            database: head.database.into(),
            user: head.user.into(),
            ended: ended.map(Into::into),
        };
        if self.connections.len() >= KINDS && !self.connections.contains_key(&which) {
            which.database = Box::from(&b"(others)"[..]);
            (which.user, which.ended) = (which.database.clone(), None);
        }
        self.connections.entry(which).or_default().add(micros);
    }

    fn average(&mut self, stats: Stats, scale: &Scale, bucket: Option<i64>) {
        let values = [
            stats.transactions,
            stats.queries,
            stats.transactions.saturating_mul(stats.transaction_micros),
            stats.queries.saturating_mul(stats.query_micros),
            stats.wait_micros,
        ];
        for (average, value) in self.averages.iter_mut().zip(values) {
            average.all.add(value);
            if let Some(bucket) = bucket {
                average.series.add(scale, bucket, value);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self, scale: &Scale) {
        for (which, times) in other.connections {
            self.connections.entry(which).or_default().merge(&times);
        }
        for (own, theirs) in self.averages.iter_mut().zip(other.averages) {
            own.all.merge(&theirs.all);
            own.series.merge(scale, theirs.series);
        }
    }
}
