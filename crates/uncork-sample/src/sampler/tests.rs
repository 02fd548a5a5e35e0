use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use uncork_model::Watch;

use super::*;

const MS: u64 = 1_000_000;

fn plan(pid: u32, children: bool) -> SamplerPlan {
    SamplerPlan {
        period_ns: 10 * MS,
        watch: vec![Watch {
            role: "server".to_owned(),
            pid,
            children,
        }],
        memory: true,
    }
}

fn cpu_ns(seen: &Sampled, wanted: impl Fn(&crate::Process) -> bool) -> u64 {
    let rows = seen.process_ticks.iter();
    rows.filter(|row| wanted(&seen.processes[row.process as usize]))
        .map(|row| row.cpu_ns)
        .sum()
}

#[test]
fn our_own_work_is_seen_whole_and_to_the_nanosecond() {
    let clock = clock::process_clock(std::process::id()).expect("we exist");
    let sampler = Sampler::start(&plan(std::process::id(), false)).expect("a thread");
    let before_ns = clock::read(clock).expect("we exist");
    while clock::read(clock).expect("we exist") < before_ns + 60 * MS {}
    let used_ns = clock::read(clock).expect("we exist") - before_ns;
    let seen = sampler.stop();
    assert!(cpu_ns(&seen, |_| true) >= used_ns);
    assert_eq!(seen.processes[0].pid, Some(std::process::id()));
    let length_ns: u64 = seen.ticks.iter().map(|tick| tick.length_ns).sum();
    assert_eq!(length_ns, seen.facts.elapsed_ns);
    let own_ns: u64 = seen.ticks.iter().map(|tick| tick.own_ns).sum();
    assert!(own_ns > 0 && own_ns <= seen.facts.own_ns);
    let details = seen
        .process_ticks
        .iter()
        .filter_map(|row| row.details.as_deref());
    assert!(details.clone().any(|one| one.user_ns.is_some()));
    assert!(
        details
            .filter_map(|one| one.rss_bytes)
            .all(|bytes| bytes > 0)
    );
}

#[test]
fn what_is_read_seldom_is_read_at_the_end_even_of_what_has_stopped_running() {
    let mut child = Command::new("sh")
        .args([
            "-c",
            "read line; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read line",
        ])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let sampler = Sampler::start(&plan(child.id(), false)).expect("a thread");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"go\n").expect("written");
    // Its details are read while it waits again, long before its switches are due.
    thread::sleep(Duration::from_millis(200));
    let seen = sampler.stop();
    input.write_all(b"go\n").expect("written");
    child.wait().expect("it ends");
    let details = seen
        .process_ticks
        .iter()
        .filter_map(|row| row.details.as_deref());
    assert!(details.filter_map(|one| one.voluntary).sum::<u64>() > 0);
}

#[test]
fn children_are_followed_as_they_come_and_go() {
    let sampler = Sampler::start(&plan(std::process::id(), true)).expect("a thread");
    // Long enough to be seen, and busy all the time.
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.1";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .spawn()
        .expect("a shell");
    child.wait().expect("it ends");
    let seen = sampler.stop();
    let known = seen
        .processes
        .iter()
        .find(|process| process.pid == Some(child.id()))
        .expect("seen");
    assert!(known.ended_ns.is_some());
    assert_eq!(known.kind, "sh");
    assert!(cpu_ns(&seen, |process| process.pid == Some(child.id())) > 10 * MS);
}

#[test]
fn a_child_too_short_to_be_seen_is_counted_by_its_parent() {
    let mut slow = plan(std::process::id(), true);
    slow.period_ns = 60_000 * MS;
    let sampler = Sampler::start(&slow).expect("a thread");
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let status = Command::new("sh")
        .args(["-c", script])
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("a shell").success());
    let seen = sampler.stop();
    assert!(cpu_ns(&seen, |process| process.pid.is_none()) >= 10 * MS);
}

#[test]
fn what_is_not_there_is_told_and_the_rest_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let proc = folder.path().join("proc");
    fs::create_dir_all(&proc).expect("made");
    let stat = "cpu  1 0 1 5 0 0 0 0\ncpu0 1 0 1 5 0 0 0 0\nctxt 5\nprocesses 3\n";
    fs::write(proc.join("stat"), stat).expect("written");
    let host = Host::at(folder.path());
    let mut reading = Reading::begin(host, &plan(u32::MAX, true));
    fs::write(
        proc.join("stat"),
        stat.replace("cpu  1 0 1 5", "cpu  4 0 1 7"),
    )
    .expect("written");
    reading.read(Duration::from_millis(100), Duration::ZERO, true);
    let seen = reading.finish();
    let [tick] = seen.ticks.as_slice() else {
        panic!("one interval");
    };
    let modes = tick.modes.expect("read");
    assert_eq!(
        (modes.user_ns, modes.idle_ns, modes.steal_ns),
        (30 * MS, 20 * MS, 0)
    );
    assert_eq!(tick.stalls, crate::Stalls::default());
    assert_eq!(
        (tick.cpus, tick.switches, tick.running),
        (Some(1), Some(0), None)
    );
    let lacks: Vec<_> = seen
        .facts
        .lacks
        .iter()
        .map(|lack| lack.what.as_str())
        .collect();
    for what in [
        "disks",
        "network interfaces",
        "pressure on memory",
        "the process of the server",
    ] {
        assert!(lacks.contains(&what), "{what} in {lacks:?}");
    }
    assert!(!lacks.contains(&"processor time of the machine"));
}

#[test]
fn one_that_is_late_is_taken_at_once_and_those_before_it_are_left_out() {
    let ms = Duration::from_millis;
    assert_eq!(following(ms(100), ms(105), ms(100)), (ms(200), 0));
    assert_eq!(following(ms(100), ms(250), ms(100)), (ms(200), 0));
    assert_eq!(following(ms(100), ms(450), ms(100)), (ms(400), 2));
}

#[test]
fn a_sampler_that_is_dropped_ends() {
    let sampler = Sampler::start(&plan(std::process::id(), false)).expect("a thread");
    let stop = Arc::downgrade(&sampler.control);
    drop(sampler);
    assert!(stop.upgrade().is_none());
}

#[test]
fn the_time_of_a_rest_is_none_to_it() {
    let sampler = Sampler::start(&plan(std::process::id(), false)).expect("a thread");
    thread::sleep(Duration::from_millis(60));
    sampler.rest(true);
    thread::sleep(Duration::from_millis(300));
    sampler.rest(false);
    thread::sleep(Duration::from_millis(60));
    let seen = sampler.stop();
    assert!(seen.facts.elapsed_ns >= 100 * MS);
    assert!(seen.facts.elapsed_ns < 300 * MS, "{:?}", seen.facts);
    // It read before and after, and skipped the readings that were due meanwhile.
    assert!(seen.ticks.len() > 3, "{:?}", seen.ticks);
    assert!(seen.ticks.iter().all(|tick| tick.length_ns < 150 * MS));
}

#[test]
fn one_that_rests_can_be_stopped() {
    let sampler = Sampler::start(&plan(std::process::id(), false)).expect("a thread");
    sampler.rest(true);
    thread::sleep(Duration::from_millis(20));
    assert!(sampler.stop().facts.elapsed_ns < 20 * MS);
}
