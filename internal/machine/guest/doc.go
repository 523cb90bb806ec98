// Package guest is what runs inside the machines of package machine: tests of the
// server, behind the build tag numa, in a binary that is also the machine's init.
//
// As process 1 the binary mounts what a Linux program expects, brings the loopback
// interface up, and runs itself once more for the tests. It reaps every process that
// loses its parent, and when the tests have ended it prints their exit status and
// powers the machine off. It must never run on a real machine as process 1.
//
// A test has the machine for itself: fixed ports, all CPUs, all cgroups. It leaves no
// server process behind; the next one would fail. Which machine a test is for is said
// where it is, and chosen in the list of package machine.
package guest
