"""Which QEMU a program needs, and the command line it gets."""

import os
import sys
from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.profiler.backends.base import RecordRequest
from numaplan.profiler.backends.emulation import backend as emulate
from numaplan.profiler.backends.emulation.guest import (
    ARCHITECTURES,
    architecture_of,
    resolve_program,
    split_environment,
)
from numaplan.profiler.backends.emulation.options import read_emulate_options


def elf(folder: Path, machine: int, wide: bool, little: bool) -> Path:
    path = folder / f"elf-{machine}-{wide}-{little}"
    head = b"\x7fELF" + bytes([2 if wide else 1, 1 if little else 2, 1]) + bytes(9)
    path.write_bytes(head + bytes(2) + machine.to_bytes(2, "little" if little else "big") + bytes(44))
    return path


def script(path: Path, first_line: str) -> Path:
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("key", "name"), ARCHITECTURES.items())
def test_the_header_decides_the_architecture(tmp_path: Path, key: tuple[int, bool, bool], name: str) -> None:
    assert architecture_of(str(elf(tmp_path, *key))) == name


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"#!/bin/sh\n" + bytes(30), b"MZ" + bytes(60)])
def test_other_files_have_no_architecture(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert architecture_of(str(path)) == ""


def test_scripts_are_followed_to_their_interpreter(tmp_path: Path) -> None:
    inner = script(tmp_path / "inner", f"#!{sys.executable} -s  ")
    outer = script(tmp_path / "outer", f"#! {inner}")
    program, argv = resolve_program([str(outer), "x"], None)
    assert program == sys.executable
    assert argv == [sys.executable, "-s", str(inner), str(outer), "x"]


def test_scripts_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    script(loop, f"#!{loop}")
    with pytest.raises(UsageError, match="interpreter"):
        resolve_program([str(loop)], None)
    with pytest.raises(UsageError, match="interpreter"):
        resolve_program([str(script(tmp_path / "empty", "#!"))], None)
    with pytest.raises(UsageError, match="no such program"):
        resolve_program([str(script(tmp_path / "absent", "#!/absent/sh"))], None)


def test_the_loader_variables_reach_the_guest_only() -> None:
    host, guest = split_environment({"LD_PRELOAD": "a:b", "PATH": "/bin", "GLIBC_TUNABLES": "x=1"})
    assert host == {"PATH": "/bin"}
    assert guest == ["-E", "LD_PRELOAD=a:b", "-E", "GLIBC_TUNABLES=x=1"]
    with pytest.raises(UsageError, match="comma"):
        split_environment({"LD_PRELOAD": "a,b"})


def request(tmp_path: Path, **environment: str) -> RecordRequest:
    workdir = tmp_path / "with,comma"
    workdir.mkdir()
    return RecordRequest(
        [sys.executable, "-V"], workdir, Machine.load("2x2"), {"PATH": os.environ["PATH"], **environment}
    )


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "find_qemu", lambda architecture: ["/ld.so", f"/bin/qemu-{architecture}"])
    command, environment = emulate.command_of(
        request(tmp_path, LD_PRELOAD="lib.so"), read_emulate_options({})
    )
    plugin = command[command.index("-plugin") + 1]
    assert ",dir=" + str(tmp_path).replace(",", ",,") + "/with,,comma," in plugin
    assert ",cpus=0:0:1:1," in plugin
    assert command[-4:] == ["-0", sys.executable, sys.executable, "-V"]
    assert "LD_PRELOAD" not in environment
    assert environment[emulate.PREFIX_VARIABLE].split("\x1f") == command[:-4]
    assert command[-6:-4] == ["-E", "LD_PRELOAD=lib.so"]


def test_a_machine_without_cpus_is_refused() -> None:
    machine = Machine.from_dict({"schema": "numaplan/machine/1", "nodes": [{"id": 0, "memory_bytes": 1}]})
    with pytest.raises(UsageError, match="no cpus"):
        emulate.seats_of(machine)
    assert not emulate.EmulateBackend().available(machine).ok
