//! How fast entries are read: `cargo run --release -p uncork-log --example speed`.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::io::Write as _;
use std::time::Instant;

use twox_hash::XxHash3_128;
use uncork_log::{Entry, Gathered, Lines, Message, Prefix, Sink, Stripper};

#[derive(Default)]
struct Reader {
    stripper: Stripper,
    stage: u8,
    sum: u128,
    entries: u64,
}

impl Sink for Reader {
    fn entry(&mut self, entry: &Entry<'_>) {
        self.entries += 1;
        if self.stage == 0 {
            return;
        }
        if let Message::Duration { micros, text, .. } = Message::read(entry.message) {
            self.sum ^= u128::from(micros);
            if self.stage == 2 {
                self.sum ^= u128::from(uncork_log::skeleton(text));
            } else if self.stage > 2 {
                let stripped = self.stripper.strip(text);
                self.sum ^= XxHash3_128::oneshot(stripped.text);
            }
        }
    }

    fn rejected(&mut self, _offset: u64, _line: &[u8]) {}
}

fn main() -> std::io::Result<()> {
    let mut log = Vec::new();
    for number in 0..400_000_u64 {
        writeln!(
            log,
            "2025-11-30 21:{:02}:{:02}.{:03} UTC [{}] app@shop web LOG:  duration: 0.{:03} ms  statement: SELECT f, g FROM table_{} WHERE id = {} AND name = 'x{}' ORDER BY f LIMIT 10",
            number / 60_000 % 60,
            number / 1_000 % 60,
            number % 1_000,
            1_000 + number % 200,
            number % 1_000,
            number % 1_200,
            number * 7,
            number,
        )?;
    }
    let mut out = std::io::stdout();
    for (stage, name) in ["entries", "and messages", "and skeletons", "or templates"]
        .iter()
        .enumerate()
    {
        let mut best = f64::INFINITY;
        let mut reader = Reader::default();
        for _ in 0..7 {
            reader = Reader {
                stage: u8::try_from(stage).unwrap_or(0),
                ..Reader::default()
            };
            let Ok(prefix) = Prefix::parse("%m [%p] %q%u@%d %a ") else {
                return Ok(());
            };
            let begin = Instant::now();
            Lines::new(prefix).scan(&log, 0, &mut reader);
            best = best.min(begin.elapsed().as_secs_f64());
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let (bytes, entries) = (log.len() as f64, reader.entries as f64);
        writeln!(
            out,
            "{name}: {:.0} MB/s, {:.0} ns an entry of {:.0} bytes ({})",
            bytes / best / 1e6,
            best / entries * 1e9,
            bytes / entries,
            reader.sum % 7,
        )?;
    }
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let mut gathered = Gathered::default();
        let Ok(prefix) = Prefix::parse("%m [%p] %q%u@%d %a ") else {
            return Ok(());
        };
        let begin = Instant::now();
        Lines::new(prefix).scan(&log, 0, &mut gathered);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes = log.len() as f64;
    writeln!(out, "gathered: {:.0} MB/s", bytes / best / 1e6)
}
