#!/bin/sh
# Python answers Ctrl-C with a traceback until somebody tells it how to (start.py): until then the signal waits.
trap 'trap - INT; kill -INT $$' INT
self=$(readlink -f "$0") || exit
wait='env --block-signal=INT'
case $self in *=*) wait= ;; esac # env would take it for a variable
$wait true 2>/dev/null || wait= # not every env can
exec $wait "${self%/*}/numaplan-start" "${self##*/}" "$@"
