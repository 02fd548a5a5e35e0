//! Parses points in time to microseconds since 1970 in UTC.

/// A point in time: microseconds since 1970-01-01 00:00 UTC.
pub type Micros = i64;

const SECOND: i64 = 1_000_000;

/// Parses points in time, and caches the last one, because consecutive entries often have the same
/// second.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// The text of the last one from year to second, and its value without the zone.
    seconds: ([u8; 19], Micros),
    /// The last zone by name, its length, and its offset from UTC in seconds.
    zone: ([u8; 8], usize, i64),
    /// How many points in time had an unknown zone; they were taken as UTC.
    unknown_zones: u64,
}

impl Clock {
    /// How many points in time had an unknown zone; they were taken as UTC.
    #[must_use]
    pub fn unknown_zones(&self) -> u64 {
        self.unknown_zones
    }

    /// Parse `2025-11-30 21:10:20[.101][ UTC]`, or ISO 8601 with a `T` and an offset, at the beginning of a text.
    /// Returns the point in time and the number of bytes.
    pub fn read(&mut self, text: &[u8]) -> Option<(Micros, usize)> {
        let head: &[u8; 19] = text.first_chunk()?;
        let seconds = if *head == self.seconds.0 {
            self.seconds.1
        } else {
            let seconds = civil(head)?;
            self.seconds = (*head, seconds);
            seconds
        };
        let mut at = 19;
        let mut micros = 0;
        if let Some(b'.' | b',') = text.get(at)
            && text.get(at + 1).is_some_and(u8::is_ascii_digit)
        {
            let (fraction, length) = fraction(&text[at + 1..]);
            micros = fraction;
            at += 1 + length;
        }
        let (ahead, length) = self.zone(&text[at..]);
        Some((seconds + micros - ahead * SECOND, at + length))
    }

    /// Return the offset from UTC of the zone at the beginning of a text, in seconds, and its
    /// length.
    fn zone(&mut self, text: &[u8]) -> (i64, usize) {
        let (space, name) = match text {
            [b' ', name @ ..] => (1, name),
            _ => (0, text),
        };
        match name.first() {
            Some(b'+' | b'-') => {
                offset(name).map_or((0, 0), |(ahead, length)| (ahead, length + space))
            }
            Some(b'Z') if space == 0 => (0, 1),
            Some(b'A'..=b'Z') if space == 1 => {
                let length = name
                    .iter()
                    .position(|byte| !byte.is_ascii_uppercase())
                    .unwrap_or(name.len());
                // A severity or the like, not a zone.
                if !(2..=5).contains(&length)
                    || name.get(length) == Some(&b':') && is_severity(&name[..length])
                {
                    return (0, 0);
                }
                (self.named(&name[..length]), length + 1)
            }
            _ => (0, 0),
        }
    }

    fn named(&mut self, name: &[u8]) -> i64 {
        let (cached, length, ahead) = &self.zone;
        if cached[..*length] == *name {
            return *ahead;
        }
        let Some(ahead) = ahead_of_utc(name) else {
            self.unknown_zones += 1;
            return 0;
        };
        let mut cached = [0; 8];
        cached[..name.len()].copy_from_slice(name);
        self.zone = (cached, name.len(), ahead);
        ahead
    }
}

/// Parse seconds since 1970 with a fraction, as `%n` and wrappers write them: `1669575482.096`.
pub(crate) fn epoch(text: &[u8]) -> Option<(Micros, usize)> {
    let length = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    if !(9..=11).contains(&length) {
        return None;
    }
    let seconds = digits(&text[..length])?;
    match text.get(length) {
        Some(b'.') if text.get(length + 1).is_some_and(u8::is_ascii_digit) => {
            let (micros, more) = fraction(&text[length + 1..]);
            Some((seconds * SECOND + micros, length + 1 + more))
        }
        _ => Some((seconds * SECOND, length)),
    }
}

fn civil(text: &[u8; 19]) -> Option<Micros> {
    let marks = (text[4], text[7], text[10], text[13], text[16]);
    if !matches!(marks, (b'-', b'-', b' ' | b'T', b':', b':')) {
        return None;
    }
    let (year, month, day) = (
        digits(&text[..4])?,
        digits(&text[5..7])?,
        digits(&text[8..10])?,
    );
    let (hour, minute, second) = (
        digits(&text[11..13])?,
        digits(&text[14..16])?,
        digits(&text[17..])?,
    );
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 24
        || minute > 59
        || second > 60
    {
        return None;
    }
    Some((days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second) * SECOND)
}

/// Days since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    year.div_euclid(400) * 146_097 + day_of_era - 719_468
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |sum: i64, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + i64::from(byte - b'0'))
    })
}

/// Parse decimal digits as microseconds; return them and the number of digits.
fn fraction(text: &[u8]) -> (i64, usize) {
    let length = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let micros = (0..6).fold(0, |sum, place| {
        sum * 10
            + text[..length]
                .get(place)
                .map_or(0, |byte| i64::from(byte - b'0'))
    });
    (micros, length)
}

/// Parse `+05:30`, `-0800` or `+02`; return seconds and the length.
fn offset(text: &[u8]) -> Option<(i64, usize)> {
    let hours = digits(text.get(1..3)?)?;
    let (minutes, length) = match text.get(3..) {
        Some([b':', ten, one, ..]) if ten.is_ascii_digit() && one.is_ascii_digit() => {
            (digits(&[*ten, *one])?, 6)
        }
        Some([ten, one, ..]) if ten.is_ascii_digit() && one.is_ascii_digit() => {
            (digits(&[*ten, *one])?, 5)
        }
        _ => (0, 3),
    };
    let ahead = hours * 3_600 + minutes * 60;
    Some((if text[0] == b'-' { -ahead } else { ahead }, length))
}

fn is_severity(word: &[u8]) -> bool {
    matches!(
        word,
        b"LOG" | b"ERROR" | b"FATAL" | b"PANIC" | b"INFO" | b"HINT"
    )
}

/// Return a zone's offset from UTC in seconds. For names with several meanings, `PostgreSQL`'s default counts
/// (src/timezone/tznames/Default).
fn ahead_of_utc(name: &[u8]) -> Option<i64> {
    let minutes = match name {
        b"UTC" | b"GMT" | b"UCT" | b"WET" => 0,
        b"CET" | b"BST" | b"WEST" | b"MEZ" | b"WAT" => 60,
        b"CEST" | b"EET" | b"SAST" | b"CAT" | b"MESZ" => 120,
        b"EEST" | b"MSK" | b"EAT" | b"IDT" => 180,
        b"MSD" | b"GST" => 240,
        b"PKT" => 300,
        b"NPT" => 345,
        b"WIB" => 420,
        b"HKT" | b"SGT" | b"AWST" | b"PHT" | b"WITA" => 480,
        b"JST" | b"KST" | b"WIT" => 540,
        b"ACST" => 570,
        b"AEST" | b"ChST" => 600,
        b"ACDT" => 630,
        b"AEDT" => 660,
        b"NZST" => 720,
        b"NZDT" => 780,
        b"NDT" => -150,
        b"BRT" | b"ART" | b"ADT" => -180,
        b"NST" => -210,
        b"AST" | b"EDT" => -240,
        b"EST" | b"CDT" | b"COT" | b"PET" => -300,
        b"CST" | b"MDT" => -360,
        b"MST" | b"PDT" => -420,
        b"PST" | b"AKDT" => -480,
        b"AKST" => -540,
        b"HST" => -600,
        _ => return None,
    };
    Some(minutes * 60)
}

/// The month in which a log was last written: points in time without a year are not later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    year: i64,
    month: i64,
}

impl Written {
    /// Return the month, in UTC, of so many seconds after 1970 (Howard Hinnant, *`chrono`-compatible low-level date
    /// algorithms*).
    #[must_use]
    pub fn at(seconds: i64) -> Self {
        let days = seconds.div_euclid(86_400) + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        // Months are counted from March.
        let month = (5 * day + 2) / 153;
        Self {
            year: year + era * 400 + i64::from(month >= 10),
            month: if month < 10 { month + 3 } else { month - 9 },
        }
    }

    /// Return the year of a month, 1 to 12, that has none.
    pub(crate) fn year_of(self, month: i64) -> i64 {
        self.year - i64::from(month > self.month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Micros, usize)> {
        Clock::default().read(text.as_bytes())
    }

    #[test]
    fn a_point_in_time_is_read_with_its_zone() {
        let noon = 1_764_504_000 * SECOND;
        for (text, micros, length) in [
            ("2025-11-30 12:00:00 UTC [5]", noon, 23),
            ("2025-11-30 12:00:00.101 UTC [5]", noon + 101_000, 27),
            ("2025-11-30 12:00:00.123456789 GMT", noon + 123_456, 33),
            ("2025-11-30 13:00:00 CET::@", noon, 23),
            ("2025-11-30 07:00:00,5 EST x", noon + 500_000, 25),
            ("2025-11-30T12:00:00+00:00 host", noon, 25),
            ("2025-11-30T17:30:00.25+0530 host", noon + 250_000, 27),
            ("2025-11-30 09:00:00 -03 [1]", noon, 23),
            ("2025-11-30T12:00:00Z x", noon, 20),
            ("2025-11-30 12:00:00 [5] LOG:", noon, 19),
            ("2025-11-30 12:00:00 LOG:  x", noon, 19),
            ("2025-11-30 12:00:00", noon, 19),
        ] {
            assert_eq!(read(text), Some((micros, length)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "2025-11-30",
            "2025-13-30 12:00:00",
            "2025-11-30 12:61:00",
            "2025/11/30 12:00:00",
            "    -  -     :  :  ",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn an_unknown_zone_is_taken_as_utc_and_counted() {
        let mut clock = Clock::default();
        assert_eq!(
            clock.read(b"2025-11-30 12:00:00 XYZ x"),
            Some((1_764_504_000 * SECOND, 23))
        );
        assert_eq!(clock.unknown_zones(), 1);
    }

    #[test]
    fn the_last_second_is_remembered_with_another_fraction_and_zone() {
        let mut clock = Clock::default();
        let noon = 1_764_504_000 * SECOND;
        for (text, micros) in [
            ("2025-11-30 12:00:00.1 UTC", noon + 100_000),
            ("2025-11-30 12:00:00.2 UTC", noon + 200_000),
            ("2025-11-30 12:00:00.2 CET", noon + 200_000 - 3_600 * SECOND),
            ("2025-11-30 12:00:01.2 UTC", noon + 1_200_000),
        ] {
            assert_eq!(
                clock.read(text.as_bytes()).map(|found| found.0),
                Some(micros),
                "{text}"
            );
        }
    }

    #[test]
    fn leap_years_and_ends_of_years_are_right() {
        for (text, seconds) in [
            ("1970-01-01 00:00:00", 0),
            ("2000-02-29 00:00:00", 951_782_400),
            ("2024-12-31 23:59:59", 1_735_689_599),
            ("2025-01-01 00:00:00", 1_735_689_600),
        ] {
            let (micros, _) = read(text).expect("is a time");
            assert_eq!(micros, seconds * SECOND, "{text}");
        }
    }

    #[test]
    fn seconds_since_1970_are_read() {
        assert_eq!(
            epoch(b"1669575482.096 [1]"),
            Some((1_669_575_482_096_000, 14))
        );
        assert_eq!(epoch(b"1669575482"), Some((1_669_575_482_000_000, 10)));
        assert_eq!(epoch(b"12:00"), None);
    }

    #[test]
    fn a_month_without_a_year_is_not_in_the_future() {
        for (seconds, year, month) in [
            (0, 1970, 1),
            (-1, 1969, 12),
            (951_782_400, 2000, 2),
            (951_868_800, 2000, 3),
            (1_764_542_400, 2025, 11),
            (1_767_225_599, 2025, 12),
            (1_767_225_600, 2026, 1),
        ] {
            assert_eq!(Written::at(seconds), Written { year, month }, "{seconds}");
        }
        let january = Written::at(1_767_225_600);
        assert_eq!((january.year_of(1), january.year_of(12)), (2026, 2025));
    }
}
