package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript/redact"
)

// RedactKeyFile returns the file with the key for tokens of secrets: next to the configuration, outside the state.
func (c *Config) RedactKeyFile() string {
	return filepath.Join(filepath.Dir(c.Path), "redact_key")
}

// ProvenServersFile returns the file of a protocol.ProvenServers.
func (c *Config) ProvenServersFile() string { return filepath.Join(c.StateDir, "proven_servers") }

// RedactKey reads the key for tokens, and makes one when there is none. If the file cannot be read or made, the error
// is a *Error: without the key nothing can be masked.
func (c *Config) RedactKey() (redact.Key, error) {
	path := c.RedactKeyFile()
	key, err := readRedactKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = c.newRedactKey(path)
		if err == nil || errors.Is(err, fs.ErrExist) { // another process may have been faster
			key, err = readRedactKey(path)
		}
	}
	if err != nil {
		return redact.Key{}, redactKeyError(path, err)
	}
	return key, nil
}

func readRedactKey(path string) (redact.Key, error) {
	info, err := os.Stat(path)
	if err == nil && !othersKeepOut(info.Mode()) {
		err = fmt.Errorf("readable or writable by others (mode %04o): `chmod 600` it", info.Mode().Perm())
	}
	if err != nil {
		return redact.Key{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return redact.Key{}, err
	}
	return redact.ParseKey(string(text))
}

func (c *Config) newRedactKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := sys.CreateFile(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.WriteString(redact.NewKey().Text() + "\n"); err != nil {
		return err
	}
	return f.CommitNew()
}

// WriteRedactKey sets the key for tokens; only this user can read the file. Another key stays, unless replace says
// otherwise: only that one proves the tokens that it made.
func (c *Config) WriteRedactKey(key redact.Key, replace bool) error {
	path := c.RedactKeyFile()
	if old, err := readRedactKey(path); err == nil && old != key && !replace {
		return &Error{
			Message: fmt.Sprintf("masking key %s: this machine has another key already, for what it has sent", path),
			Hint: "with --replace, `ccship verify` no longer proves the tokens that the other key made, and " +
				"`verify --repair` sends these lines again",
		}
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = sys.WriteFile(path, []byte(key.Text()+"\n"))
	}
	if err != nil {
		return redactKeyError(path, err)
	}
	return nil
}

func redactKeyError(path string, err error) error {
	return &Error{
		Message: fmt.Sprintf("masking key %s: %v", path, err),
		Hint: "make the file readable and its folder writable for this user, " +
			"`ccship redact key` a key, or set redact to off",
		Cause: err,
	}
}

// Maskers holds the masker with the general rules, and one for each project that has rules of its own.
type Maskers struct {
	common   *redact.Masker
	projects []projectMasker // the deepest folders first
}

type projectMasker struct {
	dir    string
	masker *redact.Masker
}

// Of returns the masker for texts of a project, given a folder in it; "" for none.
func (m *Maskers) Of(dir string) *redact.Masker {
	for _, p := range m.projects {
		if sys.Within(p.dir, dir) {
			return p.masker
		}
	}
	return m.common
}

// Maskers makes the maskers from the key and all rules. Without a server nothing is sent: then it uses a temporary key,
// and makes no key file.
func (c *Config) Maskers() (*Maskers, error) {
	_, err := os.Stat(c.RedactKeyFile())
	if c.ServerURL == "" && len(c.TrustedProjects) == 0 && errors.Is(err, fs.ErrNotExist) {
		return c.MaskersOf(redact.NewKey())
	}
	key, err := c.RedactKey()
	if err != nil {
		return nil, err
	}
	return c.MaskersOf(key)
}

// MaskersOf is Maskers with a given key.
func (c *Config) MaskersOf(key redact.Key) (*Maskers, error) {
	sets, err := c.redactRules()
	if err != nil {
		return nil, err
	}
	m := &Maskers{}
	if m.common, err = maskerIn("", key, sets); err != nil {
		return nil, err
	}
	for _, set := range sets {
		for _, dir := range set.projects {
			masker, err := maskerIn(dir, key, sets)
			if err != nil {
				return nil, err
			}
			m.projects = append(m.projects, projectMasker{dir, masker})
		}
	}
	slices.SortStableFunc(m.projects, func(a, b projectMasker) int { return cmp.Compare(len(b.dir), len(a.dir)) })
	return m, nil
}

// maskerIn returns the masker with the rules for a folder; "": with the general rules.
func maskerIn(dir string, key redact.Key, sets []ruleSet) (*redact.Masker, error) {
	var rules []redact.Rule
	var allow []redact.Allow
	for _, set := range sets {
		concerned := slices.ContainsFunc(set.projects, func(p string) bool { return sys.Within(p, dir) })
		if len(set.projects) == 0 || dir != "" && concerned {
			rules, allow = append(rules, set.rules...), append(allow, set.allow...)
		}
	}
	m, err := redact.NewAllowing(key, allow, rules...)
	if err != nil {
		return nil, &Error{Message: "redact_rules: " + err.Error(), Hint: "correct the rule; expressions are those of RE2",
			Cause: err}
	}
	return m, nil
}

// ruleSet is the content of a rules file.
type ruleSet struct {
	projects []string // folders; none: everything
	rules    []redact.Rule
	allow    []redact.Allow // for the built-in rules too
}

func (c *Config) redactRules() ([]ruleSet, error) {
	var all []ruleSet
	for _, path := range c.RedactRules {
		set, err := c.readRules(path)
		if err != nil {
			return nil, &Error{
				Message: fmt.Sprintf("redact_rules: %s: %v", path, err),
				Hint:    "the file holds [[rules]] as gitleaks reads them: id, regex, keywords", Cause: err,
			}
		}
		all = append(all, set)
	}
	return all, nil
}

// rulesFile is a configuration of gitleaks, as far as it concerns texts.
// See https://github.com/gitleaks/gitleaks#configuration.
type rulesFile struct {
	Projects []string `toml:"projects"` // ours: folders that the file is for
	Rules    []struct {
		ID          string      `toml:"id"`
		Regex       string      `toml:"regex"`
		SecretGroup int         `toml:"secretGroup"`
		Entropy     float64     `toml:"entropy"`
		Keywords    []string    `toml:"keywords"`
		Path        string      `toml:"path"`
		Allowlist   *allowList  `toml:"allowlist"`
		Allowlists  []allowList `toml:"allowlists"`
	} `toml:"rules"`
	Allowlist  *allowList      `toml:"allowlist"`
	Allowlists []allowList     `toml:"allowlists"`
	Extend     *map[string]any `toml:"extend"`
}

type allowList struct {
	Condition   string   `toml:"condition"`
	RegexTarget string   `toml:"regexTarget"`
	Regexes     []string `toml:"regexes"`
	StopWords   []string `toml:"stopwords"`
	Paths       []string `toml:"paths"`
	TargetRules []string `toml:"targetRules"`
}

// shortestKeyword is the shortest useful keyword.
const shortestKeyword = 3

// readRules reads a rules file. It skips rules that only look at paths.
func (c *Config) readRules(path string) (ruleSet, error) {
	var set ruleSet
	var file rulesFile
	if _, err := toml.DecodeFile(path, &file); err != nil {
		return set, err
	}
	if file.Extend != nil {
		return set, errors.New("[extend] is not supported: name the other file in redact_rules too")
	}
	for _, dir := range file.Projects {
		abs, err := sys.Places{Home: c.Home()}.Absolute(dir)
		if err != nil {
			return set, fmt.Errorf("projects: %w", err)
		}
		set.projects = append(set.projects, abs)
	}
	common := file.Allowlists
	if file.Allowlist != nil {
		common = append(common, *file.Allowlist)
	}
	for _, a := range common {
		set.allow = append(set.allow, a.rule())
	}
	for _, r := range file.Rules {
		if r.Regex == "" {
			continue
		}
		rule := redact.Rule{
			Name: ruleName(r.ID), Pattern: r.Regex, Group: r.SecretGroup, Entropy: r.Entropy, Path: r.Path, Fold: true,
			Before: 256, After: 1024,
		}
		for _, k := range r.Keywords {
			if len(k) < shortestKeyword {
				rule.Literals = nil // the rule is tried everywhere
				break
			}
			rule.Literals = append(rule.Literals, k)
		}
		lists := r.Allowlists
		if r.Allowlist != nil {
			lists = append(lists, *r.Allowlist)
		}
		for _, a := range lists {
			rule.Allow = append(rule.Allow, a.rule())
		}
		set.rules = append(set.rules, rule)
	}
	return set, nil
}

func (a *allowList) rule() redact.Allow {
	var names []string
	for _, id := range a.TargetRules {
		names = append(names, ruleName(id))
	}
	return redact.Allow{
		Rules:    names,
		Patterns: a.Regexes, Target: a.RegexTarget, StopWords: a.StopWords, Paths: a.Paths,
		All: strings.EqualFold(a.Condition, "AND") || a.Condition == "&&",
	}
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// ruleName makes the name in a rule's tokens from its id.
func ruleName(id string) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(id), "-"), "-")
	return name[:min(len(name), 40)]
}
