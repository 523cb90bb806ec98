package users

import (
	"context"
	"errors"
	"fmt"
)

// Create stores a new user and answers it as read back, with its id. It returns a
// *FieldError for bad input, ErrKeyReused, the error of ctx, or ErrUnavailable, which may
// be ErrUnknownOutcome too. An id other than zero beside an error means that the user is
// stored, but what is missing is said by the error: its attributes, the news of it to
// others (both ErrUnknownOutcome), or only the answer.
func (s *Service) Create(ctx context.Context, u NewUser) (*Fragment, int64, error) {
	if err := u.Validate(); err != nil {
		return nil, 0, err
	}
	var attribute func(context.Context, int64) error
	if s.attributing != nil && len(u.Attributes) > 0 {
		if err := s.attributesReady(ctx); err != nil {
			return nil, 0, err
		}
		attribute = func(ctx context.Context, id int64) error { return s.attributeNew(ctx, id, &u) }
	}
	var id int64
	stored := false
	err := s.write(ctx, &id, func(ctx context.Context) (err error) {
		id, err = s.rows.Create(ctx, u)
		stored = err == nil
		return err
	}, attribute)
	if err != nil {
		if !stored {
			id = 0
		}
		return nil, id, err
	}
	f, err := s.readBack(ctx, id)
	return f, id, err
}

// Update changes what p names and answers the user as read back. The empty patch
// changes nothing. It returns a *FieldError for bad input, ErrNotFound, the error of
// ctx, or ErrUnavailable; after the last the change may have been stored, and
// ErrUnknownOutcome says that this could not be found out. ErrStored says that only the
// answer is missing.
func (s *Service) Update(ctx context.Context, id int64, p Patch) (*Fragment, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.Empty() {
		return s.readOne(ctx, id)
	}
	var attribute func(context.Context, int64) error
	if s.attributing != nil && p.Attributes != nil {
		if err := s.attributesReady(ctx); err != nil {
			return nil, err
		}
		attribute = func(ctx context.Context, id int64) error { return s.putAttributes(ctx, id, *p.Attributes) }
	}
	err := s.write(ctx, &id, func(ctx context.Context) error { return s.rows.Update(ctx, id, p) }, attribute)
	if err != nil {
		return nil, err
	}
	f, err := s.readBack(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound) && attribute != nil:
		// Deleted meanwhile by somebody else, maybe before the attributes were put.
		err = errors.Join(err, s.dropAttributes(context.WithoutCancel(ctx), id))
	case err != nil && !errors.Is(err, ErrNotFound):
		err = fmt.Errorf("%w: %w", ErrStored, err)
	}
	return f, err
}

// Delete removes a user and all that belongs to it. Errors are as those of Update. If the
// attributes could not be removed, a second Delete, which answers ErrNotFound, does it.
func (s *Service) Delete(ctx context.Context, id int64) error {
	var attribute func(context.Context, int64) error
	if s.attributing != nil {
		if err := s.attributesReady(ctx); err != nil {
			return err
		}
		attribute = s.dropAttributes
	}
	return s.write(ctx, &id, func(ctx context.Context) error { return s.rows.Delete(ctx, id) }, attribute)
}

// write stores in Rows, and then, if attribute is not nil, in the AttributeWriter.
// Whatever came of it, the caches forget the id before the caller hears: an error does
// not prove that nothing was stored, and after ErrNotFound none of them may answer a
// user. That is deferred, because a source may end the goroutine. Only what did not get
// to Rows has changed nothing for sure.
func (s *Service) write(ctx context.Context, id *int64, store func(context.Context) error, attribute func(context.Context, int64) error) (err error) {
	sent := false
	defer func() {
		if !sent {
			return
		}
		if removal := s.removed(ctx, *id); err == nil {
			err = removal
		}
	}()
	_, err = ask(ctx, s.sqlWrites, 0, func(ctx context.Context) (struct{}, error) {
		sent = true
		return struct{}{}, store(ctx)
	})
	if attribute == nil || err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err != nil {
		attribute = s.dropAttributes // there is no user; what it may have left behind goes
	}
	// The caller may leave now; half a write would help nobody.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 2*s.attributesWrites.guard.timeout, errSourceTimeout)
	defer cancel()
	if err := attribute(ctx, *id); err != nil {
		return unknownOutcome("attributes", err)
	}
	return err
}

// putAttributes and dropAttributes may be repeated: they say what is to be, not what is
// to change.
func (s *Service) putAttributes(ctx context.Context, id int64, attrs []Attribute) error {
	_, err := read(ctx, s.attributesWrites, 0, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.attributing.PutAttributes(ctx, id, attrs)
	})
	return err
}

func (s *Service) dropAttributes(ctx context.Context, id int64) error {
	_, err := read(ctx, s.attributesWrites, 0, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.attributing.DropAttributes(ctx, id)
	})
	return err
}

// removed has all caches forget id: this one, the shared one, and those of others. A load
// may read the older user from the shared cache until that has dropped it, so this one
// forgets twice. The id 0 is nobody's.
func (s *Service) removed(ctx context.Context, id int64) (err error) {
	if id == 0 {
		return nil
	}
	sent := true
	defer func() {
		var untold error
		if !sent { // or the others would read the older user there again
			untold = s.others.tell(ctx, sharedLags)
		}
		if untold == nil {
			untold = s.others.tell(ctx, id)
		}
		if err == nil {
			err = untold
		}
	}()
	s.flights.void(id)
	if s.shared != nil {
		defer s.flights.void(id)
		sent = false // stands if the cache ends this goroutine
		sent, err = s.shared.void(ctx, id)
	}
	return err
}

// attributesReady returns an error if attributes cannot be written now.
func (s *Service) attributesReady(ctx context.Context) (err error) {
	src := s.attributesWrites
	if src.guard.open() {
		return unavailable(src.name, ErrBreakerOpen)
	}
	defer func() {
		if p := recover(); p != nil {
			err = unavailable(src.name, panicError(p))
		}
	}()
	if err = s.attributing.Ready(ctx); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unavailable(src.name, err)
}

// attributeNew writes the attributes of a user that was just created, or was created by
// an earlier attempt under the same key, which may have stopped before this. What was
// written since then stays: the attributes are stored only where there are none.
func (s *Service) attributeNew(ctx context.Context, id int64, u *NewUser) error {
	if u.Key == "" {
		return s.putAttributes(ctx, id, u.Attributes)
	}
	rows, err := read(ctx, s.sqlSource, 0,
		func(ctx context.Context) ([]User, error) { return s.rows.Users(ctx, []int64{id}) })
	if err != nil {
		return err
	}
	if len(rows) != 1 || !rows[0].UpdatedAt.Equal(rows[0].CreatedAt) {
		return nil // nor where somebody has removed them
	}
	_, err = read(ctx, s.attributesWrites, 0, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.attributing.AddAttributes(ctx, id, u.Attributes)
	})
	return err
}

// readBack answers what a write has stored. The write is done, so a caller whose
// context ends meanwhile still gets its answer; only the load's own timeout ends it.
func (s *Service) readBack(ctx context.Context, id int64) (*Fragment, error) {
	return s.readOne(context.WithoutCancel(ctx), id)
}

func (s *Service) readOne(ctx context.Context, id int64) (*Fragment, error) {
	b := Batch{IDs: []int64{id}}
	if err := s.Load(ctx, &b); err != nil {
		return nil, err
	}
	if b.Fragments[0].Missing() {
		return nil, ErrNotFound
	}
	return b.Fragments[0], nil
}
