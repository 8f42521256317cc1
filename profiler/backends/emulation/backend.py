"""The `emulate` backend: the program under QEMU user mode with our plugin, which sees every load and store.

Works everywhere and needs no privilege. Threads take turns (see native/emulate/turns.c), a cache model
decides the level, and a process's i-th thread is taken to run on the machine's i-th cpu, wrapping.
An access is what QEMU makes of it: 16 bytes are two of 8, an atomic read-modify-write is a load and a store.

Contract with the preload library: programs that the recorded one starts by exec or posix_spawn are to be
emulated as well. The guest finds NUMAPLAN_EMULATE_PREFIX in its environment: QEMU's command line up to where
the program goes, joined by '\\x1f'. The library's exec wrappers put these words, `-0 ARGV0` and the program's
resolved path before the arguments, follow scripts to their interpreter, and take LD_PRELOAD out of the
environment, which the prefix gives to the program by `-E`: QEMU itself must not be preloaded.
"""

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from signal import SIGILL, SIGKILL, SIGQUIT

from numaplan.common import ASKING, NumaplanError, UsageError, run_program
from numaplan.machine import Machine, seat_arguments

from ...identity.read import read_identity
from ...identity.records import Identity, ProcessRecord
from ..base import WATCHING, Capability, Progress, Recording, RecordRequest, check_not_killed
from ..part import RecordedPart, Switch
from .calls import call_blocks
from .clock import JobClock, on_one_line, translated_identity
from .filter import runtime_filter
from .guest import architecture_of, resolve_program, split_environment
from .options import EmulateOptions, read_emulate_options
from .page_uses import page_use_blocks
from .progress import SpoolMeter, ticking
from .qemu import (
    PLUGIN,
    check_plugin,
    find_qemu,
    host_architecture,
    keep_addresses,
    lacks_avx2,
    qemu_version,
    reserving,
    x86_cpu,
)
from .result import emulated_recording
from .running import running_blocks
from .spool import ProcessSpool, read_processes, sample_blocks
from .transfers import transfer_blocks
from .word import SharedWord

PREFIX_VARIABLE = "NUMAPLAN_EMULATE_PREFIX"
MAX_PERIOD = 1 << 40
_DIED = 128  # of a signal: above


def seats_of(machine: Machine) -> list[tuple[int, int]]:
    """(cpu, node id) of each thread, wrapping; raises UsageError for a machine without cpus."""
    seats = [(cpu, machine.node_of_cpu[cpu]) for cpu in machine.cpus]
    if not seats:
        raise UsageError("this machine has no cpus for threads to run on", "name another machine")
    return seats


def plugin_arguments(request: RecordRequest, options: EmulateOptions) -> str:
    """The value of QEMU's -plugin; commas in paths are doubled, as its option parser wants."""
    arguments = [str(PLUGIN), f"dir={request.workdir.resolve()}", f"period={request.period}"]
    arguments += seat_arguments(request.machine)
    arguments += [*options.plugin, *_part_arguments(request.part)]
    return ",".join(argument.replace(",", ",,") for argument in arguments)


def _part_arguments(part: RecordedPart) -> list[str]:
    given = {
        "part=yes": part.by_switch,
        f"skip={part.skip_accesses}": part.skip_accesses,
        f"take={part.take_accesses}": part.take_accesses,
        "marked=yes": part.marked,
    }
    return [word for word, wanted in given.items() if wanted]


def command_of(request: RecordRequest, options: EmulateOptions) -> tuple[list[str], dict[str, str]]:
    """QEMU's command line and environment; raises UsageError, MachineLacksError."""
    program, argv = resolve_program(request.argv, request.environment.get("PATH"))
    architecture = architecture_of(program)
    if not architecture:
        raise UsageError(f"{program}: not a program that can be emulated", "give an ELF program or a script")
    host, guest = split_environment(request.environment)
    qemu = find_qemu(architecture)
    version = qemu_version(qemu)
    cpu = ["-cpu", x86_cpu(version, options.avx2)] if architecture == "x86_64" else []
    seed = ["-seed", str(options.seed)]  # of what the kernel would draw at random for the program
    prefix = [*qemu, *cpu, *seed, "-plugin", plugin_arguments(request, options)]
    if architecture == host_architecture():
        # Libraries of the host's architecture are of no use to another.
        prefix += [*reserving(version), *guest]
    # Open MPI would try to read its peers' memory by a call that QEMU lacks, and complain.
    host.setdefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
    host[PREFIX_VARIABLE] = "\x1f".join(prefix)
    return [*prefix, "-0", argv[0], program, *argv[1:]], host


class EmulateBackend:
    """QEMU user mode with our plugin."""

    name = "emulate"

    def available(self, machine: Machine) -> Capability:
        """Whether QEMU with plugins and our plugin are there."""
        try:
            check_plugin()
            seats_of(machine)
            qemu = find_qemu(host_architecture())
        except NumaplanError as error:
            return Capability(False, error.what, error.hint)
        return Capability(True, f"{qemu[-1]} runs our plugin")

    def command(self, request: RecordRequest) -> list[str]:
        """QEMU's command line; raises what record() would raise before it starts."""
        return command_of(request, read_emulate_options(request.options, request.run, request.machine))[0]

    def record(self, request: RecordRequest, progress: Progress) -> Recording:
        """Run the program under QEMU; samples are read from request.workdir while the blocks are taken.

        Raises UsageError (no such program, an option, a full disk), MachineLacksError (no QEMU with plugins).
        """
        if not 1 <= request.period <= MAX_PERIOD:
            raise UsageError(f"period {request.period}", f"give 1 to {MAX_PERIOD}")
        options = read_emulate_options(request.options, request.run, request.machine)
        check_plugin()
        command, environment = command_of(request, options)
        switch = Switch(request.part, SharedWord(request.workdir).set)
        start = time.monotonic_ns()
        with ticking(partial(_tell, SpoolMeter(request.workdir), progress)):
            try:
                switch.begin()
                exit_code = run_program(
                    command,
                    environment,
                    before_exec=keep_addresses,
                    own=switch.signals,
                    pass_interrupts=request.start.pass_interrupts,
                )
            finally:
                switch.end()
        seconds = (time.monotonic_ns() - start) / 1e9
        try:
            processes = read_processes(request.workdir)
        except NumaplanError:
            request.start.ended(exit_code)
            raise
        if processes or _did_run(request, exit_code):
            request.start.ended(exit_code)
        whole = request.part == RecordedPart()
        if not processes:
            check_not_killed(request.argv[0], exit_code)
        if not processes and not whole:
            raise request.part.nothing(request.argv[0], seconds)
        if not processes:
            raise UsageError(
                f"{request.argv[0]}: QEMU did not run it (exit code {exit_code})", "see its message above"
            )
        identity = read_identity(request.identity_dir)
        images, shown = processes, identity
        if options.fair:
            images = on_one_line(processes)
            shown = translated_identity(identity, JobClock(images))
        keep = runtime_filter(identity, processes, options.drop_runtime)
        return emulated_recording(
            images,
            options,
            shown,
            keep,
            partial(sample_blocks, images, seats_of(request.machine), partial(progress, "reading samples")),
            exit_code=exit_code,
            start_ns=0 if options.fair else start,
            notes={
                **{f"emulate.{key}": value for key, _, value in (w.partition("=") for w in options.plugin)},
                "emulate.host_seconds": f"{seconds:.3f}",
                "clock": "accesses" if options.fair else "host",
                **_warnings(
                    command, exit_code, warnings_of_processes(processes, shown, exit_code) if whole else []
                ),
            },
            transfers=transfer_blocks(images, keep) if options.transfers else None,
            calls=call_blocks(images),
            running=running_blocks(images),
            page_use=partial(page_use_blocks, images, keep) if options.page_use else None,
        )


def _did_run(request: RecordRequest, exit_code: int) -> bool:
    """Whether QEMU ran a program of which nothing was recorded, as what to record of it was over before."""
    return not exit_code or exit_code > _DIED or bool(read_identity(request.identity_dir).processes)


def _tell(meter: SpoolMeter, progress: Progress) -> None:
    progress(meter.line(), WATCHING)


def _warnings(command: Sequence[str], exit_code: int, of_processes: Sequence[str]) -> dict[str, str]:
    built_for = []
    if exit_code == _DIED + SIGILL and lacks_avx2(command):
        built_for.append(
            "SIGILL ended it: if it was built for AVX2, give --set avx2=on (QEMU before 9.1 gets some of its "
            "gathers wrong)"
        )
    warnings = [*built_for, *of_processes]
    return {"warnings": "; ".join(warnings)} if warnings else {}


def warnings_of_processes(processes: Sequence[ProcessSpool], identity: Identity, exit_code: int) -> list[str]:
    """Warnings of programs that were not emulated, of those that a signal ended, maybe because of QEMU,
    and of children that still run.
    """
    last = {process.pid: process for process in processes}  # of several programs in turn
    named = [one for one in identity.processes if one.pid in last and (one.parent or exit_code > _DIED)]
    known = {one.pid: one for one in identity.processes}
    running = [known.get(pid, _nameless(pid)) for pid in last if _is_alive(pid)]
    unseen = _not_emulated(last, known)
    gone = [one for one in named if one not in running and not last[one.pid].becomes]
    ended = [one for one in gone if not last[one.pid].exits]
    if exit_code in (128 + number for number in (*ASKING, SIGQUIT, SIGKILL)):
        ended = []  # all of them got one, and from no QEMU that failed
    warnings = []
    if unseen:
        warnings.append(
            f"{_listed(unseen)} became a program that was not emulated, and is not in the recording "
            "from then on: one under another root, of a user who may not write there, for another processor, "
            "or started by a static program; --backend lab records all of them"
        )
    if ended:
        warnings.append(
            f"a signal ended {_listed(ended)}: if none does without nprof, this program cannot be emulated; "
            "record it with --backend lab, or by a processor's sampling ('nprof doctor')"
        )
    if running:
        warnings.append(
            f"{_listed(running)} went on when the program had ended, and was recorded until then only: have "
            "it stay in the foreground (most daemons have an option for it)"
        )
    return warnings


def _not_emulated(
    last: Mapping[int, ProcessSpool], known: Mapping[int, ProcessRecord]
) -> list[ProcessRecord]:
    """Those that became a program which is not, but for the shell of system(), of which that is known."""
    shell = os.path.realpath("/bin/sh")
    unseen = [known.get(pid, _nameless(pid)) for pid, process in last.items() if process.becomes]
    return [one for one in unseen if os.path.realpath(one.executable) != shell]


def _nameless(pid: int) -> ProcessRecord:
    """One that did not tell its name, or not yet: of a static program, or just forked."""
    return ProcessRecord(f"process {pid}", pid, "", (), "", "", 0, -1)


def _listed(processes: Sequence[ProcessRecord]) -> str:
    programs = [one.executable.rpartition("/")[2] for one in processes]
    names = [
        f"{one.process} ({program})" if program else one.process
        for one, program in zip(processes, programs, strict=True)
    ]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
