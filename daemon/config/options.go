package config

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/outbox"
)

// optionKind says how the text of a value is parsed.
type optionKind uint8

const (
	kindURL    optionKind = iota // http or https, normalised
	kindPath                     // a file or folder; ~ is expanded
	kindPaths                    // several of them
	kindGlobs                    // several patterns of folders; ~ is expanded
	kindWords                    // several words
	kindChoice                   // one of Option.Choices
	kindBool                     // true or false
	kindSize                     // bytes: 4096, 64MiB, 2GiB
	kindCount                    // a whole number from 1 up
)

// Option is one configuration key: a line of the table from which the file, the environment, `config show`, error
// messages and the documentation are made.
type Option struct {
	Name    string // the key in config.toml
	Kind    optionKind
	Choices []string // of a choice
	Most    int64    // of a count, the largest; 0: any
	Default string   // as a person would read it; "" is none
	Live    bool     // a running daemon applies a change at once, else after a restart
	Doc     string   // one sentence
}

// Env returns the environment variable that sets the option.
func (o Option) Env() string { return "CCSHIP_" + strings.ToUpper(o.Name) }

// Flag returns the option's name on the command line, without its dashes.
func (o Option) Flag() string { return strings.ReplaceAll(o.Name, "_", "-") }

// List says whether the option takes several values.
func (o Option) List() bool {
	return o.Kind == kindPaths || o.Kind == kindGlobs || o.Kind == kindWords
}

// Type returns the kind of value in a word.
func (o Option) Type() string {
	switch o.Kind {
	case kindURL:
		return "URL"
	case kindPath:
		return "path"
	case kindPaths:
		return "list of paths"
	case kindGlobs:
		return "list of folder patterns"
	case kindWords:
		return "list of words"
	case kindChoice:
		return strings.Join(o.Choices, " | ")
	case kindBool:
		return "true | false"
	case kindSize:
		return "size"
	default:
		return "number"
	}
}

// Options returns all keys, in the order in which they are shown.
func Options() []Option {
	return append([]Option{
		{Name: "server_url", Kind: kindURL, Live: true,
			Doc: "Server that gets every line, http://, https:// or unix:///PATH; nothing is queued or sent until it is set."},
		{Name: "api_key_file", Kind: kindPath, Default: "api_key next to config.toml", Live: true,
			Doc: "File of mode 0600 that holds the server's key."},
		{Name: "roots", Kind: kindPaths, Default: "$CLAUDE_CONFIG_DIR/projects, ~/.claude/projects", Live: true,
			Doc: "Folders that hold Claude Code's projects; they replace the defaults."},
		{Name: "state_dir", Kind: kindPath, Default: "$XDG_STATE_HOME/ccship", Doc: "Folder of cursors and outbox."},
		{Name: "socket", Kind: kindPath, Default: "$XDG_RUNTIME_DIR/ccship/ccship.sock",
			Doc: "Control socket; without a runtime directory it is in state_dir."},
		{Name: "log_level", Kind: kindChoice, Choices: []string{"debug", "info", "warn", "error"}, Default: "info",
			Live: true, Doc: "Least serious message that is logged."},
		{Name: "watch", Kind: kindChoice, Choices: []string{"auto", "events", "poll"}, Default: "auto",
			Doc: "How changes are found: by file system events or by polling; auto polls on macOS."},
		{Name: "protocol", Kind: kindChoice, Choices: []string{"auto", "plain"}, Default: "auto",
			Doc: "plain never sends the extension object."},
		{Name: "trusted_projects", Kind: kindPaths, Live: true,
			Doc: "Project folders whose own .codetracker server_url and project_hash are followed."},
		{Name: "exclude_projects", Kind: kindGlobs, Live: true,
			Doc: "Folders whose conversations are not sent, with everything below them; * and ** match names."},
		{Name: "exclude_types", Kind: kindWords, Live: true,
			Doc: "Record types that are not sent; the other lines keep their numbers."},
		{Name: "history", Kind: kindBool, Default: "true", Live: true,
			Doc: "Send the prompt history history.jsonl to servers that speak the extension."},
		{Name: "max_entries_per_request", Kind: kindCount, Default: "100", Live: true, Doc: "Most entries in one request."},
		{Name: "outbox_cap", Kind: kindSize, Default: "2GiB", Live: true,
			Doc: "Largest outbox, in compressed bytes; when it is full, reading stops and nothing is dropped."},
		{Name: "head_room", Kind: kindSize, Default: "0", Live: true,
			Doc: "Free disk space at which reading stops; 0 is 256 MiB, on small disks 2 %."},
		{Name: "line_cap", Kind: kindSize, Default: "64MiB",
			Doc: "Longest line that is sent; for a longer one the server gets its length and sha256."},
		{Name: "compact_above", Kind: kindSize, Default: "64MiB", Live: true,
			Doc: "Size above which a mostly empty state file is compacted."},
		{Name: "messages_kept", Kind: kindCount, Most: 1000, Default: "200", Live: true,
			Doc: "Messages in the short history of a session, at most 1000."},
		{Name: "message_input_limit", Kind: kindCount, Most: 10_000, Default: "300", Live: true,
			Doc: "Characters of a tool's input in the short history."},
		{Name: "message_output_limit", Kind: kindCount, Most: 10_000, Default: "500", Live: true,
			Doc: "Characters of a tool's output in the short history."},
		{Name: "locale", Kind: kindChoice, Choices: []string{"en", "ko"}, Live: true,
			Doc: "Language of the plugin's texts for Claude; by default that of LC_ALL, LC_MESSAGES or LANG, or else English."},
		{Name: "document_cap", Kind: kindSize, Default: "16MiB", Live: true,
			Doc: "Largest linked document whose content is sent; a larger one is reported as too large."},
		{Name: "blob_cap", Kind: kindSize, Default: "64MiB", Live: true,
			Doc: "Largest attachment that is sent: large tool results and agent metadata stored next to transcripts."},
		{Name: "prices", Kind: kindPath, Live: true,
			Doc: "File of token prices for `ccship usage`, in place of the built-in list."},
		{Name: "viewer_links", Kind: kindBool, Default: "false", Live: true,
			Doc: "Link the documents that people ask for in the server's viewer. A server could ask for any file of a project."},
	}, redactOptions()...)
}

func redactOptions() []Option {
	return []Option{
		{Name: "redact", Kind: kindChoice, Choices: []string{"auto", "on", "off"}, Default: "auto", Live: true,
			Doc: "Mask secrets before they are queued; auto does unless the server is on this machine."},
		{Name: "redact_rules", Kind: kindPaths, Live: true,
			Doc: "Files with further rules of masking, in the format of gitleaks."},
	}
}

// LookupOption finds an option by its key.
func LookupOption(name string) (Option, bool) {
	for _, o := range Options() {
		if o.Name == name {
			return o, true
		}
	}
	return Option{}, false
}

// unknownOption is the error for an unknown key; where is its file and line, or empty.
func unknownOption(name, where string) error {
	nearest := slices.MinFunc(Options(), func(a, b Option) int {
		return amount.Distance(name, a.Name) - amount.Distance(name, b.Name)
	})
	return &Error{
		Message: where + "unknown key " + quote(name) + ", the nearest known one is " + quote(nearest.Name),
		Hint:    "`ccship config --help` lists every key",
	}
}

// set parses an option's text and sets its field.
func (c *Config) set(o Option, s setting, p sys.Places) error {
	c.origins[o.Name] = s.provenance
	if len(s.texts) == 0 {
		return nil
	}
	values, err := understand(o, s.texts, p)
	if err != nil {
		return s.blame(o, err)
	}
	switch field := c.field(o.Name).(type) {
	case *string:
		*field = values[0].(string)
	case *[]string:
		*field = (*field)[:0]
		for _, v := range values {
			*field = append(*field, v.(string))
		}
	case *bool:
		*field = values[0].(bool)
	case *int64:
		*field = values[0].(int64)
	case *int:
		*field = int(values[0].(int64))
	case *slog.Level:
		return field.UnmarshalText([]byte(values[0].(string)))
	}
	return nil
}

// blame returns the error for an invalid value, with the place where it is written.
func (s setting) blame(o Option, err error) error {
	hint := o.Name + " takes: " + o.Type() + "; `ccship config --help` describes every key"
	var known *Error
	if errors.As(err, &known) && known.Hint != "" {
		hint = known.Hint
	}
	where := s.source
	if s.origin == FromFile {
		where += ": " + o.Name
	}
	return &Error{Message: fmt.Sprintf("%s: %v", where, err), Hint: hint}
}

// field returns a pointer to the field of an option.
func (c *Config) field(name string) any {
	return map[string]any{
		"server_url": &c.ServerURL, "api_key_file": &c.APIKeyFile, "roots": &c.Roots, "state_dir": &c.StateDir,
		"socket": &c.Socket, "log_level": &c.LogLevel, "watch": &c.Watch, "protocol": &c.Protocol,
		"trusted_projects": &c.TrustedProjects, "exclude_projects": &c.ExcludeProjects,
		"exclude_types": &c.ExcludeTypes, "history": &c.History,
		"max_entries_per_request": &c.MaxEntriesPerRequest, "outbox_cap": &c.OutboxCap, "head_room": &c.HeadRoom,
		"line_cap": &c.LineCap, "compact_above": &c.CompactAbove,
		"messages_kept": &c.MessagesKept, "message_input_limit": &c.MessageInputLimit,
		"message_output_limit": &c.MessageOutputLimit,
		"locale":               &c.Locale,
		"document_cap":         &c.DocumentCap, "viewer_links": &c.ViewerLinks,
		"blob_cap": &c.BlobCap, "prices": &c.Prices, "redact": &c.Redact, "redact_rules": &c.RedactRules,
	}[name]
}

// value returns what the field of an option holds, as a JSON value.
func (c *Config) value(name string) any {
	switch field := c.field(name).(type) {
	case *string:
		return *field
	case *[]string:
		return append([]string{}, *field...)
	case *bool:
		return *field
	case *int64:
		return *field
	case *int:
		return int64(*field)
	case *slog.Level:
		return strings.ToLower(field.String())
	}
	return nil
}

// split splits the text of a flag or a variable into values: paths as in PATH, words at commas.
func split(o Option, text string) []string {
	var parts []string
	switch o.Kind {
	case kindPaths, kindGlobs:
		parts = filepath.SplitList(text)
	case kindWords:
		parts = strings.Split(text, ",")
	default:
		return []string{strings.TrimSpace(text)}
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// understand converts the texts of one option to values of its kind.
func understand(o Option, texts []string, p sys.Places) ([]any, error) {
	var values []any
	for _, text := range texts {
		value, err := parse(o, text, p)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func parse(o Option, text string, p sys.Places) (any, error) {
	switch o.Kind {
	case kindURL:
		if text == "" {
			return "", nil
		}
		return NormalizeURL(text)
	case kindPath, kindPaths:
		if text == "" {
			return "", nil
		}
		return p.Absolute(text)
	case kindGlobs:
		return pattern(p, text)
	case kindChoice:
		if !slices.Contains(o.Choices, text) {
			return nil, fmt.Errorf("%s is none of %s", quote(text), strings.Join(o.Choices, ", "))
		}
	case kindBool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%s is neither true nor false", quote(text))
		}
		return b, nil
	case kindSize:
		return amount.ParseSize(text)
	case kindCount:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s is not a whole number of at least 1", quote(text))
		}
		if o.Most > 0 && n > o.Most {
			return nil, fmt.Errorf("%d is more than the maximum %d", n, o.Most)
		}
		return n, nil
	}
	return text, nil
}

// NormalizeURL returns the normal form of a server's URL: see outbox.NormalizeURL. An error is a *Error.
func NormalizeURL(text string) (string, error) {
	_, url, err := outbox.NormalizeURL(text)
	if err != nil {
		return "", &Error{Message: err.Error(),
			Hint: "a server URL looks like https://ccship.example.org or http://127.0.0.1:5000"}
	}
	return url, nil
}

func quote(s string) string { return strconv.Quote(s) }
