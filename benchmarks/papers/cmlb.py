"""[CMLB], Tables 1 to 3: remote communication and load deviation of the mapping methods on two nodes.

The paper's matrices are not published. Ours have the pattern of these codes (neighbours in one dimension
for SP and BT with longer faces for BT, a wavefront for LU) with unequal thread loads and shuffled ids;
values are means over seeds, over EagerMap's: a single ratio to a grouping that happens to be even says
nothing.
"""

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.measured import Study
from benchmarks.papers.rows import Row, ratio_of_means
from numaplan.machine import Machine
from numaplan.mapper import evaluate, map_threads

PAPER = "cmlb"
THREADS = 32
METHODS = {"cmlb": "CMLB", "treematch": "TreeMatch", "choicemap": "ChoiceMap"}
MEASURES = {"RemoteComm": "remote_comm", "Load_std": "load_std"}
# (RemoteComm, Load_std) relative to EagerMap's.
TABLES = {
    ("1", "SP"): {
        "cmlb": (1.99 / 1.90, 139.37 / 33455.01),
        "treematch": (2.13 / 1.90, 29343.56 / 33455.01),
        "choicemap": (1.92 / 1.90, 33214.47 / 33455.01),
    },
    ("2", "LU"): {
        "cmlb": (3.51 / 3.40, 462.69 / 29310.60),
        "treematch": (3.62 / 3.40, 28913.45 / 29310.60),
        "choicemap": (3.54 / 3.40, 28712.68 / 29310.60),
    },
    ("3", "BT"): {
        "cmlb": (2.27 / 1.89, 968.89 / 36440.19),
        "treematch": (2.01 / 1.89, 36642.56 / 36440.19),
        "choicemap": (1.97 / 1.89, 35951.62 / 36440.19),
    },
}
_MATRICES = "our matrices have the pattern of the codes, not their numbers"
_CHANCE = "it does not look at loads: how even its groups come out is chance, of these matrices"


def instance(code: str, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Communication (N, N) and loads (N,) like those of a code."""
    rng = np.random.default_rng(seed)
    reach = {"SP": (1, 2), "LU": (1,), "BT": (1, 2, 3)}[code]
    comm = rng.random((THREADS, THREADS)) * 0.15
    for step in reach:
        rows = np.arange(THREADS - step)
        comm[rows, rows + step] += (8.0 / step) * (1 + 0.3 * rng.standard_normal(len(rows)))
    comm = np.maximum(comm + comm.T, 0.0)
    np.fill_diagonal(comm, 0.0)
    loads = 1e5 * (0.6 + np.arange(THREADS) / THREADS) + 2e4 * rng.random(THREADS)  # more work at one end
    order = rng.permutation(THREADS)
    return comm[np.ix_(order, order)], loads[order]


def rows(study: Study) -> list[Row]:
    """Two rows a method and code."""
    machine = Machine.load("2x16")
    found = []
    for (table, code), methods in TABLES.items():
        cases = [instance(code, seed) for seed in range(study.first, study.first + study.seeds)]
        base = [evaluate(*case, machine, map_threads(*case, machine, method="eagermap")) for case in cases]
        for method, expected in methods.items():
            got = [evaluate(*case, machine, map_threads(*case, machine, method=method)) for case in cases]
            for (what, attribute), ratio in zip(MEASURES.items(), expected, strict=True):
                ours, theirs = ([getattr(each, attribute) for each in group] for group in (got, base))
                name = f"{code}, {METHODS[method]}: {what} over EagerMap's"
                found.append(_row(table, name, ratio, ratio_of_means(ours, theirs), study.seeds))
    return found


def _row(table: str, row: str, expected: float, measured: tuple[float, float, float], seeds: int) -> Row:
    value, low, high = measured
    near = abs(value - expected) <= max(0.15 * expected, 0.05)
    same_side = (value - 1.0) * (expected - 1.0) > 0
    verdict = "size" if near else "direction" if same_side else "no"
    return Row(
        paper=PAPER,
        table=table,
        row=row,
        paper_value=round(expected, 3),
        value=round(value, 3),
        low=round(low, 3),
        high=round(high, 3),
        seeds=seeds,
        verdict=verdict,
        why={"size": "", "direction": _MATRICES, "no": _CHANCE}[verdict],
    )
