"""Which role runs a statement: by pg_stat_statements, else by the sessions that were sampled."""

from uncork.analysis.database.evidence import main_roles
from uncork.diagnosis.evidence import Piece
from uncork.model.database.wait_classes import CPU


def sampled(template, user, sessions=1.0):
    return Piece(template, CPU, "", "shop", user, (sessions,))


def counted(template, user, execution_ns):
    return {"template": template, "user": user, "execution_ns": execution_ns}


def test_the_role_with_most_time_counts():
    rows = [counted(1, "admin", 3.0), counted(1, "app", 5.0), counted(None, "other", 9.0)]
    assert main_roles(rows, ()) == {1: "app"}


def test_a_session_that_changed_its_role_has_it_in_pg_stat_statements_only():
    assert main_roles([counted(1, "tenant", 5.0)], [sampled(1, "login", 4.0)]) == {1: "tenant"}


def test_without_pg_stat_statements_the_sampled_sessions_show_the_role():
    pieces = [sampled(1, "app"), sampled(1, "admin", 0.5), sampled(1, "app"), sampled(None, "app")]
    assert main_roles((), pieces) == {1: "app"}
