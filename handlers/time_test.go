package handlers

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-01-02T15:04:05Z":           time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		"2026-01-02t15:04:05z":           time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		"2026-01-02T15:04:05.25+02:00":   time.Date(2026, 1, 2, 13, 4, 5, 250e6, time.UTC),
		"2026-01-02T15:04:05-23:59":      time.Date(2026, 1, 3, 15, 3, 5, 0, time.UTC),
		"2026-01-02T15:04:05.123456789Z": time.Date(2026, 1, 2, 15, 4, 5, 123456789, time.UTC),
		"0001-01-01T00:00:00Z":           {},
	} {
		if got, err := parseTime([]byte(text)); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "2026-01-02", "2026-01-02 15:04:05Z", "2026-01-02T3:04:05Z", "2026-01-02T15:04:05,5Z", "2026-01-02T15:04:05.Z",
		"2026-01-02T15:04:05", "2026-01-02T15:04:05+24:00", "2026-01-02T15:04:05+00:60", "2026-01-02T15:04:05+0200",
		"2026-02-30T15:04:05Z", "2026-01-02T24:00:00Z", "26-01-02T15:04:05Z", "2026-01-02T15:04:05Z ",
	} {
		if got, err := parseTime([]byte(text)); err == nil {
			t.Errorf("%q was taken as %v", text, got)
		}
	}
}
