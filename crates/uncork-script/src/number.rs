//! Formats numbers as pgbench does.

/// All two-digit numbers, one after the other.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Append `number` in decimal; allocates only if `buffer` must grow.
pub fn write_integer(buffer: &mut Vec<u8>, number: i64) {
    // "-9223372036854775808" has 20 characters.
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    while rest >= 100 {
        let pair = usize::try_from(rest % 100).unwrap_or(0) * 2;
        rest /= 100;
        start -= 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if rest >= 10 {
        let pair = usize::try_from(rest).unwrap_or(0) * 2;
        start -= 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest).unwrap_or(0);
    }
    if number < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    buffer.extend_from_slice(&digits[start..]);
}

/// Append `number` with 15 significant digits, like C's `%.15g`; others are `NaN`, `Infinity` or
/// `-Infinity`, like PostgreSQL's own printf.
pub fn write_double(buffer: &mut Vec<u8>, number: f64) {
    const SIGNIFICANT: i32 = 15;
    if number.is_nan() {
        buffer.extend_from_slice(b"NaN");
        return;
    }
    if number.is_infinite() {
        let text: &[u8] = if number > 0.0 {
            b"Infinity"
        } else {
            b"-Infinity"
        };
        buffer.extend_from_slice(text);
        return;
    }
    // "d.dddddddddddddde-xxx": correctly rounded, so digits and exponent equal those of `%.15g`.
    let scientific = format!("{number:.14e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa
        .chars()
        .filter(|&character| character != '.')
        .collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        shortened => shortened,
    };
    buffer.extend_from_slice(sign.as_bytes());
    if !(-4..SIGNIFICANT).contains(&exponent) {
        buffer.extend_from_slice(&digits.as_bytes()[..1]);
        if digits.len() > 1 {
            buffer.push(b'.');
            buffer.extend_from_slice(&digits.as_bytes()[1..]);
        }
        buffer.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            buffer.push(b'0');
        }
        write_integer(buffer, i64::from(exponent.abs()));
    } else if let Ok(whole) = usize::try_from(exponent + 1) {
        if whole == 0 {
            buffer.push(b'0');
        } else {
            buffer.extend_from_slice(&digits.as_bytes()[..whole.min(digits.len())]);
            buffer.resize(buffer.len() + whole.saturating_sub(digits.len()), b'0');
        }
        if digits.len() > whole {
            buffer.push(b'.');
            buffer.extend_from_slice(&digits.as_bytes()[whole..]);
        }
    } else {
        buffer.extend_from_slice(b"0.");
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        buffer.resize(buffer.len() + zeros, b'0');
        buffer.extend_from_slice(digits.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(number: i64) -> String {
        let mut buffer = Vec::new();
        write_integer(&mut buffer, number);
        String::from_utf8(buffer).unwrap()
    }

    fn double(number: f64) -> String {
        let mut buffer = Vec::new();
        write_double(&mut buffer, number);
        String::from_utf8(buffer).unwrap()
    }

    #[test]
    fn integers_are_written_like_the_standard_library_writes_them() {
        let mut number: i64 = 1;
        for _ in 0..63 {
            for near in [number.wrapping_sub(1), number, number.wrapping_neg()] {
                assert_eq!(integer(near), near.to_string());
            }
            number = number.wrapping_mul(2);
        }
        for near in [
            0,
            9,
            10,
            99,
            100,
            101,
            999,
            1000,
            -1,
            -10,
            i64::MAX,
            i64::MIN,
        ] {
            assert_eq!(integer(near), near.to_string());
        }
    }

    #[test]
    fn doubles_have_fifteen_significant_digits() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-54.21e-2, "-0.5421"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333333333"),
            (100.0, "100"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (8.507_059_173_023_46e37, "8.50705917302346e+37"),
            (99_999.999_999_999_99, "100000"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, text) in cases {
            assert_eq!(double(number), text);
        }
    }
}
