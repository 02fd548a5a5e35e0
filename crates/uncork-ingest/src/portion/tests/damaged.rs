//! Stored portions with other contents, but with a check sum that fits: whoever joins them may get an error or wrong
//! numbers, but never a panic.
//!
//! The default is a few thousand; `UNCORK_MANGLE_SECONDS=620 cargo test --release -p uncork-ingest damaged` joins them
//! for ten minutes, and says how many.

#![expect(
    clippy::print_stderr,
    reason = "the long form says to whoever asked for it what it has done"
)]

use std::time::{Duration, Instant};

use super::*;

/// The default number of portions.
const ROUNDS: u64 = 4_000;
/// After how many of them other logs are gathered.
const FRESH: u64 = 20_000;

/// Change a few bytes; those at the beginning say what the rest is.
fn damage(random: &mut Random, body: &[u8]) -> Vec<u8> {
    let mut damaged = body.to_vec();
    for _ in 0..=random.below(3) {
        let most = damaged.len().max(1);
        let end = if random.below(2) == 0 {
            most
        } else {
            most.min(4_000)
        };
        let (at, other) = (random.below(end), random.below(most));
        let length = random.below(40).min(damaged.len() - at.max(other));
        match random.below(8) {
            0 => {
                damaged.drain(at..at + length);
            }
            1 => damaged.copy_within(other..other + length, at),
            2 => {
                let part = damaged[other..other + length].to_vec();
                damaged.splice(at..at, part);
            }
            3 => damaged.truncate(other),
            4 => damaged[at..at + length].fill(0xff),
            _ => damaged[at] = random.next().to_le_bytes()[0],
        }
        if damaged.is_empty() {
            break;
        }
    }
    damaged
}

#[test]
fn a_damaged_portion_whose_check_sum_fits_can_be_joined_without_a_panic() {
    let seconds = std::env::var("UNCORK_MANGLE_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    // The short form always uses the same damage, the long one new damage.
    let seed = end.map_or(11, |_| std::process::id().into());
    let mut random = Random(seed);
    let (mut rounds, mut read, mut settled) = (0, 0_u64, 0_u64);
    let mut bodies = Vec::new();
    let mut intact = Vec::new();
    while end.map_or(rounds < ROUNDS, |end| Instant::now() < end) {
        if rounds.is_multiple_of(FRESH) {
            let cut = Cut::new(&mut random, 150, (rounds / FRESH).is_multiple_of(2));
            intact = gathered(&cut.whole);
            let mut whole = Portion::new(None);
            whole.add(&intact).expect("is a portion");
            whole.settle().expect("has events");
            bodies = [intact.clone(), whole.store()]
                .iter()
                .map(|stored| unseal(stored).expect("is sealed"))
                .map(|body| zstd::stream::decode_all(body).expect("is packed"))
                .collect();
        }
        let body = &bodies[usize::from(rounds % 2 == 1)];
        let damaged = damage(&mut random, body);
        rounds += 1;
        let Ok(mut portion) = Portion::read(&mut Reader::new(&damaged, 0)) else {
            continue;
        };
        read += 1;
        if portion.settle().is_err() {
            continue;
        }
        settled += 1;
        // What follows may have other servers; either way the damaged part stays.
        let _ = portion.add(&intact);
        let _ = portion.settle();
        let report = portion.report();
        let groups = vec![0; report.gathered.templates.all().len()];
        let joined = report.gathered.join(&groups);
        std::hint::black_box(joined.hours.together().sum().buckets());
    }
    if end.is_some() {
        eprintln!("seed {seed}: {rounds} damaged portions, {read} could be read, {settled} joined");
    }
    assert!(settled > rounds / 100, "{settled} of {rounds}");
}
