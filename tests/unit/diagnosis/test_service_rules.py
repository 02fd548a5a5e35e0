"""Findings about a profiled service, on evidence as it must look; and the headline of each."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from fakes.http_results import http_result
from uncork.diagnosis.service_rules import HotFunction, find_service_findings
from uncork.model.bottleneck import Bottleneck, Component, LoadUse, MachineUse, Seen
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.results.service import (
    RequestFacts,
    SentTemplate,
    ServiceResult,
    ServiceRunFacts,
    TimePlace,
    WorkerFacts,
)
from uncork.report.headline import fits
from uncork.report.service.answer import answer_service
from uncork.report.service.document import build_service_document


def place(kind, share):
    return TimePlace(kind, share * 8, share, share * 40e6)


def sent(template, text, calls, ns, rows=1.0):
    return SentTemplate(template, text, calls, calls, calls, rows, ns / calls, ns)


def request(name, *templates, mean_ns=40e6, many=100):
    statements = sum(one.calls for one in templates)
    ns = sum(one.ns for one in templates)
    return RequestFacts(name, many, 0, mean_ns, 90_000_000, mean_ns, statements, statements, ns, templates)


def worker(pid, cpus, runtime="go", parent=1, command="shop"):
    return WorkerFacts(pid, parent, command, runtime, round(cpus * 1e9), 0, 0, 4, cpus, 3, 10**9)


BEGIN, COMMIT = sent(8, "begin", 1.0, 1e4, 0.0), sent(9, "commit", 1.0, 1e4, 0.0)
CUSTOMER = sent(1, "select name from customers where id = ?", 20.0, 1e6)
PRODUCT = sent(2, "select name from products where id = ?", 20.0, 1e6)
ORDERS = sent(3, "select * from orders limit ?", 1.0, 2e5, 20.0)
SEARCH = sent(4, "select count(*) from products where supplier = ?", 1.0, 38e6)
IN_SERVICE = (place("idle in transaction", 0.6), place("service cpu", 0.3), place("database cpu", 0.1))
IN_DATABASE = (place("database cpu", 0.5), place("database queue", 0.4), place("service wait", 0.1))
PLAIN = request("/product", sent(2, "select name from products where id = ?", 1.0, 2e5), mean_ns=1e6)
LIMITS = {
    "machine cpu": Bottleneck("machine cpu", "the machine's 2 processors are full", "stop it", 1.0),
    "connection limit": Bottleneck("connection limit", "connections were refused", "allow more", 1.4),
    "pool": Bottleneck("pool", "the pool of 4 connections is full", "enlarge it", 0.7),
    "service cpu": Bottleneck("service cpu", "the service computes in one thread", "more threads", 0.9),
}


def names(*arguments, **options):
    return [one.name for one in find_service_findings(*arguments, **options)]


@pytest.mark.parametrize(
    "repeated", [(CUSTOMER,), (CUSTOMER, PRODUCT), (CUSTOMER, PRODUCT, sent(5, "select z", 20.0, 1e6))]
)
@pytest.mark.parametrize("around", [(BEGIN, COMMIT), ()])
def test_statements_sent_for_each_row_are_named_with_their_request(repeated, around):
    found = find_service_findings(IN_SERVICE, [PLAIN, request("/orders", ORDERS, *repeated, *around)], (), ())
    assert found[0].name == "n+1"
    assert found[0].request == "/orders"
    assert all(one.text in found[0].sentence for one in repeated)
    assert found[0].share > 0.5
    # The time between these statements is theirs, not a finding of its own.
    assert "idle in transaction" not in [one.name for one in found[:1]]
    assert sum(one.share for one in found if one.name == "idle in transaction") < 0.1


@pytest.mark.parametrize(
    "statements",
    [
        (sent(1, "select a", 1.0, 1e6), sent(2, "select b", 1.0, 1e6)),  # different statements, once each
        (sent(1, "select big", 6.0, 30e6, rows=1_000.0),),  # six large results
        (sent(1, "insert into t values (?)", 20.0, 1e6),),  # writes have a remedy of their own
        (CUSTOMER, *(sent(20 + n, f"select {n}", 1.0, 1e5) for n in range(30))),  # not most of the statements
    ],
)
def test_other_requests_are_no_n_plus_one(statements):
    assert "n+1" not in names(IN_SERVICE, [request("/a", *statements)], (), ())


def test_the_costliest_statement_is_named_with_its_request_and_what_it_waits_for():
    found = find_service_findings(IN_DATABASE, [PLAIN, request("/search", SEARCH)], (), ())
    assert found[0].name == "statement"
    assert (found[0].request, found[0].template) == ("/search", 4)
    assert found[0].share == pytest.approx(0.9, abs=0.02)
    locked = (place("locks", 0.8), place("service wait", 0.2))
    assert (
        "waiting for locks" in find_service_findings(locked, [request("/search", SEARCH)], (), ())[0].sentence
    )


def test_a_database_without_counters_still_gets_its_place_named():
    (found,) = find_service_findings(
        (place("locks", 0.9),), [replace(PLAIN, templates=(), statements=None)], (), ()
    )
    assert "waiting for locks" in found.sentence
    assert found.share == pytest.approx(0.9)


def test_a_full_pool_a_full_thread_and_a_full_interpreter_explain_waits_in_the_service():
    waiting = (place("service wait", 0.8), place("service cpu", 0.2))
    assert find_service_findings(waiting, [PLAIN], [LIMITS["pool"]], ())[0].sentence.startswith("the pool")
    computing = find_service_findings(waiting, [PLAIN], [LIMITS["service cpu"]], ())
    assert (computing[0].name, computing[0].share) == ("service code", pytest.approx(1.0))
    locked = find_service_findings(
        waiting, [PLAIN], (), [worker(7, 0.93, "python")], hottest=HotFunction("render", 0.6)
    )
    assert locked[0].name == "service code"
    assert "Python process 7" in locked[0].sentence
    assert "60 % of it is in render" in locked[0].sentence
    assert names(waiting, [PLAIN], (), [worker(7, 0.93, "go")])[0] == "service wait"


QUEUED = (
    *(place("process queue", 0.7), place("database cpu", 0.18), place("service cpu", 0.08)),
    place("service queue", 0.04),
)
FORKED = [replace(worker(pid, 0.3, "python"), threads=1, sessions=1) for pid in (2, 3)]


def full(busy, database=1.0, service=0.5):
    return Seen(
        LoadUse(8.0, 40e6),
        MachineUse(2, busy=busy),
        database=Component(database, 0.0),
        service=Component(service, 0.0),
    )


def test_the_queue_for_processes_belongs_to_what_keeps_them_busy():
    listed = request("/list", replace(SEARCH, ns=7e6), CUSTOMER, mean_ns=40e6)
    first, second, *_ = find_service_findings(QUEUED, [listed], (), FORKED, seen=full(1.0))
    assert (first.name, first.template) == ("statement", 4)
    # 30 % of the time is work: 18 % of the database, with two thirds of the wait for processors.
    assert first.share == pytest.approx((0.18 + 0.04 * 2 / 3) / 0.3 * 7 / 8, abs=0.01)
    assert second.name == "n+1"
    assert first.share + second.share == pytest.approx(1.0, abs=0.03)


def test_too_few_processes_are_named_only_if_processors_are_idle():
    plain = request("/slug", sent(1, "select a", 1.0, 1e5), mean_ns=40e6)
    spread = HotFunction("compile", 0.02, "get_queryset", 0.52)
    found = find_service_findings(QUEUED, [plain], (), FORKED[:1], seen=full(0.5), hottest=spread)
    assert found[0].name == "few processes"
    assert "its only process is busy" in found[0].sentence
    assert "50 % of the machine's processors are idle" in found[0].sentence
    code = find_service_findings(QUEUED, [plain], (), FORKED, seen=full(1.0), hottest=spread)
    assert code[0].name == "service code"
    assert "52 % of it is in get_queryset" in code[0].sentence
    assert "few processes" not in [one.name for one in code]


def test_a_repeated_statement_without_an_index_is_named_before_the_repetition():
    slow = sent(1, "select name from customers where id = ?", 20.0, 36e6)
    listed = request("/orders", slow, PRODUCT, mean_ns=40e6)
    time = (place("database cpu", 0.95), place("service cpu", 0.05))
    found = find_service_findings(time, [listed], (), (), unindexed={slow.text: "customers"})
    assert [one.name for one in found] == ["missing index", "n+1"]
    assert found[0].sentence.startswith("an index is missing on customers: 20 × ")
    assert found[0].share == pytest.approx(0.95 * 36 / 37, abs=0.05)
    assert names(time, [listed], (), ())[0] == "n+1"


def test_time_in_which_sessions_do_not_execute_belongs_to_the_number_of_statements():
    listed = request("/orders", ORDERS, CUSTOMER, PRODUCT, sent(4, "select count(*)", 1.0, 8e6))
    time = (place("database cpu", 0.8), place("service cpu", 0.2))
    found = {one.name: one for one in find_service_findings(time, [listed], (), ())}
    assert found["statement"].share == pytest.approx(8 / 40, abs=0.01)
    assert found["n+1"].share > 0.7


def test_connections_opened_for_each_request_are_named_with_what_they_cost():
    setup = sent(7, "select set_config(?, ?, ?)", 1.0, 2e5)
    plain = replace(request("/slug", setup, sent(1, "select a", 1.0, 2e5), mean_ns=40e6), connections=1.0)
    spread = HotFunction("compile", 0.02, "get_queryset", 0.52)
    options = {"seen": full(1.0), "hottest": spread, "connect_ns": 3e6}
    time = (place("process queue", 0.7), place("service cpu", 0.28), place("database cpu", 0.02))
    first, second, *_ = find_service_findings(time, [plain], (), FORKED, **options)
    assert (first.name, first.request, second.name) == ("connections", "/slug", "service code")
    assert "opens a connection to the database for each request; opening one takes 3.00 ms" in first.sentence
    # 3 of the 12 ms outside the queue, and half of the statements' time.
    assert first.share == pytest.approx(3 / 12 + 0.01 / 0.3 / 2, abs=0.02)
    both = find_service_findings(time, [plain, replace(plain, name="/page")], (), FORKED, **options)
    assert both[0].sentence.startswith("each request opens a connection to the database; opening one")
    kept = find_service_findings(time, [replace(plain, connections=0.02)], (), FORKED, **options)
    assert "connections" not in [one.name for one in kept]


def test_what_nothing_explains_comes_after_a_known_cause():
    time = (place("service wait", 0.4), place("locks", 0.35), place("database cpu", 0.25))
    assert names(time, [request("/visit", SEARCH)], (), ())[:2] == ["statement", "service wait"]
    almost = (place("service wait", 0.8), place("locks", 0.2))
    assert names(almost, [request("/visit", SEARCH)], (), ())[0] == "service wait"


def test_a_limit_that_refuses_comes_first_and_other_programs_count_by_what_they_delay():
    found = find_service_findings(
        IN_DATABASE, [request("/search", SEARCH)], list(LIMITS.values()), (), foreign=0.5
    )
    assert found[0].sentence == "connections were refused"
    machine = next(one for one in found if "processors are full" in one.sentence)
    assert machine.share == pytest.approx(0.4 * 0.5)


def test_uneven_processes_are_named_and_even_ones_are_not():
    waiting = (place("service queue", 0.6), place("service cpu", 0.4))
    master = worker(1, 0.0, parent=0)
    uneven = find_service_findings(waiting, [], (), [master, worker(2, 0.9), worker(3, 0.2)])
    assert "idle processes" in [one.name for one in uneven]
    assert "idle processes" not in names(waiting, [], (), [master, worker(2, 0.9), worker(3, 0.8)])
    assert "idle processes" not in names(waiting, [], (), [master, worker(2, 0.2), worker(3, 0.0)])
    assert "idle processes" not in names(waiting, [], (), [worker(2, 0.9)])
    helper = replace(worker(3, 0.0), sessions=0)
    assert "idle processes" not in names(waiting, [], (), [master, worker(2, 0.9), helper])


def result(time, requests, bottlenecks=(), workers=(), **changes):
    facts = ServiceRunFacts(
        "service-1", "complete", "2026-05-31T08:30:00", 10**10, "http://here", "shop", "again", "0.1"
    )
    built = ServiceResult(
        run=facts,
        answer="",
        reasons=(),
        warnings=(),
        findings=find_service_findings(time, requests, bottlenecks, workers),
        bottlenecks=tuple(bottlenecks),
        in_flight=8.0,
        mean_ns=40e6,
        time=tuple(time),
        requests=tuple(requests),
        explained=1.0,
        workers=tuple(workers),
        origins=(),
        missing=(),
        load=None,
        database=None,
        code=None,
        log=None,
    )
    return answer_service(replace(built, **changes))


RESULTS = {
    "n+1": result(IN_SERVICE, [request("/orders", ORDERS, CUSTOMER, PRODUCT, BEGIN, COMMIT)]),
    "statement": result(IN_DATABASE, [request("/search", SEARCH)]),
    "locks": result((place("locks", 0.9),),
                    [request("/visit", sent(5, "update visits set many = many + ?", 1.0, 36e6))]),
    "transaction": result((place("idle in transaction", 0.9),), [PLAIN]),
    "code": result((place("service cpu", 0.9),), [PLAIN]),
    "pool": result((place("service wait", 0.9),), [PLAIN], [LIMITS["pool"]]),
    "refused": result(IN_DATABASE, [PLAIN], [LIMITS["connection limit"]]),
    "queued": result(QUEUED, [request("/list?limit=20&fields=all", SEARCH)], (), FORKED),
    "few": result(QUEUED, [PLAIN], (), FORKED,
                  findings=find_service_findings(QUEUED, [PLAIN], (), FORKED[:1], seen=full(0.2))),
    "unindexed": result(IN_DATABASE, [request("/search?a=1&b=2", SEARCH)],
                        findings=find_service_findings(IN_DATABASE,
                                                       [request("/search?a=1&b=2", SEARCH)], (), (),
                                                       unindexed={SEARCH.text: "products"})),
    "long": result(IN_SERVICE,
                   [request("/raw?rows_per_page=100&delta=2592000", CUSTOMER, PRODUCT)]),
    "nothing": result((), []),
    "calm": result((place("service wait", 0.04),), [PLAIN]),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_headlines_are_short_and_every_form_can_be_built(name):
    document = build_service_document(RESULTS[name])
    assert fits(document.headline), document.headline
    assert document.headline[0].isupper() or document.headline[0] in '"/'
    assert document.title == "service-1"


def test_the_headlines_name_what_was_found():
    assert RESULTS["n+1"].answer.startswith("/orders sends 43 statements for each request (N+1)")
    assert (
        '"select count(*) from products where supplier = ?" of /search takes' in RESULTS["statement"].answer
    )
    assert "waiting for locks" in RESULTS["locks"].answer
    assert RESULTS["refused"].answer.startswith("The bottleneck is the connection limit")
    assert RESULTS["queued"].answer.startswith(
        '"select count(*) from products where supplier = ?" of /list?limit=20&fields=all causes'
    )
    assert RESULTS["few"].answer.startswith("The service has too few processes: its only process is busy")
    assert RESULTS["unindexed"].answer.startswith("An index is missing on products")
    assert RESULTS["long"].answer.startswith(
        "/raw?rows_per_page=… sends 40 statements for each request (N+1)"
    )
    assert RESULTS["nothing"].answer.startswith("Nothing was measured")
    assert RESULTS["calm"].answer.startswith("No fault was found")


def test_the_steps_name_each_change_once():
    listed = [request("/search", SEARCH, CUSTOMER)]
    bill = Bill(3600.0, 3000.0, 4200.0, 0.9)
    joined = Candidate("client", "Fetch all rows with one statement.")
    loop = Finding("one-by-one", "A loop", ("shop",), bill, (1,), CUSTOMER.text, candidates=(joined,))
    create = "CREATE INDEX CONCURRENTLY products_name_idx ON products (name);"
    created = Candidate("index", "Create an index on products (name).", create)
    index = Finding("missing-index", "A scan", ("products",), bill, (4,), SEARCH.text, candidates=(created,))
    database = replace(database_result(), findings=(loop, index))
    options = {"database": database, "load": http_result()}
    repeated = build_service_document(
        result(
            IN_SERVICE,
            listed,
            **options,
            findings=find_service_findings(IN_SERVICE, listed, (), (), unindexed={SEARCH.text: "products"}),
        )
    )
    texts = [one.text for one in repeated.steps]
    assert sum("one statement" in one for one in texts) == 1
    assert sum("index on" in one.lower() for one in texts) == 1
    commands = [one.command for one in repeated.steps if one.command.startswith("uncork new")]
    assert commands == [
        "uncork new question.toml --from service-1 --change "
        "index='CREATE INDEX products_name_idx ON products (name);'"
    ]
    plain = build_service_document(RESULTS["n+1"])
    assert not [one for one in plain.steps if "CREATE INDEX" in one.command]


def test_sources_that_disagree_are_reconciled():
    full = Bottleneck("database cpu", "the processors are 99 % busy", "make it cheaper", 0.5)
    found = result(
        (place("locks", 0.7), place("database queue", 0.2), place("database cpu", 0.1)), [PLAIN], [full]
    )
    (sentence,) = [one for one in found.reasons if "saturated" in one]
    assert "30 % of their time there and 70 % waiting for locks" in sentence
    agreeing = result(IN_DATABASE, [PLAIN], [full])
    assert not [one for one in agreeing.reasons if "saturated" in one]


def test_warnings_say_what_is_missing_and_what_was_not_explained():
    found = result(IN_DATABASE, [PLAIN], missing=("functions of Python: pip install py-spy",), explained=0.6)
    assert found.warnings[0] == "Missing: functions of Python: pip install py-spy."
    assert "60 % of the statements" in found.warnings[1]


def test_answers_that_pause_for_acknowledgements_are_named_before_the_wait_that_they_are():
    waiting = (place("service wait", 0.95), place("service cpu", 0.05))
    found = find_service_findings(waiting, [PLAIN], (), (), paused=0.8)
    assert "pause midway for 40 ms" in found[0].sentence
    assert sum(one.share for one in found[1:]) < 0.25
