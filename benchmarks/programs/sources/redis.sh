#!/bin/sh
# A redis server with io threads, filled and read by its benchmark. $1: port.
redis-server --port "$1" --bind 127.0.0.1 --save '' --appendonly no --io-threads 4 --io-threads-do-reads yes \
    --daemonize no --protected-mode no --dir / >/dev/null 2>&1 &
server=$!
until redis-cli -p "$1" ping >/dev/null 2>&1; do
    kill -0 $server 2>/dev/null || { echo "the server ended at once" >&2; exit 1; }
    sleep 0.1
done
redis-benchmark -p "$1" -q -n 1000 -c 16 -r 20000 -d 1024 --threads 3 -t set,get >/dev/null && checked=1
redis-cli -p "$1" shutdown nosave >/dev/null 2>&1
wait $server
test "$checked" && echo checked
