"""Where work is done in pieces: engines are `concurrent.futures.Executor`s, and nothing else."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from .errors import MachineLacksError, NotSoError, UsageError

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_KNOWN = "take local:N, dask:ADDRESS, dask:SCHEDULER_FILE or mpi"
_CONNECT_S = 10
_TRIES = 2  # of a pool whose worker dies: another one goes on with what is left


class _Here(Executor):
    """Does everything at once, in this process."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def check_engine(engine: str) -> None:
    """Raise UsageError for words that name no engine."""
    kind, _, rest = engine.partition(":")
    good = kind == "local" and (not rest or (rest.isdecimal() and 0 < int(rest) <= 4096))
    if not (good or (kind == "dask" and rest) or engine == "mpi"):
        raise UsageError(f"--engine {engine}: no such engine", _KNOWN)


def run_all(
    engine: str,
    call: Callable[[Item], Answer],
    items: Sequence[Item],
    done: Callable[[int], None] = lambda _count: None,
) -> list[Answer]:
    """The answers of a call for each item, in their order; done: told how many there are so far.

    A pool whose worker dies is started anew for what is left. Raises what a call raises, MachineLacksError
    where the engine is missing or cannot be reached, and NotSoError where work was lost.
    """
    check_engine(engine)
    answers: dict[int, Answer] = {}
    for again in range(_TRIES):
        left = [number for number in range(len(items)) if number not in answers]
        if not left:
            break
        with _executor(engine, len(left), alone=bool(again)) as executor:
            _run(
                executor,
                call,
                {number: items[number] for number in left},
                answers,
                lambda: done(len(answers)),
            )
    left = [number for number in range(len(items)) if number not in answers]
    if left:
        raise NotSoError(
            f"workers of {engine} died: {len(left)} of {len(items)} pieces of work are lost,"
            f" first number {left[0] + 1}",
            "give them more memory, or take another --engine",
        )
    return [answers[number] for number in range(len(items))]


def _run(
    executor: Executor,
    call: Callable[[Item], Answer],
    items: dict[int, Item],
    answers: dict[int, Answer],
    done: Callable[[], None],
) -> None:
    """What can be done by the executor, into `answers`; what its workers took with them is missing there."""
    waiting: dict[Future[Answer], int] = {}
    try:
        for number, item in items.items():
            waiting[executor.submit(call, item)] = number
    except Exception as error:
        if not _is_loss(error):
            raise
    try:
        for future in as_completed(waiting):
            try:
                answers[waiting[future]] = future.result()
                done()
            except BaseException as error:
                if not _is_loss(error):
                    raise
    finally:
        for future in waiting:
            future.cancel()


def _is_loss(error: BaseException) -> bool:
    """Whether an error is of the engine and not of the work: a worker or the scheduler is gone."""
    from concurrent.futures import BrokenExecutor, CancelledError

    module = type(error).__module__.partition(".")[0]
    return isinstance(error, (BrokenExecutor, CancelledError)) or module == "distributed"


@contextmanager
def _executor(engine: str, pieces: int, *, alone: bool) -> Iterator[Executor]:
    """alone: not in this process, as the work may end whoever does it."""
    kind, _, rest = engine.partition(":")
    with ExitStack() as stack:
        if kind == "local":
            count = min(int(rest or len(os.sched_getaffinity(0))), pieces)
            yield _Here() if count <= 1 and not alone else stack.enter_context(_pool(count))
        elif kind == "dask":
            yield _dask(rest, stack)
        else:
            yield _mpi(stack)


def _pool(count: int) -> Executor:
    """A pool of processes that have nothing of this one: it may have threads of others' libraries."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def _dask(where: str, stack: ExitStack) -> Executor:
    try:
        import distributed
    except ImportError as error:
        raise MachineLacksError("Dask is not installed here", "pip install 'numaplan[cluster]'") from error
    place = {"address": where} if "://" in where or ":" in where else {"scheduler_file": where}
    if "scheduler_file" in place and not os.path.isfile(where):  # noqa: PTH113 (Dask would wait for it)
        raise UsageError(f"--engine dask:{where}: no such file", "give the scheduler's address, or its file")
    connect: Any = distributed.Client
    try:
        client = connect(**place, timeout=_CONNECT_S, set_as_default=False)
    except Exception as error:  # of sockets, of its own, of the file's content
        raise MachineLacksError(
            f"--engine dask:{where}: no scheduler answers", "start one with 'dask scheduler', or name another"
        ) from error
    stack.callback(client.close)
    executor: Executor = client.get_executor(pure=False)
    return executor


def _mpi(stack: ExitStack) -> Executor:
    try:
        from mpi4py.futures import MPIPoolExecutor
    except ImportError as error:
        raise MachineLacksError("mpi4py is not installed here", "pip install mpi4py") from error
    executor: Executor = stack.enter_context(MPIPoolExecutor())
    return executor
