"""The emulated program: which architecture its file is of, and what of the environment it gets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from numaplan.common import UsageError, find_program

# (ELF e_machine, 64-bit, little-endian) -> QEMU's name of the architecture.
ARCHITECTURES = {
    (62, True, True): "x86_64",
    (3, False, True): "i386",
    (183, True, True): "aarch64",
    (183, True, False): "aarch64_be",
    (40, False, True): "arm",
    (40, False, False): "armeb",
    (243, True, True): "riscv64",
    (243, False, True): "riscv32",
    (21, True, True): "ppc64le",
    (21, True, False): "ppc64",
    (20, False, False): "ppc",
    (22, True, False): "s390x",
    (258, True, True): "loongarch64",
    (8, True, True): "mips64el",
    (8, True, False): "mips64",
    (8, False, True): "mipsel",
    (8, False, False): "mips",
}

# The host's loader must not act on what is meant for the guest's (our preload library above all).
_LOADER_VARIABLES = ("LD_", "GLIBC_TUNABLES")
_SCRIPT_DEPTH = 4  # as in the kernel


def architecture_of(program: str) -> str:
    """QEMU's name for the architecture of an ELF file, such as `x86_64`; "" when the file is none we know."""
    try:
        with Path(program).open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise UsageError(f"{program}: {error.strerror}", "give a program that can be read") from error
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return ""
    little = head[5] == 1
    machine = int.from_bytes(head[18:20], "little" if little else "big")
    return ARCHITECTURES.get((machine, head[4] == 2, little), "")


def resolve_program(argv: Sequence[str], path: str | None) -> tuple[str, list[str]]:
    """The ELF file to load and the argv that it gets; scripts are followed to their interpreter.

    Raises UsageError (not found, not executable, not a program).
    """
    words = list(argv)
    program = find_program(words, path)
    for _ in range(_SCRIPT_DEPTH):
        try:
            with Path(program).open("rb") as file:
                line = file.readline(256)
        except OSError as error:
            raise UsageError(f"{program}: {error.strerror}", "give a program that can be read") from error
        if not line.startswith(b"#!"):
            return program, words
        interpreter = line[2:].decode(errors="replace").strip().split(None, 1)
        if not interpreter:
            break
        words = [*interpreter, program, *words[1:]]
        program = find_program(words, path)
    raise UsageError(f"{argv[0]}: script without a usable interpreter", "correct its first line")


def split_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The environment of the QEMU process, and the options that give the guest the loader's variables.

    Raises UsageError for a variable that QEMU's -E cannot carry.
    """
    host: dict[str, str] = {}
    options: list[str] = []
    for name, value in environment.items():
        if not name.startswith(_LOADER_VARIABLES):
            host[name] = value
        elif "," in value:
            raise UsageError(f"{name} contains a comma, which QEMU's -E cannot pass on", f"change {name}")
        else:
            options += ["-E", f"{name}={value}"]
    return host, options
