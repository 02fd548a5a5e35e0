//! What is gathered from a pooler's log: connections, why they ended, and its averages.

use std::collections::HashMap;

use crate::form::form;
use crate::gather::activity::When;
use crate::gather::series::{Scale, ServerSeries};
use crate::gather::times::Times;
use crate::read::bouncer::{PoolMessage, Side, Stats};
use crate::read::entry::Entry;

/// How many kinds of connections are distinguished.
const KINDS: usize = 10_000;

/// A kind of connection: side, database, user, host, and why it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Connections {
    /// The server, by its number.
    pub server: u32,
    /// The side of the pooler.
    pub side: Side,
    /// The database's name.
    pub database: Box<[u8]>,
    /// The user's name.
    pub user: Box<[u8]>,
    /// The client's host, or the server's.
    pub host: Box<[u8]>,
    /// Why they ended; `None` for connections that began.
    pub ended: Option<Box<[u8]>>,
}

/// One of a pooler's averages.
#[derive(Debug, Clone, Default)]
pub struct Average {
    /// Number of lines that contained it, with their sum and maximum.
    pub all: Times,
    /// The average over time.
    pub series: ServerSeries,
}

/// What is gathered from a pooler's log.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// Number of connections, and how long they were open, in microseconds.
    pub connections: HashMap<Connections, Times>,
    /// Averages per second: transactions, queries, and, summed over all clients in microseconds, the time in
    /// transactions, in queries, and waiting for a server connection; bytes from and to clients.
    pub averages: [Average; AVERAGES.len()],
}

/// The names of these averages, in order.
pub const AVERAGES: [&str; 7] = [
    "pool transactions",
    "pool queries",
    "pool transaction time",
    "pool query time",
    "pool wait",
    "pool bytes in",
    "pool bytes out",
];

impl Pool {
    /// Count an entry; return whether it contained anything that is counted.
    pub(crate) fn add(&mut self, entry: &Entry<'_>, side: Option<Side>, when: &When<'_>) -> bool {
        let server = when.server;
        match (PoolMessage::read(entry.message), side) {
            (PoolMessage::Opened, Some(side)) => self.connection(entry, (server, side), None, 0),
            (PoolMessage::Closed { why, age }, Some(side)) => {
                let micros = age.saturating_mul(1_000_000);
                self.connection(entry, (server, side), Some(why), micros);
            }
            (PoolMessage::Stats(stats), _) => self.average(stats, when),
            _ => return false,
        }
        true
    }

    fn connection(
        &mut self,
        entry: &Entry<'_>,
        (server, side): (u32, Side),
        ended: Option<&[u8]>,
        micros: u64,
    ) {
        let head = &entry.head;
        let mut which = Connections {
            server,
            side,
            database: head.database.into(),
            user: head.user.into(),
            host: head.host.into(),
            ended: ended.map(Into::into),
        };
        if self.connections.len() >= KINDS && !self.connections.contains_key(&which) {
            which.database = Box::from(&b"(others)"[..]);
            which.user.clone_from(&which.database);
            which.host.clone_from(&which.database);
            which.ended = None;
        }
        self.connections.entry(which).or_default().add(micros);
    }

    fn average(&mut self, stats: Stats, when: &When<'_>) {
        let values = [
            stats.transactions,
            stats.queries,
            stats.transactions.saturating_mul(stats.transaction_micros),
            stats.queries.saturating_mul(stats.query_micros),
            stats.wait_micros,
            stats.bytes_in,
            stats.bytes_out,
        ];
        for (average, value) in self.averages.iter_mut().zip(values) {
            average.all.add(value);
            if let Some(bucket) = when.bucket {
                let series = average.series.of(when.server);
                series.add(when.scale, bucket, value);
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

form!(Connections {
    server,
    side,
    database,
    user,
    host,
    ended
});
form!(Average { all, series });
form!(Pool {
    connections,
    averages
});
