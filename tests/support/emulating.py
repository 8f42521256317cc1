"""Record small programs by the emulate backend, under the real QEMU."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from numaplan.machine import Machine
from numaplan.profiler.backends.base import Recording, RecordRequest
from numaplan.profiler.backends.emulation.backend import EmulateBackend
from numaplan.profiler.identity.environment import prepare
from numaplan.profiler.sample_block import SampleBlock
from tests.support.commands import emulator, succeed
from tests.support.programs import PROGRAMS, compiled

MARKS = [
    pytest.mark.system,
    pytest.mark.skipif(not emulator(), reason="no QEMU here emulates (nprof setup)"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the test programs are in x86-64 assembly"),
]

BASE, AREA = 0x100000000000, 1 << 20


@dataclass
class Seen:
    """A recording with its samples as arrays."""

    recording: Recording
    samples: dict[str, np.ndarray]

    def of_area(self, thread: int) -> dict[str, np.ndarray]:
        """Samples whose address is in the area that thread number `thread` works in."""
        start = BASE + thread * AREA
        chosen = (self.samples["addr"] >= start) & (self.samples["addr"] < start + AREA)
        return {name: value[chosen] for name, value in self.samples.items()}

    def counter(self, name: str) -> dict[int, float]:
        """Value of a counter by tid."""
        return {tid: value for _, _, tid, event, value in self.recording.counters if event == name}


def joined(blocks: Iterator[SampleBlock]) -> dict[str, np.ndarray]:
    parts = [vars(block) for block in blocks]
    names = SampleBlock.__dataclass_fields__
    return {name: np.concatenate([part[name] for part in parts] or [np.empty(0)]) for name in names}


def build(*flags: str) -> Path:
    """The program whose cases are recorded."""
    always = ("-O1", "-D_GNU_SOURCE", "-lpthread")
    return compiled(PROGRAMS / "recording/emulate_cases.c", flags=(*flags, *always), compiler="gcc")


class Recorder:
    """Records a case of a program: run(*words, period=1, machine="4x2", options={}, identity=False)."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder

    def __call__(
        self,
        *words: object,
        period: int = 1,
        machine: str = "4x2",
        options: Mapping[str, str] | None = None,
        identity: bool = False,
        executable: Path | None = None,
        workdir: Path | None = None,
    ) -> Seen:
        workdir = workdir or Path(tempfile.mkdtemp(dir=self.folder))
        environment = dict(os.environ)
        if identity:
            (workdir / "identity").mkdir()
            environment = prepare(workdir / "identity", environment)
        request = RecordRequest(
            argv=[str(executable or self.program), *map(str, words)],
            workdir=workdir,
            machine=Machine.load(machine),
            environment=environment,
            period=period,
            options=options or {},
        )
        recording = EmulateBackend().record(request, lambda _what, _share: None)
        return Seen(recording, joined(iter(recording.blocks)))


def record(program: Path, output: Path, what: str, *options: str) -> Path:
    """Record a program under emulation; what: its arguments."""
    command = [str(program), *what.split()]
    succeed("nprof", "record", "--backend", "emulate", *options, "-o", output, "--", *command)
    return output
