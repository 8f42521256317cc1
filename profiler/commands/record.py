"""`nprof record`: run a program, or watch what runs, and write a trace."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import (
    Argument,
    Command,
    Option,
    UsageError,
    check_output,
    check_own_files,
    is_asked_to_end,
    make_folder,
    print_lines,
    printable_json,
    read_assignments,
    read_pids,
    read_size,
    shell_line,
    write_document,
)

from ..backends.on_signal import told_by_signal
from .amounts import seconds, time_or_accesses
from .doctor import recorded_tree
from .misplaced import misplaced_options
from .progress import terminal_progress
from .reducing import reduce_to_parts
from .show import say, say_summary

if TYPE_CHECKING:
    from ..backends.base import PerfChoices
    from ..backends.part import RecordedPart
    from ..recording.record import RecordOptions
    from ..recording.runs import RecordedRun

_BACKENDS = "auto|pebs|ibs|spe|faults|emulate|lab"
_LEAST_BYTES = 1 << 20  # of --max-size: perf overshoots by what its buffers hold
_REAL = ("pebs", "ibs", "spe", "faults")  # the machine and its caches are as they are


class RecordCommand(Command, frozen=True):
    """Run APP to its end and write a trace of its memory accesses.

    The program's output, input and exit code are its own. Ctrl-C keeps what was recorded.

    For --set with emulate: turn=1000 (accesses per turn), schedule=fair|free, seed=1, l1=32K:8, l2=1M:16,
    l3=32M:16 (SIZE:WAYS; default: the machine's), l3_inclusive=yes|no, drop_runtime=yes|no (samples of the
    loader and of thread runtimes), show_cpus=yes|no (APP sees the cpus of --machine), avx2=auto|on|off;
    lab: these, without schedule, seed, show_cpus and avx2, and memory=2G (of the guest);
    pebs: ldlat=3 (least latency of loads), llc=yes|no|all, stores=yes|no; ibs: l3missonly=no|yes; spe:
    min_latency=0.

    MPI: 'nprof record --multiprocess mpirun -n 4 ./app' puts all ranks into one trace;
    'mpirun -n 4 nprof record --multiprocess ./app' writes trace.r0.db, trace.r1.db, … for 'nmap plan'; with
    --reduce -o job/ it leaves only what 'nmap plan job/' needs of each.

    Example: nprof record --period 1000 -o trace.db -- ./app -n 8
    """

    argv: Annotated[list[str], Argument("APP", help="The program, and its arguments.", program=True)] = []
    output: Annotated[Path, Option("-o", "--output", writes=True, help="The trace to write.")] = Path(
        "trace.db"
    )
    backend: Annotated[
        str, Option(help="auto, pebs, ibs, spe, faults, emulate, lab: see 'nprof doctor'.")
    ] = "auto"
    period: Annotated[
        int | None, Option(help="One sample in this many accesses (default 1000); 1 records all.", least=1)
    ] = None
    machine: Annotated[str, Option(reads=True, help="The machine to emulate (see 'nmap machine').")] = "local"
    cache: Annotated[
        bool, Option("--cache", off="--no-cache", help="Emulation: model the caches to tell levels.")
    ] = True
    for_footprint: Annotated[
        str, Option(metavar="SIZE", help="Emulation: shrink caches as APP's memory is to this.")
    ] = ""
    freq: Annotated[int, Option(help="Samples per second, instead of --period.", least=0)] = 0
    duration: Annotated[
        str, Option(metavar="TIME", help="Record only for this time (10s, 2m); APP continues.")
    ] = ""
    skip: Annotated[
        str, Option(metavar="AMOUNT", help="Leave out the start: a time (2s) or accesses (20M, emulated).")
    ] = ""
    take: Annotated[
        str, Option(metavar="AMOUNT", help="Record so much of what follows; APP continues unrecorded.")
    ] = ""
    on_signal: Annotated[
        bool, Option(help="SIGUSR2 to nprof (not to APP) starts recording, and stops it again.")
    ] = False
    marked: Annotated[
        bool, Option(help="Record between numaplan_begin() and numaplan_end() of numaplan.h only.")
    ] = False
    pids: Annotated[
        list[str], Option("--pid", "--attach", metavar="PID", help="Record running processes.")
    ] = []
    all_cpus: Annotated[bool, Option(help="Record everything that runs.")] = False
    max_size: Annotated[str, Option(metavar="SIZE", help="Stop when perf's file has this size.")] = ""
    events: Annotated[
        list[str], Option(metavar="EVENT", help="Record these perf events instead; may be repeated.")
    ] = []
    phys: Annotated[bool, Option(help="Record physical addresses (root).")] = False
    call_graph: Annotated[
        bool, Option(help="Have perf record the calls that samples are in (by frame pointers).")
    ] = False
    estimate: Annotated[
        bool, Option(help="Run APP once without recording, and say how long recording will take.")
    ] = False
    dry_run: Annotated[bool, Option(help="Print the command line, run nothing.")] = False
    sysfs: Annotated[
        Path | None, Option(metavar="DIR", help="With --dry-run: a recorded tree of /sys and /proc.")
    ] = None
    settings: Annotated[
        list[str], Option("--set", metavar="KEY=VALUE", help="A setting as above; may be repeated.")
    ] = []
    multiprocess: Annotated[bool, Option(help="Record only the ranks of an MPI job; see above.")] = False
    messages: Annotated[
        str,
        Option(metavar="HOW", help="What an MPI job's ranks send each other: auto, monitoring, pmpi, no."),
    ] = "auto"
    reduce: Annotated[
        bool,
        Option(help="Of a job's ranks keep only what a plan of the job needs, in the folder that -o names."),
    ] = False
    debuginfod: Annotated[
        bool, Option(help="For names of the source, ask debuginfod's servers (DEBUGINFOD_URLS), too.")
    ] = False
    runs: Annotated[int, Option(metavar="K", help="Record K runs: trace.1.db, trace.2.db, …")] = 1
    summary: Annotated[
        Path | None, Option(metavar="FILE", writes=True, help="Write what was recorded as JSON.")
    ] = None

    def run(self) -> int:
        with told_by_signal(self.on_signal):
            return self._run()

    def _run(self) -> int:
        from ..recording.record import command_line
        from ..recording.runs import record_runs, summary_document, traces_of

        options = self._options()
        if self.dry_run:
            command = command_line(self.argv, options, recorded_tree(self.sysfs), _say_choice)
            print_lines(*shell_line(command).split("\n"))
            return 0
        if self.sysfs:
            raise UsageError(
                "--sysfs without --dry-run: another machine's events cannot be recorded", "add it"
            )
        traces = traces_of(self.argv, options.output, self.runs)
        check_own_files(self, *(trace for trace in traces if trace != self.output))
        if self.summary:
            check_output(self.summary)
        say(*self.misplaced())
        expected = self._estimate(options) if self.estimate else ""
        recorded = record_runs(
            self.argv,
            options,
            self.runs,
            watch=partial(terminal_progress, expected),
            chosen=_say_choice,
            done=_say_run,
        )
        code = recorded[-1].summary.exit_code
        if len(recorded) < self.runs:
            say(f"run {len(recorded)} ended with {code}: no more are recorded")
        if self.summary:
            import msgspec

            document = printable_json(msgspec.json.encode(summary_document(recorded)))
            write_document(self.summary, document.encode())
        if self.reduce:
            say(*reduce_to_parts(recorded[-1].trace, self.output))
        if len(recorded) < self.runs and is_asked_to_end():
            raise KeyboardInterrupt  # held back until what was begun is kept
        return code

    def misplaced(self) -> list[str]:
        """Notes on words after the program that look like options of ours, which were not given before it."""
        of_us = RecordCommand()
        forms = {"--backend": _BACKENDS} if self.backend == of_us.backend else {}
        forms |= {"-o": r".+\.db", "--output": r".+\.db"} if self.output == of_us.output else {}
        return misplaced_options(self.argv[1:], forms)

    def _estimate(self, options: "RecordOptions") -> str:
        """Say how long the recording will take, and return it."""
        from ..recording.estimate import estimate
        from ..recording.record import choose, command_line

        if not self.argv:
            raise UsageError("--estimate without a program to start", "end the command with the program")
        command_line(self.argv, options)  # what is wrong with them is said before the program runs
        backend = choose(options)[1].name
        found = estimate(self.argv, backend)
        how = "under emulation" if backend == "emulate" else f"recorded with {backend}"
        most = "at most " if options.part.by_part else ""
        say(f"native {found.seconds:.2g} s; {how} {most}about {found.span}")
        return found.span

    def _options(self) -> "RecordOptions":
        from ..identity.rank import rank_of
        from ..recording.record import RecordOptions
        from ..recording.runs import with_part

        if self.freq and self.period:
            raise UsageError("--freq and --period", "give one of them")
        if self.messages != "auto" and not self.multiprocess:
            raise UsageError(f"--messages {self.messages} without --multiprocess", "add it")
        rank = rank_of(os.environ) if self.multiprocess else None
        output = self._job_trace() if self.reduce else self.output
        return RecordOptions(
            output=output if rank is None else with_part(output, f"r{rank}"),
            backend=self._backend(),
            period=self.period or 1000,
            machine=self.machine,
            backend_options=self._backend_options(),
            choices=self.choices(),
            ranks_only=self.multiprocess,
            messages=self.messages,
            part=self.part(),
            debuginfod=self.debuginfod,
        )

    def _job_trace(self) -> Path:
        """Where the trace is until its parts are made."""
        if not self.multiprocess or self.runs > 1:
            raise UsageError("--reduce is for the ranks of a job", "give --multiprocess, and one run")
        make_folder(self.output, "choose another folder")
        return self.output / "trace.db"

    def part(self) -> "RecordedPart":
        """The part of the run to record; raises UsageError for what does not go together."""
        from ..backends.part import RecordedPart

        if self.on_signal and self.skip:
            raise UsageError("--skip with --on-signal", "the first signal says when to start")
        if self.take and self.duration:
            raise UsageError("--take and --duration", "give one of them")
        if self.marked and self.pids:
            raise UsageError("--marked with --pid", "marks are seen in programs that are started here")
        return RecordedPart(
            *time_or_accesses("--skip", self.skip),
            *time_or_accesses("--take", self.take),
            on_signal=self.on_signal,
            marked=self.marked,
        )

    def _backend(self) -> str:
        given = {
            "--machine": self.machine != "local" and "machine is",
            "--no-cache": not self.cache and "caches are",
            "--for-footprint": self.for_footprint and "caches are",
        }
        for option, real in given.items():
            if real and self.backend in _REAL:
                raise UsageError(
                    f"{option} with {self.backend}: its {real} real", "record with --backend emulate"
                )
        return "emulate" if any(given.values()) and self.backend == "auto" else self.backend

    def _backend_options(self) -> dict[str, str]:
        options = read_assignments("--set", self.settings, "turn=1000")
        if not self.cache:
            options["cache"] = "off"
        if self.for_footprint:
            options["for_footprint"] = self.for_footprint
        return options

    def choices(self) -> "PerfChoices":
        """The options that only recording with perf has; raises UsageError naming the one that is wrong.

        duration: `10`, `10s`, `500ms`, `2m`, `1h`; max_size: `64M`, `2G`; pids: numbers, also with commas.
        """
        from ..backends.base import PerfChoices

        return PerfChoices(
            freq=self.freq,
            duration=seconds("--duration", self.duration) if self.duration else 0.0,
            pids=read_pids("--pid", self.pids),
            all_cpus=self.all_cpus,
            max_bytes=read_size("--max-size", self.max_size, least=_LEAST_BYTES) if self.max_size else 0,
            events=tuple(_event(event) for event in self.events),
            phys=self.phys,
            call_graph=self.call_graph,
        )


def _event(event: str) -> str:
    if not event or event.startswith("-"):
        raise UsageError(f"--events {event}: not an event", "see 'perf list'")
    return event


def _say_run(run: "RecordedRun") -> None:
    say_summary(run.summary, run.trace)


def _say_choice(backend: str, reason: str) -> None:
    say(f"recording with {backend}: {reason}")
