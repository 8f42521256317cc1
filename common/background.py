"""Work in a background thread, for work that runs outside Python's global lock."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """A call in a thread of its own (concurrent.futures would take longer to load than what is saved)."""

    def __init__(self, call: Callable[..., T], *arguments: Any) -> None:
        self._answer: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call, arguments), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[..., T], arguments: tuple[Any, ...]) -> None:
        try:
            self._answer.append(call(*arguments))
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Until the call is over, whatever came of it."""
        self._thread.join()

    def result(self) -> T:
        """What the call returned, once it has; raises what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._answer[0]
