package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
)

func (a *app) runCommand() *cobra.Command {
	var logPath string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon in the foreground, as the service does",
		Long: "Run the daemon in the foreground until SIGTERM or Ctrl-C. SIGHUP makes it read its configuration " +
			"again. Exit code 2 is a mistake in the configuration, which a restart cannot fix.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if logPath != "" {
				log, err := openLogFile(logPath, show.MaxLog)
				if err != nil {
					return err
				}
				a.Stderr = log // not closed: the error that ends the run is written to it
			}
			err := a.runDaemon(cmd.Context())
			if err != nil && service.RestartsAnyFailure() && show.ExitCode(show.Describe(err)) == show.ExitUsage {
				a.Report(err)
				return show.SilentError{Code: show.ExitOK}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&logPath, "log-file", "", "write the log to this `file`, and start a new one at 8 MiB")
	return cmd
}

// garbage is how much may gather in memory, and never more than is alive: it runs all day.
const (
	garbage        = 12 << 20
	garbagePercent = 100
)

// runDaemon runs the daemon until it is asked to end.
func (a *app) runDaemon(ctx context.Context) error {
	c, err := a.Config()
	if err != nil {
		return err
	}
	if _, err := c.APIKey(); err != nil {
		return err
	}
	c.Log = c.TextLog(a.Stderr)
	a.warnRoots(c)
	ctx, reloads, stop := show.UntilSignalOrReload(ctx)
	defer stop()
	sys.BoundHeap(garbage, garbagePercent)
	c.Hangup, c.Managed = reloads, service.Managed()
	return service.Host(ctx, func(ctx context.Context) error { return daemon.Run(ctx, c) })
}

// warnRoots names the folders that cannot be read. The daemon still starts, and reads them as soon as it can.
func (a *app) warnRoots(c config.Config) {
	for _, root := range c.Roots {
		var problem *config.Error
		if err := checkRoot(root); errors.As(err, &problem) {
			a.Say("ccship: %s; the daemon tries again until it succeeds\nhint: %s", problem.Message, problem.Hint)
		}
	}
}

// checkRoot says what is wrong with a folder of projects. It need not exist yet: Claude Code creates it.
func checkRoot(root string) error {
	info, err := os.Stat(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		return &config.Error{Message: fmt.Sprintf("root %s is not a folder", root),
			Hint: "set roots to the folders that hold Claude Code's projects"}
	}
	if err == nil {
		_, err = os.ReadDir(root)
	}
	if err != nil {
		return &config.Error{Message: fmt.Sprintf("root %s cannot be read: %v", root, errors.Unwrap(err)),
			Hint: "make it readable by this user, or name another one in roots"}
	}
	return nil
}

// logFile is a log that keeps itself small: at its limit it becomes path.1, and a new file begins. Mode 0600. It also
// gets the output of a crash. Safe for concurrent use.
type logFile struct {
	path string
	most int64 // bytes

	mu   sync.Mutex
	file *os.File // guarded by mu
	size int64    // guarded by mu
}

// openLogFile appends to the log at path. It creates a missing folder with mode 0700.
func openLogFile(path string, most int64) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &logFile{path: path, most: most}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// open is called with mu held, or before anyone knows l.
func (l *logFile) open() error {
	f, err := sys.OpenOwn(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = debug.SetCrashOutput(f, debug.CrashOptions{})
	}
	if err != nil {
		return fmt.Errorf("open log: %w", errors.Join(err, f.Close()))
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends p to one file. A log that cannot be renamed keeps growing: its lines matter more than its size.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.most {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// turn begins a new file, unless the old one cannot be renamed. It is called with mu held.
func (l *logFile) turn() error {
	old := l.file
	if runtime.GOOS == "windows" { // where an open file cannot be renamed
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{}) // it has the file open, too
		_ = old.Close()                                     // everything in it was written
		_ = os.Rename(l.path, l.path+".1")
		return l.open()
	}
	if err := os.Rename(l.path, l.path+".1"); err == nil && l.open() == nil {
		_ = old.Close()
	}
	return nil
}

// Close ends the log. Crashes go to standard error only from then on.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}), l.file.Close())
}

// managerTime is how long the service manager may take to say whether there is a service.
const managerTime = 2 * time.Second

// withStart is err, which may be nil, with the command that starts the daemon where it is an installed service.
func (a *app) withStart(ctx context.Context, err error) error {
	var known *control.Error
	if !errors.As(err, &known) || known.Code != control.CodeNotRunning || a.Given()["socket"] != "" {
		return err
	}
	if hint := startHint(ctx); hint != "" {
		said := *known
		said.Hint = hint
		return &said
	}
	return err
}

// startHint returns how an installed service is made to answer; "" when there is none, or nobody can tell.
func startHint(ctx context.Context) string {
	program, err := service.OwnPath()
	if err != nil {
		return ""
	}
	s, err := service.New(service.Options{Program: service.Daemon, Binary: program})
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), managerTime)
	defer cancel()
	switch st, err := s.Status(ctx); {
	case err != nil || !st.Installed:
		return ""
	case st.Running:
		return "the service runs, but its daemon does not answer: `ccship service logs` says why, " +
			"`ccship service restart` starts it again"
	}
	return "the service is stopped: start it with `ccship service start`"
}
