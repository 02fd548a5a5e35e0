//! What one client keeps between its requests: captured values, cookies, and how far its login is.
//! Pure.

use super::fault::Fault;

/// Seconds since 1970 at which no cookie expires.
const NEVER_S: i64 = i64::MAX;

/// The state of one client.
#[derive(Debug, Default)]
pub(crate) struct Session {
    values: Vec<Option<Vec<u8>>>,
    cookies: Vec<Cookie>,
    pub(crate) login: Login,
}

/// How far a client's login is.
#[derive(Debug, Default)]
pub(crate) enum Login {
    /// This step is next.
    Next(usize),
    /// This step was sent.
    Sent(usize),
    Failed(Fault),
    #[default]
    Done,
}

#[derive(Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
}

impl Session {
    /// A client without cookies, whose values are the defaults.
    pub(crate) fn new(values: Vec<Option<Vec<u8>>>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }

    /// A captured value.
    pub(crate) fn value(&self, place: usize) -> Option<&[u8]> {
        self.values.get(place)?.as_deref()
    }

    /// Keep a captured value.
    pub(crate) fn capture(&mut self, place: usize, value: &[u8]) {
        if let Some(kept) = self.values.get_mut(place) {
            let kept = kept.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(value);
        }
    }

    pub(crate) fn has_cookies(&self) -> bool {
        !self.cookies.is_empty()
    }

    /// Append the cookies for a path, as the value of a header.
    pub(crate) fn write_cookies(&self, path: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        for cookie in self.cookies.iter().filter(|it| it.is_for(path)) {
            if out.len() > start {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
    }

    /// Keep or drop a cookie, as the value of a `Set-Cookie` header requests (RFC 6265). A load has
    /// one server, so domains do not count; a cookie without a path is for all paths.
    pub(crate) fn set_cookie(&mut self, header: &[u8], now_s: i64) {
        let mut parts = header.split(|&byte| byte == b';');
        let first = parts.next().unwrap_or_default();
        let Some(equals) = first.iter().position(|&byte| byte == b'=') else {
            return;
        };
        let (name, value) = (
            first[..equals].trim_ascii(),
            first[equals + 1..].trim_ascii(),
        );
        if name.is_empty() {
            return;
        }
        let (mut path, mut expires_s, mut has_age) = (&b"/"[..], NEVER_S, false);
        for part in parts {
            let mut halves = part.splitn(2, |&byte| byte == b'=');
            let attribute = halves.next().unwrap_or_default().trim_ascii();
            let value = halves.next().unwrap_or_default().trim_ascii();
            let text = str::from_utf8(value).unwrap_or_default();
            if attribute.eq_ignore_ascii_case(b"path") && value.starts_with(b"/") {
                path = value;
            } else if attribute.eq_ignore_ascii_case(b"max-age")
                && let Ok(age_s) = text.parse::<i64>()
            {
                expires_s = now_s.saturating_add(age_s);
                has_age = true;
            } else if attribute.eq_ignore_ascii_case(b"expires")
                && !has_age
                && let Some(at_s) = seconds_of_date(text)
            {
                expires_s = at_s;
            }
        }
        let place = self
            .cookies
            .iter()
            .position(|it| it.name == name && it.path == path);
        match place {
            _ if expires_s <= now_s => {
                if let Some(place) = place {
                    self.cookies.remove(place);
                }
            }
            Some(place) if self.cookies[place].value == value => {}
            Some(place) => self.cookies[place].value = value.to_vec(),
            None => self.cookies.push(Cookie {
                name: name.to_vec(),
                value: value.to_vec(),
                path: path.to_vec(),
            }),
        }
    }

    /// The values that no message may contain: whatever the server has given to this client.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &[u8]> {
        let values = self.values.iter().filter_map(Option::as_deref);
        values.chain(self.cookies.iter().map(|cookie| cookie.value.as_slice()))
    }
}

impl Cookie {
    /// Whether it is sent with requests for a path, which may have a query.
    fn is_for(&self, path: &[u8]) -> bool {
        let Some(rest) = path.strip_prefix(self.path.as_slice()) else {
            return false;
        };
        self.path.ends_with(b"/") || matches!(rest.first(), None | Some(b'/' | b'?'))
    }
}

/// Seconds since 1970 of a date such as `Thu, 01 Jan 1970 00:00:00 GMT`, with spaces or hyphens.
fn seconds_of_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let words: Vec<&str> = text
        .split([' ', '-', ',', ':'])
        .filter(|word| !word.is_empty())
        .collect();
    let [_, day, month, year, hour, minute, second, ..] = words.as_slice() else {
        return None;
    };
    let month = month.to_ascii_lowercase();
    let month = 1 + i64::try_from(MONTHS.iter().position(|&it| it == month)?).ok()?;
    let number = |text: &str| text.parse::<i64>().ok();
    let (day, hour, minute, second) = (
        number(day)?,
        number(hour)?,
        number(minute)?,
        number(second)?,
    );
    let year = match number(year)? {
        year @ 0..70 => 2000 + year,
        year @ 70..100 => 1900 + year,
        year => year,
    };
    // Days since 1970, by the civil calendar with years that begin in March.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 719_469;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_800_000_000;

    fn after(headers: &[&str], path: &str) -> String {
        let mut session = Session::default();
        for header in headers {
            session.set_cookie(header.as_bytes(), NOW_S);
        }
        let mut out = Vec::new();
        session.write_cookies(path.as_bytes(), &mut out);
        String::from_utf8(out).expect("is UTF-8")
    }

    #[test]
    fn cookies_are_kept_replaced_and_dropped() {
        assert_eq!(
            after(&["a=1; HttpOnly; Secure", "b = x=y "], "/"),
            "a=1; b=x=y"
        );
        assert_eq!(after(&["a=1", "a=2; Path=/"], "/"), "a=2");
        assert_eq!(after(&["a=1", "a=; Max-Age=0"], "/"), "");
        assert_eq!(after(&["a=1", "a=1; Max-Age=60"], "/"), "a=1");
        let past = "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        assert_eq!(after(&["a=1", past], "/"), "");
        assert_eq!(
            after(&["a=1; Expires=Fri, 01-Jan-2100 00:00:00 GMT"], "/"),
            "a=1"
        );
        assert_eq!(
            after(
                &["a=1; max-age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
                "/"
            ),
            "a=1"
        );
        assert_eq!(after(&["nothing", "=x", ""], "/"), "");
    }

    #[test]
    fn cookies_are_sent_only_below_their_path() {
        let found = |path| after(&["a=1; Path=/shop", "b=2; Path=/shop/", "c=3"], path);
        assert_eq!(found("/shop"), "a=1; c=3");
        assert_eq!(found("/shop?x=1"), "a=1; c=3");
        assert_eq!(found("/shop/cart"), "a=1; b=2; c=3");
        assert_eq!(found("/shopping"), "c=3");
    }

    #[test]
    fn dates_are_seconds_since_1970() {
        assert_eq!(seconds_of_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(
            seconds_of_date("Tue, 29 Feb 2028 12:34:56 GMT"),
            Some(1_835_440_496)
        );
        assert_eq!(
            seconds_of_date("Sunday, 06-Nov-94 08:49:37 GMT"),
            Some(784_111_777)
        );
        assert_eq!(seconds_of_date("tomorrow"), None);
    }

    #[test]
    fn captured_values_replace_the_default() {
        let mut session = Session::new(vec![None, Some(b"x".to_vec())]);
        assert_eq!(
            (session.value(0), session.value(1)),
            (None, Some(&b"x"[..]))
        );
        session.capture(0, b"long");
        session.capture(0, b"b");
        session.capture(1, b"");
        assert_eq!(
            (session.value(0), session.value(1)),
            (Some(&b"b"[..]), Some(&b""[..]))
        );
        session.set_cookie(b"s=1", NOW_S);
        let secrets: Vec<_> = session.secrets().collect();
        assert_eq!(secrets, [&b"b"[..], b"", b"1"]);
    }
}
