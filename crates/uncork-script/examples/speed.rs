//! How long one evaluation takes: `cargo run --release -p uncork-script --example speed`.

// A measurement reads the clock and prints; the library does neither.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use uncork_script::{Action, Script, Session, Streams, Symbols, Value};

const COMMANDS: [&str; 8] = [
    "\\set aid random(1, 2000000)",
    "\\set aid random(1, 100000 * :scale)",
    "\\set aid random_zipfian(1, 2000000, 1.2)",
    "\\set aid random_gaussian(1, 2000000, 5)",
    "\\set aid permute(random(0, 1999999), 2000000)",
    "\\set aid case when random(1, 100) <= 90 then random(1, 1000) else random(1001, 2000000) end",
    "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;",
    "SELECT :half;",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const TIMES: u32 = 5_000_000;
    for text in COMMANDS {
        let mut symbols = Symbols::new();
        let script = Script::parse("speed", text, &mut symbols)?;
        let streams = Streams::new(1, 1, None);
        let mut session = Session::new(&symbols, streams.client(0).function);
        for (name, value) in [
            ("scale", Value::from_text("20")),
            ("default_seed", Value::Integer(7)),
            ("aid", Value::Integer(1_234_567)),
            ("delta", Value::Integer(-4321)),
            ("half", Value::Double(0.5)),
        ] {
            if let Some(slot) = symbols.lookup(name) {
                session.set(slot, value);
            }
        }
        let mut buffer = Vec::new();
        let begin = Instant::now();
        for _ in 0..TIMES {
            match &black_box(&script).commands[0].action {
                Action::Set {
                    variable,
                    expression,
                } => {
                    session.save();
                    session.assign(*variable, expression)?;
                }
                Action::Sql(sql) => {
                    buffer.clear();
                    session.write_query(sql, &mut buffer);
                    black_box(&buffer);
                }
                _ => {}
            }
        }
        println!(
            "{:7.1} ns  {text}",
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
        );
    }
    Ok(())
}
