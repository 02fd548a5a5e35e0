//! The statement behind `EXECUTE name`, from the detail that the server logs with it.

/// Return the statement of `prepare: PREPARE name (types) AS statement`. `None` if the detail is another one.
pub(crate) fn prepared(detail: &[u8]) -> Option<&[u8]> {
    let rest = detail.strip_prefix(b"prepare: ")?;
    let rest = word(rest.trim_ascii_start(), b"PREPARE")?.trim_ascii_start();
    let rest = name(rest)?.trim_ascii_start();
    let rest = match rest.first() {
        Some(b'(') => types(rest)?.trim_ascii_start(),
        _ => rest,
    };
    Some(word(rest, b"AS")?.trim_ascii_start())
}

/// Remove a keyword and check that it ends there.
fn word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (first, rest) = text.split_at_checked(word.len())?;
    let ends = rest.first().is_some_and(u8::is_ascii_whitespace);
    (ends && first.eq_ignore_ascii_case(word)).then_some(rest)
}

/// Remove a name, which may be quoted.
fn name(text: &[u8]) -> Option<&[u8]> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let end = text
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || *byte == b'(')?;
        return (end > 0).then_some(&text[end..]);
    };
    loop {
        rest = &rest[memchr::memchr(b'"', rest)? + 1..];
        match rest.strip_prefix(b"\"") {
            Some(doubled) => rest = doubled,
            None => return Some(rest),
        }
    }
}

/// Remove a list of types in parentheses; types have parentheses of their own, as in `numeric(10, 2)`.
fn types(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_u32;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(&text[at + 1..]),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_stands_after_as() {
        for (detail, statement) in [
            ("prepare: PREPARE p AS SELECT 1", Some("SELECT 1")),
            (
                "prepare: prepare as (int, numeric(10, 2)) as\n\tUPDATE t SET a = $1",
                Some("UPDATE t SET a = $1"),
            ),
            (
                "prepare: PREPARE \"a \"\" as\"(int) AS SELECT $1",
                Some("SELECT $1"),
            ),
            ("prepare: PREPARE p(int) AS SELECT $1", Some("SELECT $1")),
            ("parameters: $1 = '5'", None),
            ("prepare: BEGIN; PREPARE p AS SELECT 1", None),
            ("prepare: PREPARE p (int", None),
            ("prepare: PREPARE", None),
        ] {
            let found = prepared(detail.as_bytes());
            assert_eq!(found, statement.map(str::as_bytes), "{detail}");
        }
    }
}
