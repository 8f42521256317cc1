#!/bin/sh
# Install the Debian or Ubuntu packages that are missing; say which ones where that may not be done.
#
#     scripts/system-packages.sh GROUP...      groups: build record test lab cluster
#
# Exit code 0 when all are there (or only those of other groups than `build` could not be had: what needs them says
# so itself), 3 when something to build with is missing.
set -u

build="gcc libc6-dev make python3 python3-venv"
record="qemu-user perf"
test="pigz xz-utils zstd graphicsmagick python3-numpy libopenblas0-pthread musl-tools numactl hwloc util-linux chromium git valgrind
    libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 stress-ng openmpi-bin libopenmpi-dev libtbb-dev libvirt-clients libxml2-utils
    debuginfod clang libomp-dev"
lab="qemu-system-x86"
# Launchers of jobs, for tests that start Slurm's daemons themselves. Where systemd runs, Debian starts munge with a key
# of its own; Slurm's services start only once there is an /etc/slurm/slurm.conf. mpirun and mpicc stay Open MPI's.
cluster="mpich libmpich-dev slurmd slurmctld slurm-client iproute2"

# Emulation takes QEMU's user mode with plugins; later releases build it without, and `nprof setup` gets one.
has_plugins() {
    (. /etc/os-release && case "$ID" in
        debian) dpkg --compare-versions "${VERSION_ID:-99}" lt 13 ;;
        ubuntu) dpkg --compare-versions "${VERSION_ID:-99}" lt 24.11 ;;
        *) false ;;
    esac)
}

# Linux's perf has a name of its own in each distribution.
perf_package() {
    if [ -e /etc/os-release ] && grep -q '^ID=ubuntu' /etc/os-release; then
        echo "linux-tools-generic"
    else
        echo "linux-perf"
    fi
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing() { # the packages among "$@" that are not installed
    for package in "$@"; do
        [ "$package" = perf ] && package=$(perf_package)
        [ "$package" = qemu-user ] && ! has_plugins && continue
        installed "$package" || printf '%s ' "$package"
    done
}

refuse() { # where we may not install: say what to do
    echo "system-packages: these packages are missing; install them with:" >&2
    echo "    sudo apt-get install -y --no-install-recommends $1" >&2
    [ -z "$(eval "missing $build")" ] && exit 0
    exit 3
}

wanted=""
for group in "$@"; do
    case "$group" in
        build) wanted="$wanted $build" ;;
        record) wanted="$wanted $record" ;;
        test) wanted="$wanted $test" ;;
        lab) wanted="$wanted $lab" ;;
        cluster) wanted="$wanted $cluster" ;;
        *) echo "system-packages: error: no group '$group' — choose from build record test lab cluster" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "system-packages: not a Debian or Ubuntu system; the equivalents of these packages are needed:" >&2
    echo "   $wanted" >&2
    exit 0
fi

# shellcheck disable=SC2086  # a list of words
lacking=$(missing $wanted)
[ -z "$lacking" ] && exit 0
[ "$(id -u)" = 0 ] || refuse "$lacking"

echo "system-packages: installing $lacking" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || echo "system-packages: apt-get update failed; continuing with the existing lists" >&2
# One that this release does not have must not keep the others out.
# shellcheck disable=SC2086
if ! apt-get install -y -qq --no-install-recommends $lacking >/dev/null; then
    for package in $lacking; do
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
            echo "system-packages: $package could not be installed" >&2
    done
fi
# shellcheck disable=SC2086
lacking=$(missing $wanted)
[ -z "$lacking" ] || refuse "$lacking"
