//! Whole scripts: pgbench's built-in ones, control flow, and scripts of any rubbish.

mod client;

use client::{Client, Row};
use uncork_script::{Action, Piece, Prng, Script, Session, Sleep, Streams, Symbols, Value};

const TPCB_LIKE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

fn parse(text: &str) -> (Script, Symbols) {
    let mut symbols = Symbols::new();
    let script = Script::parse("s.sql", text, &mut symbols).expect(text);
    (script, symbols)
}

fn client(symbols: &Symbols, defined: &[(&str, &str)]) -> Client {
    Client::new(symbols, &Streams::new(1, 1, None), 0, defined)
}

#[test]
fn the_built_in_script_is_eleven_commands() {
    let (script, symbols) = parse(TPCB_LIKE);
    assert_eq!(script.commands.len(), 11);
    assert!(
        script
            .commands
            .iter()
            .map(|command| command.line)
            .eq(1..=11)
    );
    assert!(!script.uses_pipeline() && !script.has_capture() && !script.sleeps());
    let sent = client(&symbols, &[("scale", "20")])
        .run(&script, &symbols, &[])
        .unwrap();
    assert_eq!(sent.len(), 7);
    assert_eq!((sent[0].as_str(), sent[6].as_str()), ("BEGIN;", "END;"));
    let Action::Sql(update) = &script.commands[5].action else {
        panic!()
    };
    assert_eq!(
        update.numbered,
        "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2;"
    );
    assert_eq!(update.first_line(), update.text);
    let names: Vec<&str> = update
        .parameters
        .iter()
        .map(|&slot| symbols.name(slot))
        .collect();
    assert_eq!(names, ["delta", "aid"]);
}

#[test]
fn scripts_of_a_load_share_their_variables() {
    let mut symbols = Symbols::new();
    Script::parse("one", "\\set a 1\nSELECT :b;", &mut symbols).unwrap();
    Script::parse("two", "\\set b :a + 1", &mut symbols).unwrap();
    assert_eq!(symbols.names(), ["a", "b"]);
}

#[test]
fn one_branch_is_taken() {
    let text = "\
\\if :x = 1
SELECT 'one';
\\elif :x = 2
SELECT 'two';
\\if :y
SELECT 'inner';
\\else
SELECT 'not inner';
\\endif
\\else
SELECT 'other';
\\endif
SELECT 'end';
";
    let (script, symbols) = parse(text);
    for (x, y, expected) in [
        ("1", "1", vec!["one", "end"]),
        ("2", "1", vec!["two", "inner", "end"]),
        ("2", "0.0", vec!["two", "not inner", "end"]),
        ("3", "1", vec!["other", "end"]),
    ] {
        let sent = client(&symbols, &[("x", x), ("y", y)])
            .run(&script, &symbols, &[])
            .unwrap();
        let expected: Vec<String> = expected
            .into_iter()
            .map(|word| format!("SELECT '{word}';"))
            .collect();
        assert_eq!(sent, expected);
    }
    for (index, command) in script.commands.iter().enumerate() {
        if let Action::Jump(target)
        | Action::Branch {
            otherwise: target, ..
        } = command.action
        {
            assert!(target > index && target <= script.commands.len());
        }
    }
}

#[test]
fn sleeping_is_counted_in_nanoseconds() {
    let text =
        "\\sleep 2\n\\sleep 3ms\n\\sleep 100 US\n\\sleep -1 s\n\\sleep :one ms\n\\sleep :two";
    let (script, symbols) = parse(text);
    assert!(script.sleeps());
    let mut session = Session::new(&symbols, Prng::new(1));
    session.set(symbols.lookup("one").unwrap(), Value::Double(1.0));
    session.set(symbols.lookup("two").unwrap(), Value::from_text(" 2 days"));
    let waits: Vec<u64> = script
        .commands
        .iter()
        .map(|command| {
            let Action::Sleep(sleep) = &command.action else {
                panic!()
            };
            session.sleep_ns(sleep).unwrap_or(u64::MAX)
        })
        .collect();
    assert_eq!(
        waits,
        [
            2_000_000_000,
            3_000_000,
            100_000,
            0,
            1_000_000,
            2_000_000_000
        ]
    );
    assert_eq!(session.sleep_ns(&Sleep::Fixed { ns: 7 }), Ok(7));
}

#[test]
fn a_session_goes_back_to_what_was_saved_as_often_as_one_likes() {
    let (script, symbols) = parse("\\set a random(1, 1000000)\nSELECT :b, :c, :d;");
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| symbols.lookup(name).unwrap());
    let mut session = Session::new(&symbols, Prng::new(3));
    session.restore();
    session.set(b, Value::Integer(1));
    session.set_text(c, b"text");
    session.save();
    let Action::Set { expression, .. } = &script.commands[0].action else {
        panic!()
    };
    let mut drawn = Vec::new();
    for _ in 0..3 {
        session.assign(a, expression).unwrap();
        drawn.push(session.get(a).cloned());
        session.set(b, Value::Null);
        session.set(b, Value::Boolean(true));
        session.set_text(c, b"other");
        session.set_text(c, b"and again");
        session.set_text(d, b"");
        assert_eq!(session.get(c), Some(&Value::from_text("and again")));
        session.restore();
        let now = [a, b, c, d].map(|slot| session.get(slot).cloned());
        assert_eq!(
            now,
            [
                None,
                Some(Value::Integer(1)),
                Some(Value::from_text("text")),
                None
            ]
        );
    }
    assert_eq!(drawn[0], drawn[1]);
    assert_eq!(drawn[1], drawn[2]);
}

#[test]
fn a_captured_null_is_empty_text_and_has_no_value_in_an_expression() {
    let (script, symbols) = parse("SELECT NULL AS x \\gset\nSELECT ':x';\n\\set y :x + 1");
    let rows = [Row::from([("x", None), ("unused", Some("1".to_owned()))])];
    let error = client(&symbols, &[])
        .run(&script, &symbols, &rows)
        .unwrap_err();
    assert!(
        error.starts_with("s.sql:3: variable \"x\" is empty"),
        "{error}"
    );
}

#[test]
fn rubbish_is_parsed_or_refused_but_never_trips_the_parser() {
    const FRAGMENTS: [&str; 46] = [
        "SELECT",
        " ",
        "\n",
        ";",
        "'",
        "\"",
        "$$",
        "$a$",
        "$1",
        "--",
        "/*",
        "*/",
        "(",
        ")",
        "\\",
        "\\;",
        "\\:",
        ":",
        "::",
        ":a",
        ":ä",
        "ö",
        "E'",
        "é'",
        "\\set a ",
        "\\if ",
        "\\elif ",
        "\\else",
        "\\endif",
        "\\gset ",
        "\\sleep ",
        "1",
        "1.5e3",
        "random(",
        ",",
        "+",
        "-",
        "case when ",
        " end",
        "not ",
        " is null",
        "\\\n",
        "\r",
        "\0",
        ":{?a}",
        "create function begin ",
    ];
    let mut random = Prng::new(2);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let length = random.up_to(12);
        let text: String = (0..length)
            .map(|_| FRAGMENTS[usize::try_from(random.up_to(45)).unwrap()])
            .collect();
        let mut symbols = Symbols::new();
        let Ok(script) = Script::parse("s", &text, &mut symbols) else {
            continue;
        };
        parsed += 1;
        for command in &script.commands {
            let Action::Sql(sql) = &command.action else {
                continue;
            };
            let mut end = 0;
            for piece in &sql.pieces {
                let (Piece::Text(range) | Piece::Variable { range, .. }) = piece;
                assert_eq!(range.start, end, "{text}");
                end = range.end;
            }
            assert_eq!(end, sql.text.len());
            let mut query = Vec::new();
            Session::new(&symbols, Prng::new(1)).write_query(sql, &mut query);
            assert_eq!(query, sql.text.as_bytes());
        }
    }
    assert!(parsed > 1_000, "{parsed}");
}
