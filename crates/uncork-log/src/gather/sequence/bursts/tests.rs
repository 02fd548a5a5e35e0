use crate::gather::sequence::tests::{line, read};

/// Return `count` executions of a prepared statement, each `pause` microseconds after the last one.
fn executed(count: u32, pause: u32) -> String {
    let mut micros = 0;
    let mut log = String::new();
    for _ in 0..count {
        for (step, duration) in [("bind", 10), ("execute", 20)] {
            micros += duration + if step == "bind" { pause } else { 5 };
            let entry =
                format!("LOG:  duration: 0.0{duration} ms  {step} s: INSERT INTO a VALUES ($1)");
            log += &line(micros / 1_000, 1, &entry);
        }
    }
    log
}

#[test]
fn executions_that_follow_each_other_at_once_are_a_pipeline() {
    let bursts = |log: &str| read(log).repetitions[0].1.bursts;
    let pipeline = bursts(&executed(1_000, 6));
    assert_eq!((pipeline.groups, pipeline.at_once), (23, 16));
    let waiting = bursts(&executed(1_000, 200));
    assert_eq!((waiting.groups, waiting.at_once), (23, 0));
}

#[test]
fn a_pipeline_whose_client_sends_slowly_has_pauses_between_its_bursts() {
    let burst = executed(100, 6);
    let log: String = (0..10)
        .flat_map(|number| {
            let begin = 20 * number;
            burst.lines().map(move |text| {
                let (millis, rest) = text[20..].split_once(' ').expect("has a zone");
                let millis: u32 = millis.parse().expect("is a number");
                line(
                    begin + millis,
                    1,
                    rest.split_once("app ").expect("has a name").1,
                )
            })
        })
        .collect();
    let bursts = read(&log).repetitions[0].1.bursts;
    assert_eq!(bursts.groups, 23);
    assert!(bursts.at_once >= 11, "{bursts:?}");
}

#[test]
fn statements_without_a_bind_or_a_clock_of_whole_seconds_show_no_pipeline() {
    let log = executed(500, 6);
    let simple: Vec<String> = log
        .lines()
        .filter(|text| !text.contains("bind"))
        .map(|text| text.replace("execute s:", "statement:") + "\n")
        .collect();
    assert_eq!(read(&simple.concat()).repetitions[0].1.bursts.groups, 0);
    let whole: Vec<String> = log
        .lines()
        .map(|text| [&text[..19], ".000", &text[23..], "\n"].concat())
        .collect();
    assert_eq!(read(&whole.concat()).repetitions[0].1.bursts.groups, 0);
}
