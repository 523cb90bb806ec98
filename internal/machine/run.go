package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// Run boots m with the given kernel and initramfs, both files, and runs init, a
// file of the initramfs, with args. It calls line with each line of the console
// and returns when the machine has been powered off, for whatever reason: what it
// said tells success. The end of ctx kills it, and is then the error.
//
// args must not contain spaces or quotes, and fit the kernel's command line of
// 2,048 bytes together with a hundred of Run's own.
func (m Machine) Run(ctx context.Context, kernel, initramfs, init string, args []string, line func(string)) error {
	cmd := exec.CommandContext(ctx, Emulator, append(m.hardware(),
		"-kernel", kernel, "-initrd", initramfs, "-append", commandLine(init, args))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout // qemu's own complaints, in their place
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line(lines.Text()) // without the \r that a console puts before \n
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return nil
}
