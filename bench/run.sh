#!/bin/sh
# All measurements of docs/benchmarks/engine.md, in about ten minutes. Needs two
# CPUs, gcc and wrk.
#
#   cd bench && ./run.sh [ROUNDS]
set -eu
rounds=${1:-9}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
gcc -O2 -Wall -o "$dir/floor" floor/floor.c
for tool in transport pairs idle; do go build -o "$dir/$tool" "./$tool"; done
floor="floor=$dir/floor 9191 floor/answer.txt"
loop="loop=$dir/transport -addr 127.0.0.1:9192"
fasthttp="fasthttp=$dir/transport -transport fasthttp -addr 127.0.0.1:9193"
pairs() {
	echo "## $1"
	shift
	"$dir/pairs" -rounds "$rounds" -seconds 1 "$@"
}
uname -sr
grep -m1 'model name' /proc/cpuinfo
go version
uptime
pairs "ping, 64 connections" -conns 64 "$floor" "$loop" "$fasthttp"
pairs "ping, 256 connections" -conns 256 "$floor" "$loop" "$fasthttp"
pairs "ping, 4 connections" -conns 4 "$fasthttp" "$loop"
pairs "16 pipelined" -conns 64 -script lua/pipeline.lua "$fasthttp" "$loop"
pairs "10 requests per connection" -conns 64 -script lua/churn.lua "$fasthttp" "$loop"
pairs "1 ms of sleep, 256 connections" -conns 256 -path /sleep "$fasthttp" "$loop"
pairs "1 ms of sleep, 64 connections" -conns 64 -path /sleep "$fasthttp" "$loop"
pairs "MayBlock without blocking" -conns 64 -path /block "$fasthttp" "$loop"
pairs "handler not declared" -conns 64 "$fasthttp" "loop=$dir/transport -transport blocking -addr 127.0.0.1:9192"
pairs "one loop, two loops, both CPUs" -server-cpus 0,1 -conns 64 \
	"one=$dir/transport -loops 1 -addr 127.0.0.1:9192" "two=$dir/transport -loops 2 -addr 127.0.0.1:9194" "$fasthttp"
echo "## p99 of 1 ms of sleep while ping saturates the loop"
echo loop
./saturate.sh "$dir/transport -addr 127.0.0.1:9192" 9192 5
echo fasthttp
./saturate.sh "$dir/transport -transport fasthttp -addr 127.0.0.1:9193" 9193 5
echo "## resident memory per idle connection"
for transport in loop fasthttp; do
	taskset -c 0 "$dir/transport" -transport $transport -addr 127.0.0.1:9195 &
	pid=$!
	sleep 1
	echo "$transport"
	"$dir/idle" -addr 127.0.0.1:9195 -pid $pid -conns 15000
	kill $pid
	wait $pid || true
done
uptime
