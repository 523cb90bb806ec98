#!/bin/sh
# Latency of an offloaded route (1 ms sleep) while inline requests keep every
# loop busy. The server has CPU 0; both generators share CPU 1.
#
#   saturate.sh COMMAND-WITH-PORT PORT [ROUNDS]
set -eu
command=$1 port=$2 rounds=${3:-5}
taskset -c 0 $command &
server=$!
trap 'kill $server' EXIT
sleep 1
for _ in $(seq "$rounds"); do
	taskset -c 1 wrk -t1 -c64 -d5s "http://127.0.0.1:$port/api/ping" >/dev/null &
	load=$!
	sleep 1
	taskset -c 1 wrk -t1 -c16 -d3s --latency "http://127.0.0.1:$port/sleep" | grep -E '50%|99%|requests in' | tr '\n' ' '
	echo
	wait $load
done
