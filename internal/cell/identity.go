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
const protocol = 2

// The descriptors of a cell.
const (
	controlFD       = 3
	firstListenerFD = 4
)

// identity is the value of identityEnv.
type identity struct {
	Protocol  int          `json:"protocol"`
	Index     int          `json:"index"`
	Of        int          `json:"of"`
	CPUs      affinity.Set `json:"cpus"`
	Memory    affinity.Set `json:"memory"`
	Share     float64      `json:"share"`
	Listeners int          `json:"listeners"`
}

// environ returns the variable for a spec.
func (s Spec) environ(of int) (string, error) {
	text, err := json.Marshal(identity{
		Protocol: protocol, Index: s.Index, Of: of,
		CPUs: s.Placement.CPUs, Memory: s.Placement.Memory, Share: s.Share, Listeners: len(s.Listeners),
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
	if id.Index < 0 || id.Index >= id.Of || id.Listeners < 0 {
		return id, true, fmt.Errorf("read %s: cell %d of %d with %d listeners", identityEnv, id.Index, id.Of, id.Listeners)
	}
	return id, true, nil
}
