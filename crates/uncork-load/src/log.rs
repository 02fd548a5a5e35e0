//! The log of operations: one line per operation, or sums per interval, in the format of `pgbench
//! --log`.
//!
//! Source: PostgreSQL's manual, pgbench, "Per-Transaction Logging" and "Aggregated Logging". Each
//! thread has a file of its own; times are in microseconds.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use uncork_model::LogPlan;
use uncork_script::Prng;

use crate::{Failure, LoadError};

/// One thread's log.
pub(crate) struct Log {
    file: BufWriter<File>,
    /// The wall clock at the beginning of the measured part, in nanoseconds.
    origin_ns: u128,
    open_loop: bool,
    retries: bool,
    sample: f64,
    random: Prng,
    sums: Option<Sums>,
    /// The first error; nothing is written after it.
    problem: Option<io::Error>,
}

/// How an operation ended. Times count from the beginning of the measured part.
pub(crate) struct Ended<'a> {
    pub(crate) at_ns: u64,
    /// Counted from the intended start.
    pub(crate) latency_ns: u64,
    pub(crate) lag_ns: u64,
    pub(crate) retries: u32,
    pub(crate) failure: Option<&'a Failure>,
}

/// Sums over one interval.
#[derive(Debug, Default)]
struct Sums {
    length_ns: u64,
    number: u64,
    latency: Sum,
    lag: Sum,
    failures: u64,
    retried: u64,
    retries: u64,
}

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    total: f64,
    squares: f64,
    least: f64,
    most: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        self.least = if self.count == 0 {
            value
        } else {
            self.least.min(value)
        };
        self.most = self.most.max(value);
        self.count += 1;
        self.total += value;
        self.squares += value * value;
    }
}

impl Log {
    /// Open the file of a thread. `open_loop` adds the lag, `retries` the number of attempts.
    pub(crate) fn open(
        plan: &LogPlan,
        thread: usize,
        open_loop: bool,
        retries: bool,
        random: Prng,
    ) -> Result<Self, LoadError> {
        let mut path = plan.path.clone().into_os_string();
        if thread > 0 {
            path.push(format!(".{thread}"));
        }
        let path = PathBuf::from(path);
        let file = File::create(&path).map_err(|source| LoadError::Log { path, source })?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 16, file),
            origin_ns: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_nanos()),
            open_loop,
            retries,
            sample: plan.sample,
            random,
            sums: plan.aggregate_ns.map(|length_ns| Sums {
                length_ns,
                ..Sums::default()
            }),
            problem: None,
        })
    }

    /// Log an operation of a client: its number `begun`, from 1, and its script.
    pub(crate) fn operation(
        &mut self,
        client: usize,
        begun: u64,
        script: usize,
        ended: &Ended<'_>,
    ) {
        if self.problem.is_some() {
            return;
        }
        let result = if self.sums.is_some() {
            self.add(ended)
        } else if self.sample < 1.0 && self.random.double() >= self.sample {
            Ok(())
        } else {
            self.line(client, begun - 1, script, ended)
        };
        self.problem = result.err();
    }

    fn line(
        &mut self,
        client: usize,
        number: u64,
        script: usize,
        ended: &Ended<'_>,
    ) -> io::Result<()> {
        let micros = (self.origin_ns + u128::from(ended.at_ns)) / 1_000;
        let (second, micro) = (micros / 1_000_000, micros % 1_000_000);
        let file = &mut self.file;
        write!(file, "{client} {number} ")?;
        match ended.failure {
            Some(_) => write!(file, "failed")?,
            None => write!(file, "{}", ended.latency_ns / 1_000)?,
        }
        write!(file, " {script} {second} {micro}")?;
        if self.open_loop {
            write!(file, " {}", ended.lag_ns / 1_000)?;
        }
        if self.retries {
            write!(file, " {}", ended.retries)?;
        }
        writeln!(file)
    }

    fn add(&mut self, ended: &Ended<'_>) -> io::Result<()> {
        let Some(sums) = &mut self.sums else {
            return Ok(());
        };
        let number = ended.at_ns / sums.length_ns;
        if number != sums.number {
            self.flush_sums(number)?;
        }
        let Some(sums) = &mut self.sums else {
            return Ok(());
        };
        if ended.failure.is_some() {
            sums.failures += 1;
        } else {
            sums.latency.add(micros(ended.latency_ns));
            sums.lag.add(micros(ended.lag_ns));
        }
        sums.retried += u64::from(ended.retries > 0);
        sums.retries += u64::from(ended.retries);
        Ok(())
    }

    fn flush_sums(&mut self, next: u64) -> io::Result<()> {
        let Some(sums) = &mut self.sums else {
            return Ok(());
        };
        let length_ns = sums.length_ns;
        let done = std::mem::replace(
            sums,
            Sums {
                length_ns,
                number: next,
                ..Sums::default()
            },
        );
        let start_ns = self.origin_ns + u128::from(done.number * length_ns);
        let file = &mut self.file;
        write!(
            file,
            "{} {}",
            start_ns / 1_000_000_000,
            done.latency.count + done.failures
        )?;
        let write_sum = |file: &mut BufWriter<File>, sum: &Sum| {
            write!(
                file,
                " {:.0} {:.0} {:.0} {:.0}",
                sum.total, sum.squares, sum.least, sum.most
            )
        };
        write_sum(file, &done.latency)?;
        write!(file, " {}", done.failures)?;
        if self.open_loop {
            write_sum(file, &done.lag)?;
        }
        if self.retries {
            write!(file, " {} {}", done.retried, done.retries)?;
        }
        writeln!(file)
    }

    /// Write what is left.
    pub(crate) fn finish(mut self) -> Result<(), LoadError> {
        let result = match self.problem.take() {
            Some(problem) => Err(problem),
            None if self.sums.is_some() => self.flush_sums(0),
            None => Ok(()),
        };
        result
            .and_then(|()| self.file.flush())
            .map_err(|source| LoadError::System {
                action: "write the log of operations",
                source,
            })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a latency above 2^53 ns is three months long"
)]
fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1_000.0
}
