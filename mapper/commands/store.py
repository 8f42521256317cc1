"""`nmap store`: plans that `nlaunch --auto` finds by itself."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import Argument, Command, CommandGroup, Json, Option, UsageError, print_json, print_lines

if TYPE_CHECKING:
    from ..store.listing import StoredRow
    from ..store.store import PlanStore

STORE = CommandGroup(
    """Keep plans where 'nlaunch --auto' finds them: by build, machine and class of run.

    The store is a folder (--store, else NUMAPLAN_STORE, else ~/.local/share/numaplan/plans), or an address
    for fsspec, whose plans must be signed.

    Example: nmap store put plan.json, then nlaunch --auto ./app
    """,
    {
        "put": "store:PutCommand",
        "list": "store:ListCommand",
        "show": "store:ShowStoredCommand",
        "drop": "store:DropCommand",
    },
)
Key = Annotated[str, Argument("KEY", help="A key of 'nmap store list', or its beginning, or the class.")]


class StoreCommand(Command, frozen=True, kw_only=True):
    """The base of commands on a store."""

    store: Annotated[
        str,
        Option(
            metavar="ADDRESS",
            help="A folder or an address; default: $NUMAPLAN_STORE, else in ~/.local/share.",
        ),
    ] = ""
    signers: Annotated[
        str, Option(metavar="FILE", help="Whose plans are taken from elsewhere (allowed signers).")
    ] = ""

    def opened(self, sign_with: str = "") -> "PlanStore":
        """The store; raises UsageError, MachineLacksError."""
        from ..store.opening import open_store
        from ..store.places import store_address

        return open_store(store_address(self.store, os.environ), self.signers, sign_with)


class PutCommand(StoreCommand, frozen=True, kw_only=True):
    """Store a plan for its program, in place of the one that was there.

    The build, the arguments' shape and the ranks are those of the plan, or of APP where it is named; the
    threads are as OMP_NUM_THREADS says. Have it run where the program's files are.

    Example: nmap store put plan.json -- ./app -n 1000
    """

    plan: Annotated[Path, Argument("PLAN", help="A plan.json that 'nmap plan' wrote.")]
    app: Annotated[list[str], Argument("APP", help="The program and its arguments, after --.")] = []
    run_class: Annotated[
        str, Option("--class", metavar="NAME", help="A name for this kind of run, for 'nlaunch --class'.")
    ] = ""
    threads: Annotated[
        int, Option(metavar="N", help="For runs that are told to have N threads.", least=0)
    ] = 0
    sign: Annotated[
        str, Option(metavar="KEY", help="The key (of ssh-keygen) that signs what is stored elsewhere.")
    ] = ""

    def run(self) -> None:
        from ..plan_file.plan import Plan
        from ..store.places import is_remote, store_address
        from ..store.putting import parts_for

        address = store_address(self.store, os.environ)
        if self.sign and not is_remote(address):
            raise UsageError(
                f"--sign with {address}: nothing is signed in a folder, which its owner vouches for",
                "leave it out, or name a store elsewhere (file:// for a folder of signed plans)",
            )
        plan = Plan.load(self.plan)
        parts, key = parts_for(plan, self.app, os.environ, self.run_class, self.threads)
        where = self.opened(self.sign).put(parts, plan)
        print_lines(f"stored for '{key.run.shape[:200]}' as {where}")


class ListCommand(StoreCommand, frozen=True, kw_only=True):
    """List the stored plans: since when, how often applied, and how well the last time.

    Example: nmap store list
    """

    as_json: Json = False

    def run(self) -> None:
        from ..store.listing import document, rows_of

        store, refused = self.opened(), list[str]()
        rows = rows_of(store, refused)
        if self.as_json:
            print_json(document(store, rows, refused))
            return
        if rows:
            from .draw.store import show_rows

            show_rows(rows)
        else:
            print_lines(f"no plans in {store.place.label}")
        print_lines(*(f"refused: {why}" for why in refused))


class ShowStoredCommand(StoreCommand, frozen=True, kw_only=True):
    """Show a stored plan, as 'nmap show' does.

    Example: nmap store show r1-tany-5f2a
    """

    key: Key

    def run(self) -> None:
        from .draw.placement import show_plan

        store = self.opened()
        (row,) = _rows(store, self.key)
        try:
            stored = store.load(row.parts)
        except FileNotFoundError:
            raise UsageError(f"{row.key}: it is gone", "see 'nmap store list'") from None
        print_lines(stored.where)
        show_plan(stored.plan)


class DropCommand(StoreCommand, frozen=True, kw_only=True):
    """Take plans out of the store.

    Example: nmap store drop --stale --older-than 180
    """

    keys: Annotated[list[str], Argument("KEY", help="As 'nmap store list' has it, or its beginning.")] = []
    stale: Annotated[bool, Option(help="Those that no longer fit their program.")] = False
    older_than: Annotated[
        float | None,
        Option(metavar="DAYS", help="Those neither stored nor applied for so many days.", least=0),
    ] = None

    def run(self) -> None:
        from ..store.listing import older_than, rows_of

        if not (self.keys or self.stale or self.older_than is not None):
            raise UsageError("nothing to drop named", "give a KEY, --stale or --older-than DAYS")
        store = self.opened()
        rows = _rows(store, *self.keys) if self.keys else []
        if self.stale or self.older_than is not None:
            every = rows_of(store)
            rows += [row for row in every if self.stale and row.state == "stale"]
            rows += older_than(every, self.older_than) if self.older_than is not None else []
        for row in {row.key: row for row in rows}.values():
            store.drop(row.parts)
            print_lines(f"dropped {row.key}")
        if not rows:
            print_lines("nothing dropped")


def _rows(store: "PlanStore", *keys: str) -> "list[StoredRow]":
    from ..store.listing import chosen, rows_of

    return chosen(rows_of(store), keys)
