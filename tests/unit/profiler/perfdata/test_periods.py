"""Periods of events that differ are told to the trace, so that the analyses can weigh by them."""

import numpy as np

from numaplan.profiler import EVENT_CODE
from numaplan.profiler.perfdata.accesses.collector import Collector
from numaplan.profiler.perfdata.accesses.data_source import LOAD as LOADED, STORE as STORED
from numaplan.profiler.perfdata.accesses.event_kinds import PeriodCounter, period_facts
from numaplan.profiler.perfdata.accesses.native import ChosenFacts
from numaplan.profiler.perfdata.processes.unrecorded import UnrecordedThreads
from numaplan.profiler.perfdata.samples.columns import Columns

LOAD, STORE, FAULT = (EVENT_CODE[name] for name in ("load", "store", "fault"))
SOURCE = {LOAD: LOADED, STORE: STORED, FAULT: 0}


def counted(*blocks: tuple[list[int], list[int], list[int]]) -> PeriodCounter:
    """The periods of blocks of accesses: events (the last of which is faults), periods, and what they are."""
    counter, unrecorded = PeriodCounter(), UnrecordedThreads([])
    kinds, no_cpu = np.array([LOAD, STORE, FAULT], np.uint8), np.zeros(3, np.bool_)
    collector = Collector(kinds, no_cpu, no_cpu, False, (), False, counter.arrays(3), ChosenFacts())
    for events, periods, codes in blocks:
        columns = Columns()
        count = columns.count = len(events) + 1
        rows = {
            "event": [1, *events],
            "pid": [5] * count,
            "period": [77, *periods],
            "addr": [0, *[8] * len(events)],  # the first is no access
            "data_src": [0, *map(SOURCE.__getitem__, codes)],
        }
        for name, values in rows.items():
            columns.fill(name)[:count] = values
        collector.take(count)
        collector.collect(columns.finish(), unrecorded.begin(count))
    return counter


def test_fixed_periods_of_each_event() -> None:
    counter = counted(([0, 0], [0, 0], [LOAD, LOAD]), ([0, 1], [0, 0], [LOAD, STORE]))
    fixed = [{"period": 1000}, {"period": 4000}, {"period": 1}]
    assert counter.periods(fixed) == {"load": 1000, "store": 4000}


def test_periods_that_the_kernel_chose() -> None:
    counter = counted(([0, 1, 1], [100, 300, 500], [LOAD, STORE, STORE]))
    assert counter.periods([{"period": 0}] * 3) == {"load": 100, "store": 400}


def test_one_event_that_samples_loads_and_stores() -> None:
    counter = counted(([0, 0, 2], [0, 0, 0], [LOAD, STORE, FAULT]))
    assert counter.periods([{"period": 64}, {"period": 1}, {"period": 1}]) == {"load": 64, "store": 64}


def test_nothing_is_said_when_some_are_not_known() -> None:
    counter = counted(([0, 1], [0, 0], [LOAD, STORE]))
    assert counter.periods([{"period": 1000}, {"period": 0}, {"period": 1}]) == {}
    assert PeriodCounter().periods([]) == {}


def test_only_differing_periods_are_facts_of_the_trace() -> None:
    assert period_facts({"load": 5, "store": 5}) == period_facts({}) == {}
    assert period_facts({"load": 5, "store": 6}) == {"periods": '{"load": 5, "store": 6}'}
