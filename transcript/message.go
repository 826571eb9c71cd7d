package transcript

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// SyntheticModel is the model of answers that Claude Code made up itself: error notices, fillers.
const SyntheticModel = "<synthetic>"

// Message is the message of a user or assistant record. Its content is decoded only by Blocks or Text.
type Message struct {
	ID         string // of the answer; an answer has one line per block, all with this id
	Model      string
	StopReason string
	Usage      *Usage   // nil if the line has none
	Billing    *Billing // nil if the usage is billed as the model's, and is all there is
	blocks     []RawBlock
}

// BlockKind is the kind of a content block.
type BlockKind uint8

const (
	OtherBlock BlockKind = iota // of an unknown type; see Type and Raw
	TextBlock
	ThinkingBlock
	RedactedThinkingBlock
	ToolUseBlock    // tool_use, server_tool_use, mcp_tool_use
	ToolResultBlock // tool_result, web_search_tool_result and other types with this suffix
	ImageBlock
	DocumentBlock
)

// Block is one block of a message's content.
type Block struct {
	Kind      BlockKind
	Type      string // as written
	Text      string // of text and thinking
	ToolID    string // tool_use.id, or the tool_use_id that a result answers
	ToolName  string
	Input     json.RawMessage // of a tool use; nil if absent
	Error     bool            // a tool result with is_error
	Content   []Block         // of a tool result; a plain string is one TextBlock
	MediaType string          // of an image or document
	Data      []byte          // of an image or document: base64 or text, not decoded
	Raw       json.RawMessage // the block as written; for plain text the JSON string
}

// Synthetic reports whether Claude Code rather than a model wrote the message.
func (m *Message) Synthetic() bool { return m.Model == SyntheticModel }

// RawBlocks returns the content's blocks, not decoded. They belong to the message and point into the line.
func (m *Message) RawBlocks() []RawBlock { return m.blocks }

// parseTime parses a time in RFC 3339, or a number as UnixTime does. Invalid or implausible times are zero.
func parseTime(value []byte) time.Time { return PlausibleTime(writtenTime(value)) }

// PlausibleTime returns t, or the zero time if t lies outside the years 1970 to 9999 in UTC. No record is from then,
// and encoding/json cannot encode times after year 9999, which a zone offset can reach.
func PlausibleTime(t time.Time) time.Time {
	if y := t.Year(); y < 1970 || y > 9999 {
		return time.Time{}
	}
	return t
}

// UnixTime returns the time that a number since 1970 states, in UTC; zero where it is none after 1970. Its size says
// its unit: below 100 000 000 000 seconds (until the year 5138), a thousand times that milliseconds, else microseconds.
func UnixTime(n int64) time.Time {
	const most = 100_000_000_000
	switch {
	case n <= 0:
		return time.Time{}
	case n < most:
		return time.Unix(n, 0).UTC()
	case n < most*1000:
		return time.UnixMilli(n).UTC()
	}
	return time.UnixMicro(n).UTC()
}

// writtenTime returns the time that a value states, in UTC.
func writtenTime(value []byte) time.Time {
	s := stringContents(value)
	if s == nil {
		return UnixTime(integer(value))
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

var (
	placeholders = regexp.MustCompile(`\[(?:Image|Pasted text) #\d+[^\]\n]{0,40}\]`)
	headings     = regexp.MustCompile(`(?m)^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*$`)
	fences       = regexp.MustCompile("(?m)^[ \t]{0,3}(?:```|~~~).*$")
	lineMarks    = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}|>|[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?`)
	links        = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`)
	inlineMarks  = regexp.MustCompile("\\*\\*|~~|`+")
	elementMarks = regexp.MustCompile(`</?([A-Za-z][\w-]*)(?:\s[^<>\n]*)?>`)
	everyPlans   = regexp.MustCompile(`(?i)^(?:implementation )?(?:plan|context|overview|summary|goal)$`)
	loneCommand  = regexp.MustCompile(`^/[\w:.-]+$`)
)

// titleText is how much of a text is looked at for a title, in bytes.
const titleText = 8 << 10

// PromptHeading returns a prompt as a title, on one line of at most limit characters and without markup: its own
// heading if it begins with one. It is "" for a prompt that says nothing by itself: a command alone, or only pictures.
func PromptHeading(text string, limit int) string {
	text = strings.TrimSpace(placeholders.ReplaceAllString(Cut(text, titleText), " "))
	if at := headings.FindStringSubmatchIndex(text); at != nil && at[0] == 0 {
		text = text[at[2]:at[3]]
	}
	text = strings.TrimSpace(OneLine(withoutMarkup(text), limit))
	if loneCommand.MatchString(text) || text == ImageOnly {
		return ""
	}
	return text
}

// PlanHeading returns the first heading of a plan, without markup; "" if it has none, or one that every plan could
// have.
func PlanHeading(plan string, limit int) string {
	found := headings.FindStringSubmatch(Cut(plan, titleText))
	if found == nil {
		return ""
	}
	text := strings.TrimSpace(OneLine(withoutMarkup(found[1]), limit))
	for _, word := range []string{"Implementation plan:", "Implementation Plan:", "Plan:", "Plan —", "Plan -"} {
		if rest, ok := strings.CutPrefix(text, word); ok && strings.TrimSpace(rest) != "" {
			return strings.TrimSpace(rest)
		}
	}
	if everyPlans.MatchString(text) {
		return ""
	}
	return text
}

// withoutMarkup takes the marks of Markdown and of elements that are closed out of a text.
func withoutMarkup(text string) string {
	text = fences.ReplaceAllString(text, "")
	text = lineMarks.ReplaceAllString(text, "")
	text = links.ReplaceAllString(text, "$1")
	text = inlineMarks.ReplaceAllString(text, "")
	return elementMarks.ReplaceAllStringFunc(text, func(mark string) string {
		name := elementMarks.FindStringSubmatch(mark)[1]
		if !strings.Contains(text, "</"+name+">") {
			return mark // no markup, as in Vec<String>
		}
		return " "
	})
}

// FirstCwd returns the working directory in the first record that has one. lines is any number of lines; damaged ones
// are searched too. Unlike the name of a transcript's folder, it is reliable.
func FirstCwd(lines []byte) (cwd string, ok bool) {
	return first(lines, []byte(`"cwd"`), func(l *Line) []byte { return l.Cwd })
}

// FirstSessionID returns the sessionId in the first record that has one. For an agent's transcript outside a session's
// folder, it is the parent session.
func FirstSessionID(lines []byte) (id string, ok bool) {
	return first(lines, []byte(`"sessionId"`), func(l *Line) []byte { return l.SessionID })
}

// first finds the first record for which of is not empty. It skips lines that do not contain name, unless escapes may
// hide it.
func first(lines, name []byte, of func(*Line) []byte) (string, bool) {
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if !bytes.Contains(line, name) && !bytes.Contains(line, []byte(`\u00`)) && bytes.IndexByte(line, 0) < 0 {
			continue
		}
		l := Scan(line)
		if l.Shape != Malformed {
			if v := of(&l); len(v) > 0 {
				return Unquote(v), true
			}
			continue
		}
		for _, object := range Recover(line) {
			l := Scan(object)
			if v := of(&l); len(v) > 0 {
				return Unquote(v), true
			}
		}
	}
	return "", false
}

// StreamName returns the name of a transcript on the wire. name is "<session>" for a main transcript,
// "<session>/agent-<id>" for an agent's in its session's folder, and "agent-<id>" for an older one next to the
// sessions, which is placed under its parent if that is known; parent is escaped already. copies above 1 distinguishes
// further files of the same name.
func StreamName(name, parent string, copies int) string {
	name = EscapeName(name)
	if parent != "" && strings.HasPrefix(name, "agent-") && !strings.Contains(name, "/") {
		name = parent + "/" + name
	}
	if copies > 1 {
		name += "~" + strconv.Itoa(copies)
	}
	return name
}

// ParentName returns the session that an agent's transcript belongs to, "" if its name does not say.
func ParentName(name string) string {
	parent, _, found := strings.Cut(name, "/")
	if !found {
		return ""
	}
	return parent
}

// MainSession returns the session that a stream's work belongs to. An agent's work belongs to its parent session:
// parent, or if that is empty, the one in the stream's name.
func MainSession(stream, parent string) string {
	return cmp.Or(parent, ParentName(stream), stream)
}

// maxSessionName is the longest name of a session, in bytes.
const maxSessionName = 200

// ValidSession reports whether a session can have a name. The names come from others, and become parts of keys.
func ValidSession(name string) bool {
	return name != "" && len(name) <= maxSessionName && !strings.ContainsFunc(name, unicode.IsControl)
}

// ForgetNames returns the names whose forgetting covers a stream: its own first, each name once. A session's further
// file "<session>~2" is covered by "<session>", an agent's "<session>/agent-<id>" by its session. The daemon checks
// before it sends and the server before it stores, and both must agree. Nil for "".
func ForgetNames(stream string) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(stream)
	add(WithoutCopy(stream))
	parent := ParentName(stream)
	add(parent)
	add(WithoutCopy(parent))
	return names
}

// Covering returns the stream that the others belong to: a session among its further files and agents. It returns false
// if there is none.
func Covering(streams []string) (string, bool) {
	for _, name := range streams {
		if !slices.ContainsFunc(streams, func(other string) bool { return !slices.Contains(ForgetNames(other), name) }) {
			return name, true
		}
	}
	return "", false
}

// WithoutCopy returns a stream's name without the number that StreamName appends: the session's own.
func WithoutCopy(name string) string {
	i := strings.LastIndexByte(name, '~')
	if i < 0 || i+1 == len(name) || strings.Trim(name[i+1:], "0123456789") != "" {
		return name
	}
	return name[:i]
}

// HistoryName returns the stream of the prompt history next to a projects folder. The history belongs to no session, so
// it is named after the machine and the folder's path.
func HistoryName(machine, root string) string {
	sum := sha256.Sum256([]byte(root))
	return "history-" + machine + "-" + hex.EncodeToString(sum[:4])
}
