"""What `import uncork` gives, and what it costs."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import uncork
from uncork.api import loads


def test_every_public_name_is_there_with_a_docstring():
    for name in {*uncork.__all__, "open"} - {"__version__"}:
        assert getattr(uncork, name).__doc__, name
        assert name in dir(uncork)


def test_what_is_not_there_is_told_as_always():
    with pytest.raises(AttributeError, match="module 'uncork' has no attribute 'frobnicate'"):
        uncork.frobnicate  # noqa: B018


def test_no_room_has_the_name_of_a_function():
    """Importing the room would replace the function."""
    rooms = {path.stem for path in Path(uncork.__file__).parent.iterdir()}
    assert not rooms & set(uncork.__all__)


def test_the_import_loads_nothing():
    code = (
        "import sys; before = set(sys.modules); import uncork; "
        "print(sorted(set(sys.modules) - before - {'__future__'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['uncork']"


@pytest.mark.parametrize(
    ("verb", "keywords"), [("load_sql", loads.SqlKeywords), ("load_http", loads.HttpKeywords)]
)
def test_loads_show_their_keywords_with_types_defaults_and_help(verb, keywords):
    function = getattr(loads, verb)
    parameters = inspect.signature(function).parameters
    assert set(parameters) - {"database", "urls", "progress", "runs"} == set(keywords.__annotations__)
    assert parameters["clients"].default is None
    assert parameters["connect_each"].default is False
    for name in parameters:
        assert f"\n    {name}: " in function.__doc__, name
    assert " -" not in function.__doc__, "keywords are named, not options"


def test_a_module_of_a_user_is_checked_strictly(tmp_path):
    """`py.typed` is there, and no name that a checker sees is untyped."""
    module = tmp_path / "mine.py"
    module.write_text(
        "import uncork\n"
        "run = uncork.run('x.toml', sets={'rows': [1000]}, budget='1min')\n"
        "reveal_type(run['uuid'].faster)\n"
        "reveal_type(run.comparisons[0].ratio)\n"
        "reveal_type(uncork.load_sql(clients=2).result.answer)\n"
        "reveal_type(uncork.open('last').answer)\n"
        "reveal_type(uncork.advise('last').answer)\n"
        "uncork.sweep_sql('db', to=4, clints=2)\n"
        "uncork.frobnicate()\n"
    )
    from pathlib import Path

    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", str(module)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    told = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if "mine.py:" in line]
    assert [line.split('"')[1] for line in told if line.startswith("note: Revealed")] == [
        "bool",
        "float | None",
        "str",
        "str",
        "str",
    ]
    errors = [line for line in told if line.startswith("error")]
    assert len(errors) == 2
    assert 'Unexpected keyword argument "clints"' in errors[0]
    assert 'Module has no attribute "frobnicate"' in errors[1]


def test_an_unknown_keyword_is_a_type_error_as_always():
    with pytest.raises(TypeError, match=r"load_sql\(\) got an unexpected keyword argument 'clints'"):
        uncork.load_sql(clints=2)
