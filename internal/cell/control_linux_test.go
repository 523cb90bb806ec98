package cell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// pair returns both ends of a control socket.
func pair(t *testing.T) (supervisor, cell *control) {
	t.Helper()
	a, b, err := controlPair()
	if err != nil {
		t.Fatal(err)
	}
	if supervisor, err = newControl(a, false); err != nil {
		t.Fatal(err)
	}
	if cell, err = newControl(b, true); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*control{supervisor, cell} {
		if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.conn.Close() })
	}
	return supervisor, cell
}

func TestPackets(t *testing.T) {
	ids := make([]byte, maxIDs*idSize)
	for name, c := range map[string]struct {
		packet []byte
		ok     bool
	}{
		"bare":         {packet(kindReady), true},
		"one id":       {appendID(packet(kindAnnounce), -1), true},
		"full":         {append(packet(kindRemovals), ids...), true},
		"too long":     {append(append(packet(kindRemovals), ids...), ids[:idSize]...), false},
		"half an id":   {append(packet(kindAnnounce), 1, 2, 3), false},
		"no id":        {packet(kindAnnounce), false},
		"ids for none": {appendID(packet(kindReady), 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			if err := a.send(c.packet, nil); err != nil {
				t.Fatal(err)
			}
			k, ids, file, err := b.receive()
			if !c.ok {
				if !errors.Is(err, errPacket) {
					t.Errorf("receive() = %v", err)
				}
				return
			}
			if err != nil || k != kind(c.packet[0]) || !bytes.Equal(ids, c.packet[1:]) || file != nil {
				t.Errorf("receive() = %d, %d bytes, %v, %v", k, len(ids), file, err)
			}
		})
	}
}

// TestLastWords: what was sent before the end arrives, also when the sender left
// something unread, which is told as an error first.
func TestLastWords(t *testing.T) {
	a, b := pair(t)
	if err := a.send(packet(kindConfirmed), nil); err != nil { // never read
		t.Fatal(err)
	}
	if err := b.send(appendID(packet(kindAnnounce), 7), nil); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.Close(); err != nil {
		t.Fatal(err)
	}
	k, ids, _, err := a.receive()
	if err != nil || k != kindAnnounce {
		t.Fatalf("receive() = %d, %v", k, err)
	}
	eachID(ids, func(id int64) {
		if id != 7 {
			t.Errorf("id %d", id)
		}
	})
	if _, _, _, err := a.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("receive() at the end = %v", err)
	}
	if err := a.send(packet(kindReady), nil); err == nil {
		t.Error("writing to a closed end succeeded")
	}
}

// TestDescriptorsToSupervisor: it takes none, and those sent are closed.
func TestDescriptorsToSupervisor(t *testing.T) {
	a, b := pair(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // of a test
	if err := b.send(packet(kindReady), writer); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if k, _, file, err := a.receive(); err != nil || k != kindReady || file != nil {
		t.Errorf("receive() = %d, %v, %v", k, file, err)
	}
	if n, err := reader.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the descriptor is still open: %d, %v", n, err)
	}
}

func TestIdentity(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                              "unexpected end",
		`{"protocol":0,"index":0,"of":1}`:                "was it replaced",
		`{"protocol":1,"index":0,"of":1}`:                "version 1, this program 3",
		`{"protocol":3,"index":2,"of":2}`:                "cell 2 of 2",
		`{"protocol":3,"index":-1,"of":2}`:               "cell -1 of 2",
		`{"protocol":3,"index":0,"of":1,"listeners":-1}`: "-1 listeners",
		`{"protocol":3,"index":0,"of":1,"cpus":"x"}`:     "x",
	} {
		t.Setenv(identityEnv, text)
		m, err := Inherited()
		if m != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", text, m, err, want)
		}
		if _, set := os.LookupEnv(identityEnv); set {
			t.Errorf("%s: the variable is still set", text)
		}
	}
	if m, err := Inherited(); m != nil || err != nil {
		t.Errorf("in a process that is no cell: %v, %v", m, err)
	}
}

// TestMemberWaitsToBeWelcome: what it caches before could be stale for ever.
func TestMemberWaitsToBeWelcome(t *testing.T) {
	for name, c := range map[string]struct {
		then func(supervisor *control) error
		want error
	}{
		"welcome": {func(s *control) error { return s.send(packet(kindWelcome), nil) }, nil},
		"closed":  {func(s *control) error { return s.conn.Close() }, ErrNoSupervisor},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, err := controlPair()
			if err != nil {
				t.Fatal(err)
			}
			supervisor, err := newControl(a, false)
			if err != nil {
				t.Fatal(err)
			}
			defer supervisor.conn.Close() //nolint:errcheck // of a test
			done := make(chan error, 1)
			go func() {
				m, err := newMember(identity{Of: 1}, b, func() {})
				if m != nil {
					m.Close()
				}
				done <- err
			}()
			if k, _, _, err := supervisor.receive(); err != nil || k != kindHello {
				t.Fatalf("receive() = %d, %v", k, err)
			}
			select {
			case err := <-done:
				t.Fatalf("it did not wait: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			if err := c.then(supervisor); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("newMember() = %v, want %v", err, c.want)
			}
		})
	}
}

// newTestMember returns a Member whose supervisor is the test.
func newTestMember(t *testing.T) (m *Member, supervisor *control, lost <-chan struct{}) {
	t.Helper()
	a, b, err := controlPair()
	if err != nil {
		t.Fatal(err)
	}
	if supervisor, err = newControl(a, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = supervisor.conn.Close() })
	if err := supervisor.send(packet(kindWelcome), nil); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	m, err = newMember(identity{Of: 2}, b, func() { close(ended) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if k, _, _, err := supervisor.receive(); err != nil || k != kindHello {
		t.Fatalf("the first packet of a cell: %d, %v", k, err)
	}
	return m, supervisor, ended
}

func TestMemberLosesSupervisor(t *testing.T) {
	m, supervisor, lost := newTestMember(t)
	announced := make(chan error)
	go func() { announced <- m.Announce(t.Context(), 1) }()
	if k, _, _, err := supervisor.receive(); err != nil || k != kindAnnounce {
		t.Fatalf("receive() = %d, %v", k, err)
	}
	_ = supervisor.conn.Close()
	_ = m.control.conn.SetDeadline(time.Now().Add(patience))
	if err := <-announced; !errors.Is(err, ErrNoSupervisor) {
		t.Errorf("Announce() = %v", err)
	}
	select {
	case <-lost:
	case <-time.After(patience):
		t.Fatal("the process goes on")
	}
	for name, f := range map[string]func() error{
		"Ready": m.Ready, "Draining": m.Draining,
		"Announce": func() error { return m.Announce(t.Context(), 2) },
	} {
		if err := f(); !errors.Is(err, ErrNoSupervisor) {
			t.Errorf("%s() = %v", name, err)
		}
	}
	if _, err := m.Admin().Accept(); !errors.Is(err, os.ErrClosed) && !strings.Contains(err.Error(), "closed") {
		t.Errorf("Accept() = %v", err)
	}
}

func TestMemberCloseIsNoLoss(t *testing.T) {
	m, _, lost := newTestMember(t)
	m.Close()
	m.Close()
	select {
	case <-lost:
		t.Error("a closed Member ends its process")
	default:
	}
	if err := m.Announce(t.Context(), 2); !errors.Is(err, ErrNoSupervisor) {
		t.Errorf("Announce() = %v", err)
	}
}

// TestMemberSaysBye unless there may be something that the others have not heard of.
func TestMemberSaysBye(t *testing.T) {
	for name, c := range map[string]struct {
		announce, confirm, bye bool
	}{
		"wrote nothing": {bye: true},
		"confirmed":     {announce: true, confirm: true, bye: true},
		"unconfirmed":   {announce: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, supervisor, _ := newTestMember(t)
			announced := make(chan error, 1)
			if c.announce {
				go func() { announced <- m.Announce(t.Context(), 1) }()
				if k, _, _, err := supervisor.receive(); err != nil || k != kindAnnounce {
					t.Fatalf("receive() = %d, %v", k, err)
				}
			}
			if c.confirm {
				if err := supervisor.send(packet(kindConfirmed), nil); err != nil {
					t.Fatal(err)
				}
				if err := <-announced; err != nil {
					t.Fatal(err)
				}
			}
			m.Close()
			k, _, _, err := supervisor.receive()
			if c.bye {
				if err != nil || k != kindBye {
					t.Errorf("the last word: %d, %v, want bye", k, err)
				}
				_, _, _, err = supervisor.receive()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v, want EOF", err)
			}
			if err := m.Announce(t.Context(), 2); !errors.Is(err, ErrNoSupervisor) {
				t.Errorf("Announce() after Close = %v", err)
			}
		})
	}
}

// TestMemberCloses also when the supervisor is stopped and its queue is full.
func TestMemberCloses(t *testing.T) {
	m, _, _ := newTestMember(t)
	if err := m.control.conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	err := error(nil)
	for err == nil {
		err = m.control.send(packet(kindReady), nil)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if err := m.control.conn.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Draining(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		m.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("it waits")
	}
}

// TestMemberFlushes: nothing is confirmed before it is done, and nothing overtakes.
func TestMemberFlushes(t *testing.T) {
	m, supervisor, _ := newTestMember(t)
	calls := make(chan string, 4)
	release := make(chan struct{})
	m.OnRemoval(func(id int64) { calls <- fmt.Sprint("remove ", id) })
	m.OnFlush(func() {
		<-release
		calls <- "flush"
	})
	confirmed := make(chan error, 3)
	go func() {
		for range 3 {
			k, _, _, err := supervisor.receive()
			if err == nil && k != kindConfirm {
				err = fmt.Errorf("kind %d", k)
			}
			confirmed <- err
		}
	}()
	for _, p := range [][]byte{appendID(packet(kindRemovals), 1), packet(kindFlush), appendID(packet(kindRemovals), 2)} {
		if err := supervisor.send(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-confirmed; err != nil {
		t.Fatal(err)
	}
	early := false
	select {
	case <-confirmed: //nolint:errcheck // whatever it is, it is early
		early = true
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if early {
		t.Fatal("confirmed before it was done")
	}
	for range 2 {
		if err := <-confirmed; err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"remove 1", "flush", "remove 2"} {
		if got := <-calls; got != want {
			t.Errorf("called %s, want %s", got, want)
		}
	}
}

// TestAnnouncementsGather: one packet is on its way at a time.
func TestAnnouncementsGather(t *testing.T) {
	m, supervisor, _ := newTestMember(t)
	const n = maxIDs + 10
	confirmed := make(chan error, n)
	for i := range int64(n) {
		go func() { confirmed <- m.Announce(t.Context(), i) }()
	}
	total, packets := 0, 0
	for total < n {
		k, ids, _, err := supervisor.receive()
		if err != nil || k != kindAnnounce {
			t.Fatalf("receive() = %d, %v", k, err)
		}
		total += len(ids) / idSize
		packets++
		if packets == 1 { // let the others gather
			eventually(t, "all have announced", func() bool {
				m.announcements.mu.Lock()
				defer m.announcements.mu.Unlock()
				waiting := 0
				for _, b := range m.announcements.waiting {
					waiting += len(b.packet) / idSize
				}
				return total+waiting == n
			})
		}
		if err := supervisor.send(packet(kindConfirmed), nil); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if err := <-confirmed; err != nil {
			t.Fatal(err)
		}
	}
	if packets > 3 {
		t.Errorf("%d packets for %d ids", packets, n)
	}
}
