package affinity

import "errors"

// place gives the calling thread, which must be locked to its goroutine, the
// mask and the memory policy of p. restore gives it back what it had. On an
// error it has what it had already.
func place(p Placement) (restore func() error, err error) {
	mask, err := threadMask(0)
	if err != nil {
		return nil, err
	}
	restore = func() error { return setThreadMask(0, mask) }
	if !p.Memory.Empty() {
		policy, err := threadPolicy()
		if err != nil {
			return nil, err
		}
		restore = func() error { return errors.Join(setThreadMask(0, mask), policy.set()) }
	}

	if err := p.take(); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// take may stop half-way on an error.
func (p Placement) take() error {
	if err := setThreadMask(0, p.CPUs); err != nil {
		return err
	}
	// The kernel takes CPUs outside the cpuset off a mask without a word.
	got, err := threadMask(0)
	if err != nil {
		return err
	}
	if !got.Equal(p.CPUs) {
		return &MaskError{Want: p.CPUs, Got: got}
	}
	if p.Memory.Empty() {
		return nil
	}
	return prefer(p.Memory)
}
