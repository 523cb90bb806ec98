// Package affinity decides on which CPUs this process runs and how many of
// them the Go scheduler may use at once, and says why.
//
// # Lifecycle
//
// Nothing happens at import. A main function calls, as early as it can and
// in this order:
//
//  1. [ParseSet] on the list it was given, or [Allowed] if it was given none;
//  2. [Reexec], which gives the mask to this thread and starts the program
//     again in place, so that the Go runtime counts the right CPUs and every
//     thread ever made inherits the mask;
//  3. [Apply], which sets GOMAXPROCS from the mask and the cgroup quota, and
//     returns a [Decision] to log.
//
// A library inside somebody else's process cannot start that process again;
// it calls [Pin] in place of [Reexec].
//
// # Caveats
//
//   - Linux keeps a mask for each thread, not for a process, and a new thread
//     gets the mask of the thread that made it. A Go program has several
//     threads before main runs, so sched_setaffinity(2) on one is never
//     enough.
//   - [runtime.NumCPU] is counted once, before main. [Pin] cannot change it;
//     [Reexec] can.
//   - [Apply] sets GOMAXPROCS to a number, which ends the runtime's own
//     updates from the cgroup; [runtime.SetDefaultGOMAXPROCS] starts them
//     again.
//   - A limit on a cgroup above the root of this process's cgroup mount or
//     namespace cannot be seen from inside, and binds all the same.
//   - A cpuset may be changed while a process runs. The kernel then rewrites
//     the masks of its threads; this package reads them when called and does
//     not watch them.
//
// # Systems
//
// CPU sets and reading limits work everywhere. [Allowed], [Pin] and [Reexec]
// need Linux; elsewhere they return an error that wraps
// [errors.ErrUnsupported].
package affinity
