//! Collects what happened in each interval from all threads, for the series and for progress.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uncork_model::{IntervalCounts, Progress, SeriesRow, StatusRow};

use crate::histogram;
use crate::recorder::Load;

/// One thread's part of one interval.
#[derive(Debug)]
pub(crate) struct IntervalShare {
    pub(crate) thread: usize,
    pub(crate) interval: u64,
    pub(crate) scripts: Vec<ScriptShare>,
    /// HTTP: number of answers by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) lateness_p99_ns: u64,
    pub(crate) load: Load,
}

/// Counts of one script. The histogram is serialised, because an interval's takes a few kilobytes.
#[derive(Debug)]
pub(crate) struct ScriptShare {
    pub(crate) script: usize,
    pub(crate) counts: IntervalCounts,
    pub(crate) sum_ns: u64,
    pub(crate) sum_squares: f64,
    pub(crate) max_ns: u64,
    pub(crate) histogram: Vec<u8>,
}

/// The intervals that all threads have published. The owner of a trial may read it while the trial
/// runs.
#[derive(Debug, Default)]
pub struct Board {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    interval_ns: u64,
    /// The last interval that each thread has published, plus one; `u64::MAX` once it has finished.
    reached: Vec<u64>,
    shares: Vec<IntervalShare>,
    /// How many intervals were reported as progress.
    reported: u64,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while holding the lock leaves a valid list.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, threads: usize, interval_ns: u64) {
        let mut state = self.state();
        state.interval_ns = interval_ns;
        state.reached = vec![0; threads];
    }

    pub(crate) fn put(&self, share: IntervalShare) {
        let mut state = self.state();
        state.reached[share.thread] = share.interval + 1;
        state.shares.push(share);
    }

    pub(crate) fn finished(&self, thread: usize) {
        self.state().reached[thread] = u64::MAX;
    }

    /// Summarise the last `intervals` intervals, if all threads have ended them and they were not
    /// reported before.
    #[must_use]
    pub fn progress(&self, intervals: u64) -> Option<Progress> {
        let mut state = self.state();
        let reached = state.reached.iter().copied().min()?;
        let until = state.reported + intervals;
        if intervals == 0 || reached < until || reached == u64::MAX {
            return None;
        }
        let progress = state.progress(state.reported, until);
        state.reported = until;
        Some(progress)
    }

    /// Return all intervals: one row per script and interval in which anything happened.
    pub(crate) fn series(&self, scripts: &[String]) -> Vec<SeriesRow> {
        self.state().series(scripts, 0..u64::MAX)
    }

    /// Return the last `intervals` intervals that were reported as progress, as rows like those of
    /// [`Report::series`](crate::Report::series).
    #[must_use]
    pub fn reported(&self, intervals: u64, scripts: &[String]) -> Vec<SeriesRow> {
        let state = self.state();
        state.series(
            scripts,
            state.reported.saturating_sub(intervals)..state.reported,
        )
    }

    /// Return all intervals of a load that took `elapsed_ns`: one row per status seen in an
    /// interval.
    pub(crate) fn statuses(&self, elapsed_ns: u64) -> Vec<StatusRow> {
        let state = self.state();
        let mut rows = BTreeMap::<(u64, u16), u64>::new();
        for share in &state.shares {
            for (status, number) in &share.statuses {
                *rows.entry((share.interval, *status)).or_default() += number;
            }
        }
        rows.into_iter()
            .map(|((interval, status), answers)| {
                let start_ns = interval * state.interval_ns;
                let rest_ns = elapsed_ns.saturating_sub(start_ns);
                StatusRow {
                    interval,
                    start_ns,
                    length_ns: state.interval_ns.min(rest_ns.max(1)),
                    status,
                    answers,
                }
            })
            .collect()
    }
}

impl State {
    fn series(&self, scripts: &[String], intervals: Range<u64>) -> Vec<SeriesRow> {
        let mut rows = BTreeMap::<_, (IntervalCounts, Vec<&[u8]>)>::new();
        let shares = self.shares.iter();
        for share in shares.filter(|share| intervals.contains(&share.interval)) {
            for part in &share.scripts {
                let row = rows.entry((share.interval, part.script)).or_default();
                row.0.add(&part.counts);
                row.1.push(&part.histogram);
            }
        }
        rows.into_iter()
            .map(|((interval, script), (counts, histograms))| SeriesRow {
                interval,
                start_ns: interval * self.interval_ns,
                script: scripts[script].clone(),
                counts,
                histogram: match histograms.as_slice() {
                    [one] => one.to_vec(),
                    several => histogram::serialized_sum(several),
                },
            })
            .collect()
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of an interval are far below 2^53"
    )]
    fn progress(&self, from: u64, until: u64) -> Progress {
        let mut counts = IntervalCounts::default();
        let mut progress = Progress {
            elapsed_ns: until * self.interval_ns,
            seconds: (until - from) as f64 * self.interval_ns as f64 / 1e9,
            ..Progress::default()
        };
        let (mut sum_ns, mut sum_squares) = (0.0, 0.0);
        let mut histograms = Vec::new();
        let parts = self
            .shares
            .iter()
            .filter(|share| (from..until).contains(&share.interval));
        for share in parts {
            if share.interval + 1 == until {
                progress.backlog += share.load.backlog;
                progress.clients += share.load.clients;
            }
            progress.lateness_p99_ns = progress.lateness_p99_ns.max(share.lateness_p99_ns);
            for part in &share.scripts {
                counts.add(&part.counts);
                sum_ns += part.sum_ns as f64;
                sum_squares += part.sum_squares;
                progress.max_ns = progress.max_ns.max(part.max_ns);
                histograms.push(part.histogram.as_slice());
            }
        }
        progress.succeeded = counts.succeeded;
        progress.failed = counts.failed;
        progress.skipped = counts.skipped;
        progress.retries = counts.retries;
        if counts.succeeded > 0 {
            let number = counts.succeeded as f64;
            progress.mean_ns = sum_ns / number;
            let variance = sum_squares / number - progress.mean_ns * progress.mean_ns;
            progress.stddev_ns = variance.max(0.0).sqrt();
            let sum = histogram::sum(&histograms);
            progress.p50_ns = sum.value_at_quantile(0.5).min(progress.max_ns);
            progress.p99_ns = sum.value_at_quantile(0.99).min(progress.max_ns);
        }
        progress
    }
}
