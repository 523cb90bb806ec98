package affinity

import "errors"

// run is called on the Launcher's thread.
func (c launch) run() (err error) {
	allowed, err := Allowed()
	if err != nil {
		return err
	}
	if err := check(c.placement.CPUs, allowed); err != nil {
		return err
	}
	restore, err := place(c.placement)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	return c.start()
}
