"""What the debug information of a module says of its code and data, as it is kept."""

import msgspec

from .types import Field


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """A function that was running. outer: the outermost namespace around it; generic: it returns memory of no
    type, as allocators do.
    """

    function: str
    outer: str
    path: str
    line: int
    generic: bool = False


class CallSite(msgspec.Struct, frozen=True, array_like=True):
    """A call. frames: the functions that made it, innermost first, where one is inlined into the next.

    variables: of each frame, what takes the call's result; none: not known.
    """

    frames: tuple[Frame, ...] = ()
    variables: tuple["Variable | None", ...] = ()


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """A variable or member. type: of it, or of what lies in the block that it stands for; path, line: of its
    declaration; function: in which it is declared; item, fields: of one item of it, or of the block.
    """

    name: str
    type: str = ""
    path: str = ""
    line: int = 0
    function: str = ""
    bytes: int = 0
    item: int = 0
    fields: tuple[Field, ...] = ()
