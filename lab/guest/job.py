"""A job for a guest's agent, and how it is encoded."""

import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """What the agent is to run: a program as the user would run it here, and how the kernel is to treat it.

    cpus: the k-th thread made is put on the k-th of these, over and over (empty: the kernel decides).
    first: cpus on which the first process starts, where it may leave them (empty: anywhere).
    exclude: the first process is a launcher, not the program; its own accesses are not counted.
    """

    program: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    timeout: float = 0.0
    cpus: Sequence[int] = ()
    first: Sequence[int] = ()
    interleave: bool = False
    balancing: bool = True
    exclude: bool = False


def job_frame(job: Job, use_stdin: bool, trace: Path | None) -> bytes:
    """A job as the agent reads it: keys and values in turn, each ended by a zero byte."""
    mask = os.umask(0)
    os.umask(mask)
    pairs: list[tuple[str, object]] = [("program", job.program), ("cwd", job.directory), ("umask", mask)]
    pairs += [("uid", os.getuid()), ("gid", os.getgid()), *(("group", group) for group in os.getgroups())]
    pairs += [("timeout_ms", round(job.timeout * 1000)), ("stdin", int(use_stdin))]
    pairs += [(key, int(getattr(job, key))) for key in ("exclude", "interleave", "balancing")]
    pairs += [("trace", trace)] if trace else []
    pairs += (
        [("cpu", cpu) for cpu in job.cpus]
        + [("first", cpu) for cpu in job.first]
        + [("rlimit", text) for text in _limits()]
    )
    pairs += [("env", f"{name}={value}") for name, value in job.environment.items()]
    pairs += [("arg", argument) for argument in job.argv]
    return b"".join(os.fsencode(f"{key}\0{value}\0") for key, value in pairs)


def _limits() -> Iterator[str]:
    for name in ("RLIMIT_STACK", "RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_FSIZE"):
        number = getattr(resource, name)
        soft, hard = resource.getrlimit(number)
        yield f"{number}:{soft % (1 << 64)}:{hard % (1 << 64)}"
