#!/bin/sh
# Hosts on one machine, to try launchers with: each has a network, addresses and a name of its own, and mpirun of Open
# MPI and of MPICH reaches them. They share files, processors and memory, and are gone when the command ends.
#
#     sudo sh examples/hosts.sh 4                          a shell on the first of the hosts h0, h1, h2 and h3
#     sudo sh examples/hosts.sh 4 mpirun --host h0,h1 hostname
#
# Made of namespaces (Linux), and thus needs root, or user namespaces that anybody may make; unshare and nsenter
# (util-linux) and ip (iproute2).
set -eu

start() { # NUMBER COMMAND...: in namespaces of our own, where all processes end with the first
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    anybody=""
    [ "$(id -u)" = 0 ] || anybody="--map-root-user"
    code=0
    # shellcheck disable=SC2086  # one word or none
    unshare $anybody --pid --net --mount --uts --ipc --fork --kill-child --mount-proc \
        sh "$0" --inside "$folder" "$@" || code=$?
    exit $code
}

inside() { # FOLDER NUMBER COMMAND...: the first process
    folder=$1 number=$2
    shift 2
    write_files
    ip link set lo up
    ip link add switch0 type bridge
    ip link set switch0 up
    mount --bind "$folder/hosts" /etc/hosts
    host=0
    while [ "$host" -lt "$number" ]; do
        add_host "$host"
        host=$((host + 1))
    done
    # As a user would set it: how mpirun gets to another host, and that root may call it.
    export OMPI_MCA_plm_rsh_agent="$folder/enter" HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$folder/enter"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR="$folder" HOSTS_FOLDER="$folder"
    code=0
    nsenter --target "$(cat "$folder/h0")" --net --uts "$@" || code=$?
    exit $code
}

write_files() { # who is where, and what stands for ssh: enter HOST COMMAND
    {
        echo "127.0.0.1 localhost"
        host=0
        while [ "$host" -lt "$number" ]; do
            echo "10.0.0.$((host + 1)) h$host"
            host=$((host + 1))
        done
    } >"$folder/hosts"
    cat >"$folder/enter" <<EOF
#!/bin/sh
while case "\$1" in -*) ;; *) false ;; esac; do shift; done
host=\$1
shift
exec nsenter --target "\$(cat "$folder/\$host")" --net --uts sh -c "\$*"
EOF
    chmod +x "$folder/enter"
}

add_host() { # NUMBER: a process that holds its namespaces, its pid in a file named as the host, and a cable
    # shellcheck disable=SC2016  # for the inner shell
    holder=$(unshare --net --uts sh -ec 'hostname "$1"; ip link set lo up; echo $$; exec sleep infinity >/dev/null' \
        sh "h$1" </dev/null &)
    [ -n "$holder" ] || exit 1
    echo "$holder" >"$folder/h$1"
    ip link add "cable$1" type veth peer name eth0 netns "$holder"
    ip link set "cable$1" master switch0 up
    nsenter --target "$holder" --net ip address add "10.0.0.$(($1 + 1))/24" dev eth0
    nsenter --target "$holder" --net ip link set eth0 up
}

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
fi
case "${1:-}" in
    [1-9] | [1-9][0-9]) ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
[ $# -gt 1 ] || set -- "$1" "${SHELL:-/bin/sh}"
start "$@"
