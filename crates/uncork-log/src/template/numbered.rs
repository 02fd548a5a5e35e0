//! Names with digits: what the fingerprint of `PostgreSQL`'s grammar leaves out, but tells templates apart.

use crate::template::skeleton::NAME;

/// Words after which a statement is about a cursor, a savepoint or a prepared statement that begins or ends. Drivers
/// number them: Django declares `"_django_curs_139715399527296_sync_149"`, and the next cursor is `..._150`.
const TEMPORARY: [&[u8]; 7] = [
    b"close",
    b"fetch",
    b"move",
    b"savepoint",
    b"release",
    b"rollback",
    b"deallocate",
];

/// Return the names with digits of a template, each once and in ascending order. The fingerprint ignores digits in
/// table names, so that partitions are one; but `orders_2025` and `orders_2026` are two tables. Names that a driver
/// numbers are left out.
#[must_use]
pub fn numbered_names(template: &[u8]) -> Vec<&[u8]> {
    let mut names = Vec::new();
    let mut at = begin(template);
    while let Some(byte) = template.get(at) {
        if !begins_name(*byte) {
            at += 1;
            continue;
        }
        let rest = &template[at..];
        let end = rest.iter().position(|byte| !in_name(*byte));
        let name = &rest[..end.unwrap_or(rest.len())];
        if name.iter().any(u8::is_ascii_digit) {
            names.push(name);
        }
        at += name.len();
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Return where the names begin that count: behind the name of a cursor that is declared; nowhere in a statement about
/// something that a driver numbers.
fn begin(template: &[u8]) -> usize {
    let after = |word: &[u8]| {
        let rest = template.strip_prefix(word)?;
        let ends = !rest.first().is_some_and(|byte| is_word(*byte));
        ends.then_some(rest)
    };
    if TEMPORARY.iter().any(|word| after(word).is_some()) {
        return template.len();
    }
    let Some(rest) = after(b"declare") else {
        return 0;
    };
    let name = rest.trim_ascii_start();
    let length = match name {
        [b'"', quoted @ ..] => quoted
            .iter()
            .position(|byte| *byte == b'"')
            .map(|at| at + 2),
        _ => name.iter().position(u8::is_ascii_whitespace),
    };
    template.len() - name.len() + length.unwrap_or(name.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn begins_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'_' | 0x80..)
}

fn in_name(byte: u8) -> bool {
    NAME[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(template: &str) -> Vec<String> {
        numbered_names(template.as_bytes())
            .into_iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    #[test]
    fn names_with_digits_are_found_once_and_in_order() {
        for (template, expected) in [
            ("select a from t", &[][..]),
            (
                "select a1, b from t_17 where a1 = ? and \"ü2\" = $1",
                &["a1", "t_17", "ü2"],
            ),
            ("select 1 from 2t3", &["t3"]),
            ("A1b2 x$1 _9", &["_9", "b2", "x$1"]),
            ("execute s1", &["s1"]),
            ("released7", &["released7"]),
            ("", &[]),
        ] {
            assert_eq!(names(template), expected, "{template}");
        }
    }

    #[test]
    fn what_a_driver_numbers_is_left_out() {
        for template in [
            "savepoint s1_x1",
            "rollback to savepoint s1",
            "close \"c_1\"",
            "fetch forward ? from c_1",
            "deallocate",
            "declare \"c 1\" cursor",
            "declare c_1",
            "declare \"c_1",
            "declare",
        ] {
            assert_eq!(names(template), [""; 0], "{template}");
        }
        let declared = "declare \"c_1\" cursor for select a from t_17";
        assert_eq!(names(declared), ["t_17"]);
        assert_eq!(names("declare c_1 cursor for select b2"), ["b2"]);
    }
}
