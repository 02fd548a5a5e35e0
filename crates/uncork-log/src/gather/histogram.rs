//! Durations of one template: fine enough for reports, small enough for many templates.

use crate::form::{Form, FormError, Reader};

/// Sub-buckets per octave: a bucket is at most 0.8 % wide.
const SUB: u32 = 128;
const SUB_BITS: u32 = SUB.trailing_zeros();
/// Buckets per page; a page is allocated only if one of its buckets is used.
const PAGE: usize = 64;
/// How many durations are buffered before they are counted together, which touches memory less often.
const NEWEST: usize = 24;
/// Up to this number, used buckets are a list: most templates have few, for which pages would be a fifth of all memory.
const FEW: usize = 96;

/// Upper bounds of the published counts, in microseconds; the last count has none. A duration on a bound belongs to the
/// later count.
pub const BOUNDS: [u64; 9] = [
    1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 1_000_000, 10_000_000,
];
/// The bucket that each bound would divide.
const DIVIDED: [u16; BOUNDS.len()] = {
    let mut divided = [0; BOUNDS.len()];
    let mut number = 0;
    while number < BOUNDS.len() {
        divided[number] = bucket(BOUNDS[number]);
        number += 1;
    }
    divided
};
/// For each range of buckets, which of them a bound divides; [`RANGE`] for none. No range has two.
const DIVIDED_IN: [u8; 144] = {
    let mut all = [RANGE; 144];
    let mut number = 0;
    while number < BOUNDS.len() {
        let bucket = DIVIDED[number];
        #[expect(clippy::cast_possible_truncation, reason = "less than a range")]
        let within = (bucket % RANGE as u16) as u8;
        all[(bucket / RANGE as u16) as usize] = within;
        number += 1;
    }
    all
};
/// Buckets per range: a quarter of an octave.
const RANGE: u8 = 32;
/// From this number on, buckets hold the upper parts of the divided ones. Their page follows those of all others.
const UPPER: u16 = 72 * 64;

/// A histogram of durations. Buckets are exact up to 255 and then at most 0.8 % wide (the layout of `HdrHistogram`,
/// two significant digits). No bucket contains durations on both sides of a bound in [`BOUNDS`], so that counts between
/// these are exact.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Bucket numbers of the newest durations, in no order. They are not behind a pointer: with many templates, each
    /// pointer is a wait for memory.
    newest: [u16; NEWEST],
    /// How many of them there are.
    used: u8,
    counts: Counts,
    count: u64,
}

/// Counts by bucket: a list while there are few, then pages.
#[derive(Debug, Clone, Default)]
struct Counts {
    /// Used buckets in ascending order; empty as soon as there are pages.
    few: Vec<(u16, u16)>,
    /// All buckets; a page is allocated only if one of its buckets is used.
    pages: Pages,
}

type Pages = Vec<Option<Box<[u32; PAGE]>>>;

impl Counts {
    fn add(&mut self, bucket: u16, count: u32) {
        if !self.pages.is_empty() || !add_to_few(&mut self.few, bucket, count) {
            self.add_to_page(bucket, count);
        }
    }

    /// Add to a page, also while there are few: faster for a histogram that will have pages anyway.
    fn add_to_page(&mut self, bucket: u16, count: u32) {
        self.use_pages();
        add_to_pages(&mut self.pages, bucket, count);
    }

    fn use_pages(&mut self) {
        for (bucket, count) in std::mem::take(&mut self.few) {
            add_to_pages(&mut self.pages, bucket, u32::from(count));
        }
    }

    fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.few {
            self.add(*bucket, (*count).into());
        }
        if !other.pages.is_empty() {
            self.use_pages();
        }
        for (number, page) in (0..).zip(&other.pages) {
            if let Some(page) = page {
                let sums = page_of(&mut self.pages, number);
                for (sum, count) in sums.iter_mut().zip(&**page) {
                    *sum = sum.saturating_add(*count);
                }
            }
        }
    }

    /// Return the used buckets and their counts, in ascending order of the bucket.
    fn used(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        let few = self.few.iter();
        let few = few.map(|(bucket, count)| (*bucket, u32::from(*count)));
        few.chain(self.pages.iter().enumerate().flat_map(|(number, page)| {
            page.iter().flat_map(move |page| {
                page.iter()
                    .enumerate()
                    .filter(|(_, count)| **count > 0)
                    .map(move |(place, count)| {
                        #[expect(
                            clippy::cast_possible_truncation,
                            reason = "there are under 5 000 buckets"
                        )]
                        let bucket = (number * PAGE + place) as u16;
                        (bucket, *count)
                    })
            })
        }))
    }
}

/// Add to a list; return whether there was room for it.
fn add_to_few(all: &mut Vec<(u16, u16)>, bucket: u16, count: u32) -> bool {
    let Ok(count) = u16::try_from(count) else {
        return false;
    };
    match all.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
        Ok(at) => match all[at].1.checked_add(count) {
            Some(sum) => all[at].1 = sum,
            None => return false,
        },
        Err(at) if all.len() < FEW => all.insert(at, (bucket, count)),
        Err(_) => return false,
    }
    true
}

fn add_to_pages(pages: &mut Pages, bucket: u16, count: u32) {
    let (number, place) = (usize::from(bucket) / PAGE, usize::from(bucket) % PAGE);
    let page = page_of(pages, number);
    page[place] = page[place].saturating_add(count);
}

fn add_to_tops(all: &mut Vec<(u64, u64)>, top: u64, count: u64) {
    match all.binary_search_by_key(&top, |(top, _)| *top) {
        Ok(at) => all[at].1 += count,
        Err(at) => all.insert(at, (top, count)),
    }
}

fn page_of(pages: &mut Pages, number: usize) -> &mut [u32; PAGE] {
    if number >= pages.len() {
        pages.resize(number + 1, None);
    }
    pages[number].get_or_insert_with(|| Box::new([0; PAGE]))
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.buckets() == other.buckets()
    }
}

impl Eq for Histogram {}

impl Histogram {
    /// Count a duration.
    pub fn add(&mut self, micros: u64) {
        self.count += 1;
        self.buffer(exact(bucket(micros), micros));
    }

    fn buffer(&mut self, bucket: u16) {
        if usize::from(self.used) == NEWEST {
            self.spread();
        }
        self.newest[usize::from(self.used) % NEWEST] = bucket;
        self.used += 1;
    }

    fn newest(&self) -> &[u16] {
        &self.newest[..usize::from(self.used).min(NEWEST)]
    }

    /// Count a duration at once: faster for a histogram whose pages are in use all the time.
    pub(crate) fn count_one(&mut self, micros: u64) {
        self.count += 1;
        self.counts.add_to_page(bucket(micros), 1);
    }

    /// Add the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        for bucket in other.newest() {
            self.buffer(*bucket);
        }
        self.counts.merge(&other.counts);
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Return each used bucket's greatest duration and its count, in ascending order.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, u64)> = Vec::with_capacity(FEW);
        // Upper parts of divided buckets come last, but their durations do not.
        self.counts.used().for_each(|(bucket, count)| {
            if bucket < UPPER {
                all.push((top(bucket), count.into()));
            } else {
                add_to_tops(&mut all, top(bucket), count.into());
            }
        });
        for bucket in self.newest() {
            add_to_tops(&mut all, top(*bucket), 1);
        }
        all
    }

    /// Return a quantile: the smallest bucket bound that at least a share of all durations do not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let [found] = self.quantiles([share], &self.buckets())?;
        Some(found)
    }

    /// Return the same for several shares in ascending order, from the histogram's own buckets.
    #[must_use]
    pub fn quantiles<const N: usize>(
        &self,
        shares: [f64; N],
        buckets: &[(u64, u64)],
    ) -> Option<[u64; N]> {
        let mut buckets = buckets.iter();
        let (mut top, mut count) = *buckets.next()?;
        Some(shares.map(|share| {
            let rank = self.rank(share);
            while count < rank {
                let Some((next, more)) = buckets.next() else {
                    break;
                };
                top = *next;
                count += more;
            }
            top
        }))
    }

    /// Return how many durations are not longer than a quantile.
    fn rank(&self, share: f64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank between 1 and the count"
        )]
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        rank
    }

    fn spread(&mut self) {
        let newest = self.newest;
        for bucket in &newest[..usize::from(self.used).min(NEWEST)] {
            self.counts.add(*bucket, 1);
        }
        self.used = 0;
    }
}

/// Return the number of the bucket that a duration belongs to, were no bucket divided. Durations longer than about
/// twelve days share the last one.
const fn bucket(micros: u64) -> u16 {
    let micros = if micros < 1 << 40 {
        micros
    } else {
        (1 << 40) - 1
    };
    let octave = (micros | 1).ilog2().saturating_sub(SUB_BITS);
    #[expect(clippy::cast_possible_truncation, reason = "at most 33 * 128 + 255")]
    let number = (octave as u64 * SUB as u64 + (micros >> octave)) as u16;
    number
}

/// Return the number of the range that a bucket belongs to.
fn range_of(bucket: u16) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are under 5 000 buckets"
    )]
    let range = (bucket / u16::from(RANGE)) as u8;
    range
}

/// Return the number of a duration's range, which is below 192.
pub(crate) fn range(micros: u64) -> u8 {
    range_of(bucket(micros))
}

/// Return the number of a duration's bucket, which a bound may divide.
fn exact(bucket: u16, micros: u64) -> u16 {
    if is_divided(bucket) {
        return upper(bucket, micros);
    }
    bucket
}

/// Return whether a bound divides a bucket.
fn is_divided(bucket: u16) -> bool {
    let divided = DIVIDED_IN[usize::from(range_of(bucket)) % DIVIDED_IN.len()];
    bucket % u16::from(RANGE) == u16::from(divided)
}

/// Return the number of a duration's part of a divided bucket.
#[cold]
fn upper(bucket: u16, micros: u64) -> u16 {
    let mut upper = BOUNDS.iter().zip(DIVIDED).zip(UPPER..);
    let found = upper.find(|((bound, divided), _)| *divided == bucket && micros >= **bound);
    found.map_or(bucket, |(_, number)| number)
}

/// Return the greatest duration of a bucket.
fn top(bucket: u16) -> u64 {
    if let Some(number) = bucket.checked_sub(UPPER) {
        return whole_top(DIVIDED[usize::from(number)]);
    }
    if !is_divided(bucket) {
        return whole_top(bucket);
    }
    let divided = DIVIDED.iter().position(|divided| *divided == bucket);
    divided.map_or_else(|| whole_top(bucket), |number| BOUNDS[number] - 1)
}

/// Return the greatest duration of a bucket, were it not divided.
fn whole_top(bucket: u16) -> u64 {
    let bucket = u32::from(bucket);
    let octave = (bucket / SUB).saturating_sub(1);
    let within = u64::from(bucket - octave * SUB);
    ((within + 1) << octave) - 1
}

impl Form for Histogram {
    fn write(&self, out: &mut Vec<u8>) {
        let mut one = self.clone();
        one.spread();
        one.count.write(out);
        one.counts.used().count().write(out);
        for (bucket, count) in one.counts.used() {
            bucket.write(out);
            count.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut one = Self {
            count: u64::read(from)?,
            ..Self::default()
        };
        for _ in 0..from.count()? {
            let (bucket, count) = (u16::read(from)?, u32::read(from)?);
            let upper = bucket.checked_sub(UPPER).map(usize::from);
            if upper.map_or(usize::from(bucket) > LAST, |place| place >= DIVIDED.len()) {
                return Err(FormError::Damaged);
            }
            one.counts.add(bucket, count);
        }
        Ok(one)
    }
}

/// The bucket of the longest durations.
const LAST: usize = bucket(u64::MAX) as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_at_first_and_then_narrow() {
        for micros in (0..100_000).chain([1 << 20, (1 << 39) + 12_345, (1 << 40) - 1]) {
            let top = top(exact(bucket(micros), micros));
            assert!(top >= micros, "{micros} {top}");
            assert!((top - micros) * 128 <= micros, "{micros} {top}");
        }
        assert_eq!(top(exact(255, 255)), 255);
        assert_eq!(bucket(u64::MAX), bucket((1 << 40) - 1));
    }

    #[test]
    fn counts_between_bounds_are_exact() {
        let mut durations: Vec<u64> = BOUNDS
            .iter()
            .flat_map(|bound| {
                [
                    bound - 1,
                    *bound,
                    bound + 1,
                    bound - bound / 200,
                    bound + bound / 200,
                ]
            })
            .chain([0, u64::MAX])
            .collect();
        let mut random = 1_u64;
        durations.extend((0..10_000).map(|_| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            random >> (34 + random % 16)
        }));
        let mut histogram = Histogram::default();
        for micros in &durations {
            histogram.add(*micros);
        }
        let buckets = histogram.buckets();
        assert!(buckets.is_sorted_by(|one, next| one.0 < next.0));
        let (mut counted, mut expected) = ([0_u64; 10], [0_u64; 10]);
        for (top, count) in buckets {
            counted[BOUNDS.partition_point(|bound| *bound <= top)] += count;
        }
        for micros in durations {
            expected[BOUNDS.partition_point(|bound| *bound <= micros)] += 1;
        }
        assert_eq!(counted, expected);
    }

    #[test]
    fn quantiles_are_those_of_the_durations() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for micros in 1..=200 {
            histogram.add(micros);
        }
        for (share, micros) in [(0.0, 1), (0.005, 1), (0.5, 100), (0.99, 198), (1.0, 200)] {
            assert_eq!(histogram.quantile(share), Some(micros), "{share}");
        }
    }

    #[test]
    fn a_list_that_is_full_becomes_pages() {
        let (mut listed, mut paged) = (Histogram::default(), Histogram::default());
        let equal = std::iter::repeat_n(7, usize::from(u16::MAX) + 2);
        let different = (0..2 * FEW as u64).map(|number| number * 3);
        for micros in different.clone().chain(equal).chain(different) {
            listed.add(micros);
            paged.count_one(micros);
            assert_eq!(listed.count(), paged.count());
        }
        assert_eq!(listed.buckets(), paged.buckets());
        let mut joined = Histogram::default();
        joined.add(7);
        joined.merge(&listed);
        assert_eq!(joined.quantile(0.9), Some(7));
        assert_eq!(joined.count(), listed.count() + 1);
    }

    #[test]
    fn in_parts_it_counts_the_same() {
        for count in [
            0_u64,
            1,
            5,
            NEWEST as u64,
            NEWEST as u64 + 1,
            FEW as u64,
            1_000,
            100_000,
        ] {
            let durations: Vec<u64> = (0..count)
                .map(|number| number * number * 37 % 5_000_000)
                .collect();
            let mut whole = Histogram::default();
            for micros in &durations {
                whole.add(*micros);
            }
            for parts in 1..4 {
                let mut sum = Histogram::default();
                for part in 0..parts {
                    let mut one = Histogram::default();
                    for micros in durations.iter().skip(part).step_by(parts) {
                        one.add(*micros);
                    }
                    sum.merge(&one);
                }
                assert_eq!(sum.buckets(), whole.buckets(), "{count} in {parts}");
                assert_eq!(sum.count(), count);
            }
        }
    }
}
