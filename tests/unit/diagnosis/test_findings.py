"""One cause, one finding: shallow findings give way to deeper ones about the same statements."""

from uncork.diagnosis.evidence import Evidence
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.rule import Rule
from uncork.model.database.finding import Bill, Finding

NOTHING = Evidence(60.0, (), {})


def rule(name, depth, *parts):
    """Return a rule that finds each of `parts`: the hundreds of seconds of a finding, and its statements."""
    found = [
        Finding(name, name, (), None if cost is None else Bill(100 * cost, 0.0, 100 * cost, 0.5), statements)
        for cost, statements in parts
    ]
    return Rule(name, lambda _: iter(found), depth)


def names(*rules):
    return [one.rule for one in find_findings(NOTHING, rules)]


def test_a_deeper_cause_replaces_what_it_explains():
    assert names(rule("scan", 1, (100.0, (1,))), rule("dead", 2, (80.0, (1, 2)))) == ["dead"]
    assert names(rule("memory", 0, (100.0, (1,))), rule("scan", 1, (100.0, (1,)))) == ["scan"]


def test_what_a_deeper_cause_explains_only_in_part_stays():
    assert names(rule("scan", 1, (100.0, (1,))), rule("dead", 2, (20.0, (1,)))) == ["scan", "dead"]
    assert names(rule("scan", 1, (100.0, (1, 2))), rule("dead", 2, (80.0, (1,)))) == ["scan", "dead"]
    assert names(rule("scan", 1, (100.0, (1,))), rule("dead", 1, (80.0, (1,)))) == ["scan", "dead"]


def test_findings_without_a_cost_in_time_come_last_and_replace_nothing():
    found = names(
        rule("scan", 1, (100.0, (1,))), rule("space", 2, (None, (1,))), rule("top", 1, (200.0, (3,)))
    )
    assert found == ["top", "scan", "space"]


def test_the_same_rule_names_a_statement_once():
    assert names(rule("loop", 1, (100.0, (1,)), (50.0, (1, 2)), (10.0, (3,)))) == ["loop", "loop"]
