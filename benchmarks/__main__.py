"""`python -m benchmarks [NAME…]`: run benchmarks and print what they measured."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from numaplan.common import Argument, Command, Json, NumaplanError, Option, UsageError, run_command

# name -> (module of this package with `run() -> dict`, what it measures)
BENCHMARKS = {
    "emulation": (
        "profiler.emulation",
        "accesses a second under emulation, and the slowdown against native",
    ),
    "perfdata": ("profiler.perfdata", "decoding speed against perf script"),
    "communication": ("analyzer.communication", "accuracy on real codes, speed against one stable argsort"),
    "kernels": ("analyzer.kernels", "communication of kernels at period 1000 against all their accesses"),
    "mapping": ("mapper.mapping", "cost and time of every mapping method against the peers"),
    "balance": ("mapper.balance", "what balance costs best, CMLB and CMLB with swaps"),
    "scaling": ("mapper.scaling", "cost and time of best on sparse matrices of up to 16,384 threads"),
    "jobs": ("mapper.jobs", "planning 1,000 ranks of 16 threads, and up to 10,000 ranks on hosts"),
    "small_recordings": (
        "mapper.small_recordings",
        "plans for 16 threads from recordings of 4 and 8, local share in the lab",
    ),
    "planning": ("mapper.planning", "nmap plan on a trace against Python's start with numpy and DuckDB"),
    "launcher": ("launcher.launching", "what launching with a plan costs"),
    "store": ("launcher.store", "finding a plan among 10,000 against being told which"),
    "starts": ("launcher.starts", "planned threads found in /proc over 50 starts of each kind of program"),
    "next_touch": ("launcher.next_touch", "cost of a page marked, moved by touch and by move_pages"),
    "simulator": ("simulator.speed", "160 threads for 1,000 simulated seconds, by policy"),
    "lab": ("lab.counting", "boot time and the cost of counting"),
    "look": ("launcher.look", "what numaplan look finds in programs in the lab, and what its cures do"),
    "online": ("launcher.online", "what the loop of nlaunch --online costs a program that needs nothing"),
    "messages": ("profiler.messages", "what recording the messages of MPI's ranks costs a rank"),
    "report_page": ("analyzer.report_page", "the report's charts against one of plotly's, in Chromium"),
    "exports": ("mapper.exports", "what each export keeps of a plan, expected and counted in the lab"),
    "online_lab": ("lab.online_lab", "local share by online policy and by the kernel, in the lab"),
}
DEFAULT = ("emulation", "perfdata", "communication", "kernels", "mapping", "launcher")


class BenchmarksCommand(Command, frozen=True):
    """Measure speed and accuracy, as ratios against named peers in the same run.

    By itself `papers` reproduces what five papers report: python -m benchmarks papers --html papers.html

    By itself `programs` counts plans for programs of the distribution: python -m benchmarks programs

    Example: python -m benchmarks emulation mapping
    """

    names: Annotated[
        list[str], Argument("NAME", help=f"{', '.join(BENCHMARKS)}; default: {', '.join(DEFAULT)}.")
    ] = []
    as_json: Json = False
    html: Annotated[Path | None, Option(help="papers: write a page.", metavar="FILE")] = None
    seeds: Annotated[int, Option(help="papers: runs of each simulation.", least=1)] = 20
    keep: Annotated[
        Path | None,
        Option(help="papers, programs: folder of outcomes, to go on after a break.", metavar="DIR"),
    ] = None
    only: Annotated[str, Option(help="programs: these, separated by commas.", metavar="NAMES")] = ""
    machines: Annotated[
        str, Option(help="programs: on these machines (default: 2x8,4x4).", metavar="MACHINES")
    ] = ""
    configs: Annotated[
        str,
        Option(
            help="programs: counted beside the plan (default: default,compact,interleave,online-alone).",
            metavar="NAMES",
        ),
    ] = ""
    count: Annotated[
        bool, Option("--count", off="--no-count", help="programs: count what has not been counted.")
    ] = True
    runs: Annotated[
        int, Option(help="programs: medians of so many counts, those that are kept included.", least=1)
    ] = 1
    page: Annotated[Path | None, Option(help="programs: write a page in Markdown.", metavar="FILE")] = None

    def run(self) -> None:
        if "papers" in self.names:
            self._run_papers()
            return
        if "programs" in self.names:
            self._run_programs()
            return
        if self.html is not None or self.keep is not None:
            raise UsageError(
                "--html and --keep go with papers", "run: python -m benchmarks papers --html FILE"
            )
        for name in self.names:
            if name not in BENCHMARKS:
                raise UsageError(
                    f"no benchmark {name!r}", f"choose from {', '.join([*BENCHMARKS, 'papers', 'programs'])}"
                )
        results = {name: _measured(name, show=not self.as_json) for name in self.names or DEFAULT}
        if self.as_json:
            import msgspec

            print(msgspec.json.encode({"schema": "numaplan/benchmarks/1", **results}).decode())

    def _run_papers(self) -> None:
        from benchmarks.papers.show import run_papers

        if self.names != ["papers"]:
            raise UsageError("papers runs by itself", "run: python -m benchmarks papers")
        run_papers(json=self.as_json, html=self.html, seeds=self.seeds, keep=self.keep)

    def _run_programs(self) -> None:
        from benchmarks.programs.run import Wanted, run_programs

        if self.names != ["programs"]:
            raise UsageError("programs runs by itself", "run: python -m benchmarks programs")
        run_programs(
            Wanted(
                only=self.only,
                machines=self.machines,
                keep=self.keep,
                count=self.count,
                configs=self.configs,
                runs=self.runs,
                json=self.as_json,
                page=self.page,
            )
        )


def _measured(name: str, *, show: bool) -> dict[str, Any]:
    module, what = BENCHMARKS[name]
    print(f"{name}: {what}", file=sys.stderr)
    try:
        result: dict[str, Any] = import_module(f"benchmarks.{module}").run()
    except NumaplanError as error:
        result = {"skipped": str(error)}
    if show:
        _show(name, result)
    return result


def _show(name: str, result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("measured", name, box=None, padding=(0, 2))
    for path, value in _leaves(result):
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        table.add_row(path, shown)
    Console().print(table, highlight=False)


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, f"{path} {key}".strip())]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [leaf for index, inner in enumerate(value) for leaf in _leaves(inner, f"{path} {index}")]
    return [(path, value)]


def main() -> None:
    """Entry point."""
    sys.exit(run_command(BenchmarksCommand, "benchmarks"))


if __name__ == "__main__":
    main()
