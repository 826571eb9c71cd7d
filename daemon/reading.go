package daemon

import (
	neturl "net/url"
	"strings"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
)

// reader is how a destination is asked what it has.
func (d *destinations) reader(dest string) *remote.Client {
	raw, dir, projects := strings.Cut(dest, "#")
	base, url, err := outbox.NormalizeURL(raw) // a tombstone may name a server as an earlier version spelled it
	if err != nil {
		failed := func() (string, error) { return "", err }
		return &remote.Client{Base: &neturl.URL{}, Key: failed, HTTP: d.client, Agent: d.origin.UserAgent}
	}
	key := d.userKey(url, base)
	if projects {
		key = projectCredentials(dir)
	}
	return &remote.Client{Base: base, Key: key, HTTP: d.client, Agent: d.origin.UserAgent}
}
