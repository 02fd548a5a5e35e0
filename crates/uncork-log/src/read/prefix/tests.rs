use super::*;

fn read<'a>(prefix: &str, line: &'a str) -> Option<(Head<'a>, &'a str)> {
    let prefix = Prefix::parse(prefix).expect("is a prefix");
    let (head, message) = prefix.read(line.as_bytes(), &mut Clock::default())?;
    Some((head, &line[message..]))
}

fn found(lines: &[&str]) -> Prefix {
    detect(lines.iter().map(|line| line.as_bytes())).expect("finds one")
}

/// Lines with prefixes of providers and packages, the prefix, and the fields of the last line.
const LINES: [(&str, &[&str], [&str; 4]); 12] = [
    (
        "%m [%p] %q%u@%d ",
        &[
            "2025-11-30 21:10:20.101 UTC [55] LOG:  starting PostgreSQL 17.7",
            "2025-11-30 21:10:20.350 UTC [65] app@shop LOG:  duration: 0.1 ms  statement: SELECT 1",
        ],
        ["app", "shop", "", ""],
    ),
    (
        "%m [%p] ",
        &[
            "2025-11-30 21:10:20.101 UTC [65] LOG:  starting",
            "2025-11-30 21:10:20.101 UTC [65] ERROR:  no",
        ],
        ["", "", "", ""],
    ),
    (
        "%t:%r:%u@%d:[%p]:",
        &[
            "2020-03-11 20:40:43 CET::@:[12760]:LOG:  starting PostgreSQL 12.2",
            "2020-03-11 20:41:42 CET:192.168.1.201(50906):gilles@pgbench:[65]:FATAL:  no pg_hba.conf entry",
        ],
        ["gilles", "pgbench", "", "192.168.1.201"],
    ),
    (
        "%m [%p] %e: db=%d,user=%u,app=%a,client=%h ",
        &[
            "2025-11-30 21:10:20.101 UTC [55] 00000: db=,user=,app=,client= LOG:  starting PostgreSQL 17.7",
            "2025-11-30 21:10:20.507 UTC [65] 00000: db=shop,user=me,app=PostgreSQL JDBC Driver,client=[local] LOG:  duration: 21.376 ms",
        ],
        ["me", "shop", "PostgreSQL JDBC Driver", "[local]"],
    ),
    (
        "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
        &["2025-11-30 21:10:20 UTC [65]: [3-1] user=me,db=shop,app=psql,client=10.0.0.1 LOG:  x"],
        ["me", "shop", "psql", "10.0.0.1"],
    ),
    (
        "%m [%p]: [%l-1] db=%d,user=%u ",
        &[
            "2025-11-30 21:10:20.1 UTC [55]: [1-1] db=,user= LOG:  x",
            "2025-11-30 21:10:20.1 UTC [65]: [3-1] db=shop,user=me LOG:  x",
        ],
        ["me", "shop", "", ""],
    ),
    (
        "%t-%c-",
        &["2025-11-30 21:10:20 UTC-692cb2bb.37-LOG:  x"],
        ["", "", "", ""],
    ),
    (
        "%n %p %c %u %d",
        &["1669575482.096 65 692cb2bb.37 me shopLOG:  x"],
        ["me", "shop", "", ""],
    ),
    (
        "user=%u db=%d host=%h pid=%p time=%m ",
        &["user=me db=shop host=[local] pid=65 time=2025-11-30 21:10:20.1 UTC LOG:  x"],
        ["me", "shop", "", "[local]"],
    ),
    (
        "[%m] [%p] [%a] <%u>  ",
        &["[2025-11-30 21:10:20.1 UTC] [65] [psql [2]] <me>  LOG:  x"],
        ["me", "", "psql [2]", ""],
    ),
    (
        "%-10u|%10p|",
        &["me        |        65|LOG:  x"],
        ["me", "", "", ""],
    ),
    ("", &["LOG:  x"], ["", "", "", ""]),
];

#[test]
fn a_prefix_reads_its_lines() {
    for (prefix, lines, [user, database, application, host]) in LINES {
        for line in lines {
            assert!(read(prefix, line).is_some(), "{prefix} on {line}");
        }
        let (head, _) = read(prefix, lines[lines.len() - 1]).expect("fits");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("is UTF-8");
        assert_eq!(
            [
                text(head.user),
                text(head.database),
                text(head.application),
                text(head.host)
            ],
            [user, database, application, host],
            "{prefix}"
        );
        assert!(head.pid == 65 || !prefix.contains('p'), "{prefix}");
        assert_eq!(
            head.time.is_some(),
            prefix.contains(['m', 't', 'n']),
            "{prefix}"
        );
    }
}

#[test]
fn prefixes_are_found_from_their_lines() {
    for (prefix, lines, _) in &LINES[..9] {
        let found = found(lines);
        for line in *lines {
            let expected = read(prefix, line).expect("fits").0;
            let (head, _) = found
                .read(line.as_bytes(), &mut Clock::default())
                .expect("fits");
            let but = Head {
                session: b"",
                sqlstate: head.sqlstate,
                ..expected
            };
            // `%u %d` without names cannot be distinguished from any two words.
            if prefix.starts_with("%n") {
                assert_eq!((head.time, head.pid), (but.time, but.pid));
            } else {
                assert_eq!(
                    Head {
                        session: b"",
                        ..head
                    },
                    but,
                    "{prefix}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_value_is_no_part_of_a_prefix() {
    // The common text of the first lines, and a line with another value.
    for (lines, other, prefix) in [
        (
            &["2025-11-30 21:10:20.101 UTC [65] usr=u,db=d,appli=psql LOG:  x"][..],
            "2025-11-30 21:10:20.101 UTC [66] usr=v,db=e,appli=web app LOG:  x",
            "%m [%p] usr=%u,db=%d,appli=%a ",
        ),
        (
            &["2025-11-30 21:10:20.101 UTC [65] cluster=main,shard=7 LOG:  x"],
            "2025-11-30 21:10:20.101 UTC [65] cluster=other,shard=12 LOG:  x",
            "%m [%p] cluster=%b,shard=%b ",
        ),
        (
            &["2025-11-30 21:10:20.101 UTC [65] app=PostgreSQL JDBC Driver,user=u LOG:  x"],
            "2025-11-30 21:10:20.101 UTC [65] app=psql,user=u LOG:  x",
            "%m [%p] app=%a,user=%u ",
        ),
        (
            &[
                "2025-11-30 21:10:20.101 UTC [65] psql bob shop LOG:  x",
                "2025-11-30 21:10:20.101 UTC [65] web eve shop LOG:  x",
            ],
            "2025-11-30 21:10:20.101 UTC [65] cron ada crm ERROR:  x",
            "%m [%p] %b %b %b ",
        ),
    ] {
        let found = found(lines);
        for line in lines.iter().chain([&other]) {
            let head = found.read(line.as_bytes(), &mut Clock::default());
            assert!(head.is_some(), "{}: {line}", found.text());
        }
        assert_eq!(found.text(), prefix);
    }
}

#[test]
fn a_prefix_of_sessions_reads_lines_of_other_processes() {
    // The prefix as the server has it, and its lines of a session and of the checkpointer (PostgreSQL 15).
    for (prefix, session, checkpointer) in [
        ("%m [%p] %q%u@%d ", "[65] a@b ", "[55] "),
        ("%m [%p]%q %u@%d ", "[65] a@b ", "[55]"),
        ("%m [%p] %q[%u@%d] ", "[65] [a@b] ", "[55] "),
        ("%m [%p] %quser=%u,db=%d ", "[65] user=a,db=b ", "[55] "),
        (
            "%m [%p] %q%u@%d/%a/%h ",
            "[65] a@b/web app/[local] ",
            "[55] ",
        ),
        ("%m [%p] %e %q%u@%d ", "[65] 00000 a@b ", "[55] 00000 "),
        (
            "%m [%p] %c %q%h ",
            "[65] 6b0c23d9.64bb [local] ",
            "[55] 6b0c239d.5a0d ",
        ),
        (
            "%m [%p] %b %q%u@%d ",
            "[65] client backend a@b ",
            "[55] checkpointer ",
        ),
        (
            "%m [%p]: [%l-1] %q%u@%d ",
            "[65]: [3-1] a@b ",
            "[55]: [3-1] ",
        ),
        ("%m|%p|%q%u|%d|", "|65|a|b|", "|55|"),
        ("%m %p %q(%u,%d,%r) ", "65 (a,b,[local]) ", "55 "),
    ] {
        let time = "2026-05-31 08:00:00.123 UTC";
        let gap = if prefix.starts_with("%m|") { "" } else { " " };
        let line = |head: &str, text: &str| format!("{time}{gap}{head}{text}");
        let session = line(session, "LOG:  duration: 1.0 ms  statement: SELECT 1");
        let other = line(checkpointer, "LOG:  checkpoint starting: time");
        assert!(read(prefix, &other).is_some(), "{prefix} on {other}");
        // A rotated file begins with lines of sessions only.
        let found = found(&[&session]);
        let expected = read(prefix, &session).expect("fits").0;
        for reader in [&found, &Prefix::parse(prefix).expect("is a prefix")] {
            let (head, message) = reader
                .read(other.as_bytes(), &mut Clock::default())
                .unwrap_or_else(|| panic!("{reader:?} on {other}"));
            assert_eq!(&other[message..], "checkpoint starting: time");
            assert_eq!((head.pid, head.user), (55, &b""[..]), "{reader:?}");
        }
        let (head, _) = found
            .read(session.as_bytes(), &mut Clock::default())
            .expect("fits");
        assert_eq!((head.time, head.pid), (expected.time, expected.pid));
        // Fields without a name cannot be distinguished.
        if !prefix.contains(['|', '(']) {
            assert_eq!(head.user, expected.user, "{}", found.text());
            assert_eq!(head.session, expected.session, "{}", found.text());
        }
    }
}

#[test]
fn ordinary_text_is_no_line_of_another_process() {
    let session = "2026-05-31 08:00:00.123 UTC [65] a@b 00000 LOG:  duration: 1.0 ms";
    let found = found(&[session]);
    for text in [
        "LOG:  no time",
        "2026-05-31 08:00:00.123 UTC LOG:  no process",
        "2026-05-31 08:00:00.123 UTC [LOG:  no process",
        "2026-05-31 08:00:00.123 UTC [65] text of a message",
        "2026-05-31 08:00:00.123 UTC [65] text LOG:  of a message",
        "2026-05-31 08:00:00.123 UTC [65] a@LOG:  b",
        "2026-05-31 08:00:00.123 UTC [65] LOGS:  of a ship",
        "[65] LOG:  no time",
        "\t2026-05-31 08:00:00.123 UTC [65] LOG:  a line that goes on",
    ] {
        assert_eq!(
            found.read(text.as_bytes(), &mut Clock::default()),
            None,
            "{}: {text}",
            found.text()
        );
    }
}

#[test]
fn fields_without_a_name_are_told_apart() {
    let id = "-4611686018427387904";
    for (heads, prefix) in [
        (&["00000: ", "22012: ", "42P01: "][..], "%e: "),
        (&["22012: "], "%e: "),
        (&["00000:b@a:", "22012:b@a:"], "%e:%u@%d:"),
        (&["22012:b@a:"], "%e:%u@%d:"),
        (&["42P01:b@a:"], "%e:%u@%d:"),
        // A process whose number is a code too.
        (&["22012 ", "22013 ", "22017 ", "22090 "], "%p "),
        (&["22017:b@a:"], "%p:%u@%d:"),
        (
            &["[queryid=0] b@a ", "[queryid=-77] c@a "],
            "[queryid=%Q] %u@%d ",
        ),
        (&[id, "4611686018427387904", "0"], "%Q"),
        (
            &["0 ", "4611686018427387904 ", "-4611686018427387904 "],
            "%Q ",
        ),
        (&["0 "], "%Q "),
        (&["state=idle ", "state=active "], "state=%b "),
        (&["state=00000 ", "state=42P01 "], "state=%e "),
    ] {
        let lines: Vec<String> = heads.iter().map(|head| format!("{head}LOG:  x")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(found(&lines).text(), prefix, "{lines:?}");
        let timed: Vec<String> = heads
            .iter()
            .map(|head| format!("2025-11-30 21:10:20 UTC [65] {head}LOG:  x"))
            .collect();
        let timed: Vec<&str> = timed.iter().map(String::as_str).collect();
        if !prefix.contains("%p") {
            assert_eq!(found(&timed).text(), format!("%t [%p] {prefix}"));
        }
    }
}

#[test]
fn severities_are_read_and_the_message_begins_behind_them() {
    let (head, message) = read("%p ", "7 STATEMENT:  SELECT 1").expect("fits");
    assert_eq!((head.severity, message), (Severity::Statement, "SELECT 1"));
    assert!(head.severity.is_addition());
    let (head, message) = read("%p ", "7 DEBUG3:  x").expect("fits");
    assert_eq!((head.severity, message), (Severity::Debug, "x"));
    assert_eq!(read("%p ", "7 LOG:  "), read("%p ", "7 LOG:  "));
    for line in [
        "7 Log:  x",
        "7 LOGS:  x",
        "x LOG:  x",
        "7",
        "",
        "7 LOG",
        "\tfrom t",
    ] {
        assert_eq!(read("%p ", line), None, "{line}");
    }
}

#[test]
fn a_text_in_a_message_is_no_prefix() {
    let line = "2025-11-30 21:10:20.350 UTC [65] a@b LOG:  statement: SELECT ' x@y LOG:  '";
    let (head, message) = read("%m [%p] %q%u@%d ", line).expect("fits");
    assert_eq!(
        (head.user, message),
        (&b"a"[..], "statement: SELECT ' x@y LOG:  '")
    );
}

#[test]
fn an_escape_that_no_server_knows_is_refused() {
    assert_eq!(Prefix::parse("%m %y"), Err(UnknownEscape('y')));
    assert_eq!(Prefix::parse("%"), Err(UnknownEscape(' ')));
    assert_eq!(
        UnknownEscape('y').to_string(),
        "%y is no escape of log_line_prefix"
    );
}

#[test]
fn lines_of_something_else_have_none() {
    assert_eq!(detect([&b"GET / HTTP/1.1"[..], b"", b"\xff\xfe"]), None);
    assert_eq!(detect(std::iter::empty()), None);
    // Found by damaging logs: a name after a multi-byte character.
    let line = "2026-01-01 00:00:00 UTC \u{feff}user=a LOG:  x".as_bytes();
    assert!(detect([line]).is_some());
}

#[test]
fn many_possible_ends_of_fields_take_no_time() {
    // Found by damaging logs: this took a thousand to the power of the number of fields.
    let line = "2025-11-30 21:10:20 UTC ".repeat(40);
    for prefix in ["%m %b %b %b %b %b %b [%p] ", "%m %b%b%b%b%b%b[%p] "] {
        assert_eq!(read(prefix, &line), None);
    }
    let fits = "2025-11-30 21:10:20 UTC a b c d e f [65] LOG:  x";
    let (head, message) = read("%m %b %b %b %b %b %b [%p] ", fits).expect("fits");
    assert_eq!((head.pid, message), (65, "x"));
}
