//go:build linux && numa

package guest

import (
	"fmt"
	"strings"
	"testing"
)

// coherent writes through one cell and reads through the other at once, by turns, for
// so many rounds. The reader has the old answer in its cache before each write.
func coherent(t *testing.T, p *process, rounds int) {
	before := requests(t)
	sides := [2]*client{dialFrom(t, 0), dialFrom(t, 4)}
	for i := range rounds {
		writer, reader := sides[i%2], sides[1-i%2]
		reader.ask(t, "/api/users/1")
		city := fmt.Sprintf(`"city_id":%d`, i+1000)
		if code, body, err := writer.do("PATCH", "/api/users/1", "{"+city+"}"); err != nil || code != 200 {
			t.Fatalf("round %d: write: %d %s, %v", i, code, body, err)
		}
		if body := reader.ask(t, "/api/users/1"); !strings.Contains(body, city) {
			t.Fatalf("round %d: read after the write of %s through the other cell: %s", i, city, body)
		}
	}
	taken := make(map[int]int)
	for l, n := range requests(t) {
		taken[l.cell] += n - before[l]
	}
	for cell := range sides { // or it was one cell that both talked to
		if taken[cell] < rounds {
			t.Errorf("cell %d took %d requests of %d rounds: %v\n%s", cell, taken[cell], rounds, taken, &p.log)
		}
	}
	t.Logf("%d writes by turns, each read at once through the other cell, none stale; requests by cell: %v", rounds, taken)
}
