"""The key of a plan that is put into the store by hand."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from numaplan.common import NumaplanError, UsageError, own_words

from ..plan_file.plan import Plan
from .keys import MOST_THREADS, ProgramKey, class_name, program_key
from .store import Parts, folder_of

_RANK = re.compile(r"r\d+")


def parts_for(
    plan: Plan, argv: Sequence[str], environment: Mapping[str, str], name: str = "", threads: int = 0
) -> tuple[Parts, ProgramKey]:
    """Where a plan belongs: by the program that argv names, or by that of the plan.

    threads: as many as the program will be told to have, 0: as the environment says. Raises UsageError for
    another build, for what is no name, or where the plan's program is not here.
    """
    words = list(argv) or own_words(plan.app.argv, plan.app.executable)
    if not words:
        raise UsageError(
            "the plan does not say which program it is for", "name it: nmap store put PLAN ./app"
        )
    class_name(name)
    if threads > MOST_THREADS:
        raise UsageError(
            f"--threads {threads}: no run is looked up with so many", f"give at most {MOST_THREADS}"
        )
    try:
        key = program_key(words, environment, name)
    except NumaplanError as error:
        raise UsageError(f"the plan's program: {error.what}", "name it: nmap store put PLAN ./app") from error
    known = plan.app.build_id
    if known and known not in key.build_ids:
        raise UsageError(
            f"{Path(words[0]).name}: not the build that the plan was made for",
            "record it and plan again; of what a script starts, 'nlaunch --auto=record' makes the plan",
        )
    ranks = {root for thread in plan.threads if _RANK.fullmatch(root := thread.process.split(".")[0])}
    run = msgspec.structs.replace(key.run, ranks=max(1, len(ranks)), threads=threads or key.run.threads)
    key = msgspec.structs.replace(key, run=run)
    return (key.build, folder_of(plan.machine.fingerprint), run.file), key
