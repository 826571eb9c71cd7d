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
