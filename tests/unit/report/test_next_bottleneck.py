"""What limits the better variant after a verdict."""

from dataclasses import replace

from fakes.results import small_result
from uncork.model.variant_evidence import EvidenceFacts, WaitShare
from uncork.model.verdict import Verdict
from uncork.report.experiment.document import next_bottleneck_steps


def evidence(variant, *waits, cell=(("rows", "50000"), ("index", "none")), workload="select"):
    shares = tuple(WaitShare(name, share * 1e6, share) for name, share in waits)
    return EvidenceFacts(cell, workload, variant, 1000, 10**9, 5e5, 1e5, 0.2, shares, (), 0, (), (), ())


def texts(*found, result=None):
    base = small_result() if result is None else result
    return [step.text for step in next_bottleneck_steps(replace(base, evidence=found))]


def test_the_largest_part_of_the_better_variant_is_named():
    best = evidence("uuid", ("Lock: tuple", 0.61), ("CPU", 0.39))
    (text,) = texts(evidence("char", ("CPU", 1.0)), best)
    assert text.startswith("With uuid on select at ")
    assert "waiting (Lock: tuple): 610 µs of each operation, 61 % of its sessions' time" in text
    assert "who holds the locks" in text


def test_a_computing_variant_points_at_its_plan():
    (text,) = texts(evidence("uuid", ("CPU", 0.9)))
    assert "computing on the server" in text
    assert "plan" in text


def with_service(user_ns):
    costs = tuple(
        replace(one, service_user_ns=user_ns, service_system_ns=1e5) for one in small_result().costs
    )
    return replace(small_result(), costs=costs)


def test_a_service_that_computes_longer_than_the_server_is_named():
    cell = (("rows", "100000"), ("index", "none"))
    sessions = evidence("uuid", ("CPU", 0.6), ("IO: DataFileRead", 0.4), cell=cell)
    (text,) = texts(sessions, result=with_service(7e5))
    assert "the next bottleneck is computing in the service: 800 µs of processor time for each" in text
    assert "uncork profile service" in text
    (text,) = texts(sessions, result=with_service(4e5))
    assert "computing on the server: 600 µs of each operation" in text


def test_without_evidence_or_without_a_faster_variant_nothing_is_named():
    assert texts() == []
    assert texts(evidence("char", ("CPU", 1.0))) == []
    slower = replace(
        small_result(),
        comparisons=tuple(replace(one, verdict=Verdict.SLOWER) for one in small_result().comparisons),
    )
    assert texts(evidence("uuid", ("CPU", 0.9)), result=slower) == []
