//! Parses the output of `perf script`: the head of a sample, its frames from the leaf on, an empty
//! line.
//!
//! ```text
//! postgres 4242/4242 11649.875185:   10101010 cpu-clock:
//!         ffffffff821ef696 do_syscall_64+0x46 ([kernel.kallsyms])
//!                    f786a __GI___fstatat64+0xa (/usr/lib/libc.so.6)
//! ```

use crate::error::ReadError;
use crate::folded::lines;
use crate::profile::{Folder, Limits, Measure, Row, Stacks, clean};

/// Addresses from here on are the kernel's on every 64-bit Linux.
const KERNEL_HALF: u64 = 1 << 63;

struct Head {
    process: usize,
    pid: Option<u32>,
    time_ns: Option<i64>,
    measure: usize,
    frames: Vec<(String, bool)>,
}

pub(crate) fn read(bytes: &[u8], times: bool, limits: Limits) -> Result<Stacks, ReadError> {
    let mut stacks = Stacks::new(Vec::new(), times, limits);
    let mut folder = Folder::new(limits);
    let mut open: Option<Head> = None;
    for (number, line) in lines(bytes).enumerate() {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            close(open.take(), &mut stacks, &mut folder)?;
        } else if line.starts_with([' ', '\t']) && open.is_some() && head(line).is_none() {
            let Some(head) = &mut open else { continue };
            if head.frames.len() < limits.depth {
                head.frames.push(frame(line, limits));
            }
        } else if let Some(found) = head(line) {
            close(open.take(), &mut stacks, &mut folder)?;
            let process = stacks.keep(&clean(found.process, limits.name))?;
            let measure = measure(&mut stacks, found.event).ok_or_else(|| {
                ReadError::line(number + 1, "it has more than 100 kinds of events")
            })?;
            open = Some(Head {
                process,
                pid: found.pid,
                time_ns: found.time_ns,
                measure,
                frames: Vec::new(),
            });
        } else {
            let shown: String = line.chars().take(60).collect();
            return Err(ReadError::line(
                number + 1,
                format!("\"{shown}\" is neither the head of a sample nor a frame of one"),
            ));
        }
    }
    close(open, &mut stacks, &mut folder)?;
    Ok(stacks)
}

pub(crate) fn looks_like(start: &[u8]) -> bool {
    let mut seen = lines(start)
        .map(String::from_utf8_lossy)
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    seen.next()
        .is_some_and(|line| head(line.trim_end()).is_some())
}

fn measure(stacks: &mut Stacks, event: &str) -> Option<usize> {
    let wanted = Measure::new(if event.is_empty() { "cpu" } else { event }, "samples");
    if let Some(known) = stacks.measures.iter().position(|one| *one == wanted) {
        return Some(known);
    }
    stacks.measures.push(wanted);
    (stacks.measures.len() <= 100).then_some(stacks.measures.len() - 1)
}

fn close(head: Option<Head>, stacks: &mut Stacks, folder: &mut Folder) -> Result<(), ReadError> {
    let Some(head) = head else { return Ok(()) };
    folder.clear();
    for (name, kernel) in head.frames.iter().rev() {
        folder.push(name, *kernel);
    }
    if head.frames.is_empty() {
        folder.push("[no stack]", false);
    }
    let stack = stacks.keep(folder.text())?;
    stacks.add(Row {
        measure: head.measure,
        pid: head.pid,
        process: head.process,
        route: 0,
        time_ns: head.time_ns,
        stack,
        value: 1,
    });
    Ok(())
}

struct Found<'a> {
    process: &'a str,
    pid: Option<u32>,
    time_ns: Option<i64>,
    event: &'a str,
}

/// Parse the head of a sample. Names of processes may contain spaces, so parsing begins at the
/// time: the first word of digits, a point, digits and a colon.
fn head(line: &str) -> Option<Found<'_>> {
    let mut at = 0;
    for word in line.split_whitespace() {
        let start = at + line[at..].find(word)?;
        at = start + word.len();
        let Some(time_ns) = time(word) else { continue };
        let before = line[..start].trim_end();
        // A processor in brackets may be in between.
        let before = match before
            .strip_suffix(']')
            .and_then(|rest| rest.rsplit_once('['))
        {
            Some((rest, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                rest.trim_end()
            }
            _ => before,
        };
        let (process, ids) = before.rsplit_once(char::is_whitespace)?;
        let pid = ids.split('/').next()?.parse().ok()?;
        let event = event(&line[at..]);
        return Some(Found {
            process: process.trim(),
            pid: Some(pid),
            time_ns: Some(time_ns),
            event,
        });
    }
    None
}

fn time(word: &str) -> Option<i64> {
    let (seconds, part) = word.strip_suffix(':')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(part) || part.len() > 9 {
        return None;
    }
    let seconds: i64 = seconds.parse().ok()?;
    let scale = 10_i64.pow(9 - u32::try_from(part.len()).ok()?);
    let part: i64 = part.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(part * scale)
}

/// Return the name of the event: `cpu-clock` for `10101010 cpu-clock:uhpppH:`.
fn event(rest: &str) -> &str {
    let mut words = rest.split_whitespace();
    let first = words.next().unwrap_or_default();
    let word = if first.bytes().all(|byte| byte.is_ascii_digit()) {
        words.next().unwrap_or_default()
    } else {
        first
    };
    let word = word.trim_end_matches(':');
    match word.split_once(':') {
        Some((name, modifiers)) if modifiers.len() <= 8 && !name.contains('/') => {
            // A tracepoint's name (sched:sched_switch) contains a colon.
            if modifiers
                .bytes()
                .all(|byte| b"ukhpPGHSDIWeb".contains(&byte))
            {
                name
            } else {
                word
            }
        }
        _ => word,
    }
}

fn frame(line: &str, limits: Limits) -> (String, bool) {
    let line = line.trim();
    let (address, rest) = match line.split_once(char::is_whitespace) {
        Some((first, rest)) if u64::from_str_radix(first, 16).is_ok() => {
            (u64::from_str_radix(first, 16).ok(), rest.trim())
        }
        _ => (
            u64::from_str_radix(line, 16).ok(),
            if line.contains(' ') { line } else { "" },
        ),
    };
    let (symbol, object) = match rest.rfind(" (") {
        Some(at) if rest.ends_with(')') => (&rest[..at], &rest[at + 2..rest.len() - 1]),
        _ if rest.starts_with('(') && rest.ends_with(')') => ("", &rest[1..rest.len() - 1]),
        _ => (rest, ""),
    };
    let kernel = address.is_some_and(|address| address >= KERNEL_HALF)
        || object.starts_with("[kernel")
        || object.starts_with("[guest.kernel");
    let symbol = match symbol.rsplit_once("+0x") {
        Some((name, offset)) if u64::from_str_radix(offset, 16).is_ok() => name,
        _ => symbol,
    };
    let symbol = symbol.trim();
    let name = if symbol.is_empty() || symbol == "[unknown]" {
        let object = object.rsplit('/').next().unwrap_or_default();
        let object = object.trim_matches(['[', ']']);
        if object.is_empty() || object == "unknown" {
            "[unknown]".to_owned()
        } else {
            format!("[{object}]")
        }
    } else {
        symbol.to_owned()
    };
    (clean(&name, limits.name), kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    type StackRow = (String, Option<u32>, String, Option<i64>, i64);

    fn stacks(text: &str, times: bool) -> Vec<StackRow> {
        let found = read(text.as_bytes(), times, Limits::default()).unwrap();
        found
            .rows
            .iter()
            .map(|row| {
                (
                    found.text(row.process).to_owned(),
                    row.pid,
                    found.text(row.stack).to_owned(),
                    row.time_ns,
                    row.value,
                )
            })
            .collect()
    }

    #[test]
    fn a_sample_is_its_frames_from_the_root_on() {
        let text = "my app: x 42/43 [001] 11649.875185:   10101010 cpu-clock:uppp: \n\
            \tffffffff821ef696 do_syscall_64+0x46 ([kernel.kallsyms])\n\
            \t           f786a std::map<int, int>::find (int) (/usr/lib/libc.so.6)\n\
            \t            1080 [unknown] (/opt/app)\n\n";
        assert_eq!(
            stacks(text, true),
            [(
                "my app: x".to_owned(),
                Some(42),
                "[app];std::map<int, int>::find (int);do_syscall_64_[k]".to_owned(),
                Some(11_649_875_185_000),
                1
            )]
        );
    }

    #[test]
    fn samples_of_the_same_stack_are_counted_unless_times_are_asked_for() {
        let one = "a 1/1 1.5: cpu-clock: \n\t 10 f (/a)\n\n";
        assert_eq!(stacks(&one.repeat(3), false)[0].4, 3);
        assert_eq!(stacks(&one.repeat(3), true).len(), 3);
    }

    #[test]
    fn a_line_that_is_neither_is_told_by_its_number() {
        let error = read(
            b"a 1/1 1.5: cpu-clock: \n\t 10 f (/a)\n\nhello\n",
            false,
            Limits::default(),
        );
        assert_eq!(
            error.unwrap_err().to_string(),
            "line 4: \"hello\" is neither the head of a sample nor a frame of one"
        );
    }

    #[test]
    fn events_are_told_without_modifiers() {
        assert_eq!(event(" 250000 cpu-clock:uhpppH: "), "cpu-clock");
        assert_eq!(event("  sched:sched_switch: prev=1"), "sched:sched_switch");
        assert_eq!(event("cycles:"), "cycles");
    }
}
