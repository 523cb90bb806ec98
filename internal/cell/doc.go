// Package cell runs one program as several processes, its cells: a supervisor that
// serves nothing itself, and one child for each part of the machine.
//
// # Lifecycle
//
// The program starts twice. First as the supervisor: it opens the listening sockets
// of every cell, in the order of the cells, hands them to [New] and calls
// [Supervisor.Run], which starts the same program again for each cell. There
// [Inherited] returns a [Member] instead of nil. The child takes its listeners from
// it, sets [Member.OnRemoval] and [Member.OnFlush] before its cache has its first entry,
// serves, and calls [Member.Ready]. It ends at SIGTERM, and calls [Member.Close] last
// of all.
//
// Cell 0 is started alone, so that work that is done once (making a database) is
// done when the others start; they then start together. A cell that ends is started
// again, later and later if it keeps ending, and in the end [Supervisor.Run] gives
// up. Listening sockets belong to the supervisor: their order in a SO_REUSEPORT group
// stays what it was, and connections wait in their queues while their cell is down.
//
// # Protocol
//
// Each cell shares a SOCK_SEQPACKET pair with the supervisor, as descriptor 3; its
// files and then its listeners are 4 and up. A packet is one byte that says what it is, and for two of
// them ids of 8 bytes, little-endian.
//
//	cell                            supervisor
//	hello                 →                      the cell has no cache yet
//	                      ←         welcome      from here on it hears of removals
//	ready, draining       →
//	announce id…          →                      one at a time; later ids gather
//	                      ←         confirmed    every other cell has removed them
//	                      ←         removals id… one at a time; later ids gather
//	                      ←         flush        in place of removals: of everything
//	confirm               →                      removed
//	                      ←         stream       and a socket, by SCM_RIGHTS
//	bye                   →                      all it wrote has been announced
//
// Neither end ever stops reading because it has to write: each writes from a
// goroutine of its own, from a queue that the rule of one at a time keeps short. So
// cells that announce to each other at full speed cannot block each other.
//
// What runs in each cell and which one it is travels in the environment variable
// PINION_CELL, which [Inherited] removes.
//
// # A cell that dies
//
// A cell can be killed between the commit of a write and its announcement, and nobody
// else knows of what. So when the pair of a cell that had joined ends without a bye,
// every other cell is told to forget everything. It confirms that as it does a removal,
// or is killed. It is told before the dead cell is started again. The client of such a
// write had no answer, and for that short time others may still be given the older one.
//
// # How long an announcement takes
//
// A cell has Config.RelayTimeout to confirm a removal, counted from when the supervisor
// heard of it; but a quarter of that at least from when it was sent, since before that
// it may have waited for an earlier one to be confirmed. So within 5/4 RelayTimeout it is
// confirmed, or the cell is killed. An announcement may find another of its own cell on
// its way, and is passed on when that has been confirmed. So [Member.Announce] returns
// within 5/2 RelayTimeout. To this come
//
//   - the time that the kernel takes to end a process that is killed;
//   - 5/4 RelayTimeout for each 4,096 ids that wait in the same cell already, and a
//     quarter for each 4,096 that wait for another cell to confirm;
//   - the time for which the supervisor is stopped, after which it lets each cell have
//     RelayTimeout once more.
//
// # Caveats
//
//   - A cell that does not confirm a removal in time is killed: it might answer what
//     another cell has overwritten already. It counts as gone when the kernel has closed its
//     end of the pair, which is after its last thread has ended.
//   - That is the only way in which a cell that hangs is ended: by failing to confirm the
//     write of another. As long as there is none, one that answers nobody is left alone.
//     Health and readiness have to be watched from outside.
//   - A cell must end soon after [Member.Close], or is killed: it no longer hears of
//     removals.
//   - A child is killed by the kernel when the supervisor ends in whatever way
//     (PR_SET_PDEATHSIG, prctl(2)). The kernel forgets that for a file with
//     capabilities; so a cell also kills itself when its pair ends.
//   - The CPUs and the memory policy of a cell are those of the thread that forked
//     it; see affinity.Launcher. The signal above is sent when that thread ends.
//   - A stopped (SIGSTOP) supervisor relays nothing. An announcement then waits until
//     its context ends, which package users has it do after a time; the write, which is
//     committed, is answered 503.
//
// # Systems
//
// Supervision needs Linux. Elsewhere [Supervisor.Run] returns an error that wraps
// [errors.ErrUnsupported], and [Inherited] nil.
package cell
