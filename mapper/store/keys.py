"""The key of a stored plan: which build of which program, how many ranks and threads, what kind of run."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence

import msgspec

from numaplan.common import UsageError, find_program
from numaplan.profiler import job_facts, ranks_here

from .program_files import build_id_behind, identity_of
from .words import read_words, shape_of

# Variables that say before the start how many threads there will be, in the order in which they count.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "JULIA_NUM_THREADS", "GOMAXPROCS")
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}", re.ASCII)
_OURS = re.compile(r"r(\d{1,9})-t(\d{1,9}|any)-([0-9a-f]{12})")
MOST_THREADS = 1 << 20  # that a program is told to have


class RunClass(msgspec.Struct, frozen=True):
    """The class of a run. name: as given, empty: by the rest; threads: 0 where not known beforehand."""

    ranks: int
    threads: int
    shape: str
    name: str = ""

    @property
    def file(self) -> str:
        """What its plan is called."""
        return self.name or f"r{self.ranks}-t{self.threads or 'any'}-{self.digest}"

    @property
    def digest(self) -> str:
        """Of the shape."""
        return hashlib.sha256(self.shape.encode("utf-8", "surrogateescape")).hexdigest()[:12]


class ProgramKey(msgspec.Struct, frozen=True):
    """What runs. build: the folder of its plans; build_ids: of programs that a plan for it may be made for;
    run: its class; ranks_here: how many of its ranks run on this host, 0: not known."""

    build: str
    build_ids: frozenset[str]
    run: RunClass
    ranks_here: int = 0


def program_key(argv: Sequence[str], environment: Mapping[str, str], name: str = "") -> ProgramKey:
    """The key of a command line that is about to run; raises UsageError (no such program, a bad name)."""
    program = find_program(argv)
    own = identity_of(program)
    words = read_words(argv)
    build_ids = {build_id_behind(program)}
    carried = [word.shape if word.code else word.program for word in words if word.code or word.program]
    build_ids |= {build_id_behind(word.file) for word in words if word.program}
    if own.startswith("script-"):
        carried, own = [own, *carried], _of_interpreter(program)
    if not own and not os.access(program, os.R_OK):
        raise UsageError(f"{argv[0]}: cannot be read", "it has no build to go by: allow reading it")
    if not own:
        raise UsageError(f"{argv[0]}: neither a program for Linux nor a script", "it has no build to go by")
    if carried:
        text = "\0".join(carried).encode("utf-8", "surrogateescape")
        own = f"{own}+{hashlib.sha256(text).hexdigest()[:16]}"
    facts = job_facts(environment)
    ranks = facts.get("ranks", 1)
    assert isinstance(ranks, int)
    run = RunClass(ranks, threads_of(environment), shape_of(words), class_name(name))
    return ProgramKey(own, frozenset(build_ids - {""}), run, ranks_here(environment) or 0)


def _of_interpreter(script: str) -> str:
    from numaplan.profiler import executable_of

    found = identity_of(executable_of(script))
    return "" if found.startswith("script-") else found


def threads_of(environment: Mapping[str, str]) -> int:
    """How many threads the program is told to have; 0 when nothing says so."""
    for name in THREAD_VARIABLES:
        text = environment.get(name, "").partition(",")[0].strip()
        if text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= MOST_THREADS:
            return int(text[:9])
    return 0


def class_name(name: str) -> str:
    """A name that a user gave to a class; raises UsageError for one that is none."""
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            f"--class {name[:64]}: not a name", "use at most 64 letters, digits, dots, dashes and underscores"
        )
    return name


def read_class(file: str) -> tuple[int, int, str] | None:
    """(ranks, threads, digest of the shape) of a class by the name of its file; None: the user named it."""
    found = _OURS.fullmatch(file)
    if not found:
        return None
    return int(found[1]), 0 if found[2] == "any" else int(found[2]), found[3]


def is_rank_alone(environment: Mapping[str, str]) -> bool:
    """Whether we are one of several ranks of a job, or one that is not told how many there are."""
    facts = job_facts(environment)
    return "rank" in facts and facts.get("ranks") != 1
