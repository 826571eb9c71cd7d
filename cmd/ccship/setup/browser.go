package setup

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"runtime"

	"github.com/ccship/ccship/internal/sys"
)

// pageName is the file in the folder of `ccship up` that leads a browser to a one-time link.
const pageName = "open.html"

// openBrowser shows a one-time link in the user's browser. On a system without a desktop nothing happens. Every user of
// the machine can read the arguments of a process, so the link itself is in a file that only this user can read.
func openBrowser(ctx context.Context, home Home, link string) error {
	cmd := browser(ctx, home.File(pageName))
	if cmd == nil {
		return nil
	}
	page := fmt.Sprintf("<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"+
		"<meta http-equiv=\"refresh\" content=\"0;url=%[1]s\">\n<title>ccship</title>\n<a href=\"%[1]s\">Open ccship</a>\n",
		html.EscapeString(link))
	if err := sys.WriteFile(home.File(pageName), []byte(page)); err != nil {
		return fmt.Errorf("write page for the browser: %w", err)
	}
	return start(cmd)
}

// Browse shows an address without secrets in the user's browser. ok is false on a system without a desktop.
func Browse(ctx context.Context, address string) (ok bool, err error) {
	cmd := browser(ctx, address)
	if cmd == nil {
		return false, nil
	}
	return true, start(cmd)
}

// browser returns the process that opens a file or an address in the user's browser; nil where there is no desktop.
// Ctrl-C is not for it.
func browser(ctx context.Context, address string) *exec.Cmd {
	program := browserCommand(address)
	if program == nil {
		return nil
	}
	if _, err := exec.LookPath(program[0]); err != nil {
		return nil
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], program[1:]...)
	cmd.SysProcAttr = apart()
	return cmd
}

func start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open browser: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it may live as long as the browser; how it ends says nothing
	return nil
}

// browserCommand returns the command for that.
func browserCommand(path string) []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", path}
	case "darwin":
		return []string{"open", path}
	}
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return []string{"xdg-open", path}
}
