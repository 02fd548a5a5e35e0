use super::*;

fn unwrapped(log: &str) -> (String, &'static str, Option<String>) {
    let mut unwrapper =
        Unwrapper::detect(log.as_bytes(), Written::at(1_767_225_599), None).expect("is wrapped");
    let mut out = Vec::new();
    // In two parts, as it may arrive.
    let middle = log[..log.len() / 2].rfind('\n').map_or(0, |at| at + 1);
    unwrapper.feed(&log.as_bytes()[..middle], &mut out);
    unwrapper.feed(&log.as_bytes()[middle..], &mut out);
    unwrapper.finish(&mut out);
    let prefix = unwrapper.dialect().prefix().map(str::to_owned);
    (
        String::from_utf8(out).expect("is UTF-8"),
        unwrapper.name(),
        prefix,
    )
}

#[test]
fn lines_of_an_entry_are_put_together_though_others_lie_between() {
    let log = "\
Nov 30 21:10:20 db1 postgres[55]: [3-1] 2025-11-30 21:10:20.100 UTC [55] a@d LOG:  duration: 1.000 ms  statement: SELECT 1,
Nov 30 21:10:20 db1 postgres[56]: [1-1] 2025-11-30 21:10:20.101 UTC [56] a@d ERROR:  no
Nov 30 21:10:20 db1 postgres[55]: [3-2] #011 2
Nov 30 21:10:20 db1 postgres[56]: [1-2] 2025-11-30 21:10:20.101 UTC [56] a@d STATEMENT:  SELECT 3
Nov 30 21:10:21 db1 postgres[55]: [4-1] 2025-11-30 21:10:21.000 UTC [55] a@d LOG:  next
";
    let expected = "\
2025-11-30 21:10:20 [55] 2025-11-30 21:10:20.100 UTC [55] a@d LOG:  duration: 1.000 ms  statement: SELECT 1,
\t 2
2025-11-30 21:10:20 [56] 2025-11-30 21:10:20.101 UTC [56] a@d ERROR:  no
2025-11-30 21:10:20 [56] 2025-11-30 21:10:20.101 UTC [56] a@d STATEMENT:  SELECT 3
2025-11-30 21:10:21 [55] 2025-11-30 21:10:21.000 UTC [55] a@d LOG:  next
";
    let (text, name, prefix) = unwrapped(log);
    assert_eq!(text, expected);
    assert_eq!(
        (name, prefix.as_deref()),
        ("syslog", Some("%m [%p] %m [%p] %q%u@%d "))
    );
}

#[test]
fn every_form_of_syslog_is_read() {
    for head in [
        "2019-03-14T00:22:56+00:00 app[postgres.4882]: [GREEN] [15-1]  ",
        "2021-09-07T04:01:27+00:00 d.af28b93f app[postgres.4882] [AQUA] [921320-1]  ",
        "Mar 14 00:22:56 host postgres[4882]: [15-1] ",
        "Mar  4 00:22:56.123 host my-postgres[4882]: [15-1] ",
        "<134>Mar 14 00:22:56 host postgres[4882]: [15-1] ",
        "<134>1 2019-03-14T00:22:56.123Z host postgres 4882 - - [15-1] ",
        "<134>1 2019-03-14T00:22:56.123Z host postgres 4882 id [a b=\"]\"][c d=\"e\"] \u{feff}[15-1] ",
        "2019-03-14T00:22:56+00:00 host postgres[4882]: [15-1] ",
        "Mar 14 00:22:56 host postgres[4882]: ",
    ] {
        let log = format!("{head}LOG:  process 1 still waiting\n");
        let (text, name, prefix) = unwrapped(&log);
        assert_eq!(name, "syslog", "{head}");
        assert_eq!(
            prefix.as_deref().map(str::trim_end),
            Some("%m [%p]"),
            "{head}"
        );
        let line = text.split_once(" [4882] ").map(|(_, line)| line.trim());
        assert_eq!(line, Some("LOG:  process 1 still waiting"), "{head}");
    }
}

#[test]
fn containers_and_records_pass_lines_on() {
    let line = "2026-01-01 00:00:00.000 UTC [7] LOG:  ready";
    for (log, name) in [
        (
            format!(
                "2026-01-01T00:00:00.1Z stderr P {}\n2026-01-01T00:00:00.1Z stderr F {}\n",
                &line[..20],
                &line[20..]
            ),
            "container",
        ),
        (
            format!(
                "{{\"log\":\"{line}\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-01T00:00:00.1Z\"}}\n"
            ),
            "JSON",
        ),
        (
            format!(
                "{{\"insertId\":\"s=1\",\"textPayload\":\"{line}\",\"timestamp\":\"2026-01-01T00:00:00Z\"}}\n"
            ),
            "JSON",
        ),
        (
            format!("{{\"MESSAGE\":\"{line}\",\"_PID\":\"7\",\"PRIORITY\":\"6\"}}\n"),
            "JSON",
        ),
    ] {
        let (text, found, prefix) = unwrapped(&log);
        assert_eq!((text.as_str(), found), (format!("{line}\n").as_str(), name));
        assert!(prefix.is_some_and(|prefix| prefix.starts_with("%m [%p] ")));
    }
}

#[test]
fn what_is_not_wrapped_is_left_alone() {
    for log in [
        "2026-01-01 00:00:00.000 UTC [7] LOG:  ready\n",
        "2026-01-01 00:00:00 UTC [7]: [1-1] user=,db= LOG:  ready\n",
        "2026-01-01 00:00:00 UTC::@:[7]:LOG:  ready\n",
        "{\"timestamp\":\"2026-01-01 00:00:00 UTC\",\"pid\":7,\"error_severity\":\"LOG\",\"message\":\"ready\"}\n",
        "Dear Sir or Madam,\nno log is this.\n",
        "<134>1 x host postgres 4882 - - LOG:  ready\n",
        "",
    ] {
        assert!(
            Unwrapper::detect(log.as_bytes(), Written::at(1_767_225_599), None).is_none(),
            "{log}"
        );
    }
}

#[test]
fn what_does_not_fit_is_passed_on() {
    let good = "Nov 30 21:10:20 db1 postgres[55]: [3-1] LOG:  ready\n";
    let log = format!("{good}{good}what is this\n{good}");
    assert!(unwrapped(&log).0.contains("what is this\n"));
}

/// Read a log in parts; return the times and the texts of entries.
fn entries(log: &str) -> Vec<(Option<i64>, String)> {
    #[derive(Default)]
    struct Seen(Vec<(Option<i64>, String)>);
    impl crate::read::entry::Sink for Seen {
        fn entry(&mut self, entry: &crate::read::entry::Entry<'_>) {
            let text = [entry.message, entry.statement].concat();
            let text = String::from_utf8(text).expect("is UTF-8");
            self.0.push((entry.head.time, text));
        }
        fn rejected(&mut self, _offset: u64, _line: &[u8]) {
            self.0.push((None, "rejected".to_owned()));
        }
    }
    let mut unwrapper =
        Unwrapper::detect(log.as_bytes(), Written::at(1_780_214_400), None).expect("is wrapped");
    let mut out = Vec::new();
    for line in log.split_inclusive('\n') {
        let mut part = Vec::new();
        unwrapper.feed(line.as_bytes(), &mut part);
        out.extend_from_slice(&part);
    }
    unwrapper.finish(&mut out);
    let mut seen = Seen::default();
    unwrapper.dialect().clone().scan(&out, 0, &mut seen);
    seen.0
}

#[test]
fn a_line_without_a_time_has_that_of_its_wrapper() {
    let eight = 1_780_214_400_000_000;
    for (first, second) in [
        // Cloud SQL, Docker, journald, Kubernetes.
        (
            r#"{"insertId":"a","timestamp":"2026-05-31T08:00:00.5Z","receiveTimestamp":"2026-05-31T09:00:00Z","textPayload":"TEXT"}"#,
            r#"{"insertId":"b","timestamp":"2026-05-31T08:00:01Z","textPayload":"TEXT"}"#,
        ),
        (
            r#"{"log":"TEXT\n","stream":"stderr","time":"2026-05-31T08:00:00.500000000Z"}"#,
            r#"{"log":"TEXT\n","stream":"stderr","time":"2026-05-31T08:00:01.000000000Z"}"#,
        ),
        (
            r#"{"__REALTIME_TIMESTAMP":"1780214400500000","_PID":"7","MESSAGE":"TEXT"}"#,
            r#"{"__REALTIME_TIMESTAMP":"1780214401000000","_PID":"7","MESSAGE":"TEXT"}"#,
        ),
        (
            "2026-05-31T10:00:00.5+02:00 stderr F TEXT",
            "2026-05-31T08:00:01Z stderr F TEXT",
        ),
        // journalctl -o short-precise, short-iso-precise, short-unix, short-full.
        (
            "May 31 08:00:00.500 db1 postgres[7]: TEXT",
            "May 31 08:00:01.000 db1 postgres[7]: TEXT",
        ),
        (
            "2026-05-31T08:00:00.5+0000 db1 postgres[7]: TEXT",
            "2026-05-31T08:00:01.0+0000 db1 postgres[7]: TEXT",
        ),
        (
            "1780214400.500000 db1 postgres[7]: TEXT",
            "1780214401.000000 db1 postgres[7]: TEXT",
        ),
        (
            "Sun 2026-05-31 10:00:00.5 CEST db1 postgres[7]: TEXT",
            "Sun 2026-05-31 10:00:01.0 CEST db1 postgres[7]: TEXT",
        ),
    ] {
        let mut log = String::new();
        for (line, text) in [
            (first, "[7] ERROR:  no"),
            (first, "[7] STATEMENT:  SELECT 1"),
            (second, "[7] LOG:  ready"),
        ] {
            log += &line.replace("TEXT", text);
            log.push('\n');
        }
        let expected = [
            (Some(eight + 500_000), "noSELECT 1".to_owned()),
            (Some(eight + 1_000_000), "ready".to_owned()),
        ];
        assert_eq!(entries(&log), expected, "{log}");
    }
}

#[test]
fn times_of_a_wrapper_are_no_part_of_further_lines() {
    // The rest of a long line, further lines within a record, and a record without a time.
    let container = "\
2026-05-31T08:00:00Z stderr P [7] LOG:  statement: SELECT
2026-05-31T08:00:01Z stderr P  1,
2026-05-31T08:00:01Z stderr F  2
2026-05-31T08:00:01Z stderr F \t3
2026-05-31T08:00:02Z stderr F [7] LOG:  x
";
    let (first, second) = (1_780_214_400_000_000, 1_780_214_402_000_000);
    assert_eq!(
        entries(container),
        [
            (Some(first), "statement: SELECT 1, 2\n\t3".to_owned()),
            (Some(second), "x".to_owned())
        ]
    );
    let record = r#"{"timestamp":"2026-05-31T08:00:00Z","textPayload":"[7] LOG:  statement: SELECT 1,\n\t2"}
{"timestamp":"2026-05-31T08:00:02Z","textPayload":"[7] LOG:  x"}
{"textPayload":"[7] LOG:  y"}
"#;
    assert_eq!(
        entries(record),
        [
            (Some(first), "statement: SELECT 1,\n\t2".to_owned()),
            (Some(second), "x".to_owned()),
            (Some(second), "y".to_owned())
        ]
    );
    // The inner time counts if there is one.
    let both = r#"{"timestamp":"2026-05-31T08:00:02Z","textPayload":"2026-05-31 08:00:00 UTC [7] LOG:  x"}"#;
    assert_eq!(
        entries(&format!("{both}\n")),
        [(Some(first), "x".to_owned())]
    );
}

#[test]
fn further_lines_of_journalctl_continue_their_message() {
    let log = "\
-- Journal begins at Sat 2026-05-30 08:00:00 UTC, ends at Sun 2026-05-31 09:00:00 UTC. --
May 31 08:00:00 db1 postgres[7]: LOG:  statement: SELECT 1,
                                 2,
                                 3
May 31 08:00:02 db1 postgres[7]: LOG:  x
";
    let (first, second) = (1_780_214_400_000_000, 1_780_214_402_000_000);
    assert_eq!(
        entries(log),
        [
            (None, "rejected".to_owned()),
            (Some(first), "statement: SELECT 1,\n\t2,\n\t3".to_owned()),
            (Some(second), "x".to_owned())
        ]
    );
}
