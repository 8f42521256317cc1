"""What every command that runs a program in a guest is given, and how it answers."""

from typing import TYPE_CHECKING, Annotated

import msgspec

from numaplan.common import Argument, Command, Json, Option, print_json, reviewable_json

if TYPE_CHECKING:
    from ..runs.session import Request


class GuestCommand(Command, frozen=True):
    """A command that runs a program on a virtual machine."""

    argv: Annotated[list[str], Argument("APP", help="The program and its arguments.", program=True)]
    machine: Annotated[
        str,
        Option("--machine", "-m", reads=True, help="AxB (A nodes of B cpus), a built-in name, or a file."),
    ]
    scale: Annotated[
        str, Option(help="Keep this much of the machine, and its distances.", metavar="NODESxCPUS")
    ] = ""
    cpus_per_node: Annotated[
        int, Option(help="At most this many cpus per node (0: all).", metavar="CPUS", least=0)
    ] = 0
    memory: Annotated[str, Option(help="Memory of the whole guest (default 2G).", metavar="SIZE")] = ""
    timeout: Annotated[
        float, Option(help="Seconds a run may take (0: no limit).", metavar="SECONDS", least=0)
    ] = 0
    plan: Annotated[
        str, Option(help="The plan of configuration 'plan'.", metavar="PLAN.JSON", reads=True)
    ] = ""
    online: Annotated[str, Option(help="The policy of configuration 'online'.", metavar="POLICY")] = ""
    cache: Annotated[
        bool, Option(help="Model the caches: count what reaches memory and moves between cpus.")
    ] = False
    as_json: Json = False

    def request(self, by_thread: bool = False) -> "Request":
        """What to run where."""
        from ..runs.session import Request

        return Request(
            self.argv,
            self.machine,
            self.scale,
            self.cpus_per_node,
            self.memory,
            self.timeout,
            self.plan,
            self.online,
            by_thread,
            self.cache,
        )


def print_result(document: msgspec.Struct) -> None:
    """Print it, one thing a line."""
    print_json(reviewable_json(msgspec.to_builtins(document)))
