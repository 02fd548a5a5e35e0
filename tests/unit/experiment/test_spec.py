from pathlib import Path

import pytest

from fakes.goldens import compare
from uncork import cases
from uncork.errors import SpecError
from uncork.experiment.spec.schema import parse_spec
from uncork.requests.source import starter

GOLDENS = Path(__file__).parents[2] / "golden" / "spec"

GOOD = """\
[experiment]
name = "types"
question = "Which type finds a key fastest?"

[variants.char]
baseline = true
values = { type = "char(36)" }

[variants.uuid]
values = { type = "uuid" }

[factors]
rows = [10, 100]

[factors.index]
none = ""
key = "CREATE INDEX ON item (key);"

[setup]
sql = "CREATE TABLE item (key :type); INSERT INTO item SELECT * FROM made(:rows); :index"

[workloads.select]
sql = "SELECT * FROM item WHERE key = :key"
duration = "100ms"
parameters.key = { query = "SELECT key FROM item" }

[stop]
precision = "3%"
"""
QUERY = 'query = "SELECT key FROM item"'
SELECT = 'sql = "SELECT * FROM item WHERE key = :key"'
SETUP = 'sql = "CREATE TABLE item (key :type); INSERT INTO item SELECT * FROM made(:rows); :index"'
TIME = 'expected a time with a unit, such as "250ms", "30s" or "5min"; found'
NAME = 'a name must start with a letter and contain only letters, digits, "_" and "-"; found'


def nothing_beside(name):
    raise FileNotFoundError(2, "No such file or directory", name)


def parse(text, read=nothing_beside, **overrides):
    return parse_spec(text, file="case.toml", read=read, overrides=overrides)


def problems(text, **overrides):
    with pytest.raises(SpecError) as raised:
        parse(text, **overrides)
    return str(raised.value).splitlines()


def changed(*changes):
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


# ---- good files ----


def test_a_guard_takes_one_variant_or_none():
    one = changed(('[variants.uuid]\nvalues = { type = "uuid" }\n', ""), ("baseline = true\n", ""))
    spec = parse_spec(one, file="x", read=str, overrides={}, alone=True)
    assert (list(spec.variants), spec.baseline) == (["char"], "char")
    named = one.replace('[variants.char]\nvalues = { type = "char(36)" }\n', "").replace(":type", "uuid")
    spec = parse_spec(named, file="x", read=str, overrides={}, alone=True)
    assert (list(spec.variants), spec.baseline) == (["types"], "types")
    assert list(parse_spec(GOOD, file="x", read=str, overrides={}, alone=True).variants) == ["char", "uuid"]


def test_a_good_file_says_what_it_says():
    spec = parse(GOOD)
    assert spec.baseline == "char"
    assert list(spec.variants) == ["char", "uuid"]
    assert spec.levels("rows") == {"10": "10", "100": "100"}
    assert spec.levels("index") == {"none": "", "key": "CREATE INDEX ON item (key);"}
    assert spec.workloads["select"].duration == 100_000_000
    assert spec.workloads["select"].operations is None
    assert spec.workloads["select"].statements == ("SELECT * FROM item WHERE key = :key",)
    assert spec.stop.precision == pytest.approx(0.03)


@pytest.mark.parametrize("name", ["experiment", "doctor", "resolution"])
def test_the_files_that_come_with_uncork_are_good(name):
    assert parse(starter(name)).workloads


@pytest.mark.parametrize("name", cases.names())
def test_the_cases_are_good(name):
    folder = cases.path(name)
    spec = parse((folder / "case.toml").read_text(), read=lambda beside: (folder / beside).read_text())
    assert all(workload.statements or workload.http for workload in spec.workloads.values())


def test_sql_beside_the_file_is_read_into_the_spec():
    text = changed((SETUP, 'file = "schema.sql"'), (SELECT, 'file = "queries/select.sql"'))
    beside = {"schema.sql": "CREATE TABLE item (key :type)", "queries/select.sql": "SELECT :key"}
    spec = parse(text, read=beside.__getitem__)
    assert spec.setup.sql == "CREATE TABLE item (key :type)"
    assert spec.workloads["select"].statements == ("SELECT :key",)


def test_several_statements_make_one_operation():
    spec = parse(changed((SELECT, 'sql = ["SELECT :key", "SELECT 1"]\ntransaction = true')))
    assert spec.workloads["select"].statements == ("SELECT :key", "SELECT 1")


def test_a_value_may_name_factors_and_parameters():
    assert parse(changed(('"uuid" }', '"text", form = ":key || :rows" }'), ('(36)" }', '(36)", form = "" }')))


def test_levels_that_are_true_or_false_are_written_as_sql_does():
    assert parse(changed(("[10, 100]", "[true, 1.5, 'x']"))).levels("rows") == {
        "true": "true",
        "1.5": "1.5",
        "x": "x",
    }


def test_set_keeps_the_levels_it_names():
    spec = parse(GOOD, rows=["100"], index=["key", "none"])
    assert spec.levels("rows") == {"100": "100"}
    assert list(spec.levels("index")) == ["none", "key"]


# ---- wrong files: (name, text, message) ----

WRONG = [
    ("an unknown key", changed(("baseline = true", "baseline = true\ntitel = 'x'")),
     'case.toml:7: variants.char.titel: unknown key "titel"; did you mean "title"?'),
    ("an unknown section", changed(("[stop]", "[stopp]")),
     'case.toml:27: stopp: unknown key "stopp"; did you mean "stop"?'),
    ("an unknown key far from any known one",
     changed(("baseline = true", "baseline = true\nzzz = 1")),
     'case.toml:7: variants.char.zzz: unknown key "zzz"; expected one of baseline, batching, chunk, '
     "connect, connections, "
     "engine, extensions, http, observe, server, service, services, settings, setup, title, values, "
     "workloads"),
    ("an unknown key in an inline table", changed((QUERY, QUERY + ', pik = "uniform"')),
     'case.toml:25: workloads.select.parameters.key.pik: unknown key "pik"; did you mean "pick"?'),
    ("an unknown key of a variant that is called like a type",
     changed(("[variants.uuid]", "[variants.int]\ntitel = 'x'")),
     'case.toml:10: variants.int.titel: unknown key "titel"; did you mean "title"?'),
    ("a missing section", changed((f"[setup]\n{SETUP}\n", "")),
     "case.toml:1: setup: is required but missing; add [setup]"),
    ("a missing key", changed(('question = "Which type finds a key fastest?"\n', "")),
     "case.toml:1: experiment.question: is required but missing; add it"),
    ("a text for a number", changed(("duration =", 'threads = "three"\nduration =')),
     'case.toml:24: workloads.select.threads: expected a whole number; found "three"'),
    ("a fraction for a whole number", changed(("duration =", "threads = 1.5\nduration =")),
     "case.toml:24: workloads.select.threads: expected a whole number; found 1.5"),
    ("a number below its limit", changed(("duration =", "threads = 0\nduration =")),
     "case.toml:24: workloads.select.threads: expected at least 1; found 0"),
    ("a text for a flag", changed(("baseline = true", 'baseline = "perhaps"')),
     'case.toml:6: variants.char.baseline: expected true or false; found "perhaps"'),
    ("a number for SQL", changed((SELECT, "sql = 5")),
     "case.toml:23: workloads.select.sql: expected text in quotes or a list; found 5"),
    ("a number among SQL", changed((SELECT, 'sql = ["SELECT :key", 5]')),
     "case.toml:23: workloads.select.sql.1: expected text in quotes; found 5"),
    ("a number for a section", "stop = 3\n" + GOOD.replace('[stop]\nprecision = "3%"\n', ""),
     "case.toml:1: stop: expected a section; found 3"),
    ("a number for a factor's levels", changed(("[10, 100]", "10")),
     "case.toml:13: factors.rows: expected a list or a table; found 10"),
    ("a number for a level's SQL", changed(('"CREATE INDEX ON item (key);"', "5")),
     "case.toml:17: factors.index.key: expected text in quotes; found 5"),
    ("no levels", changed(("[10, 100]", "[]")),
     "case.toml:13: factors.rows: expected at least 1 item; found 0"),
    ("a list for a setting", changed(("[stop]", "[server.settings]\nwork_mem = ['4MB']\n\n[stop]")),
     "case.toml:28: server.settings.work_mem: expected text in quotes, a whole number, a number or "
     "true or false; found ['4MB']"),
    ("a word that is none of the allowed",
     changed((QUERY, 'generator = { kind = "random", max = 1 }')),
     'case.toml:25: workloads.select.parameters.key.generator.kind: expected "sequence", "uniform", '
     '"zipfian" or "permutation"; found "random"'),
    ("a duration without a unit", changed(('"100ms"', '"100"')),
     f'case.toml:24: workloads.select.duration: {TIME} "100"'),
    ("a duration that is a bare number", changed(('"100ms"', "100")),
     f"case.toml:24: workloads.select.duration: {TIME} 100"),
    ("a duration with two points", changed(('"100ms"', '"1.2.3s"')),
     f'case.toml:24: workloads.select.duration: {TIME} "1.2.3s"'),
    ("no duration at all", changed(('"100ms"', '"0s"')),
     'case.toml:24: workloads.select.duration: expected more than 0; found "0s"'),
    ("a bare number for a percentage", changed(('"3%"', "3")),
     'case.toml:28: stop.precision: expected a percentage in quotes, such as "3%"; found 3'),
    ("a percentage without its sign", changed(('"3%"', '"3"')),
     'case.toml:28: stop.precision: expected a percentage, such as "3%"; found "3"'),
    ("a percentage beyond its limit", changed(('"3%"', '"150%"')),
     'case.toml:28: stop.precision: expected less than 100%; found "150%"'),
    ("a name with a space", changed(('"types"', '"two types"')),
     f'case.toml:2: experiment.name: {NAME} "two types"'),
    ("a variant's name with a space", changed(("[variants.uuid]", '[variants."1 uuid"]')),
     f'case.toml:9: variants.1 uuid: {NAME} "1 uuid"'),
    ("an empty name", changed(('"types"', '""')),
     'case.toml:2: experiment.name: expected at least 1 character; found ""'),
    ("a long name", changed(('"types"', f'"{"t" * 41}"')),
     f'case.toml:2: experiment.name: expected at most 40 characters; found "{"t" * 41}"'),
    ("no baseline", changed(("baseline = true\n", "")),
     "case.toml:5: variants: exactly one variant must have baseline = true; found none among char, uuid"),
    ("two baselines", changed(("[variants.uuid]", "[variants.uuid]\nbaseline = true")),
     "case.toml:5: variants: exactly one variant must have baseline = true; found 2 among char, uuid"),
    ("a variant named twice", changed(("[variants.uuid]", "[variants.char]")),
     "case.toml:9: [variants.char]: this name is already used above; give each a different name"),
    ("a key named twice", changed(('"100ms"', '"100ms"\nduration = "1s"')),
     'case.toml:25: duration = "1s": this name is already used above; give each a different name'),
    ("one variant", changed(('[variants.uuid]\nvalues = { type = "uuid" }\n', "")),
     "case.toml:5: variants: expected at least 2 variants; found 1 (char); to compare two states of one "
     "variant, use `uncork guard`"),
    ("a workload's SQL that uses an unknown name",
     changed(("(:rows); :index", "(:rows); :index; SELECT :rowz")),
     "case.toml:20: setup.sql: uses :rowz, which is not a value, factor or parameter; did you mean "
     '"rows"?'),
    ("a value that uses an unknown name", changed(('"uuid" }', '"uuid(:rowz)" }')),
     "case.toml:10: variants.uuid.values.type: uses :rowz, which is not a value, factor or parameter; "
     'did you mean "rows"?'),
    ("a check that uses a parameter", changed(("duration =", 'check = "SELECT :key"\nduration =')),
     "case.toml:24: workloads.select.check: uses :key, which is not a value, factor or parameter; "
     "expected one of index, rows, type"),
    ("a value missing in one variant", changed(('values = { type = "uuid" }\n', "")),
     "case.toml:9: variants.uuid.values: has no value for type, which another variant has; add it"),
    ("a parameter that is never used", changed((" WHERE key = :key", "")),
     "case.toml:25: workloads.select.parameters.key: is never used; write :key in the SQL, or remove it"),
    ("a parameter called like a factor",
     changed(("parameters.key", 'parameters.rows = { query = "SELECT 1" }\nparameters.key')),
     "case.toml:25: workloads.select.parameters.rows: is also a variant's value or a factor; rename one "
     "of them"),
    ("both duration and operations", changed(("duration =", "operations = 5\nduration =")),
     "case.toml:22: workloads.select: give duration or operations, not both; with neither, uncork chooses "
     "what fits the budget"),
    ("both sql and file", changed(("duration =", 'file = "select.sql"\nduration =')),
     "case.toml:24: workloads.select.file: give either sql or file, not both"),
    ("neither sql nor file", changed((f"{SETUP}\n", "")),
     "case.toml:19: setup: has no SQL; add sql or file"),
    ("an SQL file that is missing", changed((SELECT, 'file = "queries/select.sql"')),
     'case.toml:23: workloads.select.file: cannot read "queries/select.sql": No such file or directory; '
     "paths are relative to this file"),
    ("more threads than clients", changed(("duration =", "threads = 4\nclients = 2\nduration =")),
     "case.toml:22: workloads.select: threads (4) cannot exceed clients (2)"),
    ("fewer rounds at most than at least",
     changed(('"3%"', '"3%"\nminimum_rounds = 10\nmaximum_rounds = 5')),
     "case.toml:27: stop: maximum_rounds (5) is below minimum_rounds (10); raise it or lower "
     "minimum_rounds"),
    ("a generator whose max is below its min",
     changed((QUERY, 'generator = { kind = "uniform", min = 10, max = 1 }')),
     "case.toml:25: workloads.select.parameters.key.generator: max (1) must not be below min (10)"),
    ("both query and generator",
     changed((QUERY, QUERY + ', generator = { kind = "uniform", max = 1 }')),
     "case.toml:25: workloads.select.parameters.key: give exactly one of query and generator"),
    ("neither query nor generator", changed((QUERY, 'pick = "uniform"')),
     "case.toml:25: workloads.select.parameters.key: give exactly one of query and generator"),
    ("cold caches and trials without an end",
     changed(("[setup]", '[setup]\ncache = "cold"'), ('duration = "100ms"', "")),
     'case.toml:23: workloads.select: a trial fills the caches that [setup] cache = "cold" emptied: set '
     'where it ends, by operations = 100 or duration = "1s"'),
    ("cold caches and a warm-up",
     changed(("[setup]", '[setup]\ncache = "cold"'),
             ('duration = "100ms"', 'duration = "100ms"\nwarmup_operations = 5')),
     'case.toml:26: workloads.select.warmup_operations: contradicts [setup] cache = "cold"; remove it'),
    ("cold caches in the client's process",
     changed(("[setup]", '[setup]\ncache = "cold"'),
             ("[variants.uuid]", '[variants.uuid]\nengine = "duckdb"')),
     'case.toml:21: setup.cache: "cold" works only if all variants run on postgresql'),
    ("a text without quotes", changed(('name = "types"', "name = types")),
     "case.toml:2: not valid TOML: invalid value"),
    ("a text that is never closed", GOOD + 'more = """\nand more\n',
     "case.toml:30: not valid TOML: unterminated string"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"), [entry[1:] for entry in WRONG], ids=[entry[0] for entry in WRONG]
)
def test_a_wrong_file_is_refused_with_line_key_and_reason(text, message):
    assert problems(text) == [message]


SEVERAL = {
    "nothing": "",
    "many": changed(('"types"', '"two types"'), ("baseline = true", "baseline = true\ntitel = 'x'"),
                    ('"100ms"', '"100"'), (QUERY, 'generator = { kind = "random" }'),
                    ('"3%"', "3")),
    "names": changed(("= :key", "= :kei"), ("(:rows)", "(:row)"),
                     ('{ type = "uuid" }', "{ typ = ':keys' }")),
    "unknown-workload-key": changed(("duration =", "warmup = 3\nduration =")),
    "metric": changed(("duration =", 'metric = "p50"\nduration =')),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_all_problems_of_a_file_are_listed_word_for_word(name):
    compare(GOLDENS / f"{name}.txt", "\n".join(problems(SEVERAL[name])) + "\n")


def test_several_problems_come_in_the_order_of_their_lines():
    lines = [int(problem.split(":")[1]) for problem in problems(SEVERAL["many"])]
    assert len(lines) == 6
    assert lines == sorted(lines)


def test_lines_are_those_of_the_key_not_of_text_that_looks_like_it():
    sql = '"""\n[workloads.select]\nduration = 3\nSELECT :key"""'
    text = changed((SELECT, f"# duration = 1\nsql = {sql}"), ('"100ms"', '"100"'))
    assert problems(text) == [f'case.toml:28: workloads.select.duration: {TIME} "100"']


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"row": ["1"]},
         'case.toml:12: factors: --set row=...: there is no such factor; did you mean "rows"?'),
        ({"zzz": ["1"]},
         "case.toml:12: factors: --set zzz=...: there is no such factor; expected one of index, rows"),
        ({"rows": ["11"]},
         'case.toml:13: factors.rows: --set rows=11: there is no level "11"; expected one of 10, 100'),
        ({"index": ["key", "hash"]},
         'case.toml:15: factors.index: --set index=key,hash: there is no level "hash"; expected one of '
         "none, key"),
    ],
)  # fmt: skip
def test_set_refuses_what_the_file_does_not_have(overrides, message):
    assert problems(GOOD, **overrides) == [message]


@pytest.mark.parametrize("line", ['threads = "3"', 'transaction = "yes"', "transaction = 1"])
def test_a_text_is_not_a_number_or_a_flag(line):
    assert len(problems(changed(("duration =", f"{line}\nduration =")))) == 1


def test_an_sql_file_that_is_not_text_is_a_problem_like_any_other():
    def read(name):
        return b"\xff".decode()

    with pytest.raises(SpecError, match=r"case\.toml:23: workloads\.select\.file: cannot read"):
        parse(changed((SELECT, 'file = "select.sql"')), read=read)


def test_a_level_that_uses_an_unknown_name_is_refused():
    assert len(problems(changed(("ON item (key)", "ON item (:kei)")))) == 1


def test_a_factor_that_no_sql_can_name_is_refused_as_such():
    (problem,) = problems(changed(("rows = [", "row-count = ["), ("(:rows)", "(10)")))
    assert problem.startswith("case.toml:13: factors.row-count: ")
