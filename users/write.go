package users

import "context"

// Create stores a new user and answers it as read back, with its id. It returns a
// *FieldError for bad input, the error of ctx, or ErrUnavailable. An id other than
// zero beside an error means that the user is stored, but could not be read back.
func (s *Service) Create(ctx context.Context, u NewUser) (*Fragment, int64, error) {
	if err := u.Validate(); err != nil {
		return nil, 0, err
	}
	id, err := s.create(ctx, u)
	if err != nil {
		return nil, 0, err
	}
	f, err := s.readBack(ctx, id)
	return f, id, err
}

// create stores a new user. Somebody may have asked for the id before it was given out,
// here or elsewhere, so "not there" may be cached or on its way.
func (s *Service) create(ctx context.Context, u NewUser) (id int64, err error) {
	defer func() { s.others.tell(ctx, id) }()
	return ask(ctx, &s.sqlSource, 0, func(ctx context.Context) (id int64, err error) {
		defer func() { s.flights.void(id) }()
		return s.rows.Create(ctx, u)
	})
}

// Update changes what p names and answers the user as read back. The empty patch
// changes nothing. It returns a *FieldError for bad input, ErrNotFound, the error of
// ctx, or ErrUnavailable; after the last the change may have been stored.
func (s *Service) Update(ctx context.Context, id int64, p Patch) (*Fragment, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.Empty() {
		return s.readOne(ctx, id)
	}
	err := s.change(ctx, id, func(ctx context.Context) error { return s.rows.Update(ctx, id, p) })
	if err != nil {
		return nil, err
	}
	return s.readBack(ctx, id)
}

// Delete removes a user. It returns ErrNotFound, the error of ctx, or ErrUnavailable.
func (s *Service) Delete(ctx context.Context, id int64) error {
	return s.change(ctx, id, func(ctx context.Context) error { return s.rows.Delete(ctx, id) })
}

// change runs a write to a known id. Whatever came of it, the cache forgets the id
// before the caller hears, and so do the other caches: an error does not prove that
// nothing was stored, and after ErrNotFound none of them may answer a user. Both are
// deferred, because a source may end the goroutine.
func (s *Service) change(ctx context.Context, id int64, write func(context.Context) error) error {
	defer s.others.tell(ctx, id)
	_, err := ask(ctx, &s.sqlSource, 0, func(ctx context.Context) (struct{}, error) {
		defer s.flights.void(id)
		return struct{}{}, write(ctx)
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
