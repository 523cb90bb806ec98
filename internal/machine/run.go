package machine

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
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
	// It has no processes below it, and stays in our process group: Ctrl-C ends both.
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout // qemu's own complaints, in their place
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	for console := bufio.NewReader(out); err == nil; {
		var text string
		if text, err = console.ReadString('\n'); text != "" {
			line(strings.TrimRight(text, "\r\n"))
		}
	}
	err = cmd.Wait() // what ended the loop was its end
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return nil
}
