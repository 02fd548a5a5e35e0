//! Folded stacks: `root;frame;leaf 17` a line.

use memchr::memchr_iter;

use crate::error::ReadError;
use crate::profile::{Folder, Limits, Measure, Stacks};

pub(crate) fn read(bytes: &[u8], limits: Limits) -> Result<Stacks, ReadError> {
    let mut stacks = Stacks::new(vec![Measure::new("samples", "samples")], false, limits);
    stacks.reserve(bytes.len());
    let mut folder = Folder::new(limits);
    for (number, line) in lines(bytes).enumerate() {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if line.is_empty() || line.starts_with("# ") {
            continue;
        }
        let (stack, value) = split(line).ok_or_else(|| {
            let shown: String = line.chars().take(60).collect();
            ReadError::line(
                number + 1,
                format!("\"{shown}\" does not end with a space and a whole number"),
            )
        })?;
        if plain(stack, limits) {
            stacks.keep_folded(stack, value)?;
        } else {
            folder.clear();
            stack.split(';').for_each(|frame| folder.push(frame, false));
            stacks.keep_folded(folder.text(), value)?;
        }
    }
    Ok(stacks)
}

/// Says whether a stack can be kept as it is: nothing in it would be cleaned, or cut.
fn plain(stack: &str, limits: Limits) -> bool {
    let bytes = stack.as_bytes();
    // Without a way out in the middle this is done for many bytes at once.
    let printed = bytes
        .iter()
        .fold(true, |all, byte| all & (b' '..0x7f).contains(byte));
    if !printed {
        return false;
    }
    let (mut start, mut frames) = (0, 0);
    for end in memchr_iter(b';', bytes).chain([bytes.len()]) {
        let length = end - start;
        frames += 1;
        if length == 0 || length > limits.name || frames > limits.depth {
            return false;
        }
        if bytes[start] == b' ' || bytes[end - 1] == b' ' {
            return false;
        }
        start = end + 1;
    }
    true
}

pub(crate) fn looks_like(start: &[u8]) -> bool {
    let mut known = 0;
    let mut whole = start;
    // The last line may have been cut off, unless it is the only one.
    if let Some(end) = memchr::memrchr(b'\n', start) {
        whole = &start[..end];
    }
    for line in lines(whole) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if line.is_empty() || line.starts_with("# ") {
            continue;
        }
        if split(line).is_none() {
            // One bad line among good ones is a broken file of this format, and is told as such.
            return known > 0;
        }
        known += 1;
    }
    known > 0
}

fn split(line: &str) -> Option<(&str, i64)> {
    let (stack, value) = line.rsplit_once(' ')?;
    let value = value.parse::<i64>().ok().filter(|value| *value >= 0)?;
    let stack = stack.trim();
    (!stack.is_empty()).then_some((stack, value))
}

pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr_iter(b'\n', bytes)
        .chain((bytes.last() != Some(&b'\n')).then_some(bytes.len()))
        .map(move |end| {
            let line = &bytes[start..end];
            start = end + 1;
            line
        })
}
