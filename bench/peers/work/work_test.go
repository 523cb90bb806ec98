package work

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOrder pins one order down to the byte: the expected answers are made by the code that
// the peers share, so something has to stand outside.
func TestOrder(t *testing.T) {
	e, err := NewJSON(1)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":1,"state":"packed","created_at":"2026-07-23T15:55:19Z","customer":{"id":890591,"name":"Zoë van Dijk","city":"Sapporo"},"items":[{"product":667045,"name":"Oak shelf","color":"white","quantity":1,"price_cents":16936,"tax_cents":3387,"gift":false},{"product":290784,"name":"Wool blanket","color":"white","quantity":5,"price_cents":19754,"tax_cents":3950,"gift":false},{"product":700014,"name":"Enamel mug","color":"dark green","quantity":5,"price_cents":17684,"tax_cents":3536,"gift":false},{"product":887743,"name":"Garden chair","color":"black","quantity":2,"price_cents":12430,"tax_cents":2486,"gift":false},{"product":368036,"name":"Wool blanket","color":"black","quantity":2,"price_cents":10174,"tax_cents":2034,"gift":false},{"product":436053,"name":"Desk lamp","color":"white","quantity":5,"price_cents":12781,"tax_cents":2556,"gift":false},{"product":529955,"name":"Wool blanket","color":"black","quantity":3,"price_cents":14437,"tax_cents":2887,"gift":false}],"total_cents":356550,"paid":false}`
	if e.Target != "/json?id=1" || string(e.Want) != want {
		t.Errorf("%s: got\n%s\nwant\n%s", e.Target, e.Want, want)
	}
	sum := 0
	seen := map[string]bool{}
	for id := int64(1); id <= 1000; id++ {
		e, err := NewJSON(id)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(e.Want); n < 900 || n > 1200 {
			t.Errorf("order %d: %d bytes", id, n)
		}
		sum += len(e.Want)
		seen[strings.SplitN(string(e.Want), ",", 2)[1]] = true // without its number
	}
	if mean := sum / 1000; mean < 960 || mean > 1088 {
		t.Errorf("got %d bytes on average, want about a KiB", mean)
	}
	if len(seen) != 1000 {
		t.Errorf("got %d different orders of 1000", len(seen))
	}
	if n := testing.AllocsPerRun(100, func() { _ = NewOrder(7) }); n != 0 {
		t.Errorf("an order allocates %v times", n)
	}
}

func TestPurchase(t *testing.T) {
	e, err := NewPost(1)
	if err != nil {
		t.Fatal(err)
	}
	const wantBody = `{"order":1,"customer":"Ines Rao","lines":[{"product":5894,"quantity":4,"cents":7752},{"product":9886,"quantity":6,"cents":4159},{"product":1192,"quantity":1,"cents":1532}],"note":"leave it with the "}`
	const want = `{"order":1,"customer":"Ines Rao","products":16972,"pieces":11,"cents":57494,"note_bytes":18}`
	if string(e.Body) != wantBody || string(e.Want) != want {
		t.Errorf("got\n%s\n%s\nwant\n%s\n%s", e.Body, e.Want, wantBody, want)
	}
	for order := range int64(2000) {
		for _, order := range []int64{order, 999_999_999_999_999 - order} {
			if e, err := NewPost(order); err != nil || len(e.Body) != PurchaseBytes {
				t.Fatalf("%d: %d bytes, %v", order, len(e.Body), err)
			}
		}
	}
	if e, err := NewPost(9_999_999_999_999_999); err == nil && len(e.Body) != PurchaseBytes {
		t.Errorf("got %d bytes", len(e.Body))
	}
	if _, err := new(Purchase).Receipt(); !errors.Is(err, ErrPurchase) {
		t.Errorf("got %v, want %v", err, ErrPurchase)
	}
}

func TestParseIDs(t *testing.T) {
	ids, err := ParseIDs(nil, "3,1,3,9223372036854775807")
	if err != nil || !slices.Equal(ids, []int64{3, 1, 9223372036854775807}) {
		t.Errorf("got %v, %v", ids, err)
	}
	for _, wrong := range []string{"", "0", "-1", "1,", "x", "9223372036854775808", strings.Repeat("1,", 256) + "1"} {
		if ids, err := ParseIDs(nil, wrong); err == nil {
			t.Errorf("%.20q: got %v", wrong, ids)
		}
	}
}

// answer is one of pinion's.
const answer = `{"users":[{"id":3,"name":"มาลี น้ำเพชร","email":"user3@example.com","phone":"+44 7700 900072","avatar":"https://img.example.com/avatars/3.webp","status":1,"city_id":21,"last_login_at":"2025-12-09T02:43:21Z","created_at":"2025-12-01T19:50:03.072692Z","updated_at":"2025-12-19T12:04:34.66816Z","attributes":{"plan":"free"},"member":{"level":"silver","points":6007}},{"id":1,"name":"제갈지우","email":"user1@example.com","phone":"+1-202-555-0145","avatar":"https://img.example.com/avatars/1.webp","status":1,"city_id":34,"last_login_at":null,"created_at":"2025-11-24T12:53:20.49106Z","updated_at":"2025-11-24T12:53:20.49106Z","attributes":{"motto":"一期一会","plan":"team","theme":"auto"},"member":null}],"missing":[1001]}`

func TestUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(path, []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewUsers(s, []int64{3, 1, 1001})
	if err != nil || e.Target != "/api/users?ids=3,1,1001" || string(e.Want) != answer {
		t.Errorf("%s, %v: got\n%s\nwant\n%s", e.Target, err, e.Want, answer)
	}
	if e, err := NewUsers(s, []int64{1}); err != nil || !bytes.HasSuffix(e.Want, []byte(`"missing":[]}`)) {
		t.Errorf("got %s, %v", e.Want, err)
	}
	var syntax *json.SyntaxError
	if _, err := Parse([]byte("{")); !errors.As(err, &syntax) {
		t.Errorf("got %v, want a syntax error", err)
	}
}

func TestAppend(t *testing.T) {
	e := Exchange{Method: "POST", Target: "/json", Body: []byte("{}")}
	const want = "POST /json HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" +
		"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	if got := e.Append(nil, "h", "Connection: close"); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
