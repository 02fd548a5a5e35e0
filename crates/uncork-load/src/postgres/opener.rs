//! Opens connections in the background, for an event loop that must not wait.
//!
//! A few threads make the attempts. The event loop requests one by [`Opener::request`], is woken
//! when an attempt has ended, and takes the results by [`Opener::take`] without waiting.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::Waker;

use super::login::Session;
use crate::thread_cpu::thread_cpu;
use crate::{Interrupt, LoadError};

/// Makes attempts for an event loop; `T` is the result of a successful one.
///
/// Dropping it also ends its threads, without waiting for them.
#[derive(Debug)]
pub(crate) struct Opener<T = Session> {
    shared: Arc<Shared<T>>,
    helpers: Vec<JoinHandle<(u64, u64)>>,
}

#[derive(Debug)]
struct Shared<T> {
    jobs: Mutex<Jobs<T>>,
    asked: Condvar,
    /// Interrupts attempts under way.
    interrupt: Interrupt,
}

#[derive(Debug)]
struct Jobs<T> {
    wanted: VecDeque<(usize, Instant)>,
    /// How long requests waited until their attempt began.
    waited: Duration,
    ended: VecDeque<(usize, Result<T, LoadError>)>,
    closed: bool,
}

impl<T> Shared<T> {
    fn jobs(&self) -> MutexGuard<'_, Jobs<T>> {
        // No operation under the lock can leave partial state, so a panic elsewhere does no harm.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.interrupt.request();
        let mut jobs = self.jobs();
        jobs.closed = true;
        jobs.wanted.clear();
        self.asked.notify_all();
    }
}

impl<T: Send + 'static> Opener<T> {
    /// Start `helpers` threads, at least one. `open` makes an attempt and must end soon after its
    /// interrupt was requested; `waker` wakes the event loop that takes the results.
    ///
    /// # Errors
    ///
    /// If the operating system cannot start the threads.
    pub(crate) fn start(
        open: impl Fn(&Interrupt) -> Result<T, LoadError> + Send + Sync + 'static,
        waker: &Arc<Waker>,
        helpers: usize,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            jobs: Mutex::new(Jobs {
                wanted: VecDeque::new(),
                waited: Duration::ZERO,
                ended: VecDeque::new(),
                closed: false,
            }),
            asked: Condvar::new(),
            interrupt: Interrupt::default(),
        });
        let open = Arc::new(open);
        let mut opener = Self {
            shared,
            helpers: Vec::new(),
        };
        for _ in 0..helpers.max(1) {
            let shared = Arc::clone(&opener.shared);
            let (open, waker) = (Arc::clone(&open), Arc::clone(waker));
            let helper = thread::Builder::new()
                .name("uncork-open".to_owned())
                .spawn(move || help(&shared, &*open, &waker));
            opener.helpers.push(helper?);
        }
        Ok(opener)
    }

    /// Request an attempt; its result has the same tag. Attempts begin in the order of requests, as
    /// many at once as there are threads.
    pub(crate) fn request(&self, tag: usize) {
        self.shared.jobs().wanted.push_back((tag, Instant::now()));
        self.shared.asked.notify_one();
    }

    /// Take the result of an attempt that has ended, if there is one.
    pub(crate) fn take(&self) -> Option<(usize, Result<T, LoadError>)> {
        self.shared.jobs().ended.pop_front()
    }

    /// How long requests have waited until their attempt began, added up.
    pub(crate) fn waited_ns(&self) -> u64 {
        u64::try_from(self.shared.jobs().waited.as_nanos()).unwrap_or(u64::MAX)
    }

    /// End the threads, even during an attempt, and return their CPU time in user mode and in the
    /// kernel. Results that were not taken are dropped.
    pub(crate) fn close(mut self) -> (u64, u64) {
        self.shared.close();
        let times = self.helpers.drain(..).map(JoinHandle::join);
        // Attempts that panic have a result; nothing else in the threads can panic.
        times.fold((0, 0), |(user, system), time| {
            let (more_user, more_system) = time.unwrap_or_default();
            (user + more_user, system + more_system)
        })
    }
}

impl<T> Drop for Opener<T> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// Make attempts until the opener is closed; return the CPU time used.
fn help<T>(
    shared: &Shared<T>,
    open: &(impl Fn(&Interrupt) -> Result<T, LoadError> + ?Sized),
    waker: &Waker,
) -> (u64, u64) {
    let next = || {
        let jobs = shared.jobs();
        let idle = |jobs: &mut Jobs<T>| jobs.wanted.is_empty() && !jobs.closed;
        let mut jobs = shared
            .asked
            .wait_while(jobs, idle)
            .unwrap_or_else(PoisonError::into_inner);
        let (tag, requested) = jobs.wanted.pop_front()?;
        jobs.waited += requested.elapsed();
        Some(tag)
    };
    while let Some(tag) = next() {
        // The event loop waits for a result, even after a panic.
        let result = catch_unwind(AssertUnwindSafe(|| open(&shared.interrupt)))
            .unwrap_or(Err(LoadError::Defect("opening a connection panicked")));
        let mut jobs = shared.jobs();
        if jobs.closed {
            break;
        }
        jobs.ended.push_back((tag, result));
        drop(jobs);
        // The event loop may be gone.
        let _ = waker.wake();
    }
    thread_cpu()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mio::{Events, Poll, Token};

    use super::*;

    fn poll() -> (Poll, Arc<Waker>) {
        let poll = Poll::new().expect("has a poll");
        let waker = Waker::new(poll.registry(), Token(7)).expect("has a waker");
        (poll, Arc::new(waker))
    }

    /// Wait like an event loop until so many results have arrived.
    fn collect<T: Send + 'static>(
        opener: &Opener<T>,
        poll: &mut Poll,
        count: usize,
    ) -> Vec<(usize, Result<T, LoadError>)> {
        let mut events = Events::with_capacity(4);
        let mut results = Vec::new();
        let start = Instant::now();
        while results.len() < count {
            assert!(start.elapsed() < Duration::from_secs(10), "nobody wakes us");
            let wait = Some(Duration::from_secs(1));
            poll.poll(&mut events, wait).expect("polls");
            while let Some(result) = opener.take() {
                results.push(result);
            }
        }
        results
    }

    #[test]
    fn every_request_is_answered_under_its_tag() {
        let (mut poll, waker) = poll();
        let made = AtomicUsize::new(0);
        let open = move |_: &Interrupt| match made.fetch_add(1, Ordering::Relaxed) {
            3 => Err(LoadError::Deadline("connecting")),
            5 => panic!("a defect"),
            number => Ok(number),
        };
        let opener = Opener::start(open, &waker, 2).expect("starts");
        assert!(opener.take().is_none());
        for tag in 10..20 {
            opener.request(tag);
        }
        let mut results = collect(&opener, &mut poll, 10);
        results.sort_by_key(|(tag, _)| *tag);
        let tags: Vec<usize> = results.iter().map(|(tag, _)| *tag).collect();
        assert_eq!(tags, (10..20).collect::<Vec<_>>());
        let failures: Vec<String> = results
            .iter()
            .filter_map(|(_, result)| result.as_ref().err().map(LoadError::to_string))
            .collect();
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures.iter().any(|it| it.contains("panicked")));
        assert!(opener.take().is_none());
        assert!(opener.waited_ns() > 0);
        opener.close();
    }

    #[test]
    fn attempts_are_made_at_the_same_time() {
        let (mut poll, waker) = poll();
        // No attempt continues before all four have begun.
        let together = Barrier::new(4);
        let open = move |_: &Interrupt| {
            together.wait();
            Ok(())
        };
        let opener = Opener::start(open, &waker, 4).expect("starts");
        (0..4).for_each(|tag| opener.request(tag));
        collect(&opener, &mut poll, 4);
        opener.close();
    }

    #[test]
    fn closing_ends_attempts_under_way_and_tells_their_cost() {
        let (_poll, waker) = poll();
        let open = |interrupt: &Interrupt| {
            let mut spun = 0_u64;
            while !interrupt.requested() {
                spun = spun.wrapping_add(1);
            }
            Ok(std::hint::black_box(spun))
        };
        let opener = Opener::start(open, &waker, 1).expect("starts");
        (0..100).for_each(|tag| opener.request(tag));
        thread::sleep(Duration::from_millis(100));
        let start = Instant::now();
        let (user_ns, _) = opener.close();
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(user_ns > 1_000_000, "{user_ns}");
    }
}
