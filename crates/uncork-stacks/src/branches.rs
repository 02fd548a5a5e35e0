//! Selects the part of a call tree that is large enough to be drawn.

use crate::side_by_side::side_by_side;
use crate::tree::{Part, Tree, add};

const NONE: u32 = u32::MAX;
/// Fewer stacks are processed on one thread.
const MANY: usize = 50_000;

/// Return folded lines in order; frames smaller than a share of the total count for their caller.
/// Values before are multiplied by `scale`.
pub(crate) fn lines(tree: &Tree<'_>, least: f64, scale: Option<f64>) -> Vec<String> {
    let mut lines = Lines {
        tree,
        whole: tree.total(),
        least,
        scale,
        path: String::new(),
        found: Vec::new(),
        children: tree
            .parts
            .iter()
            .map(|_| Children::new(tree.names.len()))
            .collect(),
    };
    let all = tree
        .parts
        .iter()
        .map(|part| (0..part.values.len()).collect());
    lines.add(0, all.collect());
    lines.found
}

/// Searches from the root: stacks with a common beginning are divided by their next frame, as long
/// as that is large enough to be seen.
struct Lines<'a, 'b> {
    tree: &'b Tree<'a>,
    whole: [i64; 2],
    least: f64,
    scale: Option<f64>,
    path: String,
    found: Vec<String>,
    /// The results for the current frame, by part of the tree.
    children: Vec<Children>,
}

/// Stacks with a common beginning, by part of the tree and index.
type Places = Vec<Vec<usize>>;

impl Lines<'_, '_> {
    /// Add the lines of stacks that begin with the path, which has `depth` frames.
    fn add(&mut self, depth: usize, stacks: Places) {
        let many = stacks.iter().map(Vec::len).sum::<usize>() >= MANY;
        let work = self.tree.parts.iter().zip(&mut self.children).zip(&stacks);
        let sum = |((part, children), places): ((&Part, &mut Children), &Vec<usize>)| {
            children.sum(part, depth, places);
        };
        if many {
            side_by_side(work, sum);
        } else {
            work.for_each(sum);
        }
        // Over all parts together: visible frames, and the rest (too small, or in the frame
        // itself).
        let mut own = [0, 0];
        let mut totals: Vec<(u32, [i64; 2])> = Vec::new();
        for children in &self.children {
            add(&mut own, children.own);
            totals.extend(
                children
                    .found
                    .iter()
                    .map(|child| (child.frame, child.total)),
            );
        }
        totals.sort_unstable_by_key(|(frame, _)| *frame);
        let mut seen: Vec<u32> = Vec::new();
        for alike in totals.chunk_by(|one, other| one.0 == other.0) {
            let mut total = [0, 0];
            for (_, more) in alike {
                add(&mut total, *more);
            }
            if (0..2).any(|side| share(total[side], self.whole[side]) >= self.least) {
                seen.push(alike[0].0);
            } else {
                add(&mut own, total);
            }
        }
        seen.sort_unstable_by_key(|frame| self.tree.names[*frame as usize]);
        let work = self.children.iter_mut().zip(&stacks);
        let part = |(children, places): (&mut Children, &Vec<usize>)| children.part(&seen, places);
        let parted: Vec<Places> = if many {
            side_by_side(work, part)
        } else {
            work.map(part).collect()
        };
        drop(stacks);
        if own != [0, 0] && depth > 0 {
            self.found.push(line(&self.path, own, self.scale));
        }
        let mut parted: Vec<_> = parted.into_iter().map(Vec::into_iter).collect();
        for frame in seen {
            let stacks = parted.iter_mut().filter_map(Iterator::next).collect();
            let length = self.path.len();
            if !self.path.is_empty() {
                self.path.push(';');
            }
            self.path.push_str(self.tree.names[frame as usize]);
            self.add(depth + 1, stacks);
            self.path.truncate(length);
        }
    }
}

/// The frames that one frame calls, in one part of a tree.
struct Children {
    found: Vec<Child>,
    /// The value of stacks that end with the frame itself.
    own: [i64; 2],
    /// For each frame of the tree, its index among those found.
    places: Vec<u32>,
    /// For each examined stack, the index of its next frame among those found.
    next: Vec<u32>,
}

struct Child {
    frame: u32,
    stacks: usize,
    total: [i64; 2],
}

impl Children {
    fn new(names: usize) -> Self {
        Self {
            found: Vec::new(),
            own: [0, 0],
            places: vec![NONE; names],
            next: Vec::new(),
        }
    }

    /// Sum the next frames of stacks.
    fn sum(&mut self, part: &Part, depth: usize, stacks: &[usize]) {
        self.found.clear();
        self.next.clear();
        self.own = [0, 0];
        for place in stacks {
            let values = part.values[*place];
            let Some(frame) = part.stack(*place).get(depth) else {
                add(&mut self.own, values);
                self.next.push(NONE);
                continue;
            };
            let known = &mut self.places[*frame as usize];
            if *known == NONE {
                // Their number is at most the number of frames, which fits.
                *known = u32::try_from(self.found.len()).unwrap_or(NONE);
                self.found.push(Child {
                    frame: *frame,
                    stacks: 0,
                    total: [0, 0],
                });
            }
            let child = &mut self.found[*known as usize];
            child.stacks += 1;
            add(&mut child.total, values);
            self.next.push(*known);
        }
        for child in &self.found {
            self.places[child.frame as usize] = NONE;
        }
    }

    /// Divide stacks by their next frame, for each visible frame.
    fn part(&mut self, seen: &[u32], stacks: &[usize]) -> Places {
        for (place, frame) in (0..).zip(seen) {
            self.places[*frame as usize] = place;
        }
        let mut parted: Places = seen.iter().map(|_| Vec::new()).collect();
        let target: Vec<u32> = self
            .found
            .iter()
            .map(|child| self.places[child.frame as usize])
            .collect();
        for (child, target) in self.found.iter().zip(&target) {
            if *target != NONE {
                parted[*target as usize].reserve_exact(child.stacks);
            }
        }
        for (stack, next) in stacks.iter().zip(&self.next) {
            if *next != NONE && target[*next as usize] != NONE {
                parted[target[*next as usize] as usize].push(*stack);
            }
        }
        for frame in seen {
            self.places[*frame as usize] = NONE;
        }
        parted
    }
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

/// Return a folded line; with `scale`, a line with two values, the one before first.
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
    use std::collections::BTreeMap;

    use super::*;

    fn tree<'a>(lines: &[(&'a str, i64)]) -> Tree<'a> {
        Tree::new(lines.iter().map(|(stack, value)| (*stack, *value, 0)))
    }

    #[test]
    fn own_values_add_up_to_the_whole_whatever_the_order() {
        let stacks = [
            ("a;b;c", 1),
            ("a;bc", 2),
            ("a;b", 4),
            ("b", 8),
            ("a;b;c", 16),
            ("a", 32),
        ];
        let mut reversed = stacks;
        reversed.reverse();
        for stacks in [stacks, reversed] {
            let tree = tree(&stacks);
            let own: i64 = tree.frames().iter().map(|one| one.own[0]).sum();
            assert_eq!((own, tree.total()[0]), (63, 63));
            let wanted = ["a 32", "a;b 4", "a;b;c 17", "a;bc 2", "b 8"];
            assert_eq!(lines(&tree, 0.0, None), wanted);
        }
    }

    /// The lines of a complete call tree, node by node, for comparison.
    fn of_whole_tree(stacks: &[(String, i64, i64)], least: f64) -> Vec<String> {
        let mut totals: BTreeMap<Vec<&str>, [i64; 2]> = BTreeMap::new();
        let mut whole = [0, 0];
        for (stack, now, before) in stacks {
            let frames: Vec<&str> = stack.split(';').collect();
            add(&mut whole, [*now, *before]);
            for depth in 1..=frames.len() {
                let path = frames[..depth].to_vec();
                add(totals.entry(path).or_default(), [*now, *before]);
            }
        }
        totals.retain(|_, total| (0..2).any(|side| share(total[side], whole[side]) >= least));
        let drawn = |path: &[&str]| totals.contains_key(path);
        let mut own: BTreeMap<Vec<&str>, [i64; 2]> = BTreeMap::new();
        for (stack, now, before) in stacks {
            let frames: Vec<&str> = stack.split(';').collect();
            let depth = (1..=frames.len()).take_while(|depth| drawn(&frames[..*depth]));
            let path = frames[..depth.count()].to_vec();
            add(own.entry(path).or_default(), [*now, *before]);
        }
        own.retain(|path, own| !path.is_empty() && *own != [0, 0]);
        own.iter()
            .map(|(path, own)| line(&path.join(";"), *own, Some(1.0)))
            .collect()
    }

    #[test]
    fn it_makes_no_difference_where_stacks_are_parted_or_how_they_are_ordered() {
        let mut seed: usize = 7;
        let mut chance = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let names = [
            "a",
            "b",
            "ab",
            "abcdefgh",
            "abcdefghi",
            "\u{e4}",
            "k_[k]",
            "do_syscall_64_[k]",
            "c d",
        ];
        for round in 0..40 {
            let mut stacks: Vec<(String, i64, i64)> = Vec::new();
            for _ in 0..chance(300) {
                let frames: Vec<&str> = (0..=chance(9))
                    .map(|_| names[chance(names.len())])
                    .collect();
                let value = i64::try_from(chance(40)).unwrap();
                let before = i64::try_from(chance(2) * chance(50)).unwrap();
                stacks.push((frames.join(";"), value, before));
            }
            if round % 2 == 0 {
                stacks.sort();
            }
            let parted = |parts: usize| {
                let rows = stacks.chunks(stacks.len().div_ceil(parts).max(1));
                Tree::joined(rows.map(|rows| {
                    let rows = rows.iter();
                    rows.map(|(stack, now, before)| (stack.as_str(), *now, *before))
                }))
            };
            let whole = parted(1);
            for least in [0.0, 0.01, 0.1] {
                let wanted = of_whole_tree(&stacks, least);
                for parts in 1..5 {
                    assert_eq!(lines(&parted(parts), least, Some(1.0)), wanted);
                }
            }
            for parts in 2..5 {
                let other = parted(parts);
                assert_eq!(other.names, whole.names);
                assert_eq!(other.frames(), whole.frames());
                assert_eq!(other.entries(), whole.entries());
                assert_eq!(
                    (other.total(), other.in_kernel()),
                    (whole.total(), whole.in_kernel())
                );
            }
        }
    }

    #[test]
    fn what_is_small_is_counted_to_its_caller() {
        let tree = tree(&[("a;b", 990), ("a;c;d", 6), ("a;e", 4)]);
        assert_eq!(lines(&tree, 0.01, None), ["a 10", "a;b 990"]);
    }

    #[test]
    fn a_name_that_ends_with_a_number_is_no_value() {
        assert_eq!(
            lines(&tree(&[("worker 12", 5)]), 0.0, None),
            ["worker\u{a0}12 5"]
        );
    }

    #[test]
    fn values_before_are_scaled_to_those_now() {
        let tree = Tree::new([("a", 10, 50), ("b", 10, 0)]);
        assert_eq!(lines(&tree, 0.0, Some(0.4)), ["a 20 10", "b 0 10"]);
    }
}
