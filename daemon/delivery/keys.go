package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
)

// errOtherKey means that the key was not made for this server.
var errOtherKey = errors.New("the key is another one now, and this is not your server any more")

// errNotInForce means that the server may no longer be the user's own.
var errNotInForce = errors.New("the key is another one now, and the configuration has changed too and is not in " +
	"force yet")

// SetOwn makes the server of a configuration the user's own, with its key file. Rows queued for the former server still
// go there.
func (s *Servers) SetOwn(c *config.Config) {
	key := &keyFile{path: c.APIKeyFile, optional: c.OriginOf("api_key_file") == config.FromDefault}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own, s.ownKey = c.ServerURL, key
}

// ownWithKey returns the user's own server, and the file with its key.
func (s *Servers) ownWithKey() (own string, key *keyFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own, s.ownKey
}

// Reader returns a client of a server's reading API. It is never nil.
func (s *Servers) Reader(dest string) *remote.Client {
	client := &remote.Client{HTTP: s.Client, Agent: s.Origin.UserAgent}
	raw, dir, ofProject := project.SplitDestination(dest)
	base, key, err := outbox.NormalizeURL(raw) // a tombstone may have a spelling of an earlier version
	if err != nil {
		client.Base, client.Key = &url.URL{}, func() (string, error) { return "", err }
		return client
	}
	if ofProject {
		key = project.DestinationKey(key, dir)
	}
	client.Base, client.Key = base, s.keyOf(key, base)
	s.mu.Lock()
	defer s.mu.Unlock()
	client.HTTP = s.clientOf(key, base)
	return client
}

// keyOf returns the function that reads a destination's key: that of the project which named it, or the user's.
func (s *Servers) keyOf(dest string, url *url.URL) func() (string, error) {
	if _, dir, ofProject := project.SplitDestination(dest); ofProject {
		return projectKey(dir)
	}
	return s.userKey(dest, url)
}

// userKey reads the user's key for dest. A retired server that still has rows waiting gets a key only if it is the key
// under which it accepted rows: the key file may now hold the new server's key. The same goes for the user's own server
// while the configuration on disk is not in force, because that may name another server.
func (s *Servers) userKey(dest string, url *url.URL) func() (string, error) {
	return func() (string, error) {
		own, file := s.ownWithKey()
		key, err := file.read()
		if err != nil || key == "" || dest == own && s.Owner.ConfigInForce() {
			return key, err
		}
		learned, err := s.State.Outbox.Learned(context.Background(), dest)
		switch {
		case err != nil:
			return "", err
		case learned.Knows(url, key, s.Plain):
			return key, nil
		case dest == own:
			s.keyWithheld.Store(true)
			return "", errNotInForce
		}
		return "", errOtherKey
	}
}

// projectKey reads the key from a project's own credentials, again after each change.
func projectKey(dir string) func() (string, error) {
	finder := project.NewFinder()
	return func() (string, error) {
		p, err := finder.Find(dir)
		if err != nil {
			return "", err
		}
		if p.APIKey == "" {
			return "", fmt.Errorf("no api_key in %s", project.CredentialsPath(dir))
		}
		return p.APIKey, nil
	}
}

// RetryWithheldKey retries servers whose key was withheld, once the configuration on disk is in force.
func (s *Servers) RetryWithheldKey() {
	if s.keyWithheld.Swap(false) {
		s.Retry(true)
	}
}

// KeyStamps changes whenever a file with a key in it does: the user's own, or a project's.
func (s *Servers) KeyStamps() string {
	_, own := s.ownWithKey()
	stamps := []string{own.stamp()}
	for dest := range s.drainers() {
		if _, dir, ofProject := project.SplitDestination(dest); ofProject {
			file := keyFile{path: project.CredentialsPath(dir)}
			stamps = append(stamps, dest+" "+file.stamp())
		}
	}
	slices.Sort(stamps)
	return strings.Join(stamps, "\n")
}
