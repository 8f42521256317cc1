#!/bin/sh
# The main job on a real program: record, plan, launch, show. Each step prints the command a user would type.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
mkdir -p demo

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
show() { printf '\033[36m$ %s\033[0m\n' "$*"; }
run() {
    show "$@"
    "$@"
}

say "A program: a stencil of 8 threads whose neighbours have ids far apart; main initialises all memory"
run cc -O2 -g -pthread examples/stencil.c -o demo/stencil

say "Record one run (every 100th access)"
run nprof setup || true # what it lacks, it has said; a processor that samples accesses does as well
run nprof record --period 100 -o demo/trace.db -- demo/stencil
run nprof info demo/trace.db

say "Plan it for a machine of 4 nodes with 2 cpus each"
run nmap plan demo/trace.db --machine 4x2 -o demo/plan.json
run nmap show demo/plan.json

say "The plan against the usual placements"
run nmap compare demo/trace.db --machine 4x2

say "Launch with the plan on this machine (re-mapped, since it is another machine than the plan's)"
run nlaunch --plan demo/plan.json --remap --report demo/applied.json -- demo/stencil
run cat demo/applied.json

say "Proof: a real kernel with four nodes in QEMU, every access of the program counted"
show nlab setup
if nlab setup && nlab doctor >demo/lab.txt; then
    run nlab compare --machine 4x2 --plan demo/plan.json --configs default,no-autonuma,interleave,plan \
        --gate 'plan.cost < default.cost' -- demo/stencil
else
    echo "the lab cannot run here:"
    nlab doctor | grep -A1 LACKING || true
fi

say "Everything on one page"
run nmap report demo/trace.db --plan demo/plan.json -o demo/report.html
printf '\nOpen it in a browser: %s\n' "$PWD/demo/report.html"
