"""A runner with its fakes, and experiments for it."""

from contextlib import closing

from fakes.ports import FakeClock, FakeLoad, FakeServer, MemorySink
from uncork.experiment.run.events import Finished, RoundStarted
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.runner import Runner
from uncork.experiment.spec.schema import parse_spec

FIND = """
[workloads.find]
sql = "SELECT name FROM item WHERE id = :id"
operations = 100
warmup_operations = 5
state = "keep"
parameters.id = { generator = { kind = "uniform", max = 1000 } }
"""
ADD = """
[workloads.add]
sql = "INSERT INTO item VALUES (:id)"
operations = 100
warmup_operations = 5
check = "SELECT count(*) FROM item"
parameters.id = { generator = { kind = "permutation", max = 1000 } }
"""


def experiment(workloads=FIND, *, stop="", levels="", variants=("base", "new"), cache="warm"):
    text = '[experiment]\nname = "fake"\nquestion = "Which one?"\n'
    text += "".join(f"[variants.{name}]\nbaseline = {str(name == 'base').lower()}\n" for name in variants)
    stop = stop if "blocks" in stop else f"blocks = 2\n{stop}"
    setup = f'cache = "{cache}"\nsql = "CREATE TABLE item (id integer)"'
    text += f"{levels}\n[setup]\n{setup}\n{workloads}\n[stop]\n{stop}\n"
    return parse_spec(text, file="fake.toml", read=str, overrides={})


class Attempt:
    """A runner with its fakes; `run` consumes its events, up to `until` of them."""

    def __init__(
        self, spec, latencies_ns=None, *, ledger=None, first_round=1, full_at=None, until=None, **options
    ):
        server = {
            key: options.pop(key) for key in ("build_ns", "checks", "columns", "counts") if key in options
        }
        self.spec = spec
        self.clock = FakeClock(10**12)
        self.server = FakeServer(self.clock, **server)
        self.load = FakeLoad(self.server, self.clock, latencies_ns, **options)
        self.sink = MemorySink(full_at=full_at)
        self.ledger = ledger or Ledger(spec, "round")
        self.events = []
        self.runner = Runner(
            *(spec, self.server, self.load, self.sink, self.clock, self.ledger),
            first_round=first_round,
            until=until,
        )

    def run(self):
        with closing(self.runner.events()) as events:
            for event in events:
                if isinstance(event, RoundStarted) and not self.of(RoundStarted):
                    self.prepared = len(self.server.calls)
                self.events.append(event)
        return self

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def measuring(self):
        """What the server was asked from the first round on."""
        return self.server.calls[self.prepared :]

    def asked(self, what):
        return [arm for name, _, arm in self.measuring if name == what]

    @property
    def finished(self):
        return self.of(Finished)[-1]

    def verdicts(self):
        return {
            (judged.cell.name, judged.workload, judged.variant): judged.judgement.verdict
            for judged in self.ledger.judgements()
        }
