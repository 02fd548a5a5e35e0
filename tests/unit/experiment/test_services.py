"""Services as variants: what a file may say, what is started when, and what trials by HTTP send."""

from __future__ import annotations

import itertools
import re
from contextlib import closing
from dataclasses import replace

import pytest

from fakes.goldens import compare_mistakes
from fakes.ports import MILLISECOND, FakeClock, FakeLoad, FakeServer, FakeServices, MemorySink
from uncork.errors import ServerCrash, SetupError, SpecError
from uncork.experiment.plan.order import cells
from uncork.experiment.run.events import Evidenced, Finished, Recovered, Refused, Skipped
from uncork.experiment.run.evidence_trials import evidence_request
from uncork.experiment.run.http_request import asked_requests, http_trial, service_jobs
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.runner import Runner
from uncork.experiment.spec.schema import parse_spec
from uncork.model.http import HttpServer, Request, Variable
from uncork.model.measurement import Outcome
from uncork.model.server import Snapshot, Target
from uncork.model.service import Served
from uncork.model.trial import Arm, Trial
from uncork.model.verdict import Verdict

FILE = """
[experiment]
name = "pools"
question = "How many connections?"

[services.api]
command = ["{python}", "service.py", "--size=:pool"]
environment = { POOL = ":pool", WHERE = "host:port" }
ready = "/health"
requires = ["python:granian"]
files = ["queries.py"]

[services.front]
command = ["nginx"]
after = ["api"]

[databases.events]
sql = "CREATE TABLE event (id integer)"

[variants.wide]
baseline = true
service = "api"
values = { pool = "60" }

[variants.narrow]
service = "api"
values = { pool = "10" }
services.api.environment = { EXTRA = "yes" }
http = { version = "2", streams = 100, clients = 1, on_close = "stop" }

[variants.fronted]
values = { pool = "60" }

[setup]
sql = "CREATE TABLE item (id integer)"

[workloads.find]
operations = 100
warmup_operations = 5
clients = 6
answer = "same"

[workloads.find.http]
requests = ["/items/{id}", { path = "/pool/{pool}", method = "POST", body = '{"id": {id}}', weight = 3 }]
timeout = "5s"

[workloads.find.parameters.id]
generator = { kind = "uniform", min = 1, max = 500 }

[stop]
blocks = 2
minimum_rounds = 5
maximum_rounds = 6
"""
FILES = {"service.py": "serve()", "queries.py": "FIND = 1"}
PLACE = Served("api", 20_001, (7,))


def parse(text=FILE, more=None):
    def read(name):
        if name not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[name]

    files = FILES | (more or {})
    return parse_spec(text, file="case.toml", read=read, overrides={})


def changed(*pairs):
    text = FILE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


# ---- what a file says ----


def test_a_variant_uses_the_service_of_its_requests_and_those_that_it_needs():
    spec = parse()
    assert spec.services_of("wide") == ("api",)
    assert spec.services_of("fronted") == ("api", "front"), "the last in the file, and what it comes after"
    assert spec.files == FILES


def test_jobs_have_the_texts_of_variants_in_place():
    spec = parse()
    (cell,) = cells(spec)
    (job,) = service_jobs(spec, cell, "narrow")
    assert job.command == ("{python}", "service.py", "--size=10")
    assert dict(job.environment) == {"POOL": "10", "WHERE": "host:port", "EXTRA": "yes"}
    assert job.files == FILES
    assert [one.after for one in service_jobs(spec, cell, "fronted")] == [(), ("api",)]
    assert service_jobs(spec, cell, "wide")[0] == service_jobs(spec, cell, "fronted")[0]


def test_a_variant_may_have_another_file_under_the_name_that_its_service_knows():
    own = 'services.api.files = { "service.py" = "new/service.py" }\nhttp = { version = "2"'
    text = FILE.replace('services.api.environment = { EXTRA = "yes" }\nhttp = { version = "2"', own)
    spec = parse(text, {"new/service.py": "print('new')"})
    (cell,) = cells(spec)
    (job,) = service_jobs(spec, cell, "narrow")
    assert job.files == {**FILES, "service.py": "print('new')"}
    assert job != replace(job, digest=service_jobs(spec, cell, "wide")[0].digest)


def test_a_wrong_file_is_refused_with_line_key_and_reason():
    compare_mistakes("spec/services", FILE, parse)


def test_requests_need_a_service():
    start, end = FILE.index("[services.api]"), FILE.index("[variants.wide]")
    text = FILE[:start] + FILE[end:]
    for gone in ('service = "api"\n', 'services.api.environment = { EXTRA = "yes" }\n'):
        text = text.replace(gone, "")
    with pytest.raises(SpecError, match=r"needs a service that receives the requests; add \[services.NAME\]"):
        parse(text)


# ---- what a trial sends ----


def test_a_trial_sends_requests_with_drawn_values_in_turn():
    spec = parse()
    (cell,) = cells(spec)
    trials = [Trial(1, 1, 0, cell, "find", Arm(name)) for name in ("wide", "narrow")]
    wide, narrow = (http_trial(spec, one, Target("d", {}), PLACE, {}) for one in trials)
    assert wide.spec.requests == (
        Request("find.1", "GET", "/items/{id}"),
        Request("find.2", "POST", "/pool/60", 3, body=b'{"id": {id}}'),
    )
    (variable,) = wide.spec.variables
    assert variable == Variable("id", values=variable.values, in_turn=True)
    assert len(variable.values) == 105
    assert wide.spec.variables == narrow.spec.variables, "every arm of a block draws the same"
    assert wide.spec.seed == narrow.spec.seed
    assert (wide.spec.version, wide.spec.streams, wide.spec.clients) == ("1.1", 1, 6)
    assert (narrow.spec.version, narrow.spec.streams, narrow.spec.clients) == ("2", 100, 1)
    assert (wide.spec.on_close, narrow.spec.on_close) == ("reconnect", "stop")
    assert wide.spec.request_timeout_ns == 5_000_000_000
    assert wide.warmup_operations == 5
    later = http_trial(spec, Trial(2, 1, 0, cell, "find", Arm("wide")), Target("d", {}), PLACE, {})
    assert later.spec.variables != wide.spec.variables


def test_http3_goes_to_a_service_with_tls_that_listens_on_udp_too():
    tls = ('ready = "/health"', 'ready = "/health"\ntls = true')
    spec = parse(changed(tls, ('version = "2"', 'version = "3"')))
    (cell,) = cells(spec)
    jobs = {one.name: one for one in service_jobs(spec, cell, "fronted")}
    assert [(one.tls, one.udp) for one in jobs.values()] == [(True, True), (False, False)]
    assert jobs["api"] == service_jobs(spec, cell, "wide")[0], "one process serves both versions"
    served = replace(PLACE, tls=True)
    wide, narrow = (
        http_trial(spec, Trial(1, 1, 0, cell, "find", Arm(name)), Target("d", {}), served, {}).spec
        for name in ("wide", "narrow")
    )
    assert (wide.version, narrow.version) == ("1.1", "3")
    assert wide.server == narrow.server == HttpServer("127.0.0.1", 20_001, tls=True, verify=False)


def test_the_first_requests_are_the_same_for_all_and_each_kind_is_among_them():
    spec = parse()
    (cell,) = cells(spec)
    wide, narrow = (asked_requests(spec, cell, "find", name, {}) for name in ("wide", "narrow"))
    assert len(wide) == 20
    assert wide[0] == narrow[0]
    assert wide[1].line == "POST /pool/60"
    assert narrow[1].line == "POST /pool/10"
    assert wide[1].body == narrow[1].body
    assert wide[1].body.startswith('{"id": ')


def test_evidence_is_gathered_under_the_same_requests_for_a_while():
    spec = parse()
    (cell,) = cells(spec)
    request = http_trial(spec, Trial(0, 0, 0, cell, "find", Arm("wide")), Target("d", {}), PLACE, {})
    watched = evidence_request(request, 5_000_000_000)
    assert (watched.spec.operations, watched.spec.duration_ns) == (None, 6_000_000_000)
    assert watched.warmup_operations == 0
    assert watched.spec.requests == request.spec.requests


# ---- what the runner does ----


class Attempt:
    """A runner with its fakes, services among them."""

    def __init__(self, text=FILE, latencies_ns=None, *, build_ns=0, **options):
        self.spec = parse(text)
        self.clock = FakeClock(10**12)
        self.server = FakeServer(self.clock, build_ns=build_ns)
        self.load = FakeLoad(self.server, self.clock, latencies_ns, **options)
        self.services = FakeServices()
        self.sink = MemorySink()
        self.ledger = Ledger(self.spec, "round")
        self.events = []
        self.runner = Runner(
            self.spec, self.server, self.load, self.sink, self.clock, self.ledger, services=self.services
        )

    def run(self):
        with closing(self.runner.events()) as events:
            self.events += events
        return self

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def test_services_run_for_a_round_and_are_ended_after_it():
    attempt = Attempt(latencies_ns={"narrow": 2 * MILLISECOND}).run()
    assert attempt.services.running == {}
    rounds = attempt.of(Finished)[0].rounds
    starts = [label for what, label in attempt.services.calls if what == "start"]
    assert starts.count("narrow") == 1 + rounds, "once for the answer check, once a round"
    assert starts.count("wide#2") == rounds
    assert {judged.variant: judged.judgement.verdict.value for judged in attempt.ledger.judgements()} == {
        "narrow": "slower",
        "fronted": "no practical difference",
    }
    costs = {m.counters.service_user_ns + m.counters.service_system_ns for _, m in attempt.sink.kept}
    assert costs == {4000}


def test_failed_requests_are_data_and_do_not_spoil_a_trial():
    attempt = Attempt()
    attempt.load.failing = {"narrow": 0.5}
    attempt.run()
    assert {measurement.outcome for _, measurement in attempt.sink.kept} == {Outcome.COMPLETE}
    assert attempt.of(Finished)[0].failed == 0


def test_shares_of_success_are_compared_in_points():
    text = changed(
        ("operations = 100", 'operations = 300\nmetric = "success"\npractical = "1%"\nprecision = "1%"')
    )
    attempt = Attempt(text.replace("minimum_rounds = 5\nmaximum_rounds = 6", "maximum_rounds = 12"))
    attempt.load.failing = {"wide": 0.02, "fronted": 0.02, "narrow": 0.0}
    attempt.run()
    judged = {one.variant: one for one in attempt.ledger.judgements()}
    assert judged["narrow"].judgement.verdict is Verdict.FASTER
    assert judged["narrow"].effect.difference == pytest.approx(0.02, abs=0.006)
    assert judged["fronted"].judgement.verdict is not Verdict.FASTER
    ((_, itself),) = attempt.ledger.success_noise()
    assert itself.low < 0.0 < itself.high


def dies_at(attempt, numbers):
    """Let the service of the trials with these numbers end in mid-trial."""

    def meanwhile(trial):
        if len(attempt.load.sent) in numbers:
            attempt.services.gone.add(trial.served.port)

    attempt.load.meanwhile = meanwhile
    return attempt


def test_a_service_that_dies_ends_the_round_and_is_started_again():
    attempt = dies_at(Attempt(), {11}).run()
    (recovered,) = attempt.of(Recovered)
    assert recovered.message == ("a service failed and was restarted: service api ended (exit status 3)")
    assert attempt.server.called("recover") == [], "the server had no part in it"
    lost = [m for _, m in attempt.sink.kept if m.outcome == Outcome.CONNECTION_LOST]
    assert [m.message for m in lost] == ["service api ended (exit status 3)"]
    assert attempt.of(Finished)[0].failed == 1
    assert attempt.services.running == {}


def test_a_service_that_died_between_trials_is_told_as_well():
    attempt = Attempt()
    for event in attempt.runner.events():
        attempt.events.append(event)
        if len(attempt.load.sent) == 11 and not attempt.services.gone:
            attempt.services.gone = {one.port for one in attempt.services.running.values()}
    assert len(attempt.of(Recovered)) == 1


def test_a_service_that_dies_again_and_again_ends_the_run():
    attempt = dies_at(Attempt(), {2, 4, 6})
    with pytest.raises(ServerCrash, match=r"a service failed 3 times, most recently: service api ended"):
        attempt.run()
    assert attempt.services.running == {}
    assert len(attempt.sink.kept) >= 3


def test_a_service_that_never_gets_ready_is_told_before_anything_is_measured():
    attempt = Attempt()
    attempt.services.slow = {"front"}
    with pytest.raises(SetupError, match=r"variant fronted: service front of fronted was not ready"):
        attempt.run()
    assert attempt.sink.kept == []
    assert attempt.services.running == {}


def test_a_variant_whose_service_lacks_something_is_skipped():
    text = changed(("[services.front]", '[services.front]\nrequires = ["nginx"]'))
    attempt = Attempt(text)
    attempt.services.missing = {"nginx": "there is no program nginx on the PATH"}
    attempt.run()
    (skipped,) = attempt.of(Skipped)
    assert skipped.variant == "fronted"
    assert skipped.reason == "cannot be run here: there is no program nginx on the PATH"
    attempt = Attempt()
    attempt.services.missing = {"python:granian": "there is no module granian"}
    with pytest.raises(SetupError, match="the baseline wide cannot be run here: there is no module granian"):
        attempt.run()


def test_a_variant_that_answers_otherwise_is_refused_or_told():
    def bodies(attempt):
        # The services of the answer check are started in the order of the variants.
        attempt.load.bodies = {20_002: '{"id": 2}'}

    attempt = Attempt()
    bodies(attempt)
    attempt.run()
    (refused,) = attempt.of(Refused)
    assert refused.variant == "narrow"
    assert refused.reason.startswith("wrong answer: GET /items/")
    assert refused.reason.endswith(": /id is 2 where the baseline has 1")
    attempt = Attempt(changed(('answer = "same"', 'answer = "may differ"')))
    bodies(attempt)
    attempt.run()
    assert attempt.of(Refused) == []
    ((cell, workload, variant, difference),) = attempt.sink.answers
    assert (cell, workload, variant) == ("all", "find", "narrow")
    assert difference.endswith("/id is 2 where the baseline has 1")


READING = ('method = "POST"', 'method = "GET"')


def test_data_can_begin_as_a_copy_of_a_database():
    copied = ('sql = "CREATE TABLE item (id integer)"', 'copy_of = "host=db dbname=shop"')
    attempt = Attempt(changed(copied)).run()
    calls = [name for name, _, _ in attempt.server.calls]
    assert calls.index("copy host=db dbname=shop") < calls.index("build"), "before the first template"
    assert set(attempt.server.scripts.values()) == {""}
    kept = Attempt(changed((copied[0], f'{copied[1]}\nstatistics = "keep"'))).run()
    assert "copy host=db dbname=shop, with its statistics" in [name for name, _, _ in kept.server.calls]
    with pytest.raises(SpecError, match=r"setup.copy_of: only postgresql can copy a database, but fronted"):
        Attempt(changed(copied, ("[variants.fronted]", '[variants.fronted]\nengine = "duckdb"')))


def test_a_baseline_that_differs_from_itself_is_named_with_the_line_that_allows_it():
    def attempt(*pairs):
        first, second = (f'{{"id": 1, "items": [1, 2], "token": "{one}"}}' for one in "ab")
        made = Attempt(changed(READING, *pairs))
        made.load.bodies = {
            20_001: [first, second.replace("[1, 2]", "[2, 1]")],
            20_002: [second] * 2,
            20_003: [first] * 2,
        }
        answered = made.load.ask
        made.load.ask = lambda served, requests, timeout: answered(served, requests[:1], timeout)
        return made.run()

    (refused,) = attempt().of(Refused)
    assert refused.variant == "narrow"
    assert refused.reason.startswith(
        "not comparable: the baseline answers the same request differently: GET /"
    )
    line = 'ignore = ["/token"] and order_free = ["/items"]'
    assert refused.reason.endswith(
        ": /items has the same elements in another order the second time (and 1 more place); "
        f"in workloads.find.http, set {line}"
    )
    lines = line.replace(" and ", "\n")
    allowed = attempt(("[workloads.find.http]\n", f"[workloads.find.http]\n{lines}\n"))
    assert allowed.of(Refused) == []
    flagged = attempt(('answer = "same"', 'answer = "may differ"'))
    assert flagged.sink.answers == [], "the variant differs no more than the baseline from itself"


def test_moments_and_the_order_of_a_list_are_wrong_with_the_line_that_allows_them():
    attempt = Attempt(changed(READING))
    attempt.load.bodies = {
        port: f'{{"id": 1, "made": "2026-06-01T10:00:0{moment}Z", "x": [{order}]}}'
        for port, moment, order in ((20_001, 1, "1, 2"), (20_002, 7, "2, 1"), (20_003, 1, "1, 2"))
    }
    attempt.run()
    (refused,) = attempt.of(Refused)
    assert "wrong answer: GET /items/" in refused.reason
    assert refused.reason.endswith(
        '; if that may differ, in workloads.find.http, set ignore = ["/made"] and order_free = ["/x"]'
    )


def test_a_service_that_does_not_start_is_found_before_the_rest_is_filled():
    attempt = Attempt(build_ns=3 * 10**9)
    attempt.services.slow = {"api"}
    with pytest.raises(SetupError, match="service api of wide was not ready within 20 s"):
        attempt.run()
    assert attempt.server.called("build") == [("all", "wide")]
    attempt = Attempt(build_ns=3 * 10**9).run()
    first = [name for name, _, _ in attempt.server.calls if name in ("build", "restore")][:4]
    assert first == ["build", "restore", "build", "restore"], "nothing of the first start is left in the data"


def test_services_start_for_the_variants_that_requests_go_to():
    more = """
[variants.other]
values = { pool = "60" }
services.api.environment = { EXTRA = "no" }
[workloads.read]
variants = ["other", "narrow"]
sql = "SELECT 1"
operations = 10
state = "keep"
"""
    text = changed(("[workloads.find]", f'{more}[workloads.find]\nvariants = ["narrow", "fronted"]'))
    attempt = Attempt(text).run()
    starts = {label.removesuffix("#2") for what, label in attempt.services.calls if what == "start"}
    assert starts == {"wide", "narrow", "fronted"}


def test_services_are_ended_before_their_data_is_put_back():
    text = changed(
        ("[stop]", '[workloads.add]\nsql = "INSERT INTO item VALUES (1)"\noperations = 10\n[stop]')
    )
    attempt = Attempt(text).run()
    calls = [call for call in attempt.services.calls if call[1].endswith("narrow")]
    assert len(calls) > 2 * attempt.of(Finished)[0].rounds + 2, "and started again after it"
    assert attempt.server.called("build beside events") == [("", "")]
    assert attempt.server.called("warm beside") != []


def test_data_that_was_only_read_by_http_is_not_put_back():
    text = re.sub(r"^requests = .*$", 'requests = ["/items/{id}"]', FILE, flags=re.MULTILINE)
    made = Attempt(text).run().server.called("restore")
    assert len(made) == len(set(made)) == 4, "once for each arm, when its data is made"
    attempt, logged = Attempt(), itertools.count()
    attempt.server.snapshot = lambda *_, **__: Snapshot("0/1", 0, wal_records=next(logged))
    again = attempt.run().server.called("restore")
    assert len(again) > len(set(again)), "a POST may write, and the server's log has grown"


def test_evidence_is_gathered_with_services_and_they_are_ended_after_it():
    class Evidence:
        def gather(self, place, kinds, request, load, lengths):
            assert request.served.port >= 20_000

    attempt = Attempt(changed(('name = "pools"', 'name = "pools"\nevidence = ["cpu"]')))
    attempt.runner._evidence = Evidence()
    attempt.run()
    assert [event.lack for event in attempt.of(Evidenced)] == [None, None, None]
    assert attempt.services.running == {}


def test_a_deadline_below_the_timeout_goes_with_the_trial():
    spec = parse(FILE.replace('timeout = "5s"', 'timeout = "5s"\ndeadline = "100ms"'))
    (cell,) = cells(spec)
    trial = http_trial(spec, Trial(1, 1, 0, cell, "find", Arm("wide")), Target("shop", {}), PLACE, {})
    assert (trial.spec.request_timeout_ns, trial.late_ns) == (5 * 10**9, 100 * 10**6)


def test_a_deadline_must_be_below_the_timeout():
    with pytest.raises(SpecError, match=r"workloads.find.http.deadline: must be shorter than timeout"):
        parse(FILE.replace('timeout = "5s"', 'timeout = "5s"\ndeadline = "5s"'))


def test_what_is_asked_in_the_same_words_again_is_asked_once_if_it_changes_nothing():
    one = '["/items", "/items/1"]'
    kinds = '["/items/{id}", { path = "/pool/{pool}", method = "POST", body = \'{"id": {id}}\', weight = 3 }]'
    spec = parse(changed((kinds, one), ("[workloads.find.parameters.id]\n", "# "), ("generator = {", "# {")))
    (cell,) = cells(spec)
    assert [one.path for one in asked_requests(spec, cell, "find", "wide", {})] == ["/items", "/items/1"]
    again = spec.workloads["find"].http.requests[0].model_copy(update={"method": "POST"})
    http = spec.workloads["find"].http.model_copy(update={"requests": [again]})
    posting = spec.workloads["find"].model_copy(update={"http": http})
    spec = spec.model_copy(update={"workloads": {"find": posting}})
    assert len(asked_requests(spec, cell, "find", "wide", {})) == 20
