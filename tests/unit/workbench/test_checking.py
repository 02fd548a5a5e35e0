"""SQL that a run would send is parsed by PostgreSQL's grammar; each mistake has its line and its remedy."""

from pathlib import Path

import pytest

from uncork.experiment.run.sent_sql import sent_sql
from uncork.requests.source import Options, made_source, starter
from uncork.workbench.experiment.checking import sql_problems

GOOD = '''\
[experiment]
name = "orders"
question = "Which index?"

[variants.none]
baseline = true
values = { index = "" }

[variants.btree]
values = { index = "CREATE INDEX ON orders (customer);" }

[factors]
rows = [100, 1000]

[setup]
sql = """
CREATE TABLE orders (id int, customer int);
INSERT INTO orders SELECT n, n % 10 FROM generate_series(1, :rows) AS n;
:index
"""

[workloads.find]
sql = "SELECT id FROM orders WHERE customer = :customer"
check = "SELECT count(*) FROM orders"
parameters.customer = { query = "SELECT customer FROM orders" }
'''
SELECT = 'sql = "SELECT id FROM orders WHERE customer = :customer"'


def problems(text, files=None):
    spec = made_source(text, files or {}, Options(), "folder/case.toml").spec
    return [one.text("folder/case.toml", text) for one in sql_problems(spec, "folder/case.toml", text)]


def problem(old, new, files=None):
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    (found,) = problems(text, files)
    return found


@pytest.mark.parametrize("text", [GOOD, starter("experiment"), starter("doctor"), starter("resolution")])
def test_valid_experiments_have_no_problems(text):
    assert problems(text) == []


def test_cases_and_examples_have_no_problems():
    root = Path(__file__).parents[3]
    for path in [*root.glob("python/uncork/cases/*/case.toml"), *root.glob("examples/*/*.toml")]:
        files = {one.name: one.read_text() for one in path.parent.glob("*.sql")}
        files |= {str(one.relative_to(path.parent)): one.read_text() for one in path.parent.glob("*/*.sql")}
        if "[time_zones" not in path.read_text() and "acknowledged" not in path.name:
            assert problems(path.read_text(), files) == [], path


def test_a_mistake_in_the_set_up_has_its_own_line_and_is_reported_once():
    found = problem("INSERT INTO", "INSRT INTO")
    assert found == (
        'folder/case.toml:18: setup.sql: syntax error at or near "INSRT": INSRT INTO orders SELECT n, n % 10 '
        "FROM generate_series(1, 100) AS n; correct the SQL of variant none"
    )


def test_a_mistake_in_a_variants_value_is_placed_there():
    assert problem("CREATE INDEX ON", "CREATE INDX ON") == (
        'folder/case.toml:10: variants.btree.values.index: syntax error at or near "INDX": CREATE INDX '
        "ON orders (customer); correct the SQL of variant btree"
    )


def test_a_mistake_in_a_file_has_the_files_name_and_line():
    files = {"find.sql": "SELECT id\n  FROM orders\n WERE customer = :customer\n"}
    assert problem(SELECT, 'file = "find.sql"', files) == (
        'folder/find.sql:3: workloads.find.sql: syntax error at or near "customer": WERE customer = '
        ":customer; correct the SQL"
    )


@pytest.mark.parametrize(("old", "new", "message"), [
    ('"SELECT count(*) FROM orders"', '"SELECT count( FROM orders"',
     "24: workloads.find.check: syntax error at or near"),
    ('"SELECT customer FROM orders"', '"SELEC customer"',
     "25: workloads.find.parameters.customer.query: syntax error"),
    ('"SELECT customer FROM orders"', '"DELETE FROM orders"',
     "does not return rows; write a query, such as SELECT"),
    (SELECT, SELECT[:-1] + '; SELECT 1"', "has 2 statements in one text, which only protocol"),
    (SELECT, SELECT[:-1] + "'\"", "unterminated quoted string"),
    ("INSERT INTO orders SELECT", "COPY orders FROM STDIN; SELECT",
     "COPY from or to the client does not work"),
    (":index\n", ":index\nVACUUM orders;\n", "VACUUM cannot run together with other statements"),
    ("CREATE INDEX ON", "CREATE INDEX CONCURRENTLY ON",
     "; write CREATE INDEX without CONCURRENTLY"),
    (":index\n", "\\\\copy orders FROM 'x'\n:index\n",
     "psql's commands do not work here: write SQL"),
])  # fmt: skip
def test_what_a_run_would_refuse_is_told_with_its_remedy(old, new, message):
    assert message in problem(old, new)


def test_other_engines_have_their_own_sql():
    text = GOOD.replace('question = "Which index?"', 'question = "?"\nengine = "sqlite"')
    assert problems(text.replace("SELECT id", "SELEC id")) == []


def test_one_level_at_a_time_is_sent_so_that_many_cells_take_no_time():
    factors = "".join(f"{name} = {list(range(5))}\n" for name in "abcd")
    text = GOOD.replace("rows = [100, 1000]", "rows = [1]\n" + factors).replace(
        ":index\n", "SELECT :a, :b, :c, :d;\n"
    )
    spec = made_source(text.replace("values = { index", "#"), {}, Options(), "f").spec
    assert len([one for one in sent_sql(spec) if one.key == ("setup", "sql")]) == 1 + 4 * 4
