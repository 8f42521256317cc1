"""How much may be moved: so many threads and bytes a second, saved up for a few seconds at most."""

from dataclasses import dataclass

_SAVED_SECONDS = 4.0


@dataclass
class Budget:
    """moves: thread moves a second; megabytes: of pages a second."""

    moves: float = 8.0
    megabytes: float = 256.0

    def __post_init__(self) -> None:
        self._moves = self.moves * _SAVED_SECONDS
        self._bytes = self.megabytes * 1e6 * _SAVED_SECONDS
        self._then: float | None = None

    def refill(self, now: float) -> None:
        """Add what the time since the last call allows. now: seconds."""
        passed = 0.0 if self._then is None else max(0.0, now - self._then)
        self._then = now
        self._moves = min(self._moves + passed * self.moves, max(1.0, self.moves * _SAVED_SECONDS))
        self._bytes = min(self._bytes + passed * self.megabytes * 1e6, self.megabytes * 1e6 * _SAVED_SECONDS)

    def take_moves(self, count: int) -> bool:
        """Whether so many threads may be moved now; if so they are paid for."""
        if count > self._moves:
            return False
        self._moves -= count
        return True

    def take_bytes(self, wanted: int) -> int:
        """How many of the wanted bytes may be moved now; they are paid for."""
        granted = int(min(wanted, max(0.0, self._bytes)))
        self._bytes -= granted
        return granted

    def give_back_bytes(self, unused: int) -> None:
        """What was granted but not moved."""
        self._bytes += unused
