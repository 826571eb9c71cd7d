package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
)

// Options are what a person chooses for a run.
type Options struct {
	Listen    string // the server's address; "" is the one of the last run
	NoBrowser bool   // the one-time link is only printed
}

// Up starts a server and a daemon, imports every conversation, prints a one-time link into the viewer, opens it in a
// browser, and goes on until ctx is done. When a service or another Up runs already, Up only says where it sends to,
// and gives a link into its viewer.
func Up(ctx context.Context, a *show.App, c config.Config, o Options) error {
	if there, err := alreadyUp(ctx, a, c); there || err != nil {
		return err
	}
	u, err := newUp(ctx, a, c, o)
	if err != nil {
		return err
	}
	return u.run(ctx)
}

// alreadyUp says whether a service or another `ccship up` runs, and names its server.
func alreadyUp(ctx context.Context, a *show.App, c config.Config) (bool, error) {
	own := show.UpSocket(c)
	paths := show.Sockets(c)
	if holder, there := sys.FindHolder(c.Roots); there && !slices.Contains(paths, holder.Socket) {
		paths = append(paths, holder.Socket) // it has another state folder
	}
	for _, path := range paths {
		status, err := control.Dial(path).Status(ctx)
		if errors.Is(err, control.ErrNotRunning) {
			continue
		}
		if err != nil && control.UnusablePath(err) {
			return false, err
		}
		if path == own && (err != nil || c.OriginOf("socket") == config.FromDefault) {
			return true, runningAlready(ctx, a, c)
		}
		if err != nil {
			return false, err
		}
		where := "has no server set"
		if len(status.Servers) > 0 {
			where = "sends to " + status.Servers[0].URL + "/"
		}
		return true, a.Print(fmt.Sprintf("ccship is running already (pid %d) and %s\n", status.PID, where))
	}
	return false, nil
}

// runningAlready ends a second `ccship up` with another one-time link into the viewer.
func runningAlready(ctx context.Context, a *show.App, c config.Config) error {
	home := Home{Dir: show.UpDir(c)}
	address, err := home.remembered()
	if err == nil && address == "" {
		err = errors.New("its address is not known")
	}
	if err != nil {
		return control.NewError(control.CodeInUse, "`ccship up` is running already: "+err.Error(),
			"see it with `ccship status`, or stop it with Ctrl-C where it runs")
	}
	a.Say("`ccship up` is running already; Ctrl-C where it runs stops it")
	if c, err = home.Config(c, address); err != nil {
		return err
	}
	link, err := ownLink(ctx, c)
	if err != nil { // it starts, or stops
		return a.Print("http://" + address + "/\n")
	}
	return a.Print("see it: " + link.URL + "\n")
}

// up is one run of `ccship up`: a server as a child, a daemon in this process.
type up struct {
	app     *show.App
	config  config.Config // of the daemon
	home    Home
	browser bool // the link is opened in one
	server  *serverChild
	log     io.Closer
}

// newUp prepares folder, address, key and log; nothing runs yet.
func newUp(ctx context.Context, a *show.App, c config.Config, o Options) (*up, error) {
	program, err := show.FindProgram("ccship-server")
	if err != nil {
		return nil, err
	}
	home := Home{Dir: show.UpDir(c)}
	if err := home.make(); err != nil {
		return nil, err
	}
	address, err := home.Address(ctx, o.Listen)
	if err != nil {
		return nil, err
	}
	fresh, err := home.EnsureKey(ctx, program)
	if err != nil {
		return nil, err
	}
	if fresh {
		a.Say("made a new database in %s", home.Dir)
	}
	log, err := openLog(home.File(daemonLog))
	if err != nil {
		return nil, err
	}
	if c, err = home.Config(c, address); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c.Log = c.TextLog(log)
	return &up{app: a, config: c, home: home, browser: !o.NoBrowser, log: log,
		server: newServerChild(program, address, home)}, nil
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
	_ = os.Remove(u.home.File("server.db.address")) // `listen` has it; where it stays, nothing is wrong
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	u.app.Say("stopped")
	return nil
}

// follow shows the import until every line that was on disk is on the server.
func (u *up) follow(ctx context.Context) error {
	client := control.Dial(u.config.Socket)
	if _, err := u.answered(ctx, client); err != nil {
		return err
	}
	u.app.Say("server: %s/", u.config.ServerURL)
	result, err := u.app.ShowImport(ctx, client, time.Hour, func(control.SyncResult) bool { return true })
	if err != nil {
		u.sayHowFar(client)
		return causeOr(ctx, err)
	}
	status, err := u.answered(ctx, client)
	if err != nil {
		return err
	}
	awaitIndex(ctx, u.app, u.config)
	if err := u.app.Print(u.arrived(status, result)); err != nil {
		return err
	}
	return u.invite(ctx)
}

// howFarTime is how long the daemon may take to say how far an import came.
const howFarTime = time.Second

// sayHowFar says how much of an import that is stopped is on the server.
func (u *up) sayHowFar(client *control.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), howFarTime)
	defer cancel()
	if status, err := client.Status(ctx); err == nil {
		u.app.SayHowFar(status, "the next `ccship up` continues")
	}
}

// invite prints a one-time link into the viewer, and opens it in the user's browser.
func (u *up) invite(ctx context.Context) error {
	link, err := ownLink(ctx, u.config)
	if err != nil {
		u.app.Say("there is no one-time link into the viewer: %v", err)
	} else if err := u.app.Print(fmt.Sprintf("see them: %s\n  it logs in one browser, until %s; `ccship open` makes "+
		"another\n", link.URL, link.Until.Local().Format("15:04"))); err != nil {
		return err
	} else if _, terminal := term.Columns(u.app.Stdout); terminal && u.browser {
		if err := openBrowser(ctx, u.home, link.URL); err != nil {
			u.app.Say("no browser: %v", err)
		}
	}
	return u.app.Print("watching for new lines; Ctrl-C stops\n")
}

// answered returns the daemon's status, waited for while it opens its state and its socket.
func (u *up) answered(ctx context.Context, client *control.Client) (control.Status, error) {
	for {
		status, err := client.Status(ctx)
		if err == nil || !show.Temporary(err) {
			return status, causeOr(ctx, err)
		}
		if err := show.Sleep(ctx, 20*time.Millisecond); err != nil {
			return status, causeOr(ctx, err)
		}
	}
}

// arrived returns what the import ends with.
func (u *up) arrived(s control.Status, r control.SyncResult) string {
	url := u.config.ServerURL + "/"
	var b strings.Builder
	if s.Files == nil || s.Files.Tracked == 0 {
		fmt.Fprintf(&b, "no conversations yet in %s; your server: %s\n", strings.Join(u.config.Roots, ", "), url)
	} else {
		sessions := "all " + amount.Counted(int64(s.Files.Sessions), "session", "sessions") + " (" +
			amount.Size(s.Files.Bytes) + ") are"
		if s.Files.Sessions == 1 {
			sessions = "the 1 session (" + amount.Size(s.Files.Bytes) + ") is"
		}
		fmt.Fprintf(&b, "%s on your server: %s\n", sessions, url)
	}
	b.WriteString(show.LeftOut(r))
	return b.String()
}

// causeOr is why ctx ended when it has, else err.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
