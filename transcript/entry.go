package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The fixed parts of wire entries. The receiver cuts off byte for byte what the sender added, so they must not change.
const (
	indexPart    = `{"line_index":`
	opaquePart   = `,"type":"` + opaqueType + `","encoding":"base64","data":"`
	oversizePart = `,"type":"` + oversizeType + `","offset":`
	lengthPart   = `,"length":`
	sumPart      = `,"sha256":"`
	closePart    = `"}`
)

// EntryKind is the kind of line that an entry stands for.
type EntryKind uint8

const (
	ObjectEntry   EntryKind = iota // a line that is a JSON object, without the white space around it
	OpaqueEntry                    // any other line
	OversizeEntry                  // a line longer than the limit, which was not sent
)

// ErrEntry is wrapped by every error of RestoreEntry and ParseOversize: the entry violates the protocol, and retrying
// cannot help.
var ErrEntry = errors.New("not an entry")

// AppendEntry appends the entry of an Object to dst: line_index, then the object's own bytes. l is the result of
// Scan(line). White space around the object is not part of the entry.
func AppendEntry(dst, line []byte, l Line, index int64) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	if !l.Empty {
		dst = append(dst, ',')
	}
	return append(dst, line[l.Start+1:l.End]...)
}

// AppendOpaque appends the entry of a line of any other shape to dst: the whole line, in base64.
func AppendOpaque(dst, line []byte, index int64) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	dst = append(dst, opaquePart...)
	dst = base64.StdEncoding.AppendEncode(dst, line)
	return append(dst, closePart...)
}

// AppendOversize appends the entry for a line that is too long to send: its offset in the file, its length without the
// newline, and its hash.
func AppendOversize(dst []byte, index, offset, length int64, sha [32]byte) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	dst = append(dst, oversizePart...)
	dst = strconv.AppendInt(dst, offset, 10)
	dst = append(dst, lengthPart...)
	dst = strconv.AppendInt(dst, length, 10)
	dst = append(dst, sumPart...)
	dst = hex.AppendEncode(dst, sha[:])
	return append(dst, closePart...)
}

// RestoreEntry reverses Append*: it returns the line's number and its bytes, without surrounding white space. raw is
// nil for an OversizeEntry.
//
// An entry that starts exactly as AppendEntry writes it becomes the original line. Any other object is kept as it is,
// because a plain client may place line_index anywhere or add spaces; only its number is read, from the first top-level
// line_index, which must be an integer ≥ 0. White space around the entry is ignored. raw may point into entry, which is
// never modified. The error wraps ErrEntry.
func RestoreEntry(entry []byte) (index int64, raw []byte, kind EntryKind, err error) {
	l := Scan(entry)
	if l.Shape != Object && l.Shape != Reserved {
		return 0, nil, 0, fmt.Errorf("%w: no JSON object", ErrEntry)
	}
	if !l.HasLineIndex {
		return 0, nil, 0, fmt.Errorf("%w: no line_index", ErrEntry)
	}
	entry = entry[l.Start:l.End]
	index, err = parseIndex(l.lineIndex)
	if err != nil {
		return 0, nil, 0, err
	}
	rest, ok := bytes.CutPrefix(entry, []byte(indexPart))
	if ok {
		_, rest, ok = cutNumber(rest)
	}
	if !ok {
		return index, entry, ObjectEntry, nil
	}
	if data, ok := bytes.CutPrefix(rest, []byte(opaquePart)); ok {
		raw, err = restoreOpaque(data)
		return index, raw, OpaqueEntry, err
	}
	if bytes.HasPrefix(rest, []byte(oversizePart)) {
		_, err = ParseOversize(entry)
		return index, nil, OversizeEntry, err
	}
	return index, restoreObject(entry, rest), ObjectEntry, nil
}

// restoreObject restores the brace in front of what followed the number.
func restoreObject(entry, rest []byte) []byte {
	switch {
	case rest[0] == ',':
		rest = rest[1:]
	case skipSpace(rest, 0) != len(rest)-1:
		return entry // white space between number and comma: AppendEntry did not write this
	}
	raw := make([]byte, 1, 1+len(rest))
	raw[0] = '{'
	return append(raw, rest...)
}

func restoreOpaque(data []byte) ([]byte, error) {
	data, ok := bytes.CutSuffix(data, []byte(closePart))
	if !ok {
		return nil, fmt.Errorf("%w: opaque line with further members", ErrEntry)
	}
	// Strict, so that no two entries stand for one line. The decoder ignores line breaks, but the scan has already
	// rejected those.
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%w: opaque line: %w", ErrEntry, err)
	}
	if raw == nil {
		raw = []byte{} // an empty line is a line too
	}
	return raw, nil
}

// parseIndex parses a line number, which consists of digits only.
func parseIndex(s []byte) (int64, error) {
	n, rest, ok := cutNumber(s)
	if !ok || len(rest) > 0 {
		return 0, fmt.Errorf("%w: line_index is %.20q, not a whole number from 0", ErrEntry, s)
	}
	return n, nil
}

// cutNumber parses the digits at the start of s.
func cutNumber(s []byte) (n int64, rest []byte, ok bool) {
	end := skipDigits(s, 0)
	if end < 0 || end > 1 && s[0] == '0' {
		return 0, s, false
	}
	n, err := strconv.ParseInt(string(s[:end]), 10, 64)
	return n, s[end:], err == nil
}

// Oversize describes a line that was too long to send.
type Oversize struct {
	Offset, Length int64 // in bytes; Length does not include the newline
	SHA256         [32]byte
}

// ParseOversize parses what AppendOversize wrote. The error wraps ErrEntry.
func ParseOversize(entry []byte) (Oversize, error) {
	var o Oversize
	rest := bytes.Trim(entry, " \t\r\n")
	var numbers [3]int64
	for i, part := range []string{indexPart, oversizePart, lengthPart} {
		var ok bool
		if rest, ok = bytes.CutPrefix(rest, []byte(part)); ok {
			numbers[i], rest, ok = cutNumber(rest)
		}
		if !ok {
			return o, fmt.Errorf("%w: oversize note", ErrEntry)
		}
	}
	o.Offset, o.Length = numbers[1], numbers[2]
	rest, found := bytes.CutPrefix(rest, []byte(sumPart))
	sum, closed := bytes.CutSuffix(rest, []byte(closePart))
	if !found || !closed || len(sum) != 2*len(o.SHA256) {
		return o, fmt.Errorf("%w: oversize note", ErrEntry)
	}
	if _, err := hex.Decode(o.SHA256[:], sum); err != nil {
		return o, fmt.Errorf("%w: oversize note: %w", ErrEntry, err)
	}
	return o, nil
}

// Record is what is understood of one line. Strings are copies; ToolResult, Attached, Snapshot and the contents of
// Message point into the line, which must not change while they are in use. What a line does not say, or says in an
// unexpected kind, is the zero value.
type Record struct {
	// Type is the line's own, even if unknown. Subtype is that of a system record, the type of an attachment, or the
	// operation of a queue-operation.
	Type, Subtype string

	UUID, ParentUUID  string // the message tree; "" is null or absent
	LogicalParentUUID string // of a compact_boundary: the leaf before it; only for lineage
	SessionID         string // of the process that wrote it; in an agent's file the parent session
	AgentID           string // only in agents' files
	RequestID         string
	LeafUUID          string // of summary and last-prompt

	Time                             time.Time // of the event, UTC; zero if absent
	Cwd, Branch, Version, Entrypoint string
	Origin                           string // origin.kind: "human", "task-notification", …
	OriginName                       string // who that is: a session's name, a channel's, a subkind
	TurnOrigin                       string // of the record that begins a turn: "human", "scheduled", …
	PromptSource                     string // "typed", "queued", "system"
	PermissionMode                   string
	TeamName, TeamAgent              string
	// AskedModel is the model that was asked for, as its name says the size of the window: "claude-opus-4-6[1m]". Answers
	// have it, and the attachment that tells the model its own name.
	AskedModel string

	Meta           bool // isMeta: written by Claude Code for the model
	Sidechain      bool
	CompactSummary bool
	VisibleOnly    bool   // isVisibleInTranscriptOnly
	APIError       bool   // isApiErrorMessage
	FromPlan       bool   // a prompt made from an accepted plan
	StartedBy      string // why a SessionStart hook ran that the record is of: "startup", "resume", "clear", "compact"
	Scheduled      bool   // scheduledTaskId, wakeupSource: a schedule started the turn
	Companion      bool   // turnCompanion: context that goes with the next record

	// Message is set on user and assistant records only: in other types it repeats another record's.
	Message *Message
	// Text is the content of a system record, queue-operation or last-prompt, or the prompt of a queued_command.
	Text string
	// Title is set if TitleKind is not NoTitle. A summary is the title of the session that contains LeafUUID.
	Title     string
	TitleKind TitleKind
	Labels    *Labels         // tag, agent-name, pr-link
	Compact   *Compact        // of a compact_boundary or microcompact_boundary
	Duration  time.Duration   // of a turn_duration
	Error     string          // of an API error: its kind or message
	Queued    string          // commandMode of a queued_command: "prompt", "task-notification"
	SourceID  string          // sourceToolAssistantUUID: the line with the tool call that this result answers
	Lineage   *Lineage        // origin of copied or continued history
	Attached  json.RawMessage // the attachment as written
	Snapshot  json.RawMessage // the snapshot of a file-history-snapshot, or the path of a file-history-delta, as written
	// AgentAnswer is set on a progress record that repeats an answer of a subagent, as Claude Code 2.1.12 to 2.1.76
	// wrote them. Sometimes no other record has the answer. Its Line is 0.
	AgentAnswer *UsageSample
	// AgentRecord is the record of a subagent that a progress record of those versions repeats, as written.
	AgentRecord json.RawMessage
	// ToolResult is toolUseResult as written: an object, a string or an array.
	ToolResult json.RawMessage
}

// TitleKind is the source of a title; a higher one takes precedence.
type TitleKind uint8

const (
	NoTitle      TitleKind = iota
	OtherTitle             // what another than the person says first, where no prompt says something
	PromptTitle            // the first prompt that says something, instead of a title
	PlanTitle              // the heading of a plan
	SummaryTitle           // summary, written by old versions
	AITitle                // ai-title
	CustomTitle            // custom-title: set by the user
)

// Labels are a session's markings other than its title.
type Labels struct {
	Tag, AgentName string
	PRURL          string
	PRNumber       int64
}

// Compact describes a compaction. Pre, Post and Saved are tokens. What is not recorded is 0.
type Compact struct {
	Trigger   string // "auto", "manual"
	Pre, Post int64  // in use before and after; of a microcompact_boundary both are 0
	Saved     int64  // of a microcompact_boundary, which says how many results could be cleared, not what is in use
	Took      time.Duration
	Micro     bool // only tool results were cleared; no new epoch
}

// Lineage links a record to another session.
type Lineage struct {
	ForkedFrom  string // the session that this record was copied from
	ContinuedIn string // the session that continues this one
}

// What a line without a record is, in the words that people read.
const (
	UnreadDamaged = "damaged line"
	UnreadUTF16   = "UTF-16, but no whole record" // indented, or cut at a character whose code has the byte of a newline
	UnreadPiece   = "JSON, but no whole record"
)

// Unread says what a line is that is not blank and has no Records.
func Unread(line []byte) string {
	switch {
	case isWide(line):
		return UnreadUTF16
	case isPiece(line):
		return UnreadPiece
	}
	return UnreadDamaged
}

// isWide reports whether a line is cut out of UTF-16: one byte of many of its units is zero, always the same one.
func isWide(line []byte) bool {
	var zeros [2]int
	for i, c := range line {
		if c == 0 {
			zeros[i%2]++
		}
	}
	most, least := max(zeros[0], zeros[1]), min(zeros[0], zeros[1])
	return most > 0 && 4*most >= len(line) && 4*least <= most
}

// isPiece reports whether a line is whole in itself, as those of an indented record are: a member, a value, brackets.
func isPiece(line []byte) bool {
	rest := bytes.TrimRight(bytes.TrimSpace(line), ",")
	if key, value, ok := bytes.Cut(rest, []byte(`":`)); ok && json.Valid(append(bytes.Clone(key), '"')) {
		rest = bytes.TrimSpace(value)
	}
	return len(bytes.Trim(rest, "{}[], \t")) == 0 || json.Valid(rest)
}
