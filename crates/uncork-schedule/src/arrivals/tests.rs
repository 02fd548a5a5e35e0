//! Tests the combined arrivals of all threads. The seeds are fixed, so the results never change;
//! bounds of random statistics are at the 1 % point of their distribution.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts and times here are small"
)]

use super::*;

const SECOND: u64 = 1_000_000_000;

fn share(pattern: &Pattern, seed: u64, thread: usize, threads: usize) -> Arrivals {
    Arrivals::new(pattern, seed, thread, threads).expect("valid")
}

/// All threads' arrivals before `end_ns`, in order.
fn union(pattern: &Pattern, seed: u64, threads: usize, end_ns: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..threads)
        .flat_map(|thread| share(pattern, seed, thread, threads).take_while(|at| *at < end_ns))
        .collect();
    all.sort_unstable();
    all
}

/// The Kolmogorov-Smirnov distance between the gaps and an exponential distribution, times the
/// square root of their number: above 1.63 in 1 % of samples.
fn distance_from_exponential(times: &[u64], rate: f64) -> f64 {
    let before = std::iter::once(0).chain(times.iter().copied());
    let mut gaps: Vec<f64> = times
        .iter()
        .zip(before)
        .map(|(at, before)| (at - before) as f64 / 1e9)
        .collect();
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distance = gaps
        .iter()
        .enumerate()
        .map(|(index, gap)| {
            let expected = 1.0 - (-gap * rate).exp();
            let below = index as f64 / count;
            (expected - below)
                .abs()
                .max((below + 1.0 / count - expected).abs())
        })
        .fold(0.0, f64::max);
    distance * count.sqrt()
}

/// Arrivals in each hundredth of a second.
fn counts(times: impl Iterator<Item = u64>, hundredths: usize) -> Vec<f64> {
    let mut counts = vec![0.0; hundredths];
    for at in times {
        let Some(count) = counts.get_mut((at / (SECOND / 100)) as usize) else {
            break;
        };
        *count += 1.0;
    }
    counts
}

fn covariance(left: &[f64], right: &[f64]) -> f64 {
    let count = left.len() as f64;
    let (mean_left, mean_right) = (
        left.iter().sum::<f64>() / count,
        right.iter().sum::<f64>() / count,
    );
    let products = left
        .iter()
        .zip(right)
        .map(|(l, r)| (l - mean_left) * (r - mean_right));
    products.sum::<f64>() / count
}

#[test]
fn poisson_gaps_are_exponential_in_a_share_and_in_the_whole() {
    let pattern = Pattern::Poisson { rate: 2000.0 };
    for seed in 1..=4 {
        let alone: Vec<u64> = share(&pattern, seed, 0, 1).take(50_000).collect();
        assert!(
            distance_from_exponential(&alone, 2000.0) < 1.63,
            "seed {seed}"
        );
        for threads in [2, 5, 8] {
            let whole = union(&pattern, seed, threads, 20 * SECOND);
            let distance = distance_from_exponential(&whole, 2000.0);
            assert!(
                distance < 1.63,
                "seed {seed}, {threads} threads: {distance}"
            );
        }
    }
}

#[test]
fn poisson_keeps_its_rate() {
    for rate in [0.5, 100.0, 1e6] {
        for threads in 1..=8 {
            let expected = 50_000.0;
            let seconds = expected / rate;
            let whole = union(
                &Pattern::Poisson { rate },
                7,
                threads,
                (seconds * 1e9) as u64,
            );
            let deviation = (whole.len() as f64 - expected) / expected.sqrt();
            assert!(
                deviation.abs() < 2.58,
                "{rate}/s, {threads} threads: {deviation}"
            );
        }
    }
}

#[test]
fn poisson_counts_vary_as_much_as_they_must() {
    // The variance of a Poisson count is its mean; over n bins the ratio varies by sqrt(2 / n).
    let whole = union(&Pattern::Poisson { rate: 1000.0 }, 11, 3, 50 * SECOND);
    let counts = counts(whole.into_iter(), 5000);
    let mean = counts.iter().sum::<f64>() / 5000.0;
    let ratio = covariance(&counts, &counts) / mean;
    assert!(
        (ratio - 1.0).abs() < 2.58 * (2.0_f64 / 5000.0).sqrt(),
        "{ratio}"
    );
}

#[test]
fn threads_and_seeds_do_not_know_one_another() {
    let pattern = Pattern::Poisson { rate: 8000.0 };
    let of = |seed, thread| counts(share(&pattern, seed, thread, 8), 5000);
    let mut streams: Vec<Vec<f64>> = (0..8).map(|thread| of(3, thread)).collect();
    streams.extend([of(4, 0), of(5, 0)]);
    for (index, left) in streams.iter().enumerate() {
        for right in &streams[..index] {
            let scale = (covariance(left, left) * covariance(right, right)).sqrt();
            let correlation = covariance(left, right) / scale;
            // 45 pairs: the bound is the 1 % point of the greatest of them.
            assert!(correlation.abs() * 5000_f64.sqrt() < 3.7, "{correlation}");
        }
    }
}

#[test]
fn poisson_does_not_lose_time_below_a_nanosecond() {
    // 2 * 10^6 gaps of 1 ns on average: cut to whole nanoseconds they would come to 0.58 of it.
    let at = share(&Pattern::Poisson { rate: 1e9 }, 1, 0, 1)
        .nth(1_999_999)
        .expect("endless");
    let deviation = (at as f64 - 2e6) / 2e6_f64.sqrt();
    assert!(deviation.abs() < 2.58, "{deviation}");
}

#[test]
fn poisson_ends_with_time_itself_and_stays_over() {
    let mut rare = share(&Pattern::Poisson { rate: 1e-9 }, 2, 0, 1);
    assert!(rare.by_ref().count() < 100);
    assert_eq!(rare.next(), None);
}

#[test]
fn the_same_seed_gives_the_same_arrivals() {
    let pattern = Pattern::Poisson { rate: 1000.0 };
    let first: Vec<u64> = share(&pattern, 42, 1, 2).take(1000).collect();
    let again: Vec<u64> = share(&pattern, 42, 1, 2).take(1000).collect();
    assert_eq!(first, again);
    let other: Vec<u64> = share(&pattern, 43, 1, 2).take(1000).collect();
    assert_ne!(first, other);
    assert!(first.is_sorted());
}

#[test]
fn a_constant_rate_is_whole_for_any_number_of_threads() {
    let pattern = Pattern::Constant { rate: 700.0 };
    let expected: Vec<u64> = (0..1400_u64).map(|k| (k * SECOND + 350) / 700).collect();
    for threads in 1..=8 {
        assert_eq!(
            union(&pattern, 1, threads, 2 * SECOND),
            expected,
            "{threads} threads"
        );
    }
}

#[test]
fn bursts_are_whole_and_shared_by_turns() {
    for size in [1, 3, 10] {
        let pattern = Pattern::Bursts { rate: 300.0, size };
        let size = u64::from(size);
        let expected: Vec<u64> = (0..900_u64)
            .map(|k| (k / size * size * SECOND + 150) / 300)
            .collect();
        for threads in 1..=8 {
            let whole = union(&pattern, 1, threads, 3 * SECOND);
            assert_eq!(whole, expected, "{threads} threads");
            for thread in 0..threads {
                let first = share(&pattern, 1, thread, threads)
                    .take_while(|at| *at == 0)
                    .count() as u64;
                assert!(
                    first.abs_diff(size / threads as u64) <= 1,
                    "{threads} threads"
                );
            }
        }
    }
}

#[test]
fn a_trace_is_whole_and_then_over() {
    let offsets: Vec<u64> = (0..101).map(|k| k * k / 3 * 1000).collect();
    let pattern = Pattern::Trace(offsets.clone().into());
    for threads in 1..=8 {
        assert_eq!(
            union(&pattern, 1, threads, u64::MAX),
            offsets,
            "{threads} threads"
        );
    }
    let mut beyond = share(&Pattern::Trace([5].into()), 1, 1, 2);
    assert_eq!(beyond.next(), None);
    assert_eq!(beyond.next(), None);
}

#[test]
fn nonsense_has_no_arrivals() {
    for (pattern, thread, threads, expected) in [
        (
            Pattern::Constant { rate: 0.0 },
            0,
            1,
            PatternError::Rate { rate: 0.0 },
        ),
        (
            Pattern::Bursts { rate: 1.0, size: 0 },
            0,
            1,
            PatternError::Size,
        ),
        (
            Pattern::Constant { rate: 1.0 },
            2,
            2,
            PatternError::Thread {
                thread: 2,
                threads: 2,
            },
        ),
        (
            Pattern::Constant { rate: 1.0 },
            0,
            0,
            PatternError::Thread {
                thread: 0,
                threads: 0,
            },
        ),
    ] {
        assert_eq!(
            Arrivals::new(&pattern, 1, thread, threads).map(|_| ()),
            Err(expected)
        );
    }
}
