package config

import (
	"slices"
	"strings"

	"github.com/ccship/ccship/internal/amount"
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
