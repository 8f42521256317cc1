#!/bin/sh
# Try a fresh checkout on systems as they come: `make demo`, the unit tests, and the wheel without a compiler.
#
#     scripts/test-systems.sh [SUITE...]      suites of Debian; default: bookworm trixie forky
#
# Each is set up by debootstrap in a folder of its own below $TMPDIR (6 GB), from the mirror that apt is set up with,
# and removed at the end unless KEEP=1. Takes some ten minutes a suite. Where it cannot run it says why, and ends with 0.
set -eu
cd "$(dirname "$0")/.."
repository=$PWD
suites=${*:-bookworm trixie forky}
failed=""

skip() {
    echo "test-systems: skipped: $1"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "only root can set up a system"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
mirror=$(apt-get indextargets --format '$(CREATED_BY) $(REPO_URI)' | awk '$1 == "Packages" { print $2; exit }')
[ -n "$mirror" ] || skip "apt is set up with no mirror"

base=$(mktemp -d "${TMPDIR:-/tmp}/numaplan-systems-XXXXXX")
mounts="proc sys dev dev/pts dev/shm"

unmount() { # innermost first; a system with something mounted in it is never removed
    for place in dev/shm dev/pts dev sys proc; do
        ! mountpoint -q "$1/$place" || umount "$1/$place" || umount -l "$1/$place"
    done
}
leave() {
    for system in "$base"/*/; do unmount "${system%/}"; done
    if [ "${KEEP:-}" = 1 ]; then echo "test-systems: kept: $base"; else rm -rf --one-file-system "$base"; fi
}
trap leave EXIT
trap 'exit 130' INT TERM

fresh() { # fresh SUITE NAME PACKAGES: a bare system, with this machine's name service and certificates
    system=$base/$2
    started=$(date +%s)
    script=$1 # a suite younger than this debootstrap is set up as unstable is
    [ -e "/usr/share/debootstrap/scripts/$1" ] || script=sid
    debootstrap --variant=minbase --include="ca-certificates,$3" "$1" "$system" "$mirror" "$script" >"$base/$2.log" 2>&1
    for place in $mounts; do mount --bind "/$place" "$system/$place"; done
    cp /etc/resolv.conf "$system/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
    echo "test-systems: $2: set up ($(($(date +%s) - started)) s)"
}

within() { # within NAME SCRIPT: run a script in a system, as root at home
    chroot "$base/$1" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_DEFAULT_TIMEOUT=180 sh -euc "cd /root; $2" >>"$base/$1.log" 2>&1
}

try() { # try NAME WHAT SCRIPT
    started=$(date +%s)
    if within "$1" "$3"; then
        echo "test-systems: $1: $2: ok ($(($(date +%s) - started)) s)"
    else
        echo "test-systems: $1: $2: FAILED ($(($(date +%s) - started)) s); the end of what it said:"
        tail -15 "$base/$1.log"
        failed="$failed $1:$2"
    fi
}

first=""
for suite in $suites; do
    fresh "$suite" "$suite" git,make
    git clone --quiet --bare "$repository" "$base/$suite/root/numaplan.git"
    within "$suite" "git clone -q numaplan.git"
    try "$suite" "make demo" "cd numaplan && make demo"
    try "$suite" "unit tests" "cd numaplan && .venv/bin/python -m pytest -q -p no:cacheprovider tests/unit"
    if [ -z "$first" ]; then # a wheel is for systems no older than the one that made it
        first=$suite
        try "$suite" "make wheel" "cd numaplan && make wheel"
    fi
    bare=$suite-bare
    fresh "$suite" "$bare" python3-venv
    cp "$base/$first/root/numaplan/dist/"*.whl "$base/$suite/root/numaplan/demo/stencil" "$base/$bare/root/" || true
    try "$bare" "wheel" '! command -v cc && python3 -m venv venv && venv/bin/pip install -q *.whl && PATH="$PWD/venv/bin:$PATH"
        nprof setup && nprof record --period 100 -o t.db -- ./stencil && nmap plan t.db --machine 4x2 -o p.json
        nlaunch --plan p.json --remap -- ./stencil
        nlab setup && nlab run --machine 4x2 --plan p.json -- ./stencil'
    [ "$suite" = bookworm ] || try "$bare" "a program built for AVX2 in the lab" 'PATH="$PWD/venv/bin:$PATH"
        nlab run --machine 2x1 -- venv/bin/python -c "import duckdb; assert duckdb.sql(\"select sum(range) from range(9)\").fetchall() == [(36,)]"'
    for name in "$suite" "$bare"; do unmount "$base/$name"; done
done
[ -z "$failed" ] || { echo "test-systems: failed:$failed"; exit 1; }
echo "test-systems: all is well on: $suites"
