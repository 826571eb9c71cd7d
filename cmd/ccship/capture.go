package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
)

// Exit codes of a command that did not run, as shells have them.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// longSocket is the length from which the path of a socket is too long for some system.
const longSocket = 100

func (a *app) captureCommand() *cobra.Command {
	var spool string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "capture [--] COMMAND [ARGUMENT…]",
		Short: "Run a command and deliver what it writes, without a service: containers, CI, scripts",
		Long: "Run a command, deliver conversations while it writes them, and wait at its end until the server has " +
			"everything. Exit code, input, output, terminal and signals are the command's. What the server lacks after " +
			"--wait is counted on standard error and stays in the spool: the next capture with that folder sends it. Where " +
			"a daemon delivers the same conversations already, capture waits for that one.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := positive("wait", wait); err != nil {
				return err
			}
			ctx, interrupt := context.WithCancel(cmd.Context())
			defer interrupt()
			c := a.newCapture(cmd.Context(), spool)
			code, err := passThrough(args, interrupt)
			signal.Ignore(syscall.SIGPIPE) // who closed stderr still gets the command's code
			if err != nil {
				a.Report(err)
			}
			c.finish(ctx, wait)
			if code != show.ExitOK {
				return show.SilentError{Code: code}
			}
			return nil
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&spool, "spool", "", "`folder` for what the server lacks; default: state_dir")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for the server at the end")
	return cmd
}

// capture delivers conversations while a command runs.
type capture struct {
	*app
	cfg   config.Config
	stop  func()           // stops the daemon and returns when it has ended
	short string           // folder of the socket, if the path of one in the spool is too long
	began map[string]int64 // sizes of the transcripts before the command ran

	mu     sync.Mutex
	holder string // socket of another daemon that delivers the same conversations; guarded by mu
	failed error  // why this one does not; guarded by mu
}

// newCapture starts a daemon, if it can. An error keeps nobody from working: it is reported at the end.
func (a *app) newCapture(ctx context.Context, spool string) *capture {
	c := &capture{app: a, stop: func() {}}
	if c.failed = c.configure(spool); c.failed != nil {
		return c
	}
	c.began = map[string]int64{}
	c.transcripts(func(path string, info fs.FileInfo) { c.began[path] = info.Size() })
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { c.deliver(ctx) })
	c.stop = func() {
		cancel()
		running.Wait()
		if c.short != "" {
			_ = os.RemoveAll(c.short)
		}
	}
	return c
}

// configure reads the configuration, with the spool as state folder and a socket in it, unless one was named.
func (c *capture) configure(spool string) (err error) {
	if c.cfg, err = c.Config(); err != nil {
		return err
	}
	given := map[string]string{}
	if spool != "" {
		if given["state_dir"], err = filepath.Abs(spool); err != nil {
			return err
		}
		c.cfg.StateDir = given["state_dir"]
	}
	if c.cfg.OriginOf("socket") == config.FromDefault {
		given["socket"] = filepath.Join(c.cfg.StateDir, "ccship.sock")
		if len(given["socket"]) > longSocket {
			if c.short, err = os.MkdirTemp("", "ccship-"); err != nil {
				return err
			}
			given["socket"] = filepath.Join(c.short, "s")
		}
	}
	c.cfg, err = c.cfg.With(given)
	return err
}

const (
	takeOver = 100 * time.Millisecond // how often a capture tries to deliver by itself while another daemon does
	ask      = 2 * time.Millisecond   // how often it looks for the socket of a daemon that starts
)

// deliver runs the daemon until ctx is done. While another one delivers, it tries again.
func (c *capture) deliver(ctx context.Context) {
	log, err := openLogFile(filepath.Join(c.cfg.StateDir, "capture.log"), show.MaxLog)
	if err != nil {
		c.note(err)
		return
	}
	defer func() { _ = log.Close() }()
	cfg := c.cfg
	cfg.Log = cfg.TextLog(log)
	sys.BoundHeap(garbage, garbagePercent)
	for {
		err := daemon.Run(ctx, cfg)
		c.note(err)
		if !errors.Is(err, daemon.ErrAlreadyRunning) {
			return
		}
		if show.Sleep(ctx, takeOver) != nil {
			return
		}
	}
}

// note keeps why this daemon does not deliver, and who does.
func (c *capture) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
	if held, ok := errors.AsType[*sys.HeldError](err); ok {
		c.holder = held.Holder.Socket
	}
}

func (c *capture) noted() (holder string, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder, c.failed
}

// finish waits until the server has everything, at most for a while, stops the daemon, and says what the server lacks.
func (c *capture) finish(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	result, err := c.sync(ctx, wait)
	if err == nil && result.Done && c.unfinished() {
		if show.Sleep(ctx, quiet) == nil {
			result, err = c.sync(ctx, wait)
		}
	}
	if err == nil && !result.Done {
		err = show.Unfinished(result)
	}
	c.stop()
	lacks := result.Waiting + result.Dead + result.Withheld
	if err == nil {
		if lacks > 0 {
			c.Say("ccship: everything is on the server\n%s", strings.TrimSuffix(show.LeftOut(result), "\n"))
		}
		return
	}
	e := show.Describe(err)
	lacks += max(0, c.onDisk()-result.Lines)
	e.Message = fmt.Sprintf("%s not on the server yet: %s", amount.Counted(lacks, "line", "lines"), e.Message)
	if e.Code == "timeout" {
		e.Hint = "give it longer with --wait, or capture again with this spool"
	}
	if _, err := os.Stat(filepath.Join(c.cfg.StateDir, "state.db")); err == nil && c.cfg.StateDir != "" {
		e.Message += "; what was read of them waits in the spool " + c.cfg.StateDir
	}
	show.PrintError(c.Stderr, e)
}

// sync has the process that delivers send everything. When the time is over, it returns the counts of then.
func (c *capture) sync(ctx context.Context, wait time.Duration) (control.SyncResult, error) {
	for {
		holder, failed := c.noted()
		if failed != nil && !errors.Is(failed, daemon.ErrAlreadyRunning) {
			return control.SyncResult{}, failed
		}
		for _, socket := range []string{c.cfg.Socket, holder} {
			if socket == "" {
				continue
			}
			client := control.Dial(socket)
			if _, err := client.Flush(ctx); err != nil {
				continue
			}
			r, err := client.Sync(ctx, control.SyncRequest{Wait: true, Timeout: wait.String()})
			if err == nil {
				return r, nil
			}
			if ctx.Err() != nil {
				r, err = client.Sync(context.WithoutCancel(ctx), control.SyncRequest{Timeout: "1s"})
				if r.Done = false; r.Reason == "" {
					r.Reason = "timeout"
				}
				return r, err
			}
		}
		if show.Sleep(ctx, ask) != nil {
			return control.SyncResult{}, cmp.Or(failed, ctx.Err())
		}
	}
}

// quiet is how long a daemon must have seen a last line without newline unchanged before it takes it for a line.
const quiet = 2*time.Second + 50*time.Millisecond

// unfinished reports whether a transcript that changed while the command ran, or within a minute, ends without a
// newline. Sizes are compared too: the clock of the files may be another one than that of this machine.
func (c *capture) unfinished() (found bool) {
	c.transcripts(func(path string, info fs.FileInfo) {
		if c.began[path] == info.Size() && time.Since(info.ModTime()) > time.Minute || info.Size() == 0 {
			return
		}
		if f, err := sys.OpenRegular(path); err == nil {
			last := make([]byte, 1)
			n, _ := f.ReadAt(last, info.Size()-1)
			found = found || n == 1 && last[0] != '\n'
			_ = f.Close()
		}
	})
	return found
}

// onDisk counts the lines of all transcripts.
func (c *capture) onDisk() (lines int64) {
	c.transcripts(func(path string, _ fs.FileInfo) {
		text, _ := os.ReadFile(path)
		lines += int64(bytes.Count(text, []byte("\n")))
	})
	return lines
}

func (c *capture) transcripts(each func(path string, info fs.FileInfo)) {
	for _, root := range c.cfg.Roots {
		if real, err := filepath.EvalSymlinks(root); err == nil { // WalkDir enters no link, not even its root
			root = real
		}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".jsonl" {
				if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
					each(path, info)
				}
			}
			return nil
		})
	}
}

// pressedTwice is how long after a command's end Ctrl-C is still meant for the command: people press it twice, and on a
// busy machine the one that ended the command arrives late.
const pressedTwice = time.Second

// passThrough runs a command with this process's input, outputs, terminal and signals, and returns its exit code. A
// signal that comes after its end calls ended. An error says why it did not run.
func passThrough(args []string, ended func()) (code int, err error) {
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) // signals end it, as they say
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := catchSignals()
	if err := cmd.Start(); err != nil {
		code = exitCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			code = exitNotFound
		}
		return code, notRun(args[0], err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for running := true; running; {
		select {
		case s := <-signals:
			if !fromTerminal(s) {
				_ = cmd.Process.Signal(s)
			}
		case err = <-over:
			running = false
		}
	}
	go afterEnd(time.Now(), signals, fromTerminal, ended)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitCode(exit.ProcessState), nil
	}
	if err != nil {
		return exitCannotRun, notRun(args[0], err)
	}
	return show.ExitOK, nil
}

func notRun(command string, err error) error {
	return control.Failed(fmt.Sprintf("run %q: %v", command, err), "check the command's name, and that it may be executed")
}

// afterEnd calls ended for each signal that is not meant for the command, which is over since end.
func afterEnd(end time.Time, signals <-chan os.Signal, typed func(os.Signal) bool, ended func()) {
	for s := range signals {
		if !typed(s) || time.Since(end) > pressedTwice {
			ended()
		}
	}
}
