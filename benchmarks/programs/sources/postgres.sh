#!/bin/sh
# PostgreSQL under pgbench. $1: its programs, $2: a folder with a cluster, $3: port; $4: only make the cluster.
export PGHOST=/tmp PGPORT="$3" PGUSER=postgres
as=""
test "$(id -u)" = 0 && as="setpriv --reuid=postgres --regid=postgres --clear-groups"
cd /

start() {
    $as "$1/postgres" -D "$2" -k /tmp -c listen_addresses= -c fsync=off -c shared_buffers=128MB -c log_min_messages=fatal &
    server=$!
    until "$1/pg_isready" -q; do
        kill -0 $server 2>/dev/null || { echo "the server ended at once" >&2; exit 1; }
        sleep 0.2
    done
}

stop() {
    kill -INT $server
    wait $server
}

if test "$4" = make; then
    test -e "$2/made" && exit 0
    rm -rf "$2"
    mkdir -p "$2" && chmod 700 "$2" || exit 1
    test -z "$as" || chown postgres "$2"
    $as "$1/initdb" -D "$2" -U postgres -A trust --no-sync >/dev/null || exit 1
    start "$1" "$2"
    "$1/pgbench" -i -q -s 4 postgres >/dev/null 2>&1 || exit 1
    stop
    touch "$2/made"
    exit 0
fi
start "$1" "$2"
"$1/pgbench" -S -n -c 8 -j 4 -t 300 postgres >/dev/null && checked=1
stop
test "$checked" && echo checked
