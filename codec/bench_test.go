package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinion/codec"
)

// sumIDs reads a lookup body the way a handler does.
func sumIDs(d *codec.Decoder, body []byte) (int64, error) {
	v, err := d.Decode(body)
	if err != nil {
		return 0, err
	}
	var sum int64
	for key, m := range v.Members() {
		if string(key) != "ids" {
			return 0, errors.New("unknown key")
		}
		if err := m.Expect(codec.Array); err != nil {
			return 0, err
		}
		for e := range m.Elements() {
			id, err := e.Int64()
			if err != nil {
				return 0, err
			}
			sum += id
		}
	}
	return sum, nil
}

// walk reads every member of an object and of the objects in it, and returns
// the length of all strings plus the sum of all integers.
func walk(d *codec.Decoder, body []byte) (int64, error) {
	v, err := d.Decode(body)
	if err != nil {
		return 0, err
	}
	var sum int64
	leaf := func(m codec.Value) error {
		switch m.Kind() {
		case codec.String:
			b, err := m.Bytes()
			sum += int64(len(b))
			return err
		default:
			n, err := m.Int64()
			sum += n
			return err
		}
	}
	for key, m := range v.Members() {
		sum += int64(len(key))
		if m.Kind() != codec.Object {
			if err := leaf(m); err != nil {
				return 0, err
			}
			continue
		}
		for _, mm := range m.Members() {
			if err := leaf(mm); err != nil {
				return 0, err
			}
		}
	}
	return sum, nil
}

func BenchmarkAppendString(b *testing.B) {
	for _, in := range []struct{ name, s string }{
		{"ascii-8", "Lovelace"},
		{"ascii-24", "ada.lovelace@example.org"},
		{"ascii-1024", strings.Repeat("Square 12", 114)[:1024]},
		{"unicode-24", "Zoë 日本 👩 Łódź"},
		{"unicode-1024", strings.Repeat("日本語", 114)[:1023]},
		{"escapes-24", "say \"hi\"\n\tC:\\dir\x01 end"},
		{"escapes-1024", strings.Repeat("line \"1\"\n", 114)[:1024]},
	} {
		b.Run(in.name, func(b *testing.B) {
			for _, writer := range []struct {
				name string
				run  func(dst []byte) []byte
			}{
				{"codec", func(dst []byte) []byte { return codec.AppendString(dst, in.s) }},
				{"strconv", func(dst []byte) []byte { return strconv.AppendQuote(dst, in.s) }},
			} {
				b.Run(writer.name, func(b *testing.B) {
					dst := make([]byte, 0, 8192)
					b.SetBytes(int64(len(in.s)))
					b.ReportAllocs()
					for b.Loop() {
						dst = writer.run(dst[:0])
					}
				})
			}
			b.Run("encoding-json", func(b *testing.B) {
				var buf bytes.Buffer
				enc := json.NewEncoder(&buf)
				enc.SetEscapeHTML(false)
				b.SetBytes(int64(len(in.s)))
				b.ReportAllocs()
				for b.Loop() {
					buf.Reset()
					if err := enc.Encode(&in.s); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkAppendTime(b *testing.B) {
	dst := make([]byte, 0, 64)
	t := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		dst = codec.AppendTime(dst[:0], t)
	}
}

func BenchmarkParseID(b *testing.B) {
	s := []byte("1234567890")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := codec.ParseID(s); !ok {
			b.Fatal("refused")
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	bench := func(name string, body []byte, ours func(*codec.Decoder, []byte) (int64, error), theirs func() any) {
		b.Run(name+"/codec", func(b *testing.B) {
			var d codec.Decoder
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ours(&d, body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encoding-json", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := json.Unmarshal(body, theirs()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	bench("lookup-1000", lookupBody(1000), sumIDs, func() any {
		return new(struct {
			IDs []int64 `json:"ids"`
		})
	})
	bench("user", []byte(userBody), walk, func() any {
		return new(struct {
			Name, Email, Phone, Avatar, Address string
			Status                              int
			CityID                              int64 `json:"city_id"`
			Attributes                          map[string]string
		})
	})
	// What a sender who means harm fits into 64 KiB.
	bench("keys-6000", []byte(manyKeys(6000)), walk, func() any { return new(map[string]int) })
	bench("escapes-32000", []byte(`{"a":1,"b":2,"c":"`+strings.Repeat(`\n`, 32_000)+`"}`), walk, func() any { return new(any) })
}
