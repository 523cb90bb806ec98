//go:build !race

package codec_test

import (
	"runtime"
	"testing"
	"time"

	"pinion/codec"
)

// TestNoAllocs names every call that requests make and that must not allocate
// once destination and Decoder have grown.
func TestNoAllocs(t *testing.T) {
	var (
		dst     = make([]byte, 0, 4096)
		plain   = "Ada Lovelace of St James's Square, London"
		odd     = "say \"hi\"\n\x01 日本 👩 \u2028 \xff"
		oddRaw  = []byte(odd)
		id      = []byte("9223372036854775807")
		now     = time.Date(2026, 1, 2, 15, 4, 5, 120_000_000, time.FixedZone("", 3600))
		lookup  = lookupBody(1000)
		user    = []byte(userBody)
		many    = []byte(manyKeys(200))
		decoder codec.Decoder

		// Sinks keep the compiler from dropping a call whose result nobody reads.
		sinkBytes  []byte
		sinkString string
		sinkInt    int64
		sinkBool   bool
	)
	for _, tt := range []struct {
		name string
		call func()
	}{
		{"AppendString plain", func() { sinkBytes = codec.AppendString(dst, plain) }},
		{"AppendString odd", func() { sinkBytes = codec.AppendString(dst, odd) }},
		{"AppendString odd bytes", func() { sinkBytes = codec.AppendString(dst, oddRaw) }},
		{"AppendInt", func() { sinkBytes = codec.AppendInt(dst, -1<<63) }},
		{"AppendBool", func() { sinkBytes = codec.AppendBool(dst, true) }},
		{"AppendTime", func() { sinkBytes = codec.AppendTime(dst, now) }},
		{"ParseID", func() { sinkInt, sinkBool = codec.ParseID(id) }},
		{"views", func() { sinkString = codec.StringView(codec.BytesView(plain)) }},
		{"Decode lookup", func() {
			n, err := sumIDs(&decoder, lookup)
			if err != nil {
				t.Fatal(err)
			}
			sinkInt = n
		}},
		{"Decode user", func() {
			n, err := walk(&decoder, user)
			if err != nil {
				t.Fatal(err)
			}
			sinkInt = n
		}},
		{"Decode many keys", func() {
			n, err := walk(&decoder, many)
			if err != nil {
				t.Fatal(err)
			}
			sinkInt = n
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 3 {
				tt.call() // let everything grow
			}
			if n := testing.AllocsPerRun(100, tt.call); n != 0 {
				t.Errorf("%v allocations, want none", n)
			}
		})
	}
	runtime.KeepAlive(sinkBytes)
	runtime.KeepAlive(sinkString)
	runtime.KeepAlive(sinkInt)
	runtime.KeepAlive(sinkBool)
}
