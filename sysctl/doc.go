// Package sysctl holds kernel profiles for machines and containers that run
// pinion, in the format of sysctl.conf(5):
//
//   - bare-metal.conf for a machine of its own;
//   - container.conf, with the keys a network namespace has for itself.
//
// Each key stands below a comment of four fields, unit, default, why and
// source, where the default is the kernel's and the source its documentation
// or a manual page. Each file ends with the well-known keys it leaves out and
// the reason.
//
// # Caveats
//
// A profile is for an operator to read and apply; pinion neither reads nor
// sets anything of it. The tests hold the files to their form, and on Linux
// to the running kernel.
package sysctl
