package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// Write replaces the file at path, whole or not at all: a run that is cut off keeps what
// was there. Each sample is a line of its own, so that two files can be compared.
func (r *Run) Write(path string) error {
	r.Version = Version
	samples := r.Samples
	r.Samples = nil
	head, err := json.MarshalIndent(r, "", "\t")
	r.Samples = samples
	if err != nil {
		return err
	}
	// The head ends in `"samples": null` and a brace, since samples are its last field.
	text := bytes.TrimSuffix(head, []byte("null\n}"))
	text = append(text, '[')
	for i := range samples {
		line, err := json.Marshal(&samples[i])
		if err != nil {
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, '\n'), line...)
	}
	text = append(text, "\n]}\n"...)
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
	if _, err = tmp.Write(text); err == nil {
		err = tmp.Chmod(0o644)
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
