//! Distribution of durations by the hour, or by the bucket of a scale whose buckets are longer.

use crate::form::{Form, FormError, Reader};
use crate::gather::histogram::Histogram;
use crate::gather::series::Scale;
use crate::read::time::Micros;

const HOUR: i64 = 3_600;

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
    /// Count a duration.
    pub(crate) fn add(&mut self, scale: &Scale, time: Micros, micros: u64) {
        let place = match self.open {
            Some((from, until, place)) if (from..until).contains(&time) => place,
            _ => self.begin(scale, time),
        };
        self.all[place].1.count_one(micros);
    }

    fn begin(&mut self, scale: &Scale, time: Micros) -> usize {
        self.rescale(scale);
        let length = self.seconds * 1_000_000;
        let number = time.div_euclid(length);
        let place = self.place(number);
        self.open = Some((number * length, (number + 1) * length, place));
        place
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
    pub(crate) fn merge(&mut self, scale: &Scale, mut other: Self) {
        self.rescale(scale);
        other.rescale(scale);
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

    /// Merge histograms until they span at least an hour and a bucket of the scale. A longer bucket consists of whole
    /// shorter ones.
    pub(crate) fn rescale(&mut self, scale: &Scale) {
        let seconds = scale.seconds().max(HOUR);
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

    fn told(hours: &Hours) -> Vec<(i64, Vec<(u64, u64)>)> {
        hours
            .all()
            .map(|(begin, histogram)| (begin, histogram.buckets()))
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
        let mut whole = Hours::default();
        for time in &times {
            whole.add(&scale, *time, 1 + time.unsigned_abs() % 5);
        }
        assert_eq!(whole.all().count(), 10);
        assert_eq!(
            whole.all().map(|(begin, _)| begin).collect::<Vec<_>>(),
            (0..10).map(|hour| hour * HOUR).collect::<Vec<_>>()
        );
        let mut sum = Hours::default();
        for part in times.chunks(170).rev() {
            let mut one = Hours::default();
            for time in part.iter().rev() {
                one.add(&scale, *time, 1 + time.unsigned_abs() % 5);
            }
            sum.merge(&scale, one);
        }
        assert_eq!(told(&sum), told(&whole));
    }

    #[test]
    fn in_a_long_log_an_hour_becomes_a_bucket_of_the_scale() {
        let mut scale = Scale::default();
        let mut hours = Hours::default();
        for day in 0..60 {
            let time = day * 86_400 * SECOND;
            scale.see(time);
            hours.add(&scale, time, 7);
        }
        hours.rescale(&scale);
        assert!(scale.seconds() > HOUR);
        assert!(hours.all().all(|(begin, _)| begin % scale.seconds() == 0));
        let counted: u64 = hours.all().map(|(_, histogram)| histogram.count()).sum();
        assert_eq!(counted, 60);
    }
}
