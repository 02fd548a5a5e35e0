//! Runs work on several threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// Run each task on a thread of its own, the first on the calling thread; return their results in
/// order.
///
/// # Panics
///
/// If one of them panics, once all have ended.
pub fn side_by_side<W: Send, R: Send>(
    work: impl IntoIterator<Item = W>,
    act: impl Fn(W) -> R + Sync,
) -> Vec<R> {
    let mut work = work.into_iter();
    let Some(first) = work.next() else {
        return Vec::new();
    };
    thread::scope(|scope| {
        let act = &act;
        let others: Vec<_> = work.map(|piece| scope.spawn(move || act(piece))).collect();
        let mut done = vec![act(first)];
        for other in others {
            done.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    })
}

/// Act on equal parts of `all` side by side, as many as there are processors; return the results in order. With fewer
/// than `many` it is one part, because starting threads would take longer.
///
/// # Panics
///
/// As [`side_by_side`].
pub fn in_parts<T: Sync, R: Clone + Send>(
    all: &[T],
    many: usize,
    act: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    let threads = if all.len() < many { 1 } else { processors() };
    side_by_side(all.chunks(all.len().div_ceil(threads).max(1)), act).concat()
}

/// Return how many threads this process may keep busy.
#[must_use]
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_work_stands_in_its_order() {
        assert_eq!(side_by_side(0..5, |number| number * 2), [0, 2, 4, 6, 8]);
        assert!(side_by_side(0..0, |number| number * 2).is_empty());
    }

    #[test]
    fn what_comes_of_parts_stands_in_their_order() {
        for count in [0, 1, 2, 7, 100] {
            let all: Vec<usize> = (0..count).collect();
            for many in [1, 50] {
                let doubled = in_parts(&all, many, |part| part.iter().map(|one| one * 2).collect());
                assert!(doubled.into_iter().eq((0..count).map(|one| one * 2)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "broken")]
    fn a_panic_goes_on() {
        side_by_side(0..2, |number| assert!(number == 0, "broken"));
    }
}
