// Package machine boots computers that are not there: emulated ones with eight CPUs
// on several NUMA nodes, on which the server is tested as a whole.
//
// make test-numa runs TestMachines of this package, behind the build tag numa. It
// builds the server and the tests of package guest, packs both into an initramfs
// ([Archive]), boots Debian's kernel ([Kernel]) with it on each [Machine], as many at
// once as go test -parallel allows, and shows their consoles, each line after the
// machine's name. The guest's test binary is init there (see its TestMain); it runs the
// server with many flags and looks at its processes from outside: masks, memory
// policies, where pages are, which cell answers whom, what survives a kill.
//
// Nothing is left out in silence. TestMachines holds the list of tests for each
// machine, and fails if one of them did not print its PASS, if the machine did not
// come to its end, or if a test of package guest is in no list. A skipped test has not
// passed. What is missing on the host fails too, in one line that says what to install.
//
// # The machines
//
// qemu translates each instruction (TCG); KVM is not asked for. The CPUs share those
// of the host, so nothing here may depend on speed: tests wait for conditions, and the
// bounds of the waits are for a host that is busy with something else. A machine needs
// about 800 MiB of memory and boots in a few seconds.
//
// The kernel is the package linux-image-cloud-amd64's. Only its image is kept, in
// pinion/kernel in the user's cache directory: everything that is needed is built in.
// To test on a newer one, remove that directory, or name the file of any kernel in
// MACHINE_KERNEL.
package machine
