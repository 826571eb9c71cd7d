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
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
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

// IgnoreName is the file that keeps a folder and all folders below it on this machine. Only its name counts: ccship
// does not read it, and never makes one.
const IgnoreName = ".ccshipignore"

// rootExample is how an absolute path begins.
var rootExample = map[bool]string{false: "/", true: "a drive (C:/)"}[filepath.Separator == '\\']

// CheckPattern returns what is wrong with a folder pattern, in words for its author.
func CheckPattern(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty")
	case !doublestar.ValidatePattern(filepath.ToSlash(pattern)):
		return errors.New("the pattern is malformed: a bracket or brace is not closed, or a backslash escapes nothing")
	case !filepath.IsAbs(pattern) && !strings.HasPrefix(filepath.ToSlash(pattern), "**/"):
		return errors.New("the pattern must begin with " + rootExample + ", ~/ or **/")
	}
	return nil
}

// Literal returns the pattern that matches one folder, whatever characters its name has. Where backslashes are
// separators nothing can be escaped, so ? stands for a special character.
func Literal(dir string) string {
	odd := `*?[{}\`
	if filepath.Separator == '\\' {
		odd = "*?[{}"
	}
	var b strings.Builder
	for _, r := range filepath.ToSlash(dir) {
		switch {
		case !strings.ContainsRune(odd, r):
			b.WriteRune(r)
		case filepath.Separator == '\\':
			b.WriteByte('?')
		default:
			b.WriteString(`\` + string(r))
		}
	}
	return b.String()
}

// ExcludedBy returns the Why of a Policy that a pattern excludes.
func ExcludedBy(pattern string) string { return "excluded by exclude_projects: " + pattern }

// pattern is a glob for folders: as written, and in the form used for matching.
type pattern struct{ written, matched string }

type patterns []pattern

// newPatterns parses patterns that CheckPattern accepts. A pattern that names a folder by a link also matches the
// folder's real name.
func newPatterns(written []string) patterns {
	var all patterns
	for _, w := range written {
		all = append(all, pattern{w, matchable(w)})
		base, rest := doublestar.SplitPattern(matchable(w) + "/*") // so that all of a literal is its base
		if real, err := filepath.EvalSymlinks(filepath.FromSlash(base)); err == nil && matchable(real) != base {
			all = append(all, pattern{w, strings.TrimSuffix(matchable(Literal(real))+"/"+rest, "/*")})
		}
	}
	return all
}

// match returns the pattern that matches a folder or one above it; "" for none. It also tries the folder's name with
// links resolved and, of Windows, its usual form, so that an exclusion holds whichever name a transcript uses.
func (p patterns) match(dir string) string {
	if len(p) == 0 {
		return ""
	}
	names := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		names = append(names, real)
	}
	if runtime.GOOS == "windows" {
		names = append(names, Usual(dir))
	}
	for _, name := range names {
		for above := range upwards(name) {
			for _, one := range p {
				if doublestar.MatchUnvalidated(one.matched, matchable(above)) {
					return one.written
				}
			}
		}
	}
	return ""
}

// matchable returns a path or pattern with slashes, and in lower case where file systems usually ignore case.
func matchable(path string) string {
	path = filepath.ToSlash(path)
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		path = strings.ToLower(path)
	}
	return path
}

// ignored returns the marker file that keeps a folder here: in it or above it, up to home, or up to the root for
// folders outside of home. "" means none. An error means that it is not known.
func ignored(dir, home string) (string, error) {
	for above := range upwards(dir) {
		marker := filepath.Join(above, IgnoreName)
		_, err := os.Lstat(marker)
		switch {
		case err == nil:
			return marker, nil
		case !absent(err) && !errors.Is(err, fs.ErrPermission):
			return "", err
		}
		if above == home {
			break
		}
	}
	return "", nil
}

// LastSent returns the number of the last line of a session that the hook sent, as recorded in
// .codetracker/cache/last_snapshot.json below the project dir; ok is false without such a record. The file has two
// shapes; the older one lists files only. The transcript may have been rewound since: a number at or beyond its end
// means that no line can count as sent. ccship never writes this file.
func LastSent(dir, sessionID string) (line int64, ok bool) {
	if dir == "" || sessionID == "" {
		return 0, false
	}
	text, err := readFile(filepath.Join(dir, folderName, "cache", "last_snapshot.json"), maxSnapshot)
	if err != nil {
		return 0, false
	}
	// Decode into a map: in the older shape file names stand next to "transcript" and must match exactly.
	var snapshot map[string]json.RawMessage
	if json.Unmarshal(text, &snapshot) != nil {
		return 0, false
	}
	var note struct {
		SessionID string `json:"session_id"`
		LastSent  *int64 `json:"last_sent_line"`
	}
	if json.Unmarshal(snapshot["transcript"], &note) != nil || note.LastSent == nil {
		return 0, false
	}
	if note.SessionID != sessionID || *note.LastSent < 0 {
		return 0, false
	}
	return *note.LastSent, true
}
