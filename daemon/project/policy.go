package project

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The defaults of the hook.
const (
	DefaultMaxEntries = 100
	// DefaultServerURL is assumed only where there are credentials: nothing goes to an unconfigured address.
	DefaultServerURL = "http://localhost:5000"
)

// Policy is what a working directory says.
type Policy struct {
	Dir     string // folder whose .codetracker decided, "" none; when not Enabled the one that opted out
	Enabled bool   // false: nothing of it may be queued, whatever other fields say
	Why     string // why it is not Enabled
	// ServerURL is the project's own server, "" none. It may have come with a cloned repository: see Destination.
	// Only APIKey opens it; a key of the user's own must never be sent there.
	ServerURL      string
	HasCredentials bool
	APIKey         string
	ProjectHash    string // from the credentials, "" none; see Hash for when it is used
	MaxEntries     int    // per request, > 0
	Remote         string // normalised git remote, "" none
	Repository     string // main work tree, if the directory lies in a linked one: a worktree belongs to its repository
	GitDir         string // .git of the main work tree, "" none, or in the user's home
	Gone           bool   // the working directory is not there
	Advice         string // what a person should put right in these files, "" nothing
	named          bool   // config.json names a server, usable or not
}

// ErrUnknown is wrapped by errors after which it is not known whether a project has opted out. A retry can help: the
// file may be half written, or its disk absent.
var ErrUnknown = errors.New("opt-out unknown")

// config is .codetracker/config.json. Members are decoded one by one, so that an invalid value affects no other.
type config struct {
	ServerURL    json.RawMessage `json:"server_url"`
	Conversation json.RawMessage `json:"conversation_tracking"`
}

// readPolicy reads the .codetracker folder of dir. found is false when dir has none, or one without the two files.
// An error wraps ErrUnknown, and the Policy with it is not Enabled.
func readPolicy(dir string) (p Policy, found bool, err error) {
	folder := filepath.Join(dir, folderName)
	if _, err := os.Lstat(folder); err != nil {
		if absent(err) || errors.Is(err, fs.ErrPermission) {
			// A directory that we may not enter keeps the hook out too: it contains no settings.
			return Policy{}, false, nil
		}
		return Policy{Dir: dir}, false, unknown("look for "+folder, err)
	}
	p = Policy{Dir: dir, Enabled: true, MaxEntries: DefaultMaxEntries}
	config, err := readFile(filepath.Join(folder, configName), maxFile)
	switch {
	case err == nil:
		found = true
		err = p.configure(config)
	case absent(err):
		err = nil
	}
	if err != nil {
		return Policy{Dir: dir}, true, unknown("read "+filepath.Join(folder, configName), err)
	}
	credentials, err := p.readCredentials(CredentialsPath(dir))
	if err != nil {
		return Policy{Dir: dir}, true, err
	}
	return p, found || credentials, nil
}

func unknown(doing string, err error) error {
	return fmt.Errorf("%s: %w (%w)", doing, err, ErrUnknown)
}

// absent reports whether nothing is at a path, or nothing that anyone could reach.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || isNoPath(err)
}

// configure applies config.json. An error means that the opt-out is not known.
func (p *Policy) configure(text []byte) error {
	var c config
	if err := unmarshalObject(text, &c); err != nil {
		return err
	}
	if given(c.ServerURL) {
		url, err := parseURL(c.ServerURL)
		if err != nil {
			p.advisef("server_url in %s is not used: %v", p.path(configName), err)
		}
		p.ServerURL, p.named = url, url != "" || err != nil
	}
	if !given(c.Conversation) {
		return nil
	}
	var tracking struct {
		Enabled    json.RawMessage `json:"enabled"`
		MaxEntries json.RawMessage `json:"max_entries_per_request"`
	}
	if err := unmarshalObject(c.Conversation, &tracking); err != nil {
		return errors.New("conversation_tracking is not an object")
	}
	if given(tracking.Enabled) {
		if err := json.Unmarshal(tracking.Enabled, &p.Enabled); err != nil {
			// "false" or 0 probably means an opt-out.
			return errors.New("conversation_tracking.enabled is neither true nor false")
		}
	}
	if given(tracking.MaxEntries) {
		p.limit(tracking.MaxEntries)
	}
	return nil
}

// limit applies max_entries_per_request. The hook treated 0 as "not set".
func (p *Policy) limit(raw json.RawMessage) {
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case err != nil || n < 0 || n > 0 && n < 1:
		p.advisef("max_entries_per_request in %s is not used: it is not a number above 0", p.path(configName))
	case n >= 1:
		p.MaxEntries = int(min(n, math.MaxInt32))
	}
}

// settle is how long a file that does not parse may still be in the process of being written.
const settle = 10 * time.Second

// readCredentials applies credentials.json, and reports whether it exists. The file decides the project's hash for
// good, so a file that is being written is waited for; one that stays broken counts as missing.
func (p *Policy) readCredentials(path string) (bool, error) {
	text, err := readFile(path, maxFile)
	if absent(err) {
		return false, nil
	}
	if err != nil && !permanent(err) {
		return false, unknown("read "+path, err)
	}
	var c struct {
		APIKey      string `json:"api_key"`
		ProjectHash string `json:"current_project_hash"`
	}
	if err == nil {
		if err = unmarshalObject(text, &c); err != nil && changedWithin(path, settle) {
			return false, unknown("read "+path, err)
		}
	}
	if err != nil {
		p.advisef("%s is not used: %v", path, err)
		return false, nil
	}
	p.HasCredentials, p.APIKey, p.ProjectHash = true, c.APIKey, c.ProjectHash
	if !p.named {
		p.ServerURL = DefaultServerURL
	}
	return true, nil
}

func (p *Policy) path(name string) string { return filepath.Join(p.Dir, folderName, name) }

// advisef keeps the first advice.
func (p *Policy) advisef(format string, args ...any) {
	if p.Advice == "" {
		p.Advice = fmt.Sprintf(format, args...)
	}
}

// parseURL parses an http or https address; "" means none.
func parseURL(raw json.RawMessage) (string, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("it is not a string")
	}
	if s == "" {
		return "", nil // the hook treated it as "not set"
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", errors.New("it is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("it is not an http or https URL")
	}
	return s, nil
}

// given reports whether a member exists and is not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// unmarshalObject decodes a JSON object, and refuses null, which json.Unmarshal ignores.
func unmarshalObject(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("parse JSON: %w", err)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return errors.New("not a JSON object")
	}
	return nil
}
