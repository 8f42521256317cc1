"""Periods of events that differ are told to the trace, so that the analyses can weigh by them."""

import numpy as np

from numaplan.profiler import EVENT_CODE
from numaplan.profiler.perfdata.accesses.event_kinds import PeriodCounter, period_facts

LOAD, STORE, FAULT = (EVENT_CODE[name] for name in ("load", "store", "fault"))


def counted(*blocks: tuple[list[int], list[int], list[int]]) -> PeriodCounter:
    counter = PeriodCounter()
    for events, periods, codes in blocks:
        samples = {"event": np.array([9, *events], np.int32), "period": np.array([77, *periods], np.uint64)}
        counter.add(samples, np.arange(1, len(events) + 1), np.array(codes, np.uint8))
    return counter


def test_fixed_periods_of_each_event() -> None:
    counter = counted(([0, 0], [0, 0], [LOAD, LOAD]), ([0, 1], [0, 0], [LOAD, STORE]))
    assert counter.periods([{"period": 1000}, {"period": 4000}]) == {"load": 1000, "store": 4000}


def test_periods_that_the_kernel_chose() -> None:
    counter = counted(([0, 1, 1], [100, 300, 500], [LOAD, STORE, STORE]))
    assert counter.periods([{"period": 0}, {"period": 0}]) == {"load": 100, "store": 400}


def test_one_event_that_samples_loads_and_stores() -> None:
    counter = counted(([0, 0, 0], [0, 0, 0], [LOAD, STORE, FAULT]))
    assert counter.periods([{"period": 64}]) == {"load": 64, "store": 64}


def test_nothing_is_said_when_some_are_not_known() -> None:
    counter = counted(([0, 1], [0, 0], [LOAD, STORE]))
    assert counter.periods([{"period": 1000}, {"period": 0}]) == {}
    assert PeriodCounter().periods([]) == {}


def test_only_differing_periods_are_facts_of_the_trace() -> None:
    assert period_facts({"load": 5, "store": 5}) == period_facts({}) == {}
    assert period_facts({"load": 5, "store": 6}) == {"periods": '{"load": 5, "store": 6}'}
