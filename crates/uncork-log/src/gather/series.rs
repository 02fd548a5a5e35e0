//! Time series: counts and durations in buckets whose length adapts to the log.

use crate::form::{Form, FormError, Reader, form, form_inner};
use crate::read::time::Micros;

/// Possible lengths of a bucket, in seconds; each is a multiple of the one before.
const LENGTHS: [i64; 14] = [
    1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400, 604_800,
];
/// How many buckets there may be before they become longer: for single series, and for series of which there are
/// thousands.
const FINE: i64 = 600;
const COARSE: i64 = 60;

/// The first and the last of some points in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span(Micros, Micros);

impl Default for Span {
    fn default() -> Self {
        Self(Micros::MAX, Micros::MIN)
    }
}

impl Span {
    /// Include a point in time, if it is known.
    pub(crate) fn see(&mut self, time: Option<Micros>) {
        if let Some(time) = time {
            (self.0, self.1) = (self.0.min(time), self.1.max(time));
        }
    }

    /// Return both; `None` if none was known.
    pub(crate) fn get(self) -> Option<(Micros, Micros)> {
        (self.0 <= self.1).then_some((self.0, self.1))
    }
}

/// The current bucket length: as short as the time span of the log allows.
/// It depends only on the first and the last point in time, not on the order of entries.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    most: i64,
    length: usize,
    first: Micros,
    last: Micros,
    /// The bucket of the last point in time: from when, until when, and its number. Most fall into the same one.
    open: (Micros, Micros, i64),
}

impl PartialEq for Scale {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.most, one.length, one.first, one.last);
        key(self) == key(other)
    }
}

impl Eq for Scale {}

impl Default for Scale {
    fn default() -> Self {
        Self {
            most: FINE,
            length: 0,
            first: Micros::MAX,
            last: Micros::MIN,
            open: (0, 0, 0),
        }
    }
}

impl Scale {
    /// Create a scale with few buckets.
    #[must_use]
    pub fn coarse() -> Self {
        Self {
            most: COARSE,
            ..Self::default()
        }
    }

    /// Include a point in time; return its bucket, and whether buckets became longer.
    pub fn see(&mut self, time: Micros) -> (i64, bool) {
        if (self.open.0..self.open.1).contains(&time) {
            self.first = self.first.min(time);
            self.last = self.last.max(time);
            return (self.open.2, false);
        }
        let before = self.length;
        if time < self.first || time > self.last {
            self.first = self.first.min(time);
            self.last = self.last.max(time);
            while self.bucket(self.last) - self.bucket(self.first) >= self.most
                && self.length + 1 < LENGTHS.len()
            {
                self.length += 1;
            }
        }
        let (bucket, length) = (self.bucket(time), self.seconds() * 1_000_000);
        self.open = (bucket * length, (bucket + 1) * length, bucket);
        (bucket, self.length != before)
    }

    /// Include the time span of another scale.
    pub fn merge(&mut self, other: &Self) {
        if other.first <= other.last {
            self.see(other.first);
            self.see(other.last);
        }
    }

    /// The length of a bucket, in seconds.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        LENGTHS[self.length]
    }

    /// The first and the last point in time; `None` if there is none.
    #[must_use]
    pub fn span(&self) -> Option<(Micros, Micros)> {
        (self.first <= self.last).then_some((self.first, self.last))
    }

    /// Return the shortest length, in seconds, that is at least `seconds` and a bucket, and divides the span into at most
    /// `most` parts; the longest one if none does.
    pub(crate) fn length_for(&self, seconds: i64, most: i64) -> i64 {
        let shortest = self.seconds().max(seconds);
        let (first, last) = self.span().unwrap_or_default();
        let parts = |length: i64| {
            let length = length * 1_000_000;
            last.div_euclid(length) - first.div_euclid(length) + 1
        };
        let mut lengths = LENGTHS.into_iter().filter(|length| *length >= shortest);
        let fits = lengths.find(|length| parts(*length) <= most);
        fits.unwrap_or(LENGTHS[LENGTHS.len() - 1])
    }

    /// Return the bucket of a point in time.
    pub(crate) fn bucket(&self, time: Micros) -> i64 {
        time.div_euclid(self.seconds() * 1_000_000)
    }
}

/// Counts and durations by bucket, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// Consecutive counts of one bucket: most entries fall into the same bucket as the one before.
    open: Option<Point>,
    points: Vec<Point>,
    /// The length of its buckets, in seconds.
    seconds: i64,
}

/// The counts of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The bucket's number: it begins this many bucket lengths after 1970.
    pub bucket: i64,
    /// Number of executions or other occurrences.
    pub count: u64,
    /// Total duration, in microseconds.
    pub micros: u64,
}

impl Series {
    /// Count an occurrence in a bucket of a scale.
    pub fn add(&mut self, scale: &Scale, bucket: i64, micros: u64) {
        if self.seconds != scale.seconds() {
            self.rescale(scale);
        }
        match &mut self.open {
            Some(open) if open.bucket == bucket => {
                open.count += 1;
                open.micros += micros;
            }
            other => {
                let point = Point {
                    bucket,
                    count: 1,
                    micros,
                };
                if let Some(before) = other.replace(point) {
                    self.put(before);
                }
            }
        }
    }

    /// Add the counts of another series.
    pub fn merge(&mut self, scale: &Scale, mut other: Self) {
        self.rescale(scale);
        other.rescale(scale);
        for point in other.points {
            self.put(point);
        }
    }

    /// Return the counts of each bucket of a scale, in ascending order, without empty buckets.
    #[must_use]
    pub fn points(&self, scale: &Scale) -> Vec<Point> {
        let mut one = self.clone();
        one.rescale(scale);
        one.points
    }

    /// Close the open bucket, and merge buckets until they are as long as the scale's.
    pub(crate) fn rescale(&mut self, scale: &Scale) {
        if let Some(open) = self.open.take() {
            self.put(open);
        }
        let seconds = scale.seconds();
        if self.seconds == seconds {
            return;
        }
        let before = std::mem::replace(&mut self.seconds, seconds);
        if before == 0 {
            return;
        }
        for point in std::mem::take(&mut self.points) {
            let bucket = (point.bucket * before).div_euclid(seconds);
            self.put(Point { bucket, ..point });
        }
    }

    fn put(&mut self, point: Point) {
        let place = match self.points.last() {
            Some(last) if last.bucket == point.bucket => self.points.len() - 1,
            Some(last) if last.bucket > point.bucket => {
                match self
                    .points
                    .binary_search_by_key(&point.bucket, |one| one.bucket)
                {
                    Ok(place) => place,
                    Err(place) => return self.points.insert(place, point),
                }
            }
            _ => return self.points.push(point),
        };
        let found = &mut self.points[place];
        found.count += point.count;
        found.micros += point.micros;
    }
}

/// A series of each server, by the server's number.
#[derive(Debug, Clone, Default)]
pub struct ServerSeries(Vec<Series>);

impl ServerSeries {
    /// Return the series of a server, to be changed.
    pub(crate) fn of(&mut self, server: u32) -> &mut Series {
        let place = server as usize;
        if place >= self.0.len() {
            self.0.resize_with(place + 1, Series::default);
        }
        &mut self.0[place]
    }

    /// Add the counts of other series.
    pub(crate) fn merge(&mut self, scale: &Scale, other: Self) {
        for (server, series) in (0..).zip(other.0) {
            self.of(server).merge(scale, series);
        }
    }

    /// Return the series of all servers, by number.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Series)> {
        (0..).zip(&self.0)
    }
}

impl Form for Scale {
    fn write(&self, out: &mut Vec<u8>) {
        self.most.write(out);
        self.first.write(out);
        self.last.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let read = Self {
            most: i64::read(from)?,
            first: i64::read(from)?,
            last: i64::read(from)?,
            ..Self::default()
        };
        let mut scale = Self {
            most: read.most,
            ..Self::default()
        };
        if !matches!(read.most, FINE | COARSE) || read.span().is_some_and(|span| !is_usual(span)) {
            return Err(FormError::Damaged);
        }
        scale.merge(&read);
        Ok(scale)
    }
}

/// Whether calculations with points in time do not exceed what a number holds: they are within 20 000 years of 1970.
fn is_usual((first, last): (Micros, Micros)) -> bool {
    const MOST: u64 = 20_000 * 366 * 86_400 * 1_000_000;
    first.unsigned_abs() < MOST && last.unsigned_abs() < MOST
}

form!(Point {
    bucket,
    count,
    micros
});
form_inner!(ServerSeries);

impl Form for Series {
    fn write(&self, out: &mut Vec<u8>) {
        let mut one = self.clone();
        if let Some(open) = one.open.take() {
            one.put(open);
        }
        one.seconds.write(out);
        one.points.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let seconds = i64::read(from)?;
        let points: Vec<Point> = Vec::read(from)?;
        let most = i64::MAX / LENGTHS[LENGTHS.len() - 1] / 2;
        let is_known = LENGTHS.contains(&seconds) || seconds == 0 && points.is_empty();
        let in_order = points.is_sorted_by(|one, next| one.bucket < next.bucket);
        let usual = points.iter().all(|one| one.bucket.abs() < most);
        if !is_known || !in_order || !usual {
            return Err(FormError::Damaged);
        }
        Ok(Self {
            open: None,
            points,
            seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn series(times: &[i64]) -> (Scale, Series) {
        let (mut scale, mut series) = (Scale::default(), Series::default());
        for time in times {
            let (bucket, _) = scale.see(*time);
            series.add(&scale, bucket, 1);
        }
        (scale, series)
    }

    #[test]
    fn each_length_holds_whole_buckets_of_the_one_before() {
        for pair in LENGTHS.windows(2) {
            assert_eq!(pair[1] % pair[0], 0, "{pair:?}");
        }
    }

    #[test]
    fn buckets_grow_with_the_span() {
        for (span, seconds) in [
            (1, 1),
            (599, 1),
            (601, 5),
            (86_400, 300),
            (7 * 86_400, 1_800),
            (40 * 86_400, 7_200),
        ] {
            let (scale, series) = series(&[0, span * SECOND]);
            assert_eq!(scale.seconds(), seconds, "{span}");
            assert_eq!(scale.span(), Some((0, span * SECOND)));
            let sum: u64 = series.points(&scale).iter().map(|point| point.count).sum();
            assert_eq!(sum, 2);
        }
        assert_eq!(Scale::default().span(), None);
    }

    #[test]
    fn order_and_parts_make_no_difference() {
        let times: Vec<i64> = (0..2_000)
            .map(|number| number * number * 7_919 % (90_000 * SECOND))
            .collect();
        let (scale, whole) = series(&times);
        let mut backwards = times.clone();
        backwards.sort_unstable_by(|one, other| other.cmp(one));
        let (other, reversed) = series(&backwards);
        assert_eq!(scale, other);
        assert_eq!(whole.points(&scale), reversed.points(&scale));
        let (mut sum_scale, mut sum) = series(&times[..300]);
        let (part_scale, part) = series(&times[300..]);
        sum_scale.merge(&part_scale);
        sum.merge(&sum_scale, part);
        assert_eq!(sum_scale, scale);
        assert_eq!(sum.points(&scale), whole.points(&scale));
    }
}
