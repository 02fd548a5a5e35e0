//! Parses folded stacks: `root;frame;leaf 17` per line. Blocks of lines are read in parallel.

use std::str;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memchr::{memchr, memchr_iter, memrchr};

use crate::error::ReadError;
use crate::profile::{Folder, Limits, Measure, Stacks};
use crate::side_by_side::{processors, side_by_side};

/// Bytes per block: small enough that threads end together, large enough that taking one costs nothing.
const BLOCK: usize = 4 << 20;
/// A number with this many digits always fits into 64 bits.
const DIGITS: usize = 18;

/// The lines of one block, in order. Stacks are not deduplicated.
#[derive(Debug)]
pub struct Folded {
    /// All stacks, end to end.
    pub texts: String,
    /// Where each stack begins, and where the last one ends.
    pub ends: Vec<i64>,
    /// The value of each stack; never zero.
    pub values: Vec<i64>,
}

impl Folded {
    fn new() -> Self {
        Self {
            texts: String::new(),
            ends: vec![0],
            values: Vec::new(),
        }
    }

    fn keep(&mut self, stack: &str, value: i64) {
        if value != 0 {
            self.texts.push_str(stack);
            // Memory ends long before these numbers do.
            self.ends
                .push(i64::try_from(self.texts.len()).unwrap_or(i64::MAX));
            self.values.push(value);
        }
    }

    /// Return stacks and values.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, i64)> + Clone {
        let place = |end: i64| usize::try_from(end).unwrap_or(usize::MAX);
        self.ends
            .windows(2)
            .zip(&self.values)
            .map(move |(ends, value)| (&self.texts[place(ends[0])..place(ends[1])], *value))
    }
}

pub(crate) fn read(bytes: &[u8], limits: Limits) -> Result<Stacks, ReadError> {
    let mut stacks = Stacks::new(vec![Measure::new("samples", "samples")], false, limits);
    stacks.folded = read_blocks(bytes, limits, BLOCK, processors())?;
    Ok(stacks)
}

/// Parse blocks of about this many bytes on this many threads. The result, and the first error, are
/// the same as reading line by line.
fn read_blocks(
    bytes: &[u8],
    limits: Limits,
    block: usize,
    threads: usize,
) -> Result<Vec<Folded>, ReadError> {
    let blocks = cut(bytes, block);
    let found: Mutex<Vec<(usize, Folded, Option<Bad>)>> = Mutex::new(Vec::new());
    let (next, kept, over) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicBool::new(false),
    );
    side_by_side(0..threads.min(blocks.len()), |_| {
        // Blocks are taken in order, and a taken block is always read, so all blocks before the first error are read.
        while !over.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some((start, end)) = blocks.get(place) else {
                break;
            };
            let (folded, bad) = read_block(&bytes[*start..*end], limits);
            let all = kept.fetch_add(folded.texts.len(), Ordering::Relaxed) + folded.texts.len();
            if bad.is_some() || all > limits.stacks {
                over.store(true, Ordering::Relaxed);
            }
            if let Ok(mut found) = found.lock() {
                found.push((place, folded, bad));
            }
        }
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_unstable_by_key(|(place, _, _)| *place);
    let mut all = 0;
    for (place, folded, bad) in &found {
        all += folded.texts.len();
        if all > limits.stacks {
            return Err(limits.too_much());
        }
        if let Some(bad) = bad {
            let before = memchr_iter(b'\n', &bytes[..blocks[*place].0]).count();
            return Err(ReadError::line(
                before + bad.line,
                format!(
                    "\"{}\" does not end with a space and a whole number",
                    bad.shown
                ),
            ));
        }
    }
    Ok(found
        .into_iter()
        .map(|(_, folded, _)| folded)
        .filter(|folded| !folded.values.is_empty())
        .collect())
}

/// Return the ranges of blocks of about this many bytes, each ending with a line.
fn cut(bytes: &[u8], block: usize) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let most = bytes.len().min(start.saturating_add(block.max(1)));
        let end = memchr(b'\n', &bytes[most - 1..]).map_or(bytes.len(), |line| most + line);
        blocks.push((start, end));
        start = end;
    }
    blocks
}

/// An invalid line: its number in its block, from 1, and its beginning.
struct Bad {
    line: usize,
    shown: String,
}

/// Parse lines up to the first invalid one, or until they exceed the limit.
fn read_block(bytes: &[u8], limits: Limits) -> (Folded, Option<Bad>) {
    let mut kept = Folded::new();
    kept.texts.reserve(bytes.len().min(limits.stacks));
    let mut folder = Folder::new(limits);
    for (number, line) in lines(bytes).enumerate() {
        if let Some((stack, value)) = read_plain(line, limits) {
            kept.keep(stack, value);
        } else {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            if line.is_empty() || line.starts_with("# ") {
                continue;
            }
            let Some((stack, value)) = split(line) else {
                let bad = Bad {
                    line: number + 1,
                    shown: line.chars().take(60).collect(),
                };
                return (kept, Some(bad));
            };
            folder.clear();
            stack.split(';').for_each(|frame| folder.push(frame, false));
            kept.keep(folder.text(), value);
        }
        if kept.texts.len() > limits.stacks {
            break;
        }
    }
    (kept, None)
}

/// Parse a line whose stack needs no cleaning or cutting. Nearly all are like that, and this tests
/// many of their bytes at once.
fn read_plain(line: &[u8], limits: Limits) -> Option<(&str, i64)> {
    let space = memrchr(b' ', line)?;
    let (stack, digits) = (&line[..space], &line[space + 1..]);
    if digits.is_empty() || digits.len() > DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    let (first, last) = (*stack.first()?, *stack.last()?);
    let edge = |byte| byte == b' ' || byte == b';';
    if edge(first) || edge(last) || first == b'#' {
        return None;
    }
    // Without an early exit each of these tests compiles to vector instructions.
    let printed = stack
        .iter()
        .fold(true, |all, byte| all & (b' '..0x7f).contains(byte));
    // An empty frame, or one with a space at an end: no `;` is next to another, or to a space.
    let ragged = stack.iter().zip(&stack[1..]).fold(0, |any, (one, next)| {
        let (end, edge) = (|byte| u8::from(byte == b';'), |byte| u8::from(edge(byte)));
        any | (end(*one) & edge(*next)) | (edge(*one) & end(*next))
    });
    if !printed || ragged != 0 {
        return None;
    }
    if stack.len() > limits.name || stack.len() >= limits.depth {
        let mut frames = stack.split(|byte| *byte == b';');
        let depth = frames.clone().count();
        if depth > limits.depth || frames.any(|frame| frame.len() > limits.name) {
            return None;
        }
    }
    Some((str::from_utf8(stack).ok()?, value))
}

pub(crate) fn looks_like(start: &[u8]) -> bool {
    let mut known = 0;
    let mut whole = start;
    // The last line may be truncated, unless it is the only one.
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
            // One invalid line among valid ones is a damaged file of this format, and is reported
            // as such.
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

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: [&str; 22] = [
        "main;work 7",
        "main;work;deeper still 3",
        "# a comment 4",
        "#no comment 4",
        "",
        "  main;spaces around ; here  12  ",
        "main;;empty 1",
        ";first 2",
        "last; 3",
        "main;tab\there 4",
        "main;\u{fc}ml\u{e4}ut 5",
        "main;cr 6\r",
        "zero 0",
        "plus +8",
        "zeros 00000000000000000000009",
        "a 9223372036854775807",
        "; 4",
        "abcdefghijklmnopqrstuvwxyz;b 3",
        "a;b;c;d;e;f;g;h;i;j;k 2",
        "a; b 1",
        "a ;b 1",
        "x 1",
    ];

    fn one_by_one(bytes: &[u8], limits: Limits) -> Result<Vec<(String, i64)>, ReadError> {
        let mut folder = Folder::new(limits);
        let (mut found, mut all) = (Vec::new(), 0);
        for (number, line) in lines(bytes).enumerate() {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            if line.is_empty() || line.starts_with("# ") {
                continue;
            }
            let (stack, value) = split(line).ok_or_else(|| {
                let shown: String = line.chars().take(60).collect();
                let problem = format!("\"{shown}\" does not end with a space and a whole number");
                ReadError::line(number + 1, problem)
            })?;
            folder.clear();
            stack.split(';').for_each(|frame| folder.push(frame, false));
            if value != 0 {
                all += folder.text().len();
                found.push((folder.text().to_owned(), value));
            }
            if all > limits.stacks {
                return Err(limits.too_much());
            }
        }
        Ok(found)
    }

    fn in_blocks(
        bytes: &[u8],
        limits: Limits,
        block: usize,
        threads: usize,
    ) -> Result<Vec<(String, i64)>, ReadError> {
        let blocks = read_blocks(bytes, limits, block, threads)?;
        Ok(blocks
            .iter()
            .flat_map(Folded::iter)
            .map(|(stack, value)| (stack.to_owned(), value))
            .collect())
    }

    #[test]
    fn blocks_are_read_as_lines_are_one_by_one() {
        let limits = Limits {
            name: 20,
            depth: 8,
            ..Limits::default()
        };
        let odd = ODD.join("\n");
        let texts = [
            odd.clone(),
            odd.clone() + "\n",
            "\n\n".to_owned(),
            odd.clone() + "\nno number\n" + &odd + "\nnone again",
        ];
        let mut texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
        texts.push(b"main;\xff\xfe 3\nx 1".to_vec());
        for text in &texts {
            for most in [10, 100, 1_000] {
                let limits = Limits {
                    stacks: most,
                    ..limits
                };
                let wanted = one_by_one(text, limits);
                for block in 1..text.len().min(90) {
                    for threads in 1..4 {
                        assert_eq!(in_blocks(text, limits, block, threads), wanted, "{block}");
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_end_with_lines_and_leave_nothing_out() {
        let text = b"one 1\ntwo 2\nthree 3\n\nlast 4";
        for block in 1..40 {
            let blocks = cut(text, block);
            let joined: Vec<u8> = blocks
                .iter()
                .flat_map(|(start, end)| text[*start..*end].to_vec())
                .collect();
            assert_eq!(joined, text);
            let inner = &blocks[..blocks.len() - 1];
            assert!(inner.iter().all(|(_, end)| text[end - 1] == b'\n'));
        }
    }
}
