package cell

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// simulated is a hub and its cells, without processes and sockets, in the time of
// a synctest bubble.
type simulated struct {
	hub   *hub
	exit  time.Duration // from a cell's being killed to its end
	cells []*simulatedCell
	all   sync.WaitGroup
}

type simulatedCell struct {
	*announcements
	link *link
	// confirm says after how long a packet is confirmed of which the hub expects
	// that after so long; negative: never.
	confirm func(expected time.Duration) time.Duration
}

// simulate starts n cells.
func simulate(n int, timeout, exit time.Duration) *simulated {
	s := &simulated{hub: newTestHub(timeout), exit: exit}
	for i := range n {
		c := &simulatedCell{announcements: &announcements{out: newOutbox()}, link: newTestLink(i, nil)}
		c.link.kill = func() { s.all.Go(func() { s.end(c) }) }
		s.cells = append(s.cells, c)
		s.all.Go(func() {
			forward(c.out, func(p []byte) { s.hub.announce(c.link, p[1:]) })
		})
		s.all.Go(func() { s.obey(c) })
		s.hub.join(c.link)
	}
	return s
}

// forward passes on what is put into o.
func forward(o *outbox, pass func(p []byte)) {
	for {
		for m, ok := o.take(); ok; m, ok = o.take() {
			pass(m.packet)
		}
		select {
		case <-o.wake:
		case <-o.done:
			return
		}
	}
}

// obey does what the hub says to c.
func (s *simulated) obey(c *simulatedCell) {
	forward(c.link.out, func(p []byte) {
		switch kind(p[0]) {
		case kindConfirmed:
			c.confirmed()
		case kindRemovals, kindFlush:
			s.hub.mu.Lock()
			expected := time.Until(c.link.deadline)
			s.hub.mu.Unlock()
			if wait := c.confirm(expected); wait >= 0 {
				s.all.Go(func() {
					time.Sleep(wait)
					s.hub.confirm(c.link)
				})
			}
		}
	})
}

// end is the end of a process that was killed.
func (s *simulated) end(c *simulatedCell) {
	time.Sleep(s.exit)
	s.hub.leave(c.link)
	c.link.out.close()
	c.out.close()
}

// close ends everything.
func (s *simulated) close() {
	for _, c := range s.cells {
		s.hub.bye(c.link)
		s.hub.leave(c.link)
		c.link.out.close()
		c.out.close()
	}
	s.all.Wait()
}

// announce measures what Announce takes c; it returns 0 if c ends first.
func (c *simulatedCell) announce(id int64) time.Duration {
	began := time.Now()
	select {
	case <-c.add(id).confirmed:
		return time.Since(began)
	case <-c.out.done:
		return 0
	}
}

const (
	boundTimeout = 2 * time.Second
	boundExit    = 300 * time.Millisecond
	// longest is what the documentation promises: two packets of one's own, one
	// after the other, each 5/4 of the timeout, and the end of two cells.
	longest = boundTimeout*5/2 + 2*boundExit
)

// TestLongestAnnounce makes the longest wait there is: each of two packets comes to
// a cell right after another cell's, which is confirmed at the last moment.
func TestLongestAnnounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(3, boundTimeout, 0)
		defer s.close()
		announcer, other, slow := s.cells[0], s.cells[1], s.cells[2]
		atOnce := func(time.Duration) time.Duration { return 0 }
		announcer.confirm, other.confirm = atOnce, atOnce
		slow.confirm = func(expected time.Duration) time.Duration { return expected - 1 }

		s.all.Go(func() { other.announce(1) }) // on its way to slow, until T
		synctest.Wait()
		s.all.Go(func() { announcer.announce(2) }) // waits for it, until 5/4 T
		synctest.Wait()
		took := make(chan time.Duration)
		go func() { took <- announcer.announce(3) }() // waits for that
		time.Sleep(boundTimeout*5/4 - 10)
		s.all.Go(func() { other.announce(4) }) // comes before it, until 9/4 T
		if got := <-took; got > longest || got < longest-2*boundExit-100 {
			t.Errorf("it took %v, want %v less a few ns", got, longest-2*boundExit)
		}
	})
}

// TestAnnounceIsBounded has cells that hang, or confirm at random or the last moment,
// announce at random.
func TestAnnounceIsBounded(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { boundedAnnounce(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func boundedAnnounce(t *testing.T, random *rand.Rand) {
	s := simulate(2+random.IntN(4), boundTimeout, boundExit)
	defer s.close()
	for _, c := range s.cells {
		hangs, slow := random.IntN(10) == 0, random.IntN(2) == 0
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		c.confirm = func(expected time.Duration) time.Duration {
			switch {
			case hangs && own.IntN(4) == 0:
				return -1
			case slow:
				return expected - 1
			}
			return time.Duration(own.Int64N(int64(expected)))
		}
	}
	for _, c := range s.cells {
		for id := range int64(10) {
			at := time.Duration(random.Int64N(int64(5 * boundTimeout)))
			s.all.Go(func() {
				time.Sleep(at)
				if took := c.announce(id); took > longest {
					t.Errorf("an announcement took %v, the bound is %v", took, longest)
				}
			})
		}
	}
	time.Sleep(20 * boundTimeout)
}
