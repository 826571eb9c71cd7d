package daemon

import (
	"net/url"
	"strings"

	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
)

// Library is the user's sessions on disk and on the user's own server, as the daemon would see them; it needs none
// that runs.
func (c Config) Library() (*library.Library, error) {
	machine, err := machineName(c.StateDir)
	if err != nil {
		return nil, err
	}
	l := &library.Library{Roots: c.Roots, Machine: machine}
	if c.ServerURL == "" {
		return l, nil
	}
	base, _, err := outbox.NormalizeURL(c.ServerURL)
	if err != nil {
		return nil, &ConfigError{Message: err.Error(), Hint: "mend server_url"}
	}
	l.Server = &remote.Client{Base: base, Key: ownKeyFile(&c).read, HTTP: outbox.NewClient(1), Agent: "ccship/" + c.Version}
	return l, nil
}

// reader is how a destination is asked what it has.
func (d *destinations) reader(dest string) *remote.Client {
	raw, dir, projects := strings.Cut(dest, "#")
	base, _ := url.Parse(raw) // was normalised before it became a destination
	key := d.userKey(dest, base)
	if projects {
		key = projectCredentials(dir)
	}
	return &remote.Client{Base: base, Key: key, HTTP: d.client, Agent: d.origin.UserAgent}
}
