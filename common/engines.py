"""Where work is done in pieces: engines are `concurrent.futures.Executor`s, and nothing else."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

from .errors import MachineLacksError, NotSoError, UsageError
from .output.console import tell

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_KNOWN = "take local:N, dask:ADDRESS, dask:SCHEDULER_FILE or mpi"
_CONNECT_S = 10
_LOOK_S = 5  # where nothing is done for so long, somebody looks whether there are workers
_MPI_START = "start it with its workers: mpirun -n 5 python -m mpi4py.futures -m numaplan plan …"
_MPI_ENDS = (
    "MPI ends all of its processes, as when one of them dies, and the work is lost:"
    " --engine local and dask go on without one that dies"
)
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
    work = partial(_in_a_process, call) if engine == "mpi" else call
    answers: dict[int, Answer] = {}
    for again in range(_TRIES):
        left = [number for number in range(len(items)) if number not in answers]
        if not left:
            break
        with _executor(engine, len(left), alone=bool(again)) as (executor, has_workers):
            _run(
                executor,
                has_workers,
                work,
                {number: items[number] for number in left},
                answers,
                lambda: done(len(answers)),
            )
    left = [number for number in range(len(items)) if number not in answers]
    if left:
        raise NotSoError(
            f"workers of {engine} died or are missing: {len(left)} of {len(items)} pieces of work are lost,"
            f" first number {left[0] + 1}",
            "give them more memory, or take another --engine",
        )
    return [answers[number] for number in range(len(items))]


def _run(
    executor: Executor,
    has_workers: Callable[[], bool],
    call: Callable[[Item], Answer],
    items: dict[int, Item],
    answers: dict[int, Answer],
    done: Callable[[], None],
) -> None:
    """What can be done by the executor, into `answers`; what its workers took with them is missing there.

    So is what was left when there was no worker any more.
    """
    waiting: dict[Future[Answer], int] = {}
    try:
        for number, item in items.items():
            waiting[executor.submit(call, item)] = number
    except Exception as error:
        if not _is_loss(error):
            raise
    left, idle = set(waiting), 0
    try:
        while left and idle < 2:
            finished, left = wait(left, _LOOK_S, FIRST_COMPLETED)
            idle = 0 if finished or has_workers() else idle + 1
            for future in finished:
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
def _executor(engine: str, pieces: int, *, alone: bool) -> Iterator[tuple[Executor, Callable[[], bool]]]:
    """An engine, and what says whether it has workers.

    alone: not in this process, as the work may end whoever does it.
    """
    kind, _, rest = engine.partition(":")
    with ExitStack() as stack:
        if kind == "local":
            count = min(int(rest or len(os.sched_getaffinity(0))), pieces)
            yield _Here() if count <= 1 and not alone else stack.enter_context(_pool(count)), _always
        elif kind == "dask":
            yield _dask(rest, stack)
        else:
            yield _mpi(stack), _always


def _always() -> bool:
    return True


def _pool(count: int) -> Executor:
    """A pool of processes that have nothing of this one, as it may have threads of others' libraries, and
    that end with it, even if it is killed."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    from multiprocessing import parent_process
    from threading import Thread

    parent = parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end, daemon=True).start()


def _dask(where: str, stack: ExitStack) -> tuple[Executor, Callable[[], bool]]:
    import logging

    try:
        import distributed
    except ImportError as error:
        raise MachineLacksError("Dask is not installed here", "pip install 'numaplan[cluster]'") from error
    place = {"address": where} if "://" in where or ":" in where else {"scheduler_file": where}
    if "scheduler_file" in place and not os.path.isfile(where):  # noqa: PTH113 (Dask would wait for it)
        raise UsageError(f"--engine dask:{where}: no such file", "give the scheduler's address, or its file")
    for name in list(logging.root.manager.loggerDict):  # what matters is said here
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).disabled = True
    connect: Any = distributed.Client
    try:
        client = connect(**place, timeout=_CONNECT_S, set_as_default=False)
    except Exception as error:  # of sockets, of its own, of the file's content
        raise MachineLacksError(
            f"--engine dask:{where}: no scheduler answers", "start one with 'dask scheduler', or name another"
        ) from error
    stack.callback(client.close)
    executor: Executor = client.get_executor(pure=False)

    def has_workers() -> bool:
        try:
            return bool(client.scheduler_info()["workers"])
        except Exception:  # as above
            return False

    return executor, has_workers


def _mpi(stack: ExitStack) -> Executor:
    """The ranks that `python -m mpi4py.futures` keeps: to have MPI start some hangs where it cannot."""
    if "mpi4py.futures" not in sys.orig_argv:
        raise UsageError("--engine mpi: MPI started no workers", _MPI_START)
    from mpi4py.futures import MPIPoolExecutor

    executor: Executor = MPIPoolExecutor()

    def end(kind: type[BaseException] | None, *_: object) -> None:
        asked = kind is not None and issubclass(kind, KeyboardInterrupt)
        if asked:
            tell(_MPI_ENDS)
        executor.shutdown(wait=not asked)  # MPI kills who waits for one that is dead

    stack.push(end)
    return executor


_kept: list[Executor] = []  # of a rank: the process that works for it


def _in_a_process(call: Callable[[Item], Answer], item: Item) -> Answer:
    """What a call answers, in a process that a rank keeps for it.

    MPI ends all ranks when one is killed; so what is likely to be killed, as it needs memory, is none.
    """
    from concurrent.futures import BrokenExecutor

    if not _kept:
        _kept.append(_pool(1))
    try:
        return _kept[0].submit(call, item).result()
    except BrokenExecutor:
        _kept.clear()
        raise
