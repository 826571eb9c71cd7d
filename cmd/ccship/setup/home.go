package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/sys"
)

// The logs that a run writes.
const (
	daemonLog = "ccship.log"
	serverLog = "server.log"
)

// firstAddress is where the server listens when nothing else was asked for and nobody else does.
const firstAddress = "127.0.0.1:5000"

// Home is the folder of `ccship up`. In it:
//
//	server.db    the server's database
//	api_key      the key the daemon shows
//	listen       the server's address
//	state        the daemon's state
//	ccship.sock  the daemon's control socket
//	*.log        what both had to say
type Home struct{ Dir string }

// File returns the path of a file in the folder.
func (h Home) File(name string) string { return filepath.Join(h.Dir, name) }

func (h Home) store() string { return "sqlite:" + h.File("server.db") }

func (h Home) make() error {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

// Config returns the configuration of the daemon here, as flags, so that they hold when it is read again.
func (h Home) Config(c config.Config, address string) (config.Config, error) {
	flags := map[string]string{
		"socket": show.UpSocket(c), "state_dir": h.File("state"), "server_url": "http://" + address,
		"api_key_file": h.File("api_key"),
	}
	if c.OriginOf("redact") == config.FromDefault {
		flags["redact"] = "off" // the server is a process of ours: lines do not leave this machine
	}
	return c.With(flags)
}

// Address returns where the server listens: the address asked for, else the remembered one, else a free one. It is kept
// because links into the viewer and the daemon's state contain it.
func (h Home) Address(ctx context.Context, asked string) (string, error) {
	remembered, err := h.remembered()
	if err != nil {
		return "", err
	}
	address := remembered
	if asked != "" {
		if err := loopback(asked); err != nil {
			return "", err
		}
		address = asked
	}
	switch {
	case address == "":
		address = firstAddress
		if taken(ctx, address) != nil {
			if address, err = freeAddress(ctx); err != nil {
				return "", err
			}
		}
	case taken(ctx, address) != nil:
		return "", control.NewError("port_taken", address+" is taken by another program",
			"stop that program, or choose another address with `ccship up --listen 127.0.0.1:PORT`")
	}
	if address == remembered {
		return address, nil
	}
	return address, sys.WriteFile(h.File("listen"), []byte(address+"\n"))
}

// remembered returns the address of the last run; "" when there was none.
func (h Home) remembered() (string, error) {
	text, err := os.ReadFile(h.File("listen"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read address: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// loopback refuses addresses that other machines can reach: the key goes there over plain HTTP.
func loopback(address string) error {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && port != "" && port != "0" && ip != nil && ip.IsLoopback() {
		return nil
	}
	return control.Usage(fmt.Sprintf("--listen %s is not a loopback address with a port", address),
		"use an address such as 127.0.0.1:5000; to serve other machines run `ccship-server serve`")
}

// taken says why an address cannot be used. It dials first, because some systems let a program listen on one address
// while another listens on all of them.
func taken(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: 200 * time.Millisecond}
	if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
		return errors.Join(errors.New("someone answers"), conn.Close())
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return ln.Close()
}

func freeAddress(ctx context.Context) (string, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}

// EnsureKey creates a key in the database unless both exist, and says whether the database is new. The daemon's state
// of an earlier database is set aside: it would claim that lines are delivered which the new one never got.
func (h Home) EnsureKey(ctx context.Context, program string) (fresh bool, err error) {
	_, dbErr := os.Stat(h.File("server.db"))
	_, keyErr := os.Stat(h.File("api_key"))
	if dbErr == nil && keyErr == nil {
		return false, nil
	}
	if fresh = errors.Is(dbErr, fs.ErrNotExist); fresh {
		aside := h.File("state.before-" + time.Now().UTC().Format("20060102T150405"))
		if err := os.Rename(h.File("state"), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("set old state aside: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, program, "key", "create", "--name", "ccship up", "--store", h.store())
	out, err := cmd.Output()
	if err != nil {
		return false, control.Failed("create a key: "+lastWords(err), "see `"+program+" key create --help`")
	}
	return fresh, sys.WriteFile(h.File("api_key"), append(bytes.TrimSpace(out), '\n'))
}

// lastWords returns what a program said before it failed, or how it failed.
func lastWords(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if text := strings.TrimSpace(string(exit.Stderr)); text != "" {
			return text
		}
	}
	return err.Error()
}

// openLog opens a log to go on with, or to begin anew once it has grown large.
func openLog(path string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > show.MaxLog {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}
