#!/bin/sh
# PostgreSQL under pgbench. $1: its programs, $2: a folder with a cluster (made here if it is not there), $3: port.
export PGHOST=/tmp PGPORT="$3" PGUSER=postgres
as=""
test "$(id -u)" = 0 && as="setpriv --reuid=postgres --regid=postgres --clear-groups"
if ! test -e "$2/PG_VERSION"; then
    mkdir -p "$2" && chmod 700 "$2"
    test -z "$as" || chown postgres "$2"
    $as "$1/initdb" -D "$2" -U postgres -A trust --no-sync >/dev/null || exit 1
fi
test "$4" = make && exit 0
$as "$1/postgres" -D "$2" -k /tmp -c listen_addresses= -c fsync=off -c shared_buffers=128MB &
server=$!
until "$1/pg_isready" -q; do sleep 0.2; done
"$1/pgbench" -i -q -s 2 postgres >/dev/null 2>&1 && "$1/pgbench" -S -n -c 8 -j 4 -t 300 postgres >/dev/null && checked=1
kill -INT $server
wait $server
test "$checked" && echo checked
