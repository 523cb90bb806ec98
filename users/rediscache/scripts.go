package rediscache

import (
	"context"
	"crypto/sha1" // the name that Redis gives to a script
	"encoding/hex"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// The scripts of leases and fills are for many users at once: a command for each would cost this process more than
// all the rest of a fill.

// leaseText gives each key that does not exist the token ARGV[1], for ARGV[2] ms, and
// returns a digit for each: 1 where it did.
const leaseText = `local granted = {}
for i = 1, #KEYS do
	local done = redis.call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2])
	granted[i] = done and '1' or '0'
end
return table.concat(granted)`

// storeText takes two keys and three arguments for each entry. It keeps the second
// argument at the second key for as many ms as the third says, if the lease at the first
// key has the token that is the first argument, and uses the lease up. One that fails
// does not keep the others from it.
const storeText = `local failed
for i = 1, #KEYS / 2 do
	local lease, fragment, arg = KEYS[2 * i - 1], KEYS[2 * i], 3 * i
	local reply = redis.pcall('GET', lease)
	if reply == ARGV[arg - 2] then
		reply = redis.pcall('SET', fragment, ARGV[arg - 1], 'PX', ARGV[arg])
		if not reply.err then redis.call('DEL', lease) end
	end
	if type(reply) == 'table' and reply.err then
		failed = failed or (fragment .. ': ' .. reply.err)
	end
end
if failed then return redis.error_reply(failed) end
return 1`

// What storeText takes for each entry.
const storeKeys, storeArgs = 2, 3

// voidText deletes KEYS[1] and KEYS[2] and sets KEYS[3] to the time, for ARGV[1] ms.
// Numbers of Lua would write the time as 1.7e+15.
const voidText = `redis.call('DEL', KEYS[1], KEYS[2])
local now = redis.call('TIME')
redis.call('SET', KEYS[3], now[1] .. string.format('%06d', now[2]), 'PX', ARGV[1])
return 1`

// addText makes KEYS[1] a hash of the fields and values in ARGV, unless it is one already.
// Each field is a command of its own: Lua can pass only some thousands of arguments to one.
const addText = `if redis.call('HLEN', KEYS[1]) > 0 then return 0 end
for i = 1, #ARGV, 2 do
	redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 1`

// oomHeader lets a script of Redis 7 run in a full memory. Redis 6 does not know it; what
// begins with a DEL runs there all the same.
const oomHeader = "#!lua flags=allow-oom\n"

type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

type scripts struct {
	lease *script
	store *script
	add   *script
	void  *atomic.Pointer[script] // with the header until Redis turns out not to know it
}

func newScripts() scripts {
	s := scripts{
		lease: newScript(leaseText),
		store: newScript(storeText),
		add:   newScript(addText),
		void:  new(atomic.Pointer[script]),
	}
	s.void.Store(newScript(oomHeader + voidText))
	return s
}

// execution is one run of a script.
type execution struct{ keys, args []string }

// run runs s once for each execution, in one go. Redis forgets its scripts when it
// restarts: what then has not run is sent again with the text. Each result may be an
// error of Redis.
func (c *Cache) run(ctx context.Context, s *script, all ...execution) ([]rueidis.RedisResult, error) {
	commands := make([]rueidis.Completed, len(all))
	for i, e := range all {
		commands[i] = c.client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(e.keys))).Key(e.keys...).Arg(e.args...).Build()
	}
	results, err := c.do(ctx, commands...)
	if err != nil {
		return nil, err
	}
	var again []int
	commands = commands[:0]
	for i := range results {
		if reply, ok := rueidis.IsRedisErr(results[i].Error()); ok && reply.IsNoScript() {
			e := all[i]
			again = append(again, i)
			commands = append(commands, c.client.B().Eval().Script(s.text).Numkeys(int64(len(e.keys))).Key(e.keys...).Arg(e.args...).Build())
		}
	}
	if len(again) == 0 {
		return results, nil
	}
	second, err := c.do(ctx, commands...)
	if err != nil {
		return nil, err
	}
	for i, at := range again {
		results[at] = second[i]
	}
	return results, nil
}

// doesNotCompile reports whether Redis could not make sense of a script's text.
func doesNotCompile(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && strings.Contains(strings.ToLower(reply.Error()), "compiling script")
}
