//! Counts of an HTTP load's answers, in addition to what every load counts.

use std::collections::BTreeMap;

use uncork_model::{HttpTotals, RequestTotals, Stalls, StatementKind, StatementSummary};

use crate::{Failure, Measure};

/// One thread's counts.
#[derive(Debug, Default)]
pub struct Answers {
    /// Answers by status, up to the current interval of the series.
    statuses: BTreeMap<u16, u64>,
    /// Answers by status since the current interval began.
    since: BTreeMap<u16, u64>,
    /// The status counted last, and how many answers in a row had it; `since` does not include them
    /// yet.
    run: (u16, u64),
    /// Failed operations whose request the server certainly did not process.
    pub unprocessed: u64,
    /// Headers as received.
    pub header_bytes: u64,
    /// Headers after decompression.
    pub header_plain_bytes: u64,
    /// Bodies.
    pub body_bytes: u64,
    /// Answers that stalled in the middle.
    pub stalls: Stalls,
    closed: u64,
    closed_least: u64,
    closed_most: u64,
    goaways: u64,
    /// Datagrams that this machine dropped, in the measured part of a load over UDP.
    pub udp_dropped: u64,
    tls: Measure,
    first_byte: Measure,
    /// The steps of logins.
    logins: Vec<Measure>,
    /// By script.
    requests: Vec<Counts>,
}

/// The counts of one kind of request.
#[derive(Debug, Clone, Default)]
struct Counts {
    sent_bytes: u64,
    received_bytes: u64,
    /// Failed operations by kind, with the first message of each.
    failures: BTreeMap<String, (u64, String)>,
}

impl Answers {
    /// Count the head of a final answer.
    pub fn head(&mut self, status: u16, first_byte_ns: u64, bytes: usize, plain_bytes: usize) {
        if self.run.0 != status {
            self.settle();
            self.run.0 = status;
        }
        self.run.1 += 1;
        self.header_bytes += bytes as u64;
        self.header_plain_bytes += plain_bytes as u64;
        self.first_byte.success(first_byte_ns, 0);
    }

    /// Count a step of a login; failed ones have no duration.
    pub fn logged_in(&mut self, step: usize, latency_ns: Option<u64>) {
        let measure = at(&mut self.logins, step);
        match latency_ns {
            Some(latency_ns) => measure.success(latency_ns, 0),
            None => measure.error(),
        }
    }

    /// Count the bytes of a request, by script.
    pub fn sent(&mut self, script: usize, bytes: usize) {
        at(&mut self.requests, script).sent_bytes += bytes as u64;
    }

    /// Count bytes of answers to the requests of a script.
    pub fn received(&mut self, script: usize, bytes: u64) {
        at(&mut self.requests, script).received_bytes += bytes;
    }

    /// Count a failed operation.
    pub fn failed(&mut self, script: usize, failure: &Failure) {
        let failures = &mut at(&mut self.requests, script).failures;
        if let Some((number, _)) = failures.get_mut(&failure.code) {
            *number += 1;
        } else {
            failures.insert(failure.code.clone(), (1, failure.message.clone()));
        }
    }

    /// Whether no operation of a script has failed in this way before.
    #[must_use]
    pub fn is_first(&self, script: usize, code: &str) -> bool {
        self.requests
            .get(script)
            .is_none_or(|counts| !counts.failures.contains_key(code))
    }

    /// Count the duration of a TLS handshake.
    pub fn agreed(&mut self, tls_ns: u64) {
        self.tls.success(tls_ns, 0);
    }

    /// Count a connection that the server closed as announced, after so many operations.
    pub fn closed(&mut self, operations: u64, goaway: bool) {
        self.closed_least = if self.closed == 0 {
            operations
        } else {
            self.closed_least.min(operations)
        };
        self.closed_most = self.closed_most.max(operations);
        self.closed += 1;
        self.goaways += u64::from(goaway);
    }

    /// Add another thread's counts.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.statuses, &other.by_status());
        self.unprocessed += other.unprocessed;
        self.header_bytes += other.header_bytes;
        self.header_plain_bytes += other.header_plain_bytes;
        self.body_bytes += other.body_bytes;
        self.stalls.answers += other.stalls.answers;
        self.stalls.tried(&other.stalls);
        if other.closed > 0 {
            self.closed_least = if self.closed == 0 {
                other.closed_least
            } else {
                self.closed_least.min(other.closed_least)
            };
            self.closed_most = self.closed_most.max(other.closed_most);
            self.closed += other.closed;
            self.goaways += other.goaways;
        }
        self.tls.merge(&other.tls);
        self.first_byte.merge(&other.first_byte);
        self.merge_logins(other);
        for (script, theirs) in other.requests.iter().enumerate() {
            let mine = at(&mut self.requests, script);
            mine.sent_bytes += theirs.sent_bytes;
            mine.received_bytes += theirs.received_bytes;
            for (code, (number, message)) in &theirs.failures {
                let entry = mine.failures.entry(code.clone());
                entry.or_insert_with(|| (0, message.clone())).0 += number;
            }
        }
    }

    fn merge_logins(&mut self, other: &Self) {
        for (step, theirs) in other.logins.iter().enumerate() {
            at(&mut self.logins, step).merge(theirs);
        }
    }

    /// Take over only the other's connection counts: connections opened in the warm-up are used in
    /// the measured part, and what was learned on them is still valid.
    pub(crate) fn take_over(&mut self, other: &Self) {
        self.tls.merge(&other.tls);
        self.merge_logins(other);
        self.stalls.tried(&other.stalls);
    }

    /// End an interval; return how many answers of each status it had.
    pub(crate) fn turn(&mut self) -> BTreeMap<u16, u64> {
        self.settle();
        let since = std::mem::take(&mut self.since);
        add(&mut self.statuses, &since);
        since
    }

    fn settle(&mut self) {
        if self.run.1 > 0 {
            *self.since.entry(self.run.0).or_default() += std::mem::take(&mut self.run.1);
        }
    }

    fn by_status(&self) -> BTreeMap<u16, u64> {
        let mut statuses = self.statuses.clone();
        add(&mut statuses, &self.since);
        if self.run.1 > 0 {
            *statuses.entry(self.run.0).or_default() += self.run.1;
        }
        statuses
    }

    /// The counts of all threads, for a load of `planned` operations of scripts with these names.
    #[must_use]
    pub fn totals(&self, planned: Option<u64>, names: &[String]) -> HttpTotals {
        let requests = names.iter().enumerate().map(|(script, name)| {
            let counts = self.requests.get(script).cloned().unwrap_or_default();
            let failures = counts.failures;
            RequestTotals {
                name: name.clone(),
                sent_bytes: counts.sent_bytes,
                received_bytes: counts.received_bytes,
                errors: failures
                    .iter()
                    .map(|(code, (number, _))| (code.clone(), *number))
                    .collect(),
                examples: failures
                    .into_iter()
                    .map(|(code, (_, message))| (code, message))
                    .collect(),
            }
        });
        HttpTotals {
            requests: requests.collect(),
            planned,
            statuses: self.by_status(),
            unprocessed: self.unprocessed,
            header_bytes: self.header_bytes,
            header_plain_bytes: self.header_plain_bytes,
            body_bytes: self.body_bytes,
            stalls: self.stalls,
            closed: self.closed,
            closed_least: self.closed_least,
            closed_most: self.closed_most,
            goaways: self.goaways,
            udp_dropped: self.udp_dropped,
        }
    }

    /// The rows of durations: the steps of logins, by name; TLS handshakes if there were any; and
    /// time to first byte.
    pub(crate) fn summaries(&self, logins: &[String]) -> impl Iterator<Item = StatementSummary> {
        let logins = self.logins.iter().zip(logins);
        let logins = logins.map(|(it, name)| it.summary(StatementKind::Login, "", name));
        let rows = [
            (StatementKind::Tls, &self.tls),
            (StatementKind::FirstByte, &self.first_byte),
        ];
        let rows = rows
            .into_iter()
            .filter(|(kind, measure)| *kind != StatementKind::Tls || measure.executions() > 0)
            .map(|(kind, measure)| measure.summary(kind, "", kind.word()));
        logins.collect::<Vec<_>>().into_iter().chain(rows)
    }
}

/// The item at a place; those before it are created as needed.
fn at<T: Default>(items: &mut Vec<T>, place: usize) -> &mut T {
    if items.len() <= place {
        items.resize_with(place + 1, T::default);
    }
    &mut items[place]
}

fn add(statuses: &mut BTreeMap<u16, u64>, more: &BTreeMap<u16, u64>) {
    for (status, number) in more {
        *statuses.entry(*status).or_default() += number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_gives_what_came_since_the_last_and_all_of_them_add_up() {
        let mut answers = Answers::default();
        let mut sum = BTreeMap::new();
        for (heads, expected) in [
            (vec![200, 200, 503, 200], vec![(200, 3), (503, 1)]),
            (vec![200], vec![(200, 1)]),
            (vec![], vec![]),
            (vec![503, 503, 404], vec![(404, 1), (503, 2)]),
        ] {
            for status in heads {
                answers.head(status, 5, 10, 30);
            }
            let turned = answers.turn();
            assert_eq!(turned, BTreeMap::from_iter(expected));
            add(&mut sum, &turned);
            assert_eq!(answers.totals(None, &[]).statuses, sum);
        }
        answers.head(404, 5, 10, 30);
        let expected = BTreeMap::from([(200, 4), (404, 2), (503, 3)]);
        assert_eq!(answers.totals(None, &[]).statuses, expected);
    }

    #[test]
    fn counts_of_threads_add_up() {
        let (mut one, mut other) = (Answers::default(), Answers::default());
        for status in [200, 200, 404, 200] {
            one.head(status, 5, 10, 30);
        }
        other.head(404, 7, 10, 30);
        other.closed(1_000, true);
        other.closed(998, false);
        one.merge(&other);
        one.merge(&Answers::default());
        let totals = one.totals(Some(9), &[]);
        assert_eq!(totals.statuses, BTreeMap::from([(200, 3), (404, 2)]));
        assert_eq!((totals.header_bytes, totals.header_plain_bytes), (50, 150));
        assert_eq!(
            (totals.closed, totals.closed_least, totals.closed_most),
            (2, 998, 1_000)
        );
        assert_eq!((totals.goaways, totals.planned), (1, Some(9)));
        let rows: Vec<_> = one
            .summaries(&[])
            .map(|row| (row.kind, row.executions))
            .collect();
        assert_eq!(rows, [(StatementKind::FirstByte, 5)]);
    }
}
