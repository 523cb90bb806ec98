package cell

import "time"

// restarts applies a Restart to one cell.
type restarts struct {
	rule Restart
	wait time.Duration // the last one
	ends []time.Time   // those within the window
}

// after notes that the cell, which had lived that long, ended at now. It returns how
// long to wait before it is started again; ok is false when it ended too often.
func (r *restarts) after(lived time.Duration, now time.Time) (wait time.Duration, ok bool) {
	recent := r.ends[:0]
	for _, end := range r.ends {
		if now.Sub(end) < r.rule.Window {
			recent = append(recent, end)
		}
	}
	r.ends = append(recent, now)
	if len(r.ends) > max(r.rule.Limit, 0) {
		return 0, false
	}
	if r.wait == 0 || lived >= r.rule.Stable {
		r.wait = r.rule.Min
	} else {
		r.wait = min(2*r.wait, r.rule.Max)
	}
	return r.wait, true
}
