// Package affinity decides on which CPUs a program runs, in how many
// processes, how many CPUs the Go scheduler of each may use at once, where its
// memory comes from and which of its listeners gets a connection; and says
// why.
//
// # Lifecycle of a main function
//
// Nothing happens at import. A main function calls, as early as it can and in
// this order:
//
//  1. [ParseList] on what it was given, and [List.In] with what is [Allowed];
//  2. [ReadTopology], whose [Topology.Check] says what is wrong with those
//     CPUs, and whose [Topology.Plan] divides them into cells;
//  3. for one cell: [Reexec], which gives the mask and the memory policy to
//     this thread and starts the program again in place, so that the Go
//     runtime counts the right CPUs and every thread ever made inherits both.
//     The restarted program comes the same way, and Reexec returns;
//  4. for several: a [Launcher], which starts a process for each that is in
//     its place from the beginning. The parent makes all listeners, attaches
//     the [Steering] to one, and hands them down;
//  5. in the process that serves: [Apply], with the CPUs and the share of its
//     cell, which sets GOMAXPROCS from these and the cgroup's quota, and
//     returns a [Decision] to log.
//
// Where [MemoryPolicy] returns an error for the memory of a placement, the
// placement goes without.
//
// # Lifecycle inside another program
//
// A library, as inside an edge process, cannot start that process again. It
// reads and plans like a main function, and then:
//
//   - calls [Pin] in place of [Reexec], if the process is its to pin. Memory
//     policies of threads that run already cannot be set. Without one, a page
//     comes from the node of the CPU that first writes to it, so the mask
//     does most of it;
//   - calls [Apply] if GOMAXPROCS is its to set, or [Decide] to learn how
//     many event loops are right;
//   - may attach a [Steering] to its own SO_REUSEPORT listeners, which
//     concerns nobody else's. It can [Detach] it as long as one of them is
//     open, to go on with the kernel's hash when the CPUs or the listeners
//     are no longer those it was made for. A server that steers until its end
//     need not.
//
// # Caveats of masks
//
//   - Linux keeps a mask for each thread, not for a process, and a new thread
//     gets the mask of the thread that made it. A Go program has several
//     threads before main runs, so sched_setaffinity(2) on one is never
//     enough.
//   - [runtime.NumCPU] is counted once, before main. [Pin] cannot change it;
//     [Reexec] can.
//   - A cpuset may be changed while a process runs. The kernel then rewrites
//     the masks of its threads; this package reads them when called and does
//     not watch them.
//
// # Caveats of quotas
//
//   - [Apply] sets GOMAXPROCS to a number, which ends the runtime's own
//     updates from the cgroup; [runtime.SetDefaultGOMAXPROCS] starts them
//     again.
//   - A limit on a cgroup above the root of this process's cgroup mount or
//     namespace cannot be seen from inside, and binds all the same.
//   - The kernel does not know of shares: they keep cells from having more
//     running threads than the quota feeds, not one cell from using up what
//     another leaves.
//
// # Caveats of memory policies
//
//   - A policy too belongs to a thread, is inherited by the threads and
//     processes made from it, and is kept by execve(2). No other thread or
//     process can set it.
//   - It counts when a page is first touched. What is there before stays
//     where it is, and the page cache is shared with those who filled it.
//   - It is a preference: a node that is full is passed over in silence;
//     numastat(8) tells. The kernel drops nodes that are outside the cpuset,
//     and refuses a policy of which none is left.
//   - Seccomp profiles of containers commonly refuse to set one.
//
// # Caveats of steering
//
//   - A listener is known by its number, which follows from the order in
//     which sockets began to listen. So all are opened by one process, in
//     order, and stay open as long as any serves. A descriptor that was handed
//     down, or dup(2)ed, is the same socket: a process that holds one may end
//     and be replaced, and the numbers stay.
//   - When a listener closes, the last of the group takes its number.
//     Connections that wait in its queue are reset, unless
//     net.ipv4.tcp_migrate_req is set.
//   - The CPU is the one on which the kernel works on the first packet. A
//     network card with one queue interrupts one CPU, and all connections go
//     to its target: there, steering is worse than the hash, unless RPS
//     spreads the packets. Queues, RPS and -cpus must agree for more than an
//     even spread. Later packets of a connection may come in elsewhere.
//   - Connections from loopback come in on the CPU of the client.
//   - A group is one address: one port on one address family. Each has to be
//     attached to.
//   - A socket of Multipath TCP, which is what [net.Listen] makes where the
//     kernel can, takes no program: see [net.ListenConfig.SetMultipathTCP].
//
// # Systems
//
// CPU sets and lists, topologies, plans and limits work everywhere, as far as
// there is anything to read. [Allowed], [Pin], [Reexec], [MemoryPolicy],
// [Launcher.Do], [Steering.Attach] and [Detach] need Linux; elsewhere they
// return an error that wraps [errors.ErrUnsupported]. [Executable] is
// [os.Executable] there.
package affinity
