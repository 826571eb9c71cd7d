package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/protocol"
)

// localServer is what is known of a server on this machine.
type localServer struct {
	program string // ccship-server; "" where it is not found
	manager bool   // it could be installed as a service
	there   bool   // its service is installed
	url     string // where one answers; "" for nowhere
	own     bool   // it is this user's, who can make keys for it
}

// toolTime is how long ccship-server may take for one command. An older store is brought up to date meanwhile.
const toolTime = 2 * time.Minute

// findLocal looks for a server on this machine: this user's own, then any at the usual address. No key is shown.
func (s *setup) findLocal(ctx context.Context) localServer {
	var l localServer
	if program, err := show.FindProgram("ccship-server"); err == nil {
		l.program = program
		var said struct {
			Manager   string `json:"manager"`
			Installed bool   `json:"installed"`
			URL       string `json:"url"`
			Answers   bool   `json:"answers"`
		}
		out, _ := runServer(ctx, program, "status", "--json") // its exit code only says that nobody answers
		if json.Unmarshal(out, &said) == nil {
			l.manager, l.there = said.Manager != "" && said.Manager != service.None, said.Installed
			if l.own = said.Answers; l.own {
				l.url = said.URL
				return l
			}
		}
	}
	greeting, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	if _, ours := delivery.Greet(greeting, usualAddress); ours {
		l.url = usualAddress
	}
	return l
}

// usualAddress is a server's where nobody chose another.
const usualAddress = "http://127.0.0.1:5000"

// useLocal is this user's server on this machine, installed and started if there is none, and a key for it, made if
// none is kept yet.
func (s *setup) useLocal(ctx context.Context, c *config.Config, l localServer) (server, key string, err error) {
	if l.program == "" {
		_, err := show.FindProgram("ccship-server") // says where it was looked for
		return "", "", err
	}
	if !l.own {
		if l.url, err = s.startLocal(ctx, l); err != nil {
			return "", "", err
		}
	}
	if server, err = config.NormalizeURL(l.url); err != nil {
		return "", "", err
	}
	if old, err := config.ReadAPIKey(c.APIKeyFile); err == nil && old != "" {
		if _, err := delivery.Probe(ctx, delivery.CandidateOf(c, server, old)); err == nil {
			return server, old, nil
		}
	}
	if s.keyFile != "" {
		return server, "", nil
	}
	key, err = newKey(ctx, l.program)
	if err != nil {
		s.app.Say("no key could be created: %v", err)
		return server, "", nil
	}
	s.app.Say("created an API key for this machine")
	awaitKey(ctx, delivery.CandidateOf(c, server, key))
	return server, key, nil
}

// keyTime is longer than a running server takes to learn of a key that another process made.
const keyTime = 30 * time.Second

// awaitKey waits until the server knows a new key, or has another objection.
func awaitKey(ctx context.Context, c delivery.Candidate) {
	ctx, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	for {
		_, err := delivery.Probe(ctx, c)
		e, refused := errors.AsType[*control.Error](err)
		if !refused || e.Code != control.CodeRefusedKey || show.Sleep(ctx, 100*time.Millisecond) != nil {
			return
		}
	}
}

// startLocal starts the server's service, or installs it, and says where it answers.
func (s *setup) startLocal(ctx context.Context, l localServer) (string, error) {
	if !l.manager && !l.there {
		return "", control.NewError(service.CodeNoManager,
			"no server answers on this machine, and there is no service manager to start one with",
			"start `ccship-server serve` in another terminal, then run `ccship setup` again; "+
				"or try everything with `ccship up`")
	}
	verb := []string{"install", "--json"}
	if l.there {
		verb = []string{"start"}
	}
	if _, err := runServer(ctx, l.program, verb...); err != nil {
		return "", err
	}
	if l = s.findLocal(ctx); !l.own {
		return "", control.Failed("ccship-server was started and does not answer",
			"`ccship-server status` shows its state")
	}
	s.app.Say("started a server on this machine, as a service: %s", l.url)
	return l.url, nil
}

// newKey makes a key for this machine. The names of keys are never used twice.
func newKey(ctx context.Context, program string) (string, error) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "this machine"
	}
	var out []byte
	for _, name := range []string{host, host + " " + time.Now().Format("2006-01-02 15:04:05")} {
		if out, err = runServer(ctx, program, "key", "create", "--name", name); err == nil {
			return config.CheckAPIKey("the new key", string(out))
		}
	}
	return "", err
}

// runServer runs a command of ccship-server and returns what it printed. The error has its message and its hint.
func runServer(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err == nil || ctx.Err() != nil {
		return out, errors.Join(err, ctx.Err())
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return out, fmt.Errorf("run %s: %w", program, err)
	}
	var document struct {
		Error struct {
			Message string `json:"message"`
			Hint    string `json:"hint"`
		} `json:"error"`
	}
	if json.Unmarshal(out, &document) == nil && document.Error.Message != "" { // with --json
		return out, control.Failed(document.Error.Message, document.Error.Hint)
	}
	said, hint, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\nhint: ")
	said = strings.TrimPrefix(said, "ccship-server: ")
	if said == "" {
		said = "ccship-server " + args[0] + ": " + exit.String()
	}
	return out, control.Failed(said, hint)
}

// invite ends with a one-time link into the viewer, or with the command that makes one. A plain server has no viewer.
func (s *setup) invite(ctx context.Context, c config.Config) error {
	if s.plain {
		return nil
	}
	link, err := loginLink(ctx, c)
	if err != nil {
		return s.app.Tell("see them: `ccship-server link`, on the server, prints a one-time address for your browser\n")
	}
	return s.app.Tell(fmt.Sprintf("see them: %s\n  it logs in one browser, until %s; `ccship-server link` on the "+
		"server prints another\n", link.URL, link.Until.Local().Format("15:04")))
}

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
