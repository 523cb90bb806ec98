package codec_test

import (
	"errors"
	"fmt"
	"time"

	"pinion/codec"
)

func ExampleAppendString() {
	out := append([]byte(nil), `{"name":`...)
	out = codec.AppendString(out, "Ada \"Countess\" \x00\xff")
	out = append(out, `,"seen":`...)
	out = codec.AppendTime(out, time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC))
	out = append(out, '}')
	fmt.Println(string(out))
	// Output: {"name":"Ada \"Countess\" \u0000\ufffd","seen":"2026-01-02T15:04:05Z"}
}

func ExampleDecoder() {
	var d codec.Decoder // keep it: it reuses its memory
	v, err := d.Decode([]byte(`{"ids":[1,2,3],"name":"Ada"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for key, m := range v.Members() {
		switch string(key) { // a switch on the view does not copy it
		case "ids":
			if err := m.Expect(codec.Array); err != nil {
				fmt.Println(err)
				return
			}
			for e := range m.Elements() {
				id, err := e.Int64()
				fmt.Println("id", id, err)
			}
		case "name":
			name, err := m.Text()
			fmt.Println("name", name, err)
		}
	}
	// Output:
	// id 1 <nil>
	// id 2 <nil>
	// id 3 <nil>
	// name Ada <nil>
}

func ExampleSyntaxError() {
	var d codec.Decoder
	_, err := d.Decode([]byte(`{"name":"a","n\u0061me":"b"}`))
	var syntax *codec.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println(syntax.Offset, syntax)
	}
	// Output: 12 at byte 12: repeated key "name"
}
