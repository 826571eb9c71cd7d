package setup

import (
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
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

// OpenViewer prints a one-time link into the viewer of the server that is set, and on a terminal opens it in a browser.
func OpenViewer(ctx context.Context, a *show.App, c config.Config) error {
	link, err := loginLink(ctx, c)
	switch {
	case remote.Is(err, remote.CodeNoReading):
		return control.Failed(c.ServerURL+" has no viewer", "`ccship list` and `ccship show` read what is on disk")
	case err != nil:
		return err
	}
	if err := a.Print(link.URL + "\n"); err != nil {
		return err
	}
	a.Say("it logs in one browser, until %s", link.Until.Local().Format("15:04"))
	if _, terminal := term.Columns(a.Stdout); !terminal {
		return nil
	}
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return fmt.Errorf("make state folder: %w", err)
	}
	return openBrowser(ctx, Home{Dir: c.StateDir}, link.URL)
}

// linkTime is how long a server may take to make a link.
const linkTime = 30 * time.Second

// Reader returns the reading API of the server that is set.
func Reader(c config.Config) (*remote.Client, error) {
	base, name, err := outbox.NormalizeURL(c.ServerURL)
	if err != nil {
		return nil, err
	}
	return remote.New(base, name, c.APIKey, "ccship/"+c.Version), nil
}

// loginLink asks the server that is set for a one-time link into its pages.
func loginLink(ctx context.Context, c config.Config) (remote.LoginLink, error) {
	server, err := Reader(c)
	if err != nil {
		return remote.LoginLink{}, err
	}
	defer server.HTTP.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	return server.LoginLink(ctx)
}

// ownLink is loginLink for the server of `ccship up`. Every user of this machine can listen on its port: it proves that
// it runs for this one before it is shown the key.
func ownLink(ctx context.Context, c config.Config) (remote.LoginLink, error) {
	asking, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	if err := protocol.AskSameHost(asking, c.ServerURL); err != nil {
		return remote.LoginLink{}, err
	}
	return loginLink(ctx, c)
}

// awaitIndex waits until the server that is set shows what it has, so that the next command finds it.
func awaitIndex(ctx context.Context, a *show.App, c config.Config) {
	server, err := Reader(c)
	if err != nil {
		return
	}
	defer server.HTTP.CloseIdleConnections()
	ask := func(ctx context.Context) (left, all int64, err error) { return remote.Indexing(ctx, server) }
	if percent, ok := a.AwaitIndex(ctx, ask); ok && percent < 100 {
		a.Say("the server is still indexing (%d %%); lists and search show the rest a little later", percent)
	}
}

// Guard runs a program, args[0], that ends when the other end of its standard input is closed, which the system does
// when the process that holds it dies, however it dies. `ccship up` uses it where the system cannot tie a child's life
// to its parent's.
func Guard(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // never waited for: the read ends with the parent or with this process
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that matters
		cancel()
	}()
	child := exec.CommandContext(ctx, args[0], args[1:]...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.Cancel = func() error { return askToEnd(child.Process) }
	child.WaitDelay = farewell
	if err := child.Run(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
