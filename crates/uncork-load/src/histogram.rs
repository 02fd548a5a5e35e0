//! Latency histograms: HDR with three significant digits, in nanoseconds, up to one hour.

use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};

/// The longest latency that is distinguished; longer ones count as this. The exact maximum is kept
/// separately.
const LONGEST_NS: u64 = 3_600 * 1_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// How many points lie in each halving of the distance to quantile 1.
const POINTS_A_HALVING: u32 = 10;

/// Why histograms could not be merged.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The bytes are not a histogram in the format V2.
    #[error("histogram number {number} cannot be read: {problem}")]
    Read {
        /// Which of the given histograms, from 0.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The histogram was recorded with other bounds or precision.
    #[error("histogram number {number} does not fit the others: {problem}")]
    Fit {
        /// Which of the given histograms, from 0.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// A point of a cumulative distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantilePoint {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The value at this quantile.
    pub value_ns: u64,
    /// How many values are at or below it.
    pub cumulative_count: u64,
}

pub(crate) fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
        .expect("constant bounds are valid")
}

pub(crate) fn serialize(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("memory accepts any number of bytes");
    bytes
}

/// The sum of histograms that this crate has serialised. An empty histogram may be no bytes at all.
pub(crate) fn sum(histograms: &[&[u8]]) -> Histogram<u64> {
    let mut sum = empty();
    let mut deserializer = Deserializer::new();
    for mut bytes in histograms.iter().copied().filter(|bytes| !bytes.is_empty()) {
        let one: Histogram<u64> = deserializer
            .deserialize(&mut bytes)
            .expect("what was serialised here can be read here");
        sum.add(one).expect("all histograms have the same bounds");
    }
    sum
}

/// [`sum`], serialised; no bytes when nothing was recorded.
pub(crate) fn serialized_sum(histograms: &[&[u8]]) -> Vec<u8> {
    let sum = sum(histograms);
    if sum.is_empty() {
        Vec::new()
    } else {
        serialize(&sum)
    }
}

/// Add up serialised histograms and return the sum's quantiles, in finer steps the nearer they are
/// to 1. Returns no points if there are no values.
///
/// # Errors
///
/// [`HistogramError`] names the histogram that is wrong.
pub fn merge<'a>(
    histograms: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<QuantilePoint>, HistogramError> {
    let sum = checked_sum(histograms)?;
    let mut cumulative_count = 0;
    let points = sum.iter_quantiles(POINTS_A_HALVING).map(|point| {
        cumulative_count += point.count_since_last_iteration();
        QuantilePoint {
            quantile: point.quantile_iterated_to(),
            value_ns: point.value_iterated_to(),
            cumulative_count,
        }
    });
    Ok(points.collect())
}

/// [`sum`] of histograms that may be wrong.
fn checked_sum<'a>(
    histograms: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Histogram<u64>, HistogramError> {
    let mut sum = empty();
    let mut deserializer = Deserializer::new();
    for (number, mut bytes) in histograms.into_iter().enumerate() {
        let histogram: Histogram<u64> =
            deserializer
                .deserialize(&mut bytes)
                .map_err(|error| HistogramError::Read {
                    number,
                    problem: error.to_string(),
                })?;
        sum.add(&histogram).map_err(|error| HistogramError::Fit {
            number,
            problem: error.to_string(),
        })?;
    }
    Ok(sum)
}

/// Add up serialised histograms without loss; return the sum, serialised, and its values at some
/// quantiles. The values are 0 if nothing was recorded.
///
/// # Errors
///
/// [`HistogramError`] names the histogram that is wrong.
pub fn add_up<'a>(
    histograms: impl IntoIterator<Item = &'a [u8]>,
    quantiles: &[f64],
) -> Result<(Vec<u8>, Vec<u64>), HistogramError> {
    let sum = checked_sum(histograms)?;
    let values = quantiles.iter().map(|&at| sum.value_at_quantile(at));
    Ok((serialize(&sum), values.collect()))
}

/// One interval of a log.
#[derive(Debug, Clone, Copy)]
pub struct LogInterval<'a> {
    /// What was measured.
    pub tag: &'a str,
    /// When it began, from the log's start.
    pub start_s: f64,
    /// How long it was.
    pub length_s: f64,
    /// Its histogram, as [`merge`] takes it.
    pub histogram: &'a [u8],
}

/// Write a log that `HdrHistogram`'s tools read, its values in nanoseconds.
///
/// Source: `HistogramLogWriter` of `HdrHistogram`, format 1.3.
///
/// # Errors
///
/// [`HistogramError`] names the histogram that cannot be read.
///
/// # Panics
///
/// Never: memory accepts any number of bytes.
pub fn interval_log<'a>(
    start_unix_s: f64,
    intervals: impl Iterator<Item = LogInterval<'a>>,
) -> Result<Vec<u8>, HistogramError> {
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let since_epoch = |seconds: f64| UNIX_EPOCH + Duration::from_secs_f64(seconds.max(0.0));
    let written = "memory accepts any number of bytes";
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("latencies in nanoseconds, from the intended start")
        .with_start_time(since_epoch(start_unix_s))
        .with_base_time(since_epoch(start_unix_s))
        .with_max_value_divisor(1.0)
        .begin_log_with(&mut log, &mut serializer)
        .expect(written);
    for (number, interval) in intervals.enumerate() {
        let mut bytes = interval.histogram;
        let histogram: Histogram<u64> =
            Deserializer::new()
                .deserialize(&mut bytes)
                .map_err(|error| HistogramError::Read {
                    number,
                    problem: error.to_string(),
                })?;
        // A tag ends at a comma or a space.
        let tag = interval.tag.replace([',', ' ', '\r', '\n'], "_");
        writer
            .write_histogram(
                &histogram,
                Duration::from_secs_f64(interval.start_s.max(0.0)),
                Duration::from_secs_f64(interval.length_s.max(0.0)),
                Tag::new(&tag),
            )
            .expect(written);
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_survive_and_add_up() {
        let mut one = empty();
        let mut other = empty();
        one.record(1_000).expect("in range");
        other.record_n(2_000, 3).expect("in range");
        let bytes = [serialize(&one), serialize(&other)];
        let points = merge(bytes.iter().map(Vec::as_slice)).expect("valid");
        let last = points.last().expect("not empty");
        assert_eq!(last.cumulative_count, 4);
        assert!((last.quantile - 1.0).abs() < f64::EPSILON);
        assert!(last.value_ns.abs_diff(2_000) <= 2);
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].quantile <= pair[1].quantile)
        );
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].cumulative_count <= pair[1].cumulative_count)
        );
    }

    #[test]
    fn nothing_gives_nothing_and_rubbish_is_named() {
        assert_eq!(merge([]).expect("valid"), []);
        assert_eq!(merge([serialize(&empty()).as_slice()]).expect("valid"), []);
        let error = merge([serialize(&empty()).as_slice(), b"rubbish"]).expect_err("rubbish");
        assert!(error.to_string().contains("number 1"));
    }
}
