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

// leaseText gives each key that does not exist a token, KEYS[i] that of ARGV[i+1], for
// ARGV[1] ms, and returns a digit for each: 1 where it did.
const leaseText = `local granted = {}
for i = 1, #KEYS do
	local done = redis.call('SET', KEYS[i], ARGV[i + 1], 'NX', 'PX', ARGV[1])
	granted[i] = done and '1' or '0'
end
return table.concat(granted)`

// storeText takes three keys and arguments for each entry. It keeps ARGV[2] at KEYS[2] for
// ARGV[3] ms if the lease at KEYS[1] has the token ARGV[1], deletes KEYS[3], which says
// the opposite, and uses the lease up. One that fails does not keep the others from it.
const storeText = `local failed
for i = 1, #KEYS, 3 do
	local reply = redis.pcall('GET', KEYS[i])
	if reply == ARGV[i] then
		reply = redis.pcall('SET', KEYS[i + 1], ARGV[i + 1], 'PX', ARGV[i + 2])
		if not reply.err then redis.call('DEL', KEYS[i], KEYS[i + 2]) end
	end
	if type(reply) == 'table' and reply.err then
		failed = failed or (KEYS[i + 1] .. ': ' .. reply.err)
	end
end
if failed then return redis.error_reply(failed) end
return 1`

// voidText deletes KEYS[1] to KEYS[3] and sets KEYS[4] to the time, for ARGV[1] ms.
// Numbers of Lua would write the time as 1.7e+15.
const voidText = `redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
local now = redis.call('TIME')
redis.call('SET', KEYS[4], now[1] .. string.format('%06d', now[2]), 'PX', ARGV[1])
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
