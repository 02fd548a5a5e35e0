//! Distribution of durations by the hour, or by the bucket of a scale whose buckets are longer.

use std::borrow::Cow;

use crate::form::{Form, FormError, Reader, form_inner};
use crate::gather::histogram::Histogram;
use crate::gather::series::Scale;
use crate::read::time::Micros;

const HOUR: i64 = 3_600;
/// How many histograms of all servers there may be before each covers a longer time. One has a few kilobytes.
const MOST: i64 = 12_000;

/// Histograms of durations by the time at which executions ended, in ascending order.
#[derive(Debug, Clone, Default)]
pub struct Hours {
    /// The length of an hour, or of a longer bucket, in seconds.
    seconds: i64,
    all: Vec<(i64, Histogram)>,
    /// Where the last duration was counted: from when, until when, and its place in `all`.
    open: Option<(Micros, Micros, usize)>,
}

impl Hours {
    /// Count a duration in the hour that is open; return false if the time is in another one.
    fn add(&mut self, time: Micros, micros: u64) -> bool {
        let Some((from, until, place)) = self.open else {
            return false;
        };
        let is_open = (from..until).contains(&time);
        if is_open {
            self.all[place].1.count_one(micros);
        }
        is_open
    }

    /// Open the hour of a time.
    fn begin(&mut self, seconds: i64, time: Micros) {
        self.rescale(seconds);
        let length = self.seconds * 1_000_000;
        let number = time.div_euclid(length);
        let place = self.place(number);
        self.open = Some((number * length, (number + 1) * length, place));
    }

    fn place(&mut self, number: i64) -> usize {
        match self.all.binary_search_by_key(&number, |one| one.0) {
            Ok(place) => place,
            Err(place) => {
                self.all.insert(place, (number, Histogram::default()));
                place
            }
        }
    }

    /// Add the durations of another collection.
    fn merge(&mut self, seconds: i64, mut other: Self) {
        self.rescale(seconds);
        other.rescale(seconds);
        for (number, histogram) in other.all {
            let place = self.place(number);
            self.all[place].1.merge(&histogram);
        }
        self.open = None;
    }

    /// Return each histogram with the beginning of its time, in seconds since 1970.
    pub fn all(&self) -> impl Iterator<Item = (i64, &Histogram)> {
        let seconds = self.seconds;
        self.all
            .iter()
            .map(move |(number, histogram)| (number * seconds, histogram))
    }

    /// Return the distribution of all durations.
    #[must_use]
    pub fn sum(&self) -> Histogram {
        let mut sum = Histogram::default();
        for (_, histogram) in &self.all {
            sum.merge(histogram);
        }
        sum
    }

    /// Merge histograms until each covers so many seconds. A longer time consists of whole shorter ones.
    fn rescale(&mut self, seconds: i64) {
        let before = std::mem::replace(&mut self.seconds, seconds);
        if before == seconds || before == 0 {
            return;
        }
        self.open = None;
        for (number, histogram) in std::mem::take(&mut self.all) {
            let place = self.place((number * before).div_euclid(seconds));
            self.all[place].1.merge(&histogram);
        }
    }
}

/// The hours of each server, by the server's number. All have the same length, which depends only on the time that the
/// log spans and on the number of servers.
#[derive(Debug, Clone, Default)]
pub struct ServerHours(Vec<Hours>);

impl ServerHours {
    /// Count a duration on a server.
    pub(crate) fn add(&mut self, server: u32, scale: &Scale, time: Micros, micros: u64) {
        let hours = self.0.get_mut(server as usize);
        if !hours.is_some_and(|hours| hours.add(time, micros)) {
            self.begin(server, scale, time).add(time, micros);
        }
    }

    /// Open the hour of a time on a server.
    #[cold]
    fn begin(&mut self, server: u32, scale: &Scale, time: Micros) -> &mut Hours {
        let place = server as usize;
        if place >= self.0.len() {
            self.0.resize_with(place + 1, Hours::default);
        }
        let seconds = length(scale, self.0.len());
        self.0[place].begin(seconds, time);
        &mut self.0[place]
    }

    /// Add the durations of another collection.
    pub(crate) fn merge(&mut self, scale: &Scale, other: Self) {
        let servers = self.0.len().max(other.0.len());
        self.0.resize_with(servers, Hours::default);
        let seconds = length(scale, servers);
        let mut others = other.0.into_iter();
        for own in &mut self.0 {
            own.merge(seconds, others.next().unwrap_or_default());
        }
    }

    /// Return the hours of each server, by number.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Hours)> {
        (0..).zip(&self.0)
    }

    /// Return the time that each histogram covers, in seconds; at least an hour.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        let all = self.0.iter().map(|one| one.seconds);
        all.max().unwrap_or(HOUR).max(HOUR)
    }

    /// Return the hours of all servers together.
    #[must_use]
    pub fn together(&self) -> Cow<'_, Hours> {
        if let [only] = &self.0[..] {
            return Cow::Borrowed(only);
        }
        let mut all = Hours::default();
        for one in &self.0 {
            all.merge(self.seconds(), one.clone());
        }
        Cow::Owned(all)
    }
}

/// Return the time that each histogram covers, in seconds.
fn length(scale: &Scale, servers: usize) -> i64 {
    let servers = i64::try_from(servers).unwrap_or(i64::MAX).max(1);
    scale.length_for(HOUR, (MOST / servers).max(1))
}

form_inner!(ServerHours);

impl Form for Hours {
    fn write(&self, out: &mut Vec<u8>) {
        self.seconds.write(out);
        self.all.len().write(out);
        for (number, histogram) in &self.all {
            number.write(out);
            histogram.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut hours = Self {
            seconds: i64::read(from)?,
            ..Self::default()
        };
        for _ in 0..from.count()? {
            let number = i64::read(from)?;
            if number.unsigned_abs() > 1 << 40 {
                return Err(FormError::Damaged);
            }
            let place = hours.place(number);
            hours.all[place].1.merge(&Histogram::read(from)?);
        }
        let is_known = hours.seconds == 0 && hours.all.is_empty() || hours.seconds >= HOUR;
        if !is_known || hours.seconds > 1 << 20 {
            return Err(FormError::Damaged);
        }
        Ok(hours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    /// A server, the beginning of an hour, and its durations.
    type Told = (u32, i64, Vec<(u64, u64)>);

    fn told(hours: &ServerHours) -> Vec<Told> {
        let all = hours.all();
        let all = all.flat_map(|(server, hours)| hours.all().map(move |one| (server, one)));
        all.map(|(server, (begin, histogram))| (server, begin, histogram.buckets()))
            .collect()
    }

    #[test]
    fn durations_are_counted_in_their_hour_whatever_the_order_and_the_parts() {
        let times: Vec<i64> = (0..600)
            .map(|number| number * 7_919 % 36_000 * SECOND)
            .collect();
        let mut scale = Scale::default();
        for time in &times {
            scale.see(*time);
        }
        let server = |time: i64| u32::try_from(time / SECOND % 3).expect("is small");
        let mut whole = ServerHours::default();
        for time in &times {
            whole.add(server(*time), &scale, *time, 1 + time.unsigned_abs() % 5);
        }
        let together = whole.together().into_owned();
        assert_eq!(
            together.all().map(|(begin, _)| begin).collect::<Vec<_>>(),
            (0..10).map(|hour| hour * HOUR).collect::<Vec<_>>()
        );
        assert_eq!(together.sum().count(), 600);
        let mut sum = ServerHours::default();
        for part in times.chunks(170).rev() {
            let mut one = ServerHours::default();
            for time in part.iter().rev() {
                one.add(server(*time), &scale, *time, 1 + time.unsigned_abs() % 5);
            }
            sum.merge(&scale, one);
        }
        assert_eq!(sum.all().count(), 3);
        assert_eq!(told(&sum), told(&whole));
    }

    #[test]
    fn in_a_long_log_an_hour_becomes_a_bucket_of_the_scale() {
        let mut scale = Scale::default();
        let mut hours = ServerHours::default();
        for day in 0..60 {
            let time = day * 86_400 * SECOND;
            scale.see(time);
            hours.add(0, &scale, time, 7);
        }
        hours.merge(&scale, ServerHours::default());
        assert!(scale.seconds() > HOUR);
        let all = hours.together();
        assert!(all.all().all(|(begin, _)| begin % scale.seconds() == 0));
        assert_eq!(all.sum().count(), 60);
    }

    #[test]
    fn with_many_servers_an_hour_becomes_longer_so_that_memory_is_bounded() {
        let mut scale = Scale::default();
        let mut hours = ServerHours::default();
        for hour in 0..500 {
            for server in 0..100 {
                let time = hour * HOUR * SECOND;
                scale.see(time);
                hours.add(server, &scale, time, 7);
            }
        }
        hours.merge(&scale, ServerHours::default());
        assert_eq!(scale.seconds(), HOUR);
        let histograms: usize = hours.all().map(|(_, one)| one.all().count()).sum();
        assert!(histograms <= 12_000, "{histograms}");
        let steps = hours.all().flat_map(|(_, one)| one.all());
        assert!(steps.into_iter().all(|(begin, _)| begin % 21_600 == 0));
        assert_eq!(hours.together().sum().count(), 50_000);
    }
}
