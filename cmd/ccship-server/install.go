package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newInstall() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "install",
		Short: "Install the server as a service of this user that starts automatically, and start it",
		Long: "Install the server as a service of this user (systemd, launchd), with the options of `serve`, and " +
			"start it. Installing again replaces it. Without --listen it keeps the address of the last run, else it" +
			" takes the first free port from 5000 on.\n\n" +
			"Also all flags of `ccship-server serve`.",
		Example: "  ccship-server install\n" +
			"  ccship-server install --listen 127.0.0.1:5001 --store sqlite:/srv/ccship/server.db",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			f.store = p.store
			if _, err := f.check(c); err != nil {
				return err
			}
			return p.install(c, &f)
		},
	}
	f.add(c)
	c.Flags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = true }) // serve lists them
	printsJSON(c)
	return c
}

// install makes the service, waits until the server answers, and says where.
func (p *cli) install(c *cobra.Command, f *serveFlags) error {
	ctx := c.Context()
	if err := chooseListen(c, f); err != nil {
		return err
	}
	args, err := serviceArgs(c, f)
	if err != nil {
		return err
	}
	s, err := serverService(f, args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(servedFile(f.store)), 0o700); err != nil { // the unit opens it for writing
		return fmt.Errorf("make folder of the store: %w", err)
	}
	if err := checkStore(ctx, f.store); err != nil {
		return err
	}
	out, err := s.Install(ctx, true)
	if err != nil {
		return noService(err, args)
	}
	at, err := awaitServer(ctx, s, f.store)
	if err != nil {
		return err
	}
	if p.json {
		return printJSON(c.OutOrStdout(), struct {
			Schema int    `json:"schema_version"`
			URL    string `json:"url"`
			Store  string `json:"store"`
			Unit   string `json:"unit"`
		}{schemaVersion, at.URL, f.store, out.UnitPath})
	}
	if out.Written && out.UnitPath != "" {
		term.Printf(c.ErrOrStderr(), "wrote %s\n", out.UnitPath)
	}
	sayLinger(c, s)
	return term.Printf(c.OutOrStdout(), "ccship-server is installed and answers at %s; it starts automatically from "+
		"now on\nnext: `ccship setup` connects this machine to it\n", at.URL)
}

// checkStore opens the store once, so that a mistake is found before anything is installed.
func checkStore(ctx context.Context, url string) error {
	s, err := openStore(ctx, url, store.Opening{})
	if err != nil {
		return err
	}
	return s.Close()
}

// noService is the error where the service cannot be installed; it says which command does the same without one.
func noService(err error, args []string) error {
	e, ok := errors.AsType[*control.Error](err)
	if !ok {
		return err
	}
	if e.Code != service.CodeNoManager {
		return hinted{errors.New(e.Message), e.Hint}
	}
	words := []string{"ccship-server"}
	for _, arg := range args {
		words = append(words, term.Quote(arg))
	}
	command := strings.Join(words, " ")
	return hinted{errors.New(e.Message), "run the server yourself: `" + command + "` in a terminal that stays open, or " +
		"`nohup " + command + " >/dev/null 2>&1 &`; in a container make it the command"}
}

// chooseListen settles the address that the service keeps: links and daemons name it.
func chooseListen(c *cobra.Command, f *serveFlags) error {
	if c.Flags().Changed("listen") {
		if _, port, err := net.SplitHostPort(f.listen); err == nil && port == "0" {
			return usage(c, errors.New("a service needs an address that stays: choose a port for --listen"))
		}
		return nil
	}
	if at, ok := lastServed(f.store); ok {
		f.listen = at.Listen
		return nil
	}
	var err error
	for port := 5000; port < 5010; port++ {
		f.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var ln net.Listener
		if ln, err = listen(c, f.listen); err == nil {
			return ln.Close()
		}
	}
	return err
}

// pathFlags are the options of serve whose values are files.
var pathFlags = []string{"tls-cert", "tls-key", "prices"}

// serviceArgs returns the command line of the service: what was given, with absolute paths.
func serviceArgs(c *cobra.Command, f *serveFlags) ([]string, error) {
	if u, err := url.Parse(f.store); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return nil, usageError{hinted{
				errors.New("every user of this machine could read the password in the service's command"),
				"put it into ~/.pgpass and leave it out of --store",
			}}
		}
	}
	if path, ok := strings.CutPrefix(f.store, "sqlite:"); ok && path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		f.store = "sqlite:" + path
	}
	if path := socketPath(f.listen); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		f.listen = "unix://" + path
	}
	args := []string{"serve", "--store", f.store, "--listen", f.listen}
	var wrong error
	c.Flags().Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		switch {
		case flag.Name == "store" || flag.Name == "listen" || flag.Name == "json":
			return
		case slices.Contains(pathFlags, flag.Name):
			var err error
			if value, err = filepath.Abs(value); err != nil {
				wrong = err
			}
		}
		args = append(args, "--"+flag.Name+"="+value)
	})
	return args, wrong
}

// serverService returns the service of this user with a command line.
func serverService(f *serveFlags, args []string) (*service.Service, error) {
	o := service.Options{Program: service.Server, Args: args}
	var err error
	if o.Binary, err = service.OwnPath(); err != nil {
		return nil, err
	}
	if home, err := os.UserHomeDir(); err == nil && runtime.GOOS == "darwin" {
		o.LogFile = filepath.Join(home, "Library", "Logs", "ccship-server", "ccship-server.log")
	}
	if path, ok := strings.CutPrefix(f.store, "sqlite:"); ok {
		o.Writable = append(o.Writable, filepath.Dir(path))
	}
	if path := socketPath(f.listen); path != "" {
		o.Writable = append(o.Writable, filepath.Dir(path))
	}
	return service.New(o)
}

// served is the address that a server of a store has, or had last. It is kept next to the store, so that other commands
// need no flag for it.
type served struct {
	Listen string `json:"listen"`               // as --listen takes it, with the port that was chosen
	URL    string `json:"url"`                  // on this machine; unix:///PATH for a socket
	Public string `json:"public_url,omitempty"` // where browsers reach it, if that was given
}

// servedFile returns the file next to a store that keeps the address; "" where there is no folder for it.
func servedFile(store string) string {
	if path, ok := strings.CutPrefix(store, "sqlite:"); ok {
		return path + ".address"
	}
	dir := stateDir()
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(store)) // the address of a database may contain its password
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".address")
}

// keep writes the address down.
func (s served) keep(store string) error {
	path := servedFile(store)
	if path == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return sys.WriteFile(path, append(text, '\n'))
}

// lastServed reads the address; ok is false while no server has used the store.
func lastServed(store string) (s served, ok bool) {
	text, err := os.ReadFile(servedFile(store))
	return s, err == nil && json.Unmarshal(text, &s) == nil && s.URL != ""
}

// servedAt returns the address of a server that listens.
func servedAt(ln net.Listener, f serveFlags) served {
	if ln.Addr().Network() == "unix" {
		at := "unix://" + (&url.URL{Path: ln.Addr().String()}).EscapedPath()
		return served{Listen: "unix://" + ln.Addr().String(), URL: at, Public: f.publicURL}
	}
	scheme := "http"
	if f.tlsCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	listen := ln.Addr().String()
	if asked, _, err := net.SplitHostPort(f.listen); err == nil {
		listen = net.JoinHostPort(asked, port)
	}
	return served{Listen: listen, URL: scheme + "://" + net.JoinHostPort(host, port) + f.base, Public: f.publicURL}
}

// browserURL returns where a browser reaches the server of a store: the address given, else the one it serves.
func browserURL(given, store string) (string, error) {
	if given != "" {
		return given, nil
	}
	at, ok := lastServed(store)
	switch {
	case !ok:
		return defaultURL, nil
	case at.Public != "":
		return at.Public, nil
	case strings.HasPrefix(at.URL, "unix:"):
		return "", usageError{hinted{errors.New("the server listens on a Unix socket, which no browser reaches"),
			"give the address of the proxy in front of it with --public-url"}}
	}
	return at.URL, nil
}

// defaultURL is the address of a server that was started without options.
const defaultURL = "http://127.0.0.1:5000"
