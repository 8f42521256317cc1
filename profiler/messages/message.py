"""Messages between ranks, as a way of recording them brings them back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages of one kind from one rank to another.

    kind: of MESSAGE_KINDS; pid, tid: the thread that sent them, -1 where it is not known.
    """

    rank: int
    peer: int
    kind: str
    bytes: int
    count: int
    pid: int = -1
    tid: int = -1


class Found(NamedTuple):
    """What was recorded: messages, the ranks that they are known of, warnings, and how many ranks MPI says
    that there are, 0: not known."""

    messages: Sequence[Messages]
    ranks: frozenset[int]
    warnings: Sequence[str] = ()
    size: int = 0


class Way(Protocol):
    """One way of recording messages.

    name: what the trace calls it; why_none: why a rank that uses MPI may have left nothing; when_killed: what
    to try where a signal ended a rank, empty: this way does not crash programs.
    """

    @property
    def name(self) -> str: ...

    @property
    def why_none(self) -> str: ...

    @property
    def when_killed(self) -> str: ...

    def environment(self, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """The program's environment, in which its ranks leave their messages in a folder."""

    def read(self, folder: Path) -> Found:
        """What they left, checked: the folder may hold anything."""
