"""`nmap` with all its commands, their help, and what they say to misuse; see cli.py."""

import re
import sys
from collections.abc import Sequence

from numaplan.common.cli import new_app, run_app
from numaplan.mapper import cli_analyze, cli_check, cli_compare, cli_machine, cli_plan

app = new_app(
    "Plan which NUMA node each thread and each piece of memory should live on.\n\n"
    "Example: [bold]nmap plan trace.db -o plan.json[/bold], then [bold]nlaunch --plan plan.json ./app[/bold]."
)
for module in (cli_machine, cli_analyze, cli_plan, cli_compare, cli_check):
    module.register(app)

# What only the network scanner of the same name knows: scan types, ports, timing, addresses, networks.
_SCANNER = re.compile(
    r"-s[STUACVNFXMWIOPLRYZn]|-p(\d.*|-|)|-P[nSAUYEPMOR]\d*|-[AFOR6]|-T[0-5]|-i[LR]|-o[NXGAS]|-v{2,}"
    r"|--(script|open|top-ports|reason|traceroute|osscan-\w+|exclude)(=.*)?"
    r"|\d{1,3}(\.\d{1,3}){3}([/-]\d+)?|[0-9a-f]*:[0-9a-f:]+|localhost|[\w-]+(\.[\w-]+)*\.(com|org|net|io|de|edu|local)"
)


def is_scanner_call(words: Sequence[str]) -> bool:
    """Whether a command line was meant for the network scanner nmap."""
    commands = {command.name for command in app.registered_commands}
    return bool(words) and words[0] not in commands and any(_SCANNER.fullmatch(word) for word in words)


def main() -> None:
    """Read the command line and do what it says."""
    words = sys.argv[1:]
    if is_scanner_call(words):
        print(
            "nmap: error: this is numaplan's nmap (thread and memory placement), not the network scanner —"
            " call the scanner by its full path, such as /usr/bin/nmap",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(run_app(app, "nmap"))
