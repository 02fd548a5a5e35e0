//! Encodes several rows in one text: array literals, and lines of COPY's text format.

/// Encode a one-dimensional array. Every value is quoted, so that none is taken for `NULL`.
pub(crate) fn array_literal<'a>(values: impl Iterator<Item = Option<&'a str>>) -> String {
    let mut text = String::from("{");
    for (number, value) in values.enumerate() {
        if number > 0 {
            text.push(',');
        }
        let Some(value) = value else {
            text.push_str("NULL");
            continue;
        };
        text.push('"');
        for character in value.chars() {
            if matches!(character, '"' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text.push('"');
    }
    text.push('}');
    text
}

/// Append one row as a line of COPY's text format.
pub(crate) fn copy_line<'a>(values: impl Iterator<Item = Option<&'a str>>, line: &mut Vec<u8>) {
    for (number, value) in values.enumerate() {
        if number > 0 {
            line.push(b'\t');
        }
        let Some(value) = value else {
            line.extend_from_slice(b"\\N");
            continue;
        };
        for byte in value.bytes() {
            match byte {
                b'\\' => line.extend_from_slice(b"\\\\"),
                b'\t' => line.extend_from_slice(b"\\t"),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                byte => line.push(byte),
            }
        }
    }
    line.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_quote_what_would_be_read_otherwise() {
        let values = [Some("a"), None, Some("NULL"), Some("\"\\"), Some("")];
        assert_eq!(
            array_literal(values.into_iter()),
            r#"{"a",NULL,"NULL","\"\\",""}"#
        );
        assert_eq!(array_literal(std::iter::empty()), "{}");
    }

    #[test]
    fn lines_escape_what_separates() {
        let mut line = Vec::new();
        copy_line(
            [Some("a\tb"), None, Some("c\\N\nd\r")].into_iter(),
            &mut line,
        );
        assert_eq!(line, b"a\\tb\t\\N\tc\\\\N\\nd\\r\n");
    }
}
