//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// asNobody takes a command's privileges away.
func asNobody(cmd *exec.Cmd) {
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
