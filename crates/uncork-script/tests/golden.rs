//! The same scripts, seeds and variables give what PostgreSQL's own pgbench gave: the files in
//! `golden/` were made with it, by the recipe `golden/make.sh`.

mod client;

use client::{Client, Row};
use uncork_script::{Action, Script, Streams, Symbols, Value};

const EXPRESSIONS: &str = include_str!("golden/expressions.txt");
const TYPES: &str = include_str!("golden/types.golden");
const VALUES: &str = include_str!("golden/values.golden");
const CHOICES: &str = include_str!("golden/choices.golden");
const STATEMENTS: &str = include_str!("golden/statements.sql");
const STATEMENTS_GOLDEN: &str = include_str!("golden/statements.golden");
const PREPARED: &str = include_str!("golden/prepared.sql");
const PREPARED_GOLDEN: &str = include_str!("golden/prepared.golden");

/// What the recipe gives with `-D`.
const DEFINED: [(&str, &str); 9] = [
    ("foo", "-10.1"),
    ("bla", "false"),
    ("i", "+3"),
    ("n", "null"),
    ("t", "t"),
    ("f", "of"),
    ("d", "1.0"),
    ("e", "1e3"),
    ("word", "yes"),
];

fn expressions() -> Vec<&'static str> {
    let lines = EXPRESSIONS.lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

fn describe(value: &Value) -> String {
    let mut text = Vec::new();
    value.write_text(&mut text);
    let text = String::from_utf8(text).expect("UTF-8");
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(_) => format!("boolean {text}"),
        Value::Integer(_) => format!("int {text}"),
        Value::Double(_) => format!("double {text}"),
        Value::Text(_) => format!("text {text}"),
    }
}

#[test]
fn expressions_have_the_types_and_values_of_pgbench() {
    let expressions = expressions();
    assert_eq!(expressions.len(), TYPES.lines().count());
    let lines = expressions
        .iter()
        .map(|expression| format!("\\set v debug({expression})\n"));
    let mut symbols = Symbols::new();
    let script = Script::parse("types", &lines.collect::<String>(), &mut symbols).unwrap();
    let mut client = Client::new(&symbols, &Streams::new(5432, 1, None), 0, &DEFINED);
    for ((command, expression), expected) in
        script.commands.iter().zip(&expressions).zip(TYPES.lines())
    {
        let Action::Set {
            variable,
            expression: parsed,
        } = &command.action
        else {
            panic!("{command:?}")
        };
        client.session.assign(*variable, parsed).unwrap();
        assert_eq!(
            describe(client.session.get(*variable).unwrap()),
            expected,
            "{expression}"
        );
    }
}

#[test]
fn four_clients_send_the_values_that_pgbench_sent() {
    let expressions = expressions();
    let pairs = (1..).zip(&expressions).map(|(number, expression)| {
        let insert =
            format!("INSERT INTO golden VALUES (:client_id, :transaction, {number}, ':v');");
        format!("\\set v {expression}\n{insert}\n")
    });
    let text = format!(
        "\\set transaction :transaction + 1\n{}",
        pairs.collect::<String>()
    );
    let mut symbols = Symbols::new();
    let script = Script::parse("values", &text, &mut symbols).unwrap();
    let streams = Streams::new(987_654_321, 4, None);
    let defined: Vec<_> = DEFINED.into_iter().chain([("transaction", "0")]).collect();
    let mut expected = VALUES.lines();
    for index in 0..4 {
        let mut client = Client::new(&symbols, &streams, index, &defined);
        for transaction in 1..=3 {
            let sent = client.run(&script, &symbols, &[]).unwrap();
            assert_eq!(sent.len(), expressions.len());
            for ((number, query), expression) in (1..).zip(sent).zip(&expressions) {
                let row: Vec<&str> = expected.next().unwrap().split('\t').collect();
                let value = row[3];
                assert_eq!(
                    query,
                    format!(
                        "INSERT INTO golden VALUES ({index}, {transaction}, {number}, '{value}');"
                    ),
                    "{expression}"
                );
            }
        }
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn a_retry_repeats_the_values() {
    let mut symbols = Symbols::new();
    let text = "\\set n :n + 1\n\\set aid random(1, 1000000)\nSELECT :n, :aid AS last \\gset\n";
    let script = Script::parse("retry", &format!("{text}SELECT :last;"), &mut symbols).unwrap();
    let mut client = Client::new(&symbols, &Streams::new(1, 1, None), 0, &[("n", "0")]);
    let rows = |last: &str| vec![Row::from([("last", Some(last.to_owned()))])];
    let mut before = Vec::new();
    for operation in 0..3 {
        client.session.save();
        let first = client.run(&script, &symbols, &rows("one")).unwrap();
        for _ in 0..2 {
            client.session.restore();
            assert_eq!(client.run(&script, &symbols, &rows("one")).unwrap(), first);
        }
        assert!(
            first[0].starts_with(&format!("SELECT {}, ", operation + 1)),
            "{}",
            first[0]
        );
        assert_ne!(first, before);
        before = first;
    }
}

#[test]
fn each_client_chooses_the_scripts_that_a_thread_of_pgbench_chose() {
    let streams = Streams::new(77, 3, None);
    let mut expected = CHOICES.lines();
    for client in 0..3 {
        let mut choose = streams.client(client).choose;
        for transaction in 1..=20 {
            let script = choose.pick(&[5, 1, 3]) + 1;
            assert_eq!(
                expected.next(),
                Some(format!("{client}\t{transaction}\t{script}").as_str())
            );
        }
    }
}

/// A line of `COPY` in text format, as the two columns it had.
fn columns(line: &str) -> (String, String) {
    let unescape = |text: &str| {
        let mut plain = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match if letter == '\\' { letters.next() } else { None } {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('N') => plain.push_str("NULL"),
                Some(other) => plain.push(other),
                None => plain.push(letter),
            }
        }
        plain
    };
    let (first, second) = line.split_once('\t').expect("two columns");
    (unescape(first), unescape(second))
}

fn row(columns: &[(&'static str, Option<&str>)]) -> Row {
    columns
        .iter()
        .map(|&(name, value)| (name, value.map(str::to_owned)))
        .collect()
}

#[test]
fn a_server_gets_the_requests_it_got_from_pgbench() {
    let mut symbols = Symbols::new();
    let script = Script::parse("statements.sql", STATEMENTS, &mut symbols).unwrap();
    let mut client = Client::new(&symbols, &Streams::new(1, 1, None), 0, &[]);
    let rows = [
        row(&[
            ("three", Some("3")),
            ("four", Some("4")),
            ("bond", Some("007")),
            ("gone", None),
        ]),
        row(&[
            ("sum", Some("7")),
            ("a", Some("007")),
            ("b", Some("7")),
            ("c", Some("")),
        ]),
        row(&[
            ("sum", Some("7")),
            ("bond", Some("8")),
            ("undefined", Some(":undefined")),
        ]),
    ];
    let sent = client.run(&script, &symbols, &rows).unwrap();
    let expected: Vec<String> = STATEMENTS_GOLDEN
        .lines()
        .map(|line| columns(line).0)
        .collect();
    assert_eq!(sent, expected);
}

#[test]
fn a_server_gets_the_parameters_it_got_from_pgbench() {
    let mut symbols = Symbols::new();
    let script = Script::parse("prepared.sql", PREPARED, &mut symbols).unwrap();
    script.check_extended().unwrap();
    let mut client = Client::new(&symbols, &Streams::new(1, 1, None), 0, &[]);
    let rows = [row(&[
        ("five", Some("5")),
        ("gone", None),
        ("text", Some("x;")),
    ])];
    let sent = client.run_extended(&script, &symbols, &rows).unwrap();
    let expected: Vec<_> = PREPARED_GOLDEN.lines().map(columns).collect();
    assert_eq!(sent, expected);
}
