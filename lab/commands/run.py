"""`nlab run`: run a program once on a virtual machine and count its accesses."""

import sys
from typing import Annotated

from numaplan.common import Option, UsageError, check_output, write_document

from .guest import GuestCommand, print_result


class RunCommand(GuestCommand, frozen=True):
    """Run a program once and count its accesses by cpu and node.

    The program's output, input and exit code are its own (124 when --timeout ended it); the table goes to
    stderr. With --json the program's output goes to stderr.

    Example: nlab run --machine 4x2 -- ./app 1000
    """

    config: Annotated[
        str, Option(help="Who places; see 'nlab compare --help'. By default as --plan or --online say.")
    ] = ""
    by_thread: Annotated[bool, Option(help="Also count each thread alone.")] = False
    counts: Annotated[str, Option(help="Write the counts here.", metavar="OUT.CSV", writes=True)] = ""

    def run(self) -> int:
        from ..guest.streams import own_stdin
        from ..runs.configs import parse_configs
        from ..runs.session import open_session
        from ..runs.tables import counts_csv, say, show_run

        usual = "plan" if self.plan else "online" if self.online else "default"
        names = parse_configs(self.config or usual, self.plan, self.online)
        if len(names) > 1:
            raise UsageError(
                f"--config {self.config}: more than one", "'nlab compare --configs' runs several"
            )
        name = names[0]
        if self.counts:
            check_output(self.counts)
        sys.stdout.flush()
        with open_session(self.request(self.by_thread), say) as session:
            result = session.run(name, own_stdin(), 2 if self.as_json else 1, 2)
        if self.as_json:
            print_result(result)
        else:
            show_run(result, sys.stderr)
        if self.counts:
            write_document(self.counts, counts_csv(result))
        if result.timed_out:
            print(f"nlab: the program was ended after {self.timeout:g} s", file=sys.stderr)
        return result.exit_code
