//! Stacks as a call tree: totals of frames, kernel entries, and what is too small to draw.

use std::collections::HashMap;

use ahash::RandomState;

use memchr::{memchr_iter, memrchr};

use crate::profile::KERNEL;
use crate::side_by_side::side_by_side;

const NONE: u32 = u32::MAX;

/// The value in one frame itself, and including its callees; each now and before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTotals<'a> {
    /// Its name, without the kernel's suffix.
    pub name: &'a str,
    /// Whether it is a kernel frame.
    pub kernel: bool,
    /// The value in the frame itself.
    pub own: [i64; 2],
    /// The value in the frame and all below it; a recursive frame counts once.
    pub total: [i64; 2],
}

/// A kernel entry: the frame that called the kernel, and the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The last frame before the kernel; empty if there is none.
    pub user: &'a str,
    /// The frame that most often called it, because the last frame is often a library's wrapper.
    pub caller: &'a str,
    /// The kernel's first frame that is not part of the entry itself, without its suffix.
    pub kernel: &'a str,
    /// The value spent there.
    pub value: i64,
}

/// Stacks as a call tree. Every value is a pair: now, and before.
///
/// No tree is built: of millions of different stacks nearly all nodes would be too small to draw, and sums need none.
/// Each stack is a list of frame numbers; the part to draw is found from the root on.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    /// Names of frames, in the order of first appearance.
    pub(crate) names: Vec<&'a str>,
    /// Stacks in order, in as many parts as threads read them.
    pub(crate) parts: Vec<Part>,
}

/// Stacks with their frames in contiguous memory.
#[derive(Debug)]
pub(crate) struct Part {
    frames: Vec<u32>,
    /// Where the frames of each stack begin, and where the last stack's end.
    ends: Vec<usize>,
    /// The values of each stack, now and before.
    pub(crate) values: Vec<[i64; 2]>,
}

impl Part {
    /// Return the frame numbers of a stack, from the root on; there is at least one.
    pub(crate) fn stack(&self, place: usize) -> &[u32] {
        &self.frames[self.ends[place]..self.ends[place + 1]]
    }

    /// Return stacks and their values, in order.
    fn iter(&self) -> impl Iterator<Item = (&[u32], [i64; 2])> {
        let values = self.values.iter().enumerate();
        values.map(|(place, values)| (self.stack(place), *values))
    }
}

impl<'a> Tree<'a> {
    /// Read stacks, each with its value now, and before.
    pub fn new<I>(stacks: I) -> Self
    where
        I: IntoIterator<Item = (&'a str, i64, i64)> + Send,
    {
        Self::joined([stacks])
    }

    /// Read stacks that come in parts, each part on a thread of its own. The result does not depend
    /// on the division.
    pub fn joined<I>(parts: impl IntoIterator<Item = I>) -> Self
    where
        I: IntoIterator<Item = (&'a str, i64, i64)> + Send,
    {
        let mut tree = Self::default();
        let mut known: HashMap<&'a str, u32, RandomState> = HashMap::default();
        for (names, mut part) in side_by_side(parts, number_frames) {
            let numbers: Vec<u32> = names
                .iter()
                .map(|name| numbered(&mut known, &mut tree.names, name))
                .collect();
            // The numbers of the first part stay.
            if !tree.parts.is_empty() {
                for frame in &mut part.frames {
                    *frame = numbers[*frame as usize];
                }
            }
            tree.parts.push(part);
        }
        tree
    }

    /// Return the total, now and before.
    #[must_use]
    pub fn total(&self) -> [i64; 2] {
        let values = self.parts.iter().flat_map(|part| &part.values);
        values.fold([0, 0], |sum, values| plus(sum, *values))
    }

    /// Return the value with a kernel frame as leaf, now and before.
    #[must_use]
    pub fn in_kernel(&self) -> [i64; 2] {
        let kernel = self.kernel();
        let mut sum = [0, 0];
        for (stack, values) in self.parts.iter().flat_map(Part::iter) {
            if kernel[leaf(stack)] {
                add(&mut sum, values);
            }
        }
        sum
    }

    /// Return the totals of every frame, in the order of first appearance.
    #[must_use]
    pub fn frames(&self) -> Vec<FrameTotals<'a>> {
        let mut found: Vec<FrameTotals<'a>> = self
            .names
            .iter()
            .map(|name| FrameTotals {
                name: name.strip_suffix(KERNEL).unwrap_or(name),
                kernel: name.ends_with(KERNEL),
                own: [0, 0],
                total: [0, 0],
            })
            .collect();
        let sums = side_by_side(&self.parts, |part| self.frames_of(part));
        for sums in sums {
            for (frame, (own, total)) in found.iter_mut().zip(sums) {
                add(&mut frame.own, own);
                add(&mut frame.total, total);
            }
        }
        found
    }

    /// Return for each frame its own value, and its value including callees.
    fn frames_of(&self, part: &Part) -> Vec<([i64; 2], [i64; 2])> {
        let mut found = vec![([0, 0], [0, 0]); self.names.len()];
        // The last stack in which each frame was counted, so that a recursive frame counts once.
        let mut counted = vec![usize::MAX; self.names.len()];
        for (place, (stack, values)) in part.iter().enumerate() {
            for frame in stack {
                let frame = *frame as usize;
                if counted[frame] != place {
                    counted[frame] = place;
                    add(&mut found[frame].1, values);
                }
            }
            add(&mut found[leaf(stack)].0, values);
        }
        found
    }

    /// Return the kernel entries, the greatest first.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'a>> {
        let kernel = self.kernel();
        if !kernel.contains(&true) {
            return Vec::new();
        }
        let way: Vec<bool> = self.names.iter().map(|name| is_way(name)).collect();
        let mut sums: HashMap<(u32, u32, u32), i64, RandomState> = HashMap::default();
        for (stack, values) in self.parts.iter().flat_map(Part::iter) {
            let (mut user, mut caller, mut asked) = (NONE, NONE, NONE);
            for frame in stack {
                if !kernel[*frame as usize] {
                    (user, caller, asked) = (*frame, user, NONE);
                } else if asked == NONE || way[asked as usize] {
                    asked = *frame;
                }
            }
            if asked != NONE && values[0] != 0 {
                *sums.entry((user, asked, caller)).or_default() += values[0];
            }
        }
        let mut sums: Vec<((u32, u32, u32), i64)> = sums.into_iter().collect();
        // Entries of the same kind are adjacent, the most frequent caller first.
        sums.sort_by_key(|((user, asked, caller), value)| (*user, *asked, -*value, *caller));
        let name = |frame: u32| self.names.get(frame as usize).copied().unwrap_or_default();
        let mut found: Vec<Entry<'a>> = sums
            .chunk_by(|((user, asked, _), _), ((next, then, _), _)| user == next && asked == then)
            .map(|way| {
                let (user, asked, caller) = way[0].0;
                Entry {
                    user: name(user),
                    caller: name(caller),
                    kernel: name(asked).trim_end_matches(KERNEL),
                    value: way.iter().map(|(_, value)| value).sum(),
                }
            })
            .collect();
        found.sort_by(|one, other| {
            (other.value, one.kernel, one.user).cmp(&(one.value, other.kernel, other.user))
        });
        found
    }

    fn kernel(&self) -> Vec<bool> {
        self.names
            .iter()
            .map(|name| name.ends_with(KERNEL))
            .collect()
    }
}

/// Read a part of the stacks, with frame numbers of its own.
fn number_frames<'a>(
    stacks: impl IntoIterator<Item = (&'a str, i64, i64)>,
) -> (Vec<&'a str>, Part) {
    let (mut names, mut known) = (Vec::new(), HashMap::default());
    let (mut frames, mut ends, mut values) = (Vec::new(), vec![0], Vec::new());
    let mut last = "";
    for (text, now, before) in stacks {
        // Lines are often sorted: the common beginning with the previous stack is known already.
        let alike = &text.as_bytes()[..alike(last.as_bytes(), text.as_bytes())];
        let mut from = 0;
        if let Some(end) = memrchr(b';', alike) {
            from = end + 1;
            let start = ends[values.len() - 1];
            let shared = memchr_iter(b';', alike).count();
            frames.extend_from_within(start..start + shared);
        }
        let rest = &text.as_bytes()[from..];
        for end in memchr_iter(b';', rest).chain([rest.len()]) {
            let end = text.len() - rest.len() + end;
            frames.push(numbered(&mut known, &mut names, &text[from..end]));
            from = end + 1;
        }
        ends.push(frames.len());
        values.push([now, before]);
        last = text;
    }
    let part = Part {
        frames,
        ends,
        values,
    };
    (names, part)
}

/// Return the number of a name, a new one if it is unknown.
fn numbered<'a>(
    known: &mut HashMap<&'a str, u32, RandomState>,
    names: &mut Vec<&'a str>,
    name: &'a str,
) -> u32 {
    *known.entry(name).or_insert_with(|| {
        names.push(name);
        u32::try_from(names.len() - 1).unwrap_or(NONE - 1)
    })
}

/// Return the length of two texts' common beginning, in bytes.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let words = one.chunks_exact(8).zip(other.chunks_exact(8));
    let whole = 8 * words.take_while(|(one, other)| one == other).count();
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}

fn leaf(stack: &[u32]) -> usize {
    stack[stack.len() - 1] as usize
}

/// Whether a frame is only part of the kernel's entry: every system call, fault or interrupt passes
/// through it.
fn is_way(name: &str) -> bool {
    let name = name.trim_end_matches(KERNEL);
    let names = [
        "do_syscall_64",
        "x64_sys_call",
        "el0_svc",
        "invoke_syscall",
        "el0_svc_common",
        "do_el0_svc",
    ];
    let starts = [
        "entry_",
        "asm_",
        "el0t_",
        "ret_from_",
        "syscall_",
        "el0_svc_common",
    ];
    names.contains(&name) || starts.iter().any(|start| name.starts_with(start))
}

pub(crate) fn add(sum: &mut [i64; 2], more: [i64; 2]) {
    *sum = plus(*sum, more);
}

fn plus(one: [i64; 2], other: [i64; 2]) -> [i64; 2] {
    [
        one[0].saturating_add(other[0]),
        one[1].saturating_add(other[1]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree<'a>(lines: &[(&'a str, i64)]) -> Tree<'a> {
        Tree::new(lines.iter().map(|(stack, value)| (*stack, *value, 0)))
    }

    fn totals(tree: &Tree<'_>) -> Vec<(String, i64, i64)> {
        tree.frames()
            .iter()
            .map(|one| (one.name.to_owned(), one.own[0], one.total[0]))
            .collect()
    }

    #[test]
    fn a_frame_that_calls_itself_counts_once() {
        let tree = tree(&[("a;b;a", 3), ("a;b", 1), ("ab;b", 2), ("a", 1)]);
        let row = |name: &str, own, total| (name.to_owned(), own, total);
        assert_eq!(
            totals(&tree),
            [row("a", 4, 5), row("b", 3, 6), row("ab", 0, 2)]
        );
        assert_eq!(tree.total()[0], 7);
    }

    #[test]
    fn the_kernel_is_entered_by_the_last_frame_before_it() {
        let tree = tree(&[
            (
                "main;read;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];ksys_read_[k];copy_[k]",
                5,
            ),
            (
                "main;read;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]",
                1,
            ),
            ("main;memcpy;asm_exc_page_fault_[k];exc_page_fault_[k]", 3),
            ("main", 7),
        ]);
        assert_eq!(tree.in_kernel()[0], 9);
        let found: Vec<_> = tree
            .entries()
            .iter()
            .map(|one| (one.caller, one.user, one.kernel, one.value))
            .collect();
        assert_eq!(
            found,
            [
                ("main", "read", "ksys_read", 5),
                ("main", "memcpy", "exc_page_fault", 3),
                ("main", "read", "do_syscall_64", 1)
            ]
        );
    }
}
