package cell

import (
	"encoding/json"
	"fmt"
	"os"

	"pinion/affinity"
)

// identityEnv names the environment variable that makes a process a cell.
const identityEnv = "PINION_CELL"

// protocol changes with what the two ends of a control socket say to each other. A
// Config.Path that is not the supervisor's own program, or no longer is, finds out here
// if they differ in that; in nothing else.
const protocol = 3

// The descriptors of a cell. Its listeners follow its files.
const (
	controlFD   = 3
	firstFileFD = 4
)

// FilePath is where a cell finds file i of Config.Files: opening it there begins at the
// start of the file, also if that has no name any more.
func FilePath(i int) string { return fmt.Sprintf("/proc/self/fd/%d", firstFileFD+i) }

// identity is the value of identityEnv.
type identity struct {
	Protocol  int          `json:"protocol"`
	Index     int          `json:"index"`
	Of        int          `json:"of"`
	CPUs      affinity.Set `json:"cpus"`
	Memory    affinity.Set `json:"memory"`
	Share     float64      `json:"share"`
	Files     int          `json:"files"`
	Listeners int          `json:"listeners"`
}

// environ returns the variable for a spec.
func (s Spec) environ(of, files int) (string, error) {
	text, err := json.Marshal(identity{
		Protocol: protocol, Index: s.Index, Of: of,
		CPUs: s.Placement.CPUs, Memory: s.Placement.Memory, Share: s.Share, Files: files, Listeners: len(s.Listeners),
	})
	if err != nil {
		return "", fmt.Errorf("describe cell %d: %w", s.Index, err)
	}
	return identityEnv + "=" + string(text), nil
}

// takeIdentity reads the variable and removes it; ok is false if there is none.
func takeIdentity() (id identity, ok bool, err error) {
	text, ok := os.LookupEnv(identityEnv)
	if !ok {
		return id, false, nil
	}
	if err := os.Unsetenv(identityEnv); err != nil { // not for children of this process
		return id, true, fmt.Errorf("remove %s: %w", identityEnv, err)
	}
	if err := json.Unmarshal([]byte(text), &id); err != nil {
		return id, true, fmt.Errorf("read %s: %q: %w", identityEnv, text, err)
	}
	if id.Protocol != protocol {
		return id, true, fmt.Errorf("read %s: the supervisor speaks version %d, this program %d: was it replaced?",
			identityEnv, id.Protocol, protocol)
	}
	if id.Index < 0 || id.Index >= id.Of || id.Listeners < 0 || id.Files < 0 {
		return id, true, fmt.Errorf("read %s: cell %d of %d with %d files and %d listeners",
			identityEnv, id.Index, id.Of, id.Files, id.Listeners)
	}
	return id, true, nil
}
