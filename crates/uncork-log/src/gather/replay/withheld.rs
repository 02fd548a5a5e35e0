//! Withholds what the order of entries shows, of servers whose order is not known.

use std::collections::BTreeSet;

use crate::gather::Gathered;
use crate::gather::blocking::Blocking;

impl Gathered {
    /// Drop what was found by following the sessions of these servers: repetitions, loops, transactions, who waited for
    /// whom, the longest waits, and how many sessions were open at once. `server_of` returns the server of a file.
    pub fn withhold(&mut self, servers: &BTreeSet<u32>, server_of: impl Fn(u32) -> Option<u32>) {
        if servers.is_empty() {
            return;
        }
        let Self {
            origins,
            repetitions,
            loops,
            transactions,
            blocking,
            busiest,
            activity,
            ..
        } = self;
        let server = |origin: u32| origins.all().get(origin as usize).map(|one| one.server);
        let is_kept = |server: Option<u32>| server.is_none_or(|one| !servers.contains(&one));
        repetitions.retain(|((_, server), _)| is_kept(Some(*server)));
        loops.retain(|((_, server), _)| is_kept(Some(*server)));
        transactions.retain(|(origin, _)| is_kept(server(*origin)));
        blocking.retain(|one: &Blocking| {
            let mut origins = [one.waiting.origin, one.holding.origin].into_iter();
            origins.all(|origin| is_kept(origin.and_then(server)))
        });
        for (server, most) in busiest {
            if !is_kept(Some(*server)) {
                most.sessions = None;
            }
        }
        activity
            .longest_waits
            .retain(|wait| is_kept(server_of(wait.place.0)));
    }
}
