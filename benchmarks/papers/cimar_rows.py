"""What [IMAR], 7, says of its experiments, beside what came out of ours.

How steady a configuration is the paper tells by the standard deviation of task times over runs: NIMAR's is
smaller than CIMAR's in A and B, and LMMA makes it smaller in all three.
"""

from benchmarks.papers.measured import Measured, spread_ratios
from benchmarks.papers.rows import Row, claim_row, ratio_row, spread_row

PAPER = "cimar-nimar-lmma"
_ONE_CONTROLLER = (
    "a task bound to a node has one controller of four, and fills it here; so with 64 bytes a miss too"
)
_DISPLACED = "threads are displaced here though nothing else runs"
_NEARER = "the simulated baseline keeps two accesses of three local: less is left to gain"
_SPREAD_OUT = "interleaved memory is three quarters remote, the simulated baseline's a third"
_MENDS = (
    "it brings memory that one thread touched first to its users, and after displaced threads; with neither"
    " it stays within 5 %"
)
_PAYS = "memory near its threads pays on this machine too, in the simulator"
_PINNED = "CIMAR's pinned threads cannot evade each other when there are more than cpus"
_OWN_WORK = "pinned threads cannot evade the tool's and the system's own work, which is small here"


def rows_a(server: str, experiments: list[Measured]) -> list[Row]:
    """One program at a time."""
    table = f"Experiment A, {server}"
    nimar, cimar = _mean_ratios(experiments, "nimar"), _mean_ratios(experiments, "cimar")
    lmma, ours = _mean_ratios(experiments, "lmma"), _mean_ratios(experiments, "numaplan")
    less = [b - a for a, b in zip(cimar, nimar, strict=True)]
    return [
        ratio_row(PAPER, table, "NIMAR, mean time", 1.0, nimar, {"no": _DISPLACED}),
        ratio_row(PAPER, table, "LMMA, mean time", 1.0, lmma, {"no": _MENDS}),
        claim_row(PAPER, table, "NIMAR less CIMAR", "CIMAR loses, NIMAR does not", less, 0.0, _OWN_WORK),
        _steadier(table, experiments, "nimar", "cimar", "more stable"),
        _steadier(table, experiments, "lmma", "baseline", "deviation reduced frequently"),
        claim_row(
            "ours",
            table,
            "numaplan over NIMAR",
            "no worse",
            [a / b for a, b in zip(ours, nimar, strict=True)],
            1.0,
            within=True,
        ),
    ]


def rows_b_hpl(b: Measured) -> list[Row]:
    """Tasks that arrive, where latency is dear."""
    table = "Experiment B, HPL"

    def over(config: str, to: str, says: str, *, above: bool = False) -> Row:
        name = f"{config}, mean task time over {to}"
        return claim_row(PAPER, table, name, says, b.ratios(config, to, "tasks"), 1.0, _NEARER, above=above)

    return [
        over("direct", "baseline", "worse for most tasks", above=True),
        over("nimar", "interleave", "interleave is outperformed"),
        over("cimar", "interleave", "interleave is outperformed"),
        over("lmma", "interleave", "interleave is outperformed"),
        over("nimar", "baseline", "better"),
        over("nimar+lmma", "baseline", "better"),
        ratio_row(
            PAPER, table, "nimar over cimar", 1.0, b.ratios("nimar", "cimar", "tasks"), {"no": _PINNED}
        ),
        _steadier(table, [b], "nimar", "cimar", "NIMAR is more stable"),
        _steadier(table, [b], "nimar+lmma", "nimar", "further improved"),
    ]


def rows_b_lpl(b: Measured) -> list[Row]:
    """The same where it is cheaper: little difference to the baseline."""
    names = ("nimar", "nimar+lmma")
    return [
        ratio_row(
            PAPER,
            "Experiment B, LPL",
            f"{name}, mean task time",
            1.0,
            b.ratios(name, what="tasks"),
            {"no": _PAYS},
        )
        for name in names
    ]


def rows_c(server: str, c: Measured) -> list[Row]:
    """Four users with a queue each."""
    table = f"Experiment C, {server}"
    expected = {
        "HPL": {"direct": 1.0, "interleave": 1.0, "nimar": 0.71, "nimar+lmma": 0.71, "lmma": 1.0},
        "LPL": {"direct": 1.0, "nimar": 1.0, "nimar+lmma": 1.0, "lmma": 1.0},
    }[server]
    improves = {"direction": _NEARER, "no": _NEARER if server == "HPL" else _PAYS}
    whys = {
        "direct": {"no": _ONE_CONTROLLER},
        "interleave": {"no": _SPREAD_OUT},
        "lmma": {"no": _MENDS},
        "nimar": improves,
        "nimar+lmma": improves,
    }
    found = [
        ratio_row(PAPER, table, f"{name}, wall time", value, c.ratios(name), whys[name])
        for name, value in expected.items()
    ]
    if server == "HPL":
        thread_moving = ("cimar", "nimar", "cimar+lmma", "nimar+lmma")
        tasks = {name: c.worst_task(name, best=True) for name in thread_moving}
        best = min(tasks, key=lambda name: sum(tasks[name]))
        why = {"direction": f"queues differ; {_NEARER}"}
        found.append(ratio_row(PAPER, table, f"most improved task ({best})", 0.51, tasks[best], why))
        found.append(_steadier(table, [c], "nimar+lmma", "nimar", "deviation is reduced"))
    else:
        worst = c.worst_task("interleave")
        found.append(
            claim_row(
                PAPER,
                table,
                "interleave, worst task over baseline",
                "severe detriments",
                worst,
                1.1,
                above=True,
            )
        )
    found.append(_steadier(table, [c], "lmma", "baseline", "deviation is reduced"))
    return found


def _mean_ratios(experiments: list[Measured], config: str) -> list[float]:
    by_program = [experiment.ratios(config) for experiment in experiments]
    return [sum(values) / len(values) for values in zip(*by_program, strict=True)]


def _steadier(table: str, measured: list[Measured], config: str, to: str, claim: str) -> Row:
    row = f"deviation of {config} over {to}'s"
    seeds = len(measured[0].outcomes[config])
    return spread_row((PAPER, table, row), claim, spread_ratios(measured, config, to), seeds)
