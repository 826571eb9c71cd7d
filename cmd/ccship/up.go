package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) upCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Try it now: a server on this machine, the import of everything, and the viewer's address",
		Long: "Start ccship-server on loopback and the daemon in the foreground, import every conversation, and go on with new lines until Ctrl-C. " +
			"A second run goes on where the first stopped. Key, address, database and state are kept in the folder that `ccship paths` calls up.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			if there, err := a.alreadyUp(ctx, c); there || err != nil {
				return err
			}
			u, err := a.newUp(ctx, c, listen)
			if err != nil {
				return err
			}
			return u.run(ctx)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "loopback `address` of the server; it is remembered")
	return cmd
}

// alreadyUp says whether a service runs, and names its server. Another `ccship up` on the same folder is an error.
func (a *app) alreadyUp(ctx context.Context, c config.Config) (bool, error) {
	own := upSocket(c)
	for _, path := range sockets(c) {
		status, err := control.Dial(path).Status(ctx)
		if errors.Is(err, control.ErrNotRunning) {
			continue
		}
		if err != nil && control.UnusablePath(err) {
			return false, err
		}
		if path == own && (err != nil || c.OriginOf("socket") == config.FromDefault) {
			return false, control.NewError(control.CodeInUse, "`ccship up` is running already",
				"see it with `ccship status`, or stop it with Ctrl-C where it runs")
		}
		if err != nil {
			return false, err
		}
		where := "has no server set"
		if len(status.Servers) > 0 {
			where = "sends to " + status.Servers[0].URL + "/"
		}
		return true, a.print(fmt.Sprintf("ccship is running already (pid %d) and %s\n", status.PID, where))
	}
	return false, nil
}

// up is one run of `ccship up`: a server as a child, a daemon in this process.
type up struct {
	app    *app
	config config.Config // of the daemon
	server *serverChild
	log    io.Closer
}

// newUp prepares folder, address, key and log; nothing runs yet.
func (a *app) newUp(ctx context.Context, c config.Config, listen string) (*up, error) {
	program, err := findServer()
	if err != nil {
		return nil, err
	}
	home := upHome{dir: upDir(c)}
	if err := home.make(); err != nil {
		return nil, err
	}
	address, err := home.address(listen)
	if err != nil {
		return nil, err
	}
	fresh, err := home.ensureKey(ctx, program)
	if err != nil {
		return nil, err
	}
	if fresh {
		a.say("made a new database in %s", home.dir)
	}
	log, err := openLog(home.file("ccship.log"))
	if err != nil {
		return nil, err
	}
	if c, err = home.config(c, address); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c.Log = c.TextLog(log)
	return &up{app: a, config: c, log: log, server: newServerChild(a, program, address, home)}, nil
}

// run keeps server and daemon running until ctx is done or one of them cannot be kept. The daemon stops first, so that
// its last lines still find the server.
func (u *up) run(ctx context.Context) error {
	defer u.log.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	var server, daemons sync.WaitGroup
	server.Go(func() {
		if err := u.server.Run(serverCtx); err != nil {
			cancel(err)
		}
	})
	err := u.server.waitHealthy(ctx)
	if err == nil {
		daemons.Go(func() {
			err := daemon.Run(ctx, u.config)
			if err == nil && ctx.Err() == nil {
				err = errors.New("the daemon stopped by itself")
			}
			cancel(err)
		})
		err = u.follow(ctx)
		if err == nil {
			<-ctx.Done()
		}
	}
	cancel(err)
	daemons.Wait()
	stopServer()
	server.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	u.app.say("stopped")
	return nil
}

// follow shows the import until every line that was on disk is on the server.
func (u *up) follow(ctx context.Context) error {
	client := control.Dial(u.config.Socket)
	if _, err := u.answered(ctx, client); err != nil {
		return err
	}
	u.app.say("server: %s/", u.config.ServerURL)
	result, err := u.app.showImport(ctx, client, time.Hour, func(control.SyncResult) bool { return true })
	if err != nil {
		return causeOr(ctx, err)
	}
	status, err := u.answered(ctx, client)
	if err != nil {
		return err
	}
	return u.app.print(u.arrived(status, result))
}

// answered is the daemon's status, waited for while it opens its state and its socket.
func (u *up) answered(ctx context.Context, client *control.Client) (control.Status, error) {
	for {
		status, err := client.Status(ctx)
		if err == nil || !passing(err) {
			return status, causeOr(ctx, err)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return status, causeOr(ctx, err)
		}
	}
}

// arrived is what the import ends with.
func (u *up) arrived(s control.Status, r control.SyncResult) string {
	url := u.config.ServerURL + "/"
	var b strings.Builder
	if s.Files == nil || s.Files.Tracked == 0 {
		fmt.Fprintf(&b, "no conversations yet in %s; your server: %s\n", strings.Join(u.config.Roots, ", "), url)
	} else {
		sessions := "all " + term.Counted(int64(s.Files.Sessions), "session", "sessions") + " (" + term.Size(s.Files.Bytes) + ") are"
		if s.Files.Sessions == 1 {
			sessions = "the 1 session (" + term.Size(s.Files.Bytes) + ") is"
		}
		fmt.Fprintf(&b, "%s on your server: %s\n", sessions, url)
	}
	b.WriteString(show.LeftOut(r))
	b.WriteString("watching for new lines; Ctrl-C stops\n")
	return b.String()
}

// causeOr is why ctx ended when it has, else err.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// pause waits for d, or for the end of ctx, which is its error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// findServer is the path of ccship-server: beside this program, whose links are followed, or on PATH.
func findServer() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find ccship-server: %w", err)
	}
	beside := []string{self}
	if real, err := filepath.EvalSymlinks(self); err == nil && real != self {
		beside = append(beside, real)
	}
	for _, program := range beside {
		path := filepath.Join(filepath.Dir(program), serverName())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return lookPath(filepath.Dir(self))
}
