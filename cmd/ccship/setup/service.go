// Package setup has the verbs that bring ccship onto a machine and keep it there: setup, install, uninstall, start,
// stop, restart, logs and plugin. Package service knows the service managers.
package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
)

const (
	// answerTime is how long a daemon may take from its start to its first answer.
	answerTime  = time.Minute
	serviceBeat = 50 * time.Millisecond
)

// which says which service a command is about.
type which struct {
	system bool
	user   string // with system: whose conversations
}

// addTo gives the commands below one the flags.
func (w *which) addTo(cmd *cobra.Command) {
	cmd.PersistentFlags().BoolVar(&w.system, "system", false,
		"the system's service, which runs without a login (systemd; as root)")
	cmd.PersistentFlags().StringVar(&w.user, "for", "", "with --system: the `user` whose conversations are delivered")
}

// theService is the service that a command is about, with the configuration that it has.
type theService struct {
	*service.Service
	config config.Config
	env    config.Env // that the configuration was read with; nil: of this process
	flags  string     // that name this service on the command line
}

// service finds it. Nothing is asked of the manager yet.
func (a verbs) service(w which) (*theService, error) {
	if !w.system && w.user != "" {
		return nil, control.Usage("--for goes with --system", "a service of your own is always for you")
	}
	t := &theService{}
	o := service.Options{Program: service.Daemon, System: w.system, Args: []string{"run"}}
	if w.system {
		owner, err := ownerOf(w.user)
		if err != nil {
			return nil, err
		}
		o.User, o.Home = owner.Username, owner.HomeDir
		t.flags = " --system --for " + owner.Username
		t.env = homeOf(owner.HomeDir)
	}
	var err error
	if t.config, err = a.ConfigIn(t.env); err != nil {
		return nil, err
	}
	if o.LogFile = LogPath(t.config); o.LogFile != "" {
		o.Args = append(o.Args, "--log-file", o.LogFile)
	}
	file, err := t.config.ServiceConfig(t.env)
	if err != nil {
		return nil, err
	}
	if file != "" {
		o.Args = append(o.Args, "--config", file)
	}
	o.Writable = []string{t.config.StateDir, filepath.Dir(t.config.Socket)}
	if o.Binary, err = service.OwnPath(); err != nil {
		return nil, err
	}
	t.Service, err = service.New(o)
	return t, err
}

// ownerOf finds the user whose conversations a service of the system delivers: the one named, else the one who used
// sudo.
func ownerOf(name string) (*user.User, error) {
	if name == "" {
		name = os.Getenv("SUDO_USER")
	}
	if name == "" {
		return nil, control.Usage("--system does not say whose conversations are delivered",
			"name the user with --for")
	}
	owner, err := user.Lookup(name)
	if err != nil {
		return nil, control.Usage(fmt.Sprintf("there is no user %q", name),
			"name the user whose conversations are delivered with --for")
	}
	return owner, nil
}

// homeOf returns an environment that knows nothing but a home.
func homeOf(home string) config.Env {
	return func(name string) (string, bool) {
		if name == "HOME" {
			return home, true
		}
		return "", false
	}
}

// LogPath returns where a service writes its log; "" where systemd's journal keeps it.
func LogPath(c config.Config) string {
	switch runtime.GOOS {
	case "darwin":
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, "Library", "Logs", "ccship", "ccship.log")
		}
	case "linux":
		return ""
	}
	return filepath.Join(c.StateDir, "ccship.log")
}

// foreign is the error when a daemon that is not the service's own holds the state that the service needs.
func (t *theService) foreign(ctx context.Context, st service.Status) error {
	_, status, err := control.Reach(ctx, t.sockets())
	if err != nil || status.PID == st.PID || st.Running && st.PID == 0 {
		return nil //nolint:nilerr // a daemon that does not answer is not in the way
	}
	return control.NewError(control.CodeInUse,
		fmt.Sprintf("a daemon that is not the service is already running (pid %d)", status.PID),
		"stop it first: Ctrl-C where `ccship run` was started, or `kill "+fmt.Sprint(status.PID)+"`")
}

// sockets returns the places where the service may listen: not where `ccship up` does.
func (t *theService) sockets() []string {
	own := show.UpSocket(t.config)
	return slices.DeleteFunc(show.Sockets(t.config), func(path string) bool {
		return path == own && t.config.OriginOf("socket") == config.FromDefault
	})
}

// answered waits until the service's daemon answers on its socket.
func (t *theService) answered(ctx context.Context) (*control.Client, control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		client, status, err := control.Reach(ctx, t.sockets())
		if err == nil {
			return client, status, nil
		}
		if show.Sleep(ctx, serviceBeat) == nil {
			continue
		}
		e := control.NewError(service.CodeNotStarted, "the service was started, but its daemon does not answer: "+err.Error(),
			"`ccship service logs` says why")
		if st, statusErr := t.Status(context.WithoutCancel(ctx)); statusErr == nil && st.Note != "" {
			e.Message = "the service was started, but its daemon does not answer: " + st.Note
		}
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return nil, status, context.Canceled
		}
		return nil, status, e
	}
}

// verbs makes the commands.
type verbs struct{ *show.App }

// Commands returns the verbs of this package.
func Commands(a *show.App) []*cobra.Command {
	v := verbs{a}
	return []*cobra.Command{
		v.setupCommand(), v.serviceCommand(), v.pluginCommand(),
	}
}

// serviceCommand returns the verbs about the service.
func (a verbs) serviceCommand() *cobra.Command {
	w := &which{}
	cmd := show.Group("service", "Install, start, stop and remove the service, and show its log", "",
		a.installCommand(w), a.startCommand(w), a.stopCommand(w), a.restartCommand(w), a.logsCommand(w),
		a.uninstallCommand(w))
	w.addTo(cmd)
	return cmd
}

// OwnService returns the service of the user who runs this program. The service manager is not asked yet.
func OwnService(a *show.App) (*service.Service, error) {
	t, err := verbs{a}.service(which{})
	if err != nil {
		return nil, err
	}
	return t.Service, nil
}

func (a verbs) startCommand(w *which) *cobra.Command {
	const short = "Start the installed service"
	return a.controlCommand(w, "start", short, func(ctx context.Context, t *theService) error {
		st, err := t.Status(ctx)
		if err != nil {
			return err
		}
		if st.Installed {
			err = t.foreign(ctx, st)
		}
		if err != nil {
			return err
		}
		if err := t.Start(ctx); err != nil {
			return err
		}
		return a.runs(ctx, t)
	})
}

func (a verbs) stopCommand(w *which) *cobra.Command {
	const short = "Stop the service until the next login, boot or start"
	return a.controlCommand(w, "stop", short, func(ctx context.Context, t *theService) error {
		if err := t.Stop(ctx); err != nil {
			return err
		}
		return a.Print("stopped; nothing is lost: lines written from now on are read at the next start\n")
	})
}

func (a verbs) restartCommand(w *which) *cobra.Command {
	const short = "Stop the service and start it again"
	return a.controlCommand(w, "restart", short, func(ctx context.Context, t *theService) error {
		if err := t.Restart(ctx); err != nil {
			return err
		}
		return a.runs(ctx, t)
	})
}

func (a verbs) controlCommand(w *which, verb, short string,
	do func(context.Context, *theService) error) *cobra.Command {
	return &cobra.Command{
		Use:   verb,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			t, err := a.service(*w)
			if err != nil {
				return err
			}
			return do(ctx, t)
		}),
	}
}

// runs waits for the daemon's answer and says so.
func (a verbs) runs(ctx context.Context, t *theService) error {
	var status control.Status
	_, status, err := t.answered(ctx)
	if err != nil {
		return err
	}
	return a.Print(fmt.Sprintf("running (pid %d)\n", status.PID))
}

func (a verbs) logsCommand(w *which) *cobra.Command {
	var lines int
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the log of the service, or of ccship up",
		Long: "Show the service's log: systemd's journal, or the file that `run --log-file` writes. Without a service, " +
			"show what `ccship up` writes: the logs of the daemon and of the server.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 {
				return control.Usage(fmt.Sprintf("-n %d is negative", lines), "-n takes the number of lines to show")
			}
			t, err := a.service(*w)
			if err != nil {
				return err
			}
			st, err := t.Status(cmd.Context())
			if err != nil {
				return err
			}
			if files := upLogs(t.config); !st.Installed && len(files) > 0 {
				return a.show(cmd.Context(), service.TailCommand(lines, follow, files...))
			}
			if st.Manager == service.None {
				return t.Start(cmd.Context()) // says why there is no service
			}
			argv, err := t.LogCommand(lines, follow)
			if err != nil {
				return err
			}
			return a.show(cmd.Context(), argv)
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 50, "how many of the last lines to show")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new lines as they are written, until Ctrl-C")
	return cmd
}

// upLogs returns the logs that `ccship up` has written.
func upLogs(c config.Config) (files []string) {
	home := Home{Dir: show.UpDir(c)}
	for _, name := range []string{daemonLog, serverLog} {
		if path := home.File(name); show.Exists(path) {
			files = append(files, path)
		}
	}
	return files
}

// show runs a program on this one's terminal. Ctrl-C reaches both, and ends a program that follows the log.
func (a verbs) show(ctx context.Context, argv []string) error {
	ignored, stop := show.IgnoreInterrupts()
	defer stop()
	child := exec.CommandContext(ctx, argv[0], argv[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, a.Stdout, a.Stderr
	err := child.Run()
	var exit *exec.ExitError
	switch {
	case err == nil || ignored():
		return nil
	case errors.As(err, &exit):
		return control.Failed(argv[0]+" could not show the log ("+exit.String()+")",
			"`ccship doctor` says whether the service works")
	}
	return control.Failed(fmt.Sprintf("show log: %v", err),
		"install "+argv[0]+", which shows the log on this system")
}
