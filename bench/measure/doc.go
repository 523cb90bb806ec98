// Package measure starts servers on CPUs of their own, puts load on them, and reads what
// that cost: the CPU time and the memory of all their processes.
//
// The CPU time is the scheduler's own count in nanoseconds, not the ticks of
// /proc/PID/stat, so a second is enough to measure. It has everything in it that the
// server's threads did, the kernel's work in their system calls too. What the kernel does
// in interrupts is booked on whoever runs at that moment; on loopback a sender also does
// most of the receiver's work. Figures can therefore be compared with each other, not
// with those of a real network.
//
// It needs Linux, taskset (util-linux), and wrk.
package measure
