//! Stacks as a tree of calls: totals of frames, what entered the kernel, and what is too small to draw.

use std::collections::HashMap;

use ahash::RandomState;

use crate::profile::KERNEL;

const NONE: u32 = u32::MAX;

/// How much of all was in one frame itself, and in what it called too; each now and before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTotals<'a> {
    /// Its name, without the kernel's mark.
    pub name: &'a str,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// In the frame itself.
    pub own: [i64; 2],
    /// In the frame and all below it, once for a frame that calls itself.
    pub total: [i64; 2],
}

/// A way into the kernel: the frame that took it and what it asked for there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The last frame before the kernel; empty if there is none.
    pub user: &'a str,
    /// The frame that mostly called it: often a library's wrapper stands in between.
    pub caller: &'a str,
    /// The kernel's first frame that is not the way in itself, without its mark.
    pub kernel: &'a str,
    /// What was spent there.
    pub value: i64,
}

/// Stacks that are looked at as a tree of calls. Every value is a pair: now, and before.
///
/// No tree is built: of millions of different stacks nearly all nodes would be too small to draw, and
/// sums need none. Each stack is the numbers of its frames; what is drawn is found from the root on.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    names: Vec<&'a str>,
    /// Numbers of frames, those of one stack side by side.
    frames: Vec<u32>,
    stacks: Vec<Stack>,
}

#[derive(Debug, Clone, Copy)]
struct Stack {
    start: usize,
    end: usize,
    values: [i64; 2],
}

impl<'a> Tree<'a> {
    /// Puts stacks together: each with its value now, and before.
    pub fn new(stacks: impl IntoIterator<Item = (&'a str, i64, i64)>) -> Self {
        let mut tree = Self::default();
        let mut known: HashMap<&'a str, u32, RandomState> = HashMap::default();
        for (text, now, before) in stacks {
            let start = tree.frames.len();
            for name in text.split(';') {
                let number = *known.entry(name).or_insert_with(|| {
                    tree.names.push(name);
                    u32::try_from(tree.names.len() - 1).unwrap_or(NONE - 1)
                });
                tree.frames.push(number);
            }
            let end = tree.frames.len();
            tree.stacks.push(Stack {
                start,
                end,
                values: [now, before],
            });
        }
        tree
    }

    /// Returns all that was counted, now and before.
    #[must_use]
    pub fn total(&self) -> [i64; 2] {
        let mut sum = [0, 0];
        for stack in &self.stacks {
            add(&mut sum, stack.values);
        }
        sum
    }

    /// Returns what was spent with a frame of the kernel at the leaf, now and before.
    #[must_use]
    pub fn in_kernel(&self) -> [i64; 2] {
        let kernel = self.kernel();
        let mut sum = [0, 0];
        for stack in &self.stacks {
            if kernel[self.frames[stack.end - 1] as usize] {
                add(&mut sum, stack.values);
            }
        }
        sum
    }

    /// Returns the totals of every frame, in the order in which they were first seen.
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
        // The last stack that each frame was counted in: one that calls itself counts once.
        let mut counted = vec![usize::MAX; self.names.len()];
        for (place, stack) in self.stacks.iter().enumerate() {
            for frame in &self.frames[stack.start..stack.end] {
                let frame = *frame as usize;
                if counted[frame] != place {
                    counted[frame] = place;
                    add(&mut found[frame].total, stack.values);
                }
            }
            let leaf = self.frames[stack.end - 1] as usize;
            add(&mut found[leaf].own, stack.values);
        }
        found
    }

    /// Returns who entered the kernel for what, the most first.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'a>> {
        let kernel = self.kernel();
        let way: Vec<bool> = self.names.iter().map(|name| is_way(name)).collect();
        let mut sums: HashMap<(u32, u32, u32), i64, RandomState> = HashMap::default();
        for stack in &self.stacks {
            let (mut user, mut caller, mut asked) = (NONE, NONE, NONE);
            for frame in &self.frames[stack.start..stack.end] {
                if !kernel[*frame as usize] {
                    (user, caller, asked) = (*frame, user, NONE);
                } else if asked == NONE || way[asked as usize] {
                    asked = *frame;
                }
            }
            if asked != NONE && stack.values[0] != 0 {
                *sums.entry((user, asked, caller)).or_default() += stack.values[0];
            }
        }
        let mut sums: Vec<((u32, u32, u32), i64)> = sums.into_iter().collect();
        // Those of one way side by side, its most frequent caller first.
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

    /// Returns folded lines in order, with what is smaller than a share of all counted to the frame
    /// that it is called by. Values before are multiplied by `scale`.
    pub(crate) fn lines(&self, least: f64, scale: Option<f64>) -> Vec<String> {
        let mut drawing = Lines {
            tree: self,
            whole: self.total(),
            least,
            scale,
            path: String::new(),
            found: Vec::new(),
        };
        let all = (0..self.stacks.len()).collect();
        drawing.add(0, all);
        drawing.found
    }

    fn kernel(&self) -> Vec<bool> {
        self.names
            .iter()
            .map(|name| name.ends_with(KERNEL))
            .collect()
    }
}

/// What is drawn, found from the root on: the stacks that begin alike are told apart by their next
/// frame, as long as that is large enough to be seen.
struct Lines<'a, 'b> {
    tree: &'b Tree<'a>,
    whole: [i64; 2],
    least: f64,
    scale: Option<f64>,
    path: String,
    found: Vec<String>,
}

impl Lines<'_, '_> {
    /// Adds the lines of stacks that begin with the path, which has `depth` frames.
    fn add(&mut self, depth: usize, stacks: Vec<usize>) {
        let tree = self.tree;
        let mut own = [0, 0];
        let mut below: HashMap<u32, ([i64; 2], Vec<usize>), RandomState> = HashMap::default();
        for place in &stacks {
            let stack = &tree.stacks[*place];
            match tree.frames[stack.start..stack.end].get(depth) {
                None => add(&mut own, stack.values),
                Some(frame) => add(&mut below.entry(*frame).or_default().0, stack.values),
            }
        }
        below.retain(|_, (total, _)| {
            let seen = (0..2).any(|side| share(total[side], self.whole[side]) >= self.least);
            if !seen {
                add(&mut own, *total);
            }
            seen
        });
        for place in stacks {
            let stack = &tree.stacks[place];
            if let Some(frame) = tree.frames[stack.start..stack.end].get(depth)
                && let Some((_, stacks)) = below.get_mut(frame)
            {
                stacks.push(place);
            }
        }
        if own != [0, 0] && depth > 0 {
            self.found.push(line(&self.path, own, self.scale));
        }
        let mut below: Vec<(&str, Vec<usize>)> = below
            .into_iter()
            .map(|(frame, (_, stacks))| (tree.names[frame as usize], stacks))
            .collect();
        below.sort_unstable_by_key(|(name, _)| *name);
        for (name, stacks) in below {
            let length = self.path.len();
            if !self.path.is_empty() {
                self.path.push(';');
            }
            self.path.push_str(name);
            self.add(depth + 1, stacks);
            self.path.truncate(length);
        }
    }
}

/// Says whether a frame is only the way into the kernel: every system call, fault or interrupt goes
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

fn add(sum: &mut [i64; 2], more: [i64; 2]) {
    sum[0] = sum[0].saturating_add(more[0]);
    sum[1] = sum[1].saturating_add(more[1]);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than a float has"
)]
fn share(part: i64, whole: i64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Returns a folded line; with `scale` one of two values, the one before first.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "what is drawn needs no more than a float has"
)]
fn line(path: &str, values: [i64; 2], scale: Option<f64>) -> String {
    // A name that ends with a number would be read as a value.
    let path = match path.rsplit_once(' ') {
        Some((start, end))
            if end
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.') =>
        {
            format!("{start}\u{a0}{end}")
        }
        _ => path.to_owned(),
    };
    match scale {
        None => format!("{path} {}", values[0]),
        Some(scale) => {
            let before = (values[1] as f64 * scale).round() as i64;
            format!("{path} {before} {}", values[0])
        }
    }
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
    fn own_values_add_up_to_the_whole_whatever_the_order() {
        let lines = [
            ("a;b;c", 1),
            ("a;bc", 2),
            ("a;b", 4),
            ("b", 8),
            ("a;b;c", 16),
            ("a", 32),
        ];
        let mut reversed = lines;
        reversed.reverse();
        for lines in [lines, reversed] {
            let tree = tree(&lines);
            let own: i64 = tree.frames().iter().map(|one| one.own[0]).sum();
            assert_eq!((own, tree.total()[0]), (63, 63));
            let wanted = ["a 32", "a;b 4", "a;b;c 17", "a;bc 2", "b 8"];
            assert_eq!(tree.lines(0.0, None), wanted);
        }
    }

    #[test]
    fn what_is_small_is_counted_to_its_caller() {
        let tree = tree(&[("a;b", 990), ("a;c;d", 6), ("a;e", 4)]);
        assert_eq!(tree.lines(0.01, None), ["a 10", "a;b 990"]);
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

    #[test]
    fn a_name_that_ends_with_a_number_is_no_value() {
        assert_eq!(
            tree(&[("worker 12", 5)]).lines(0.0, None),
            ["worker\u{a0}12 5"]
        );
    }

    #[test]
    fn values_before_are_scaled_to_those_now() {
        let tree = Tree::new([("a", 10, 50), ("b", 10, 0)]);
        assert_eq!(tree.lines(0.0, Some(0.4)), ["a 20 10", "b 0 10"]);
    }
}
