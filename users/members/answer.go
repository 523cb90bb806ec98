package members

import (
	"errors"
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
)

const statusOK = fasthttp.StatusOK

// Limits of an answer.
const (
	// MaxIDs is the largest number of ids in one request.
	MaxIDs = 256
	// MaxAnswer is the largest body of an answer, in bytes.
	MaxAnswer = 1 << 20
	// MaxLevel is the longest level, in bytes.
	MaxLevel = 256
)

// checkHead refuses an answer that cannot be what was asked for, whatever its body.
func checkHead(resp *fasthttp.Response) error {
	status := resp.StatusCode()
	if status != statusOK {
		return &AnswerError{Status: status, Reason: "want status 200"}
	}
	contentType := string(resp.Header.ContentType())
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" {
		return &AnswerError{Status: status, Reason: "content type " + quote(contentType) + ", want application/json"}
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return &AnswerError{Status: status, Reason: "charset " + quote(charset) + ", want utf-8"}
	}
	if encoding := string(resp.Header.ContentEncoding()); encoding != "" && encoding != "identity" {
		return &AnswerError{Status: status, Reason: "content encoding " + quote(encoding) + ", which was not asked for"}
	}
	return nil
}

// quote makes a header's value fit to be shown.
func quote(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strconv.QuoteToASCII(text)
}

// reading is the check of one body against the ids that were asked for.
type reading struct {
	ids   []int64 // ascending, distinct
	seen  []bool  // by position in ids
	found map[int64]users.Member
}

// readBody adds the members in body to found. It uses nothing of a body that it
// refuses: found then holds what must be thrown away.
func readBody(d *codec.Decoder, body []byte, ids []int64, found map[int64]users.Member) error {
	r := reading{ids: ids, seen: make([]bool, len(ids)), found: found}
	doc, err := d.Decode(body)
	if err == nil {
		err = r.document(doc)
	}
	if err != nil {
		return &AnswerError{Status: statusOK, Reason: "body", Err: err}
	}
	if i := slices.Index(r.seen, false); i >= 0 {
		return &AnswerError{Status: statusOK, Reason: fmt.Sprintf("id %d is missing", ids[i])}
	}
	return nil
}

func (r *reading) document(doc codec.Value) error {
	if err := doc.Expect(codec.Object); err != nil {
		return err
	}
	hasMembers := false
	for key, v := range doc.Members() {
		switch string(key) {
		case "members":
			hasMembers = true
			if err := r.members(v); err != nil {
				return fmt.Errorf("members%w", err)
			}
		case "none":
			if err := r.none(v); err != nil {
				return fmt.Errorf("none%w", err)
			}
		}
	}
	if !hasMembers {
		return errors.New("members is missing")
	}
	return nil
}

func (r *reading) members(list codec.Value) error {
	if err := list.Expect(codec.Array); err != nil {
		return fmt.Errorf(": %w", err)
	}
	i := 0
	for v := range list.Elements() {
		if err := r.member(v); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		i++
	}
	return nil
}

func (r *reading) none(list codec.Value) error {
	if err := list.Expect(codec.Array); err != nil {
		return fmt.Errorf(": %w", err)
	}
	i := 0
	for v := range list.Elements() {
		id, err := v.Int64()
		if err == nil {
			err = r.account(id)
		}
		if err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		i++
	}
	return nil
}

func (r *reading) member(v codec.Value) error {
	if err := v.Expect(codec.Object); err != nil {
		return err
	}
	const hasID, hasLevel, hasPoints = 1, 2, 4
	var (
		id  int64
		m   users.Member
		has int
		err error
	)
	for key, field := range v.Members() {
		switch string(key) {
		case "id":
			has |= hasID
			id, err = field.Int64()
		case "level":
			has |= hasLevel
			m.Level, err = level(field)
		case "points":
			has |= hasPoints
			m.Points, err = field.Int64()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	for i, name := range []string{"id", "level", "points"} {
		if has&(1<<i) == 0 {
			return fmt.Errorf("%s is missing", name)
		}
	}
	if err := r.account(id); err != nil {
		return err
	}
	r.found[id] = m
	return nil
}

func level(v codec.Value) (string, error) {
	text, err := v.Bytes()
	if err != nil {
		return "", err
	}
	if len(text) == 0 || len(text) > MaxLevel {
		return "", fmt.Errorf("%d bytes, want 1 to %d", len(text), MaxLevel)
	}
	return string(text), nil
}

// account notes that the answer names id.
func (r *reading) account(id int64) error {
	i, asked := slices.BinarySearch(r.ids, id)
	if !asked {
		return fmt.Errorf("id %d was not asked for", id)
	}
	if r.seen[i] {
		return fmt.Errorf("id %d comes twice", id)
	}
	r.seen[i] = true
	return nil
}
