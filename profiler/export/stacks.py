"""The calls that samples were taken in, as places in the code."""

from ..trace.reader import Trace
from .code_places import CodePlaces, Place

_MOST = 256  # calls of a stack that are shown, the innermost


class Stacks:
    """Of a trace. places: of its code."""

    def __init__(self, trace: Trace, places: CodePlaces) -> None:
        self._places = places
        self._calls: dict[int, tuple[int, str, int]] = {
            call: (caller, process, int(ip))
            for call, caller, process, ip in trace.rows("SELECT call, caller, process, ip FROM calls")
        }
        self._found: dict[int, tuple[Place, ...]] = {}

    def find(self, call: int) -> tuple[Place, ...]:
        """The calls under way, innermost first; none where they are not known."""
        if call not in self._found:
            stack: list[Place] = []
            at = call
            while at in self._calls and len(stack) < _MOST:
                at, process, ip = self._calls[at]
                place = self._places.find(process, ip)
                if place.module is not None:  # else our own library's, or of code made at run time
                    stack.append(place)
            self._found[call] = tuple(stack)
        return self._found[call]
