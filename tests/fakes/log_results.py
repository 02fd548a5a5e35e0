"""Made-up but plausible logs: what a report is made of, without a log."""

import random

from uncork.model.results.log import (
    DURATION_PARTS,
    Contribution,
    ErrorFacts,
    Example,
    FileFacts,
    Incident,
    Lists,
    LogResult,
    LogRunFacts,
    LogTimes,
    NamedSeries,
    Point,
    Repetition,
    ServerFacts,
    Tally,
    TemplateFacts,
    TransactionFacts,
)

BEGIN_US = 1_780_178_400_000_000
"""2026-05-30 22:00:00 UTC."""
STEP_S = 300
MS = 1_000_000
NAMES = ("shop", "reports")


def template(number: int, *, steps: int = 12, executions: int | None = None) -> TemplateFacts:
    """Return a template; the higher the number, the less its time."""
    draw = random.Random(number)
    timeline = tuple(draw.randrange(40) for _ in range(steps))
    count = sum(timeline) if executions is None else executions
    mean = (300 / (number + 1)) * MS
    points = tuple(
        Point(BEGIN_US + place * STEP_S * 1_000_000, many, round(many * mean))
        for place, many in enumerate(timeline)
    )
    columns = ", ".join(f"column_{place}" for place in range(12))
    return TemplateFacts(
        number=number, identity=None, kind="SELECT", executions=count, share=0.5 ** (number + 1),
        text=f"select {columns} from table_{number} where id = ? and kind = 'of {number}'",
        sum_ns=round(count * mean), mean_ns=mean, p50_ns=round(mean * 0.8), p95_ns=round(mean * 2),
        p99_ns=None if number % 5 == 4 else round(mean * 3), max_ns=round(mean * 4),
        histogram=(0, count // 2, count - count // 2, *[0] * (len(DURATION_PARTS) - 3)),
        parse=LogTimes(3, 300_000, 200_000), bind=LogTimes(0, 0, 0), first_us=BEGIN_US,
        last_us=BEGIN_US + steps * STEP_S * 1_000_000, cut=0, failed=number % 3,
        rows=12.0 if number % 3 == 1 else None,
        lists=Lists(count, 28.0, 60) if number % 4 == 1 else None,
        repetition=Repetition(2, 50, 30, 50 * MS, 400 * MS) if number % 4 == 2 else None,
        applications=contributions(*NAMES), users=contributions("app"), databases=(),
        hosts=contributions("10.0.0.1", "10.0.0.2", "(others)"),
        examples=(
            Example("slowest", 400 * MS, BEGIN_US, "a.log", 17, f"SELECT * FROM table_{number}", "$1 = '7'"),
            Example("median", 90 * MS, BEGIN_US, "a.log", 170, f"SELECT {number}" + " " * 2_000 + "END", ""),
            Example("newest", 400 * MS, BEGIN_US, "a.log", 17, f"SELECT * FROM table_{number}", "$1 = '7'"),
            Example("plan", 400 * MS, BEGIN_US, "a.log", 17, "Seq Scan on items", ""),
        ),
        series=points, timeline=timeline,
    )  # fmt: skip


def contributions(*names: str) -> tuple[Contribution, ...]:
    """Return a contribution a name, the first one the greatest."""
    return tuple(
        Contribution(name, 90 - place, (9 - place) * MS, MS, 0.5 / (place + 1))
        for place, name in enumerate(names)
    )


def log_result(
    *, templates: int = 12, steps: int = 12, answer: str = "It went to one template."
) -> LogResult:
    """Return the result of a log with two applications and something of everything."""
    found = tuple(template(number, steps=steps) for number in range(templates))
    whole = tuple(
        Point(start, sum(one.count for one in at), sum(one.sum_ns for one in at))
        for start, at in (
            (BEGIN_US + place * STEP_S * 1_000_000, [one.series[place] for one in found])
            for place in range(steps)
        )
    )
    halves = tuple(Point(one.start_us, one.count // 2, one.sum_ns // 2) for one in whole)
    times = LogTimes(3, 30 * MS, 20 * MS)
    tallies = tuple(Tally(f"thing {place}", 30 - place, 10_000 * place, 5_000) for place in range(15))
    waits = tuple(Incident(place * MS, BEGIN_US, place, "ShareLock", "", "") for place in (1, 20, 3))
    error = ErrorFacts("ERROR", "22012", "division by zero", 9, BEGIN_US, BEGIN_US, "x", "", "", "", "")
    server = ServerFacts(
        connections=3, sessions=times, lock_waits=tallies[:2], still_waiting=0, deadlocks=0,
        longest_waits=waits, temporary_files=(), largest_files=(), checkpoints=times,
        checkpoint_reasons=(Tally("time", 3, 0, 0),), vacuums=tallies, analyzes=(), cancellations=(),
    )  # fmt: skip
    return LogResult(
        run=LogRunFacts("log-x", "complete", "2026-06-01T00:00:00", 1, 1, "uncork profile logs a.log", "0"),
        answer=answer, reasons=(), warnings=(),
        files=(FileFacts("a.log", 5_000, "stderr", "%m ", 100, 0, None),),
        first_us=BEGIN_US, last_us=BEGIN_US + steps * STEP_S * 1_000_000, bucket_s=STEP_S,
        template_bucket_s=STEP_S, timeline_us=BEGIN_US if steps else None, entries=100, outside=0,
        foreign=0, rejected=0, rejected_lines=(),
        executions=LogTimes(
            sum(one.executions for one in found), sum(one.sum_ns for one in found), 1_200 * MS
        ),
        parse=times, bind=times, untold=LogTimes(0, 0, 0),
        histogram=tuple(sum(column) for column in zip(*(one.histogram for one in found), strict=True)),
        series=whole,
        application_series=tuple(NamedSeries(name, halves) for name in NAMES),
        templates=found, templates_more=0, rare=0, applications=contributions(*NAMES),
        users=contributions("app"), databases=(), hosts=contributions("10.0.0.1", "10.0.0.2"),
        kinds=contributions("SELECT"),
        transactions=tuple(
            TransactionFacts(name, "app", "shop", 5, 900 * MS, 90 * MS, 20, 4, 9) for name in NAMES
        ),
        errors=(error, ErrorFacts("FATAL", "", "too many clients", 30, None, None, "x", "", "", "", "")),
        notices=(),
        server=server, anonymous=False, events=None, blocking=(), pool=None,
    )  # fmt: skip
