package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
)

const (
	healthWait = time.Minute     // for a server to answer after its start
	farewell   = 5 * time.Second // for a server to end after it was asked to
)

// serverChild is ccship-server as a child.
type serverChild struct {
	program string
	args    []string
	url     string
	logPath string
}

func newServerChild(program, address string, home Home) *serverChild {
	return &serverChild{
		program: program, url: "http://" + address, logPath: home.File(serverLog),
		args: []string{"serve", "--listen", address, "--store", home.store(), "--end-logins"},
	}
}

// Run runs the server until ctx is done, and then stops it. One that ends by itself is an error, with the last thing it
// said.
func (s *serverChild) Run(ctx context.Context) error {
	// The system sends the child its signal when the thread that started it ends, not the process: this goroutine
	// keeps its thread for as long as there is a child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := s.once(ctx)
	if ctx.Err() != nil {
		return nil
	}
	message := "ccship-server has ended: " + endOf(err)
	if line := lastLine(s.logPath); line != "" {
		message += ": " + line
	}
	return control.Failed(message, "its log is "+s.logPath+"; nothing is lost, the next `ccship up` continues")
}

// once runs one server until it ends or, ctx done, is made to.
func (s *serverChild) once(ctx context.Context) error {
	log, err := openLog(s.logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, s.program, s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = farewell
	done, err := tie(cmd)
	if err != nil {
		return err
	}
	defer done()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run ccship-server: %w", err)
	}
	return nil
}

func endOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.String()
	}
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// waitHealthy returns when the server answers and has proven to run for this user: every user of the machine can listen
// on its port.
func (s *serverChild) waitHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, healthWait,
		control.Failed("ccship-server does not answer on "+s.url, "its log is "+s.logPath))
	defer cancel()
	for {
		if protocol.AskSameHost(ctx, s.url) == nil {
			return nil
		}
		if show.Sleep(ctx, 20*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// lastLine returns the last line of a log that says anything; "" when there is none.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 4 << 10
	if info, err := f.Stat(); err == nil && info.Size() > enough {
		if _, err := f.Seek(-enough, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
