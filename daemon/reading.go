package daemon

import (
	"net/url"
	"strings"

	"github.com/ccship/ccship/daemon/remote"
)

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
