//! Stacks as a tree of calls: totals of frames, what entered the kernel, and what is too small to draw.

use std::collections::HashMap;

use ahash::RandomState;

use crate::profile::KERNEL;

const NONE: u32 = u32::MAX;
const ROOT: usize = 0;

#[derive(Debug, Clone, Copy)]
struct Node {
    frame: u32,
    parent: u32,
    own: [i64; 2],
    total: [i64; 2],
}

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

/// A tree of calls. Every value is a pair: now, and before.
#[derive(Debug)]
pub struct Tree<'a> {
    names: Vec<&'a str>,
    nodes: Vec<Node>,
}

impl<'a> Tree<'a> {
    /// Puts stacks together: each with its value now, and before.
    pub fn new(stacks: impl IntoIterator<Item = (&'a str, i64, i64)>) -> Self {
        let mut building = Building::default();
        for (stack, now, before) in stacks {
            building.add(stack, [now, before]);
        }
        let Building {
            names, mut nodes, ..
        } = building;
        // A child stands behind its parent.
        for place in (1..nodes.len()).rev() {
            let node = nodes[place];
            let parent = &mut nodes[node.parent as usize];
            add(&mut parent.total, node.total);
        }
        Self { names, nodes }
    }

    /// Returns all that was counted, now and before.
    #[must_use]
    pub fn total(&self) -> [i64; 2] {
        self.nodes[ROOT].total
    }

    /// Returns what was spent with a frame of the kernel at the leaf, now and before.
    #[must_use]
    pub fn in_kernel(&self) -> [i64; 2] {
        let mut sum = [0, 0];
        for node in &self.nodes[1..] {
            if self.name(node).ends_with(KERNEL) {
                add(&mut sum, node.own);
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
        let children = self.children();
        // How often each frame is open above the node at hand; a node is closed when it comes again.
        let mut open = vec![0_u32; self.names.len()];
        let mut stack: Vec<(u32, bool)> = children.of(ROOT).map(|child| (child, false)).collect();
        while let Some((place, closes)) = stack.pop() {
            let node = &self.nodes[place as usize];
            let frame = node.frame as usize;
            if closes {
                open[frame] -= 1;
                continue;
            }
            add(&mut found[frame].own, node.own);
            if open[frame] == 0 {
                add(&mut found[frame].total, node.total);
            }
            open[frame] += 1;
            stack.push((place, true));
            stack.extend(children.of(place as usize).map(|child| (child, false)));
        }
        found
    }

    /// Returns who entered the kernel for what, the most first.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'a>> {
        let mut sums: HashMap<(u32, u32, u32), i64, RandomState> = HashMap::default();
        // For each node: the last frame before the kernel, its caller, and what was asked for.
        let mut ways = vec![(NONE, NONE, NONE); self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate().skip(1) {
            let (mut user, mut caller, mut asked) = ways[node.parent as usize];
            if !self.name(node).ends_with(KERNEL) {
                (user, caller, asked) = (node.frame, user, NONE);
            } else if asked == NONE || self.is_way(asked) {
                asked = node.frame;
            }
            ways[place] = (user, caller, asked);
            if asked != NONE && node.own[0] != 0 {
                *sums.entry((user, asked, caller)).or_default() += node.own[0];
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
        let children = self.children();
        let whole = self.total();
        let mut lines = Vec::new();
        let mut path = String::new();
        self.draw(
            ROOT,
            &children,
            &mut |total: [i64; 2]| {
                share(total[0], whole[0]) >= least || share(total[1], whole[1]) >= least
            },
            scale,
            &mut path,
            &mut lines,
        );
        lines
    }

    /// Says whether a frame is only the way into the kernel: every system call, fault or interrupt
    /// goes through it.
    fn is_way(&self, frame: u32) -> bool {
        let name = self.names[frame as usize].trim_end_matches(KERNEL);
        matches!(
            name,
            "do_syscall_64"
                | "x64_sys_call"
                | "el0_svc"
                | "invoke_syscall"
                | "el0_svc_common"
                | "do_el0_svc"
        ) || [
            "entry_",
            "asm_",
            "el0t_",
            "ret_from_",
            "syscall_",
            "el0_svc_common",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    }

    fn draw(
        &self,
        place: usize,
        children: &Children,
        shown: &mut impl FnMut([i64; 2]) -> bool,
        scale: Option<f64>,
        path: &mut String,
        lines: &mut Vec<String>,
    ) {
        let mut own = self.nodes[place].own;
        let mut below: Vec<(&str, usize)> = Vec::new();
        for child in children.of(place) {
            let node = &self.nodes[child as usize];
            if shown(node.total) {
                below.push((self.name(node), child as usize));
            } else {
                add(&mut own, node.total);
            }
        }
        if own != [0, 0] && place != ROOT {
            lines.push(line(path, own, scale));
        }
        below.sort_unstable();
        for (name, child) in below {
            let length = path.len();
            if !path.is_empty() {
                path.push(';');
            }
            path.push_str(name);
            self.draw(child, children, shown, scale, path, lines);
            path.truncate(length);
        }
    }

    fn name(&self, node: &Node) -> &'a str {
        self.names[node.frame as usize]
    }

    fn children(&self) -> Children {
        let mut starts = vec![0_u32; self.nodes.len() + 1];
        for node in &self.nodes[1..] {
            starts[node.parent as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut next = starts.clone();
        let mut places = vec![0_u32; self.nodes.len() - 1];
        for (place, node) in (0_u32..).zip(&self.nodes).skip(1) {
            let slot = &mut next[node.parent as usize];
            places[*slot as usize] = place;
            *slot += 1;
        }
        Children { starts, places }
    }
}

/// The children of every node, those of one node side by side.
struct Children {
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl Children {
    fn of(&self, place: usize) -> impl Iterator<Item = u32> + '_ {
        let range = self.starts[place] as usize..self.starts[place + 1] as usize;
        self.places[range].iter().copied()
    }
}

struct Building<'a> {
    names: Vec<&'a str>,
    nodes: Vec<Node>,
    frames: HashMap<&'a str, u32, RandomState>,
    calls: HashMap<u64, u32, RandomState>,
    /// The stack before, and its nodes with where each of their names ends: stacks that come in
    /// order share much of it.
    last: &'a str,
    path: Vec<(usize, u32)>,
}

impl Default for Building<'_> {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            nodes: vec![Node {
                frame: NONE,
                parent: NONE,
                own: [0, 0],
                total: [0, 0],
            }],
            frames: HashMap::default(),
            calls: HashMap::default(),
            last: "",
            path: Vec::new(),
        }
    }
}

impl<'a> Building<'a> {
    fn add(&mut self, stack: &'a str, values: [i64; 2]) {
        let same = same(self.last.as_bytes(), stack.as_bytes());
        while self.path.last().is_some_and(|(end, _)| {
            *end > same || stack.as_bytes().get(*end).is_some_and(|byte| *byte != b';')
        }) {
            self.path.pop();
        }
        let (end, mut node) = self.path.last().copied().unwrap_or((0, 0));
        let mut start = if self.path.is_empty() { 0 } else { end + 1 };
        while start <= stack.len() {
            let rest = &stack.as_bytes()[start..];
            let end = memchr::memchr(b';', rest).map_or(stack.len(), |at| start + at);
            node = self.child(node, &stack[start..end]);
            self.path.push((end, node));
            start = end + 1;
        }
        self.last = stack;
        let node = &mut self.nodes[node as usize];
        add(&mut node.own, values);
        add(&mut node.total, values);
    }

    fn child(&mut self, parent: u32, name: &'a str) -> u32 {
        let frame = *self.frames.entry(name).or_insert_with(|| {
            self.names.push(name);
            number(self.names.len() - 1)
        });
        *self
            .calls
            .entry(u64::from(parent) << 32 | u64::from(frame))
            .or_insert_with(|| {
                self.nodes.push(Node {
                    frame,
                    parent,
                    own: [0, 0],
                    total: [0, 0],
                });
                number(self.nodes.len() - 1)
            })
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NONE - 1)
}

fn same(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
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
