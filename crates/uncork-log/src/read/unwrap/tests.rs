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
