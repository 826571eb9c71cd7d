package transcript

import (
	"bytes"
	"cmp"
	"strings"
	"time"
)

// parsed is where in a line the pieces of its Record are. What is wanted as text is a string's contents, escaped.
type parsed struct {
	texts                                        [textCount][]byte
	message                                      *answer
	title, label, said, problem                  []byte
	compact, micro, attachment, toolUseResult    []byte
	timestamp, duration, number, origin, forked  []byte
	worktree                                     []byte
	meta, sidechain, summary, visible, api, plan bool
	titleKind                                    TitleKind
}

// The texts that every record may have. They are copied together: a record is one allocation, not a dozen.
const (
	textType = iota
	textSubtype
	textUUID
	textParent
	textLogicalParent
	textSession
	textAgent
	textRequest
	textPrompt
	textLeaf
	textCwd
	textBranch
	textVersion
	textEntrypoint
	textSource
	textMode
	textTeam
	textOrigin
	textSourceID
	textMessageID
	textModel
	textStop
	textRole
	textContinued
	textRelocated
	textRequestSession
	textOperation
	textCount
)

// Parse reads what is understood of one line that Scan called an Object, or of an object that Recover found. It never
// fails: what is not understood is left out.
func Parse(line []byte) Record { return ParseScanned(line, Line{Start: skipSpace(line, 0)}) }

// ParseScanned is Parse for a line of which it is known what Scan said. It is faster by what Scan has found already.
func ParseScanned(line []byte, l Line) Record {
	if l.Start >= len(line) || line[l.Start] != '{' {
		return Record{}
	}
	var p parsed
	p.members(line, &l)
	var r Record
	p.fill(&r)
	p.extend(&r)
	return r
}

// members finds the pieces.
func (p *parsed) members(line []byte, l *Line) {
	w := walk{line, l.Start + 1}
	far := l.far[:]
	for {
		key, ok := w.key()
		if !ok {
			return
		}
		if string(key) == "message" && w.i < len(line) && line[w.i] == '{' {
			p.pickMessage(&w)
			continue
		}
		value := w.jump(&far)
		if len(value) == 0 {
			return
		}
		if !p.pick(key, value) && len(key) <= longestName && bytes.IndexByte(key, '\\') >= 0 {
			p.pick([]byte(Unquote(key)), value)
		}
	}
}

// jump takes the value at w.i. The ends of far ones are known.
func (w *walk) jump(far *[]span) []byte {
	for len(*far) > 0 && (*far)[0].start < w.i {
		*far = (*far)[1:]
	}
	start := w.i
	if len(*far) > 0 && (*far)[0].start == start && (*far)[0].end <= len(w.b) {
		w.i = (*far)[0].end
		return w.b[start:w.i]
	}
	return w.take(start)
}

// longestName is how long a name of ours is when every letter of it is escaped.
const longestName = 6 * len("isVisibleInTranscriptOnly")

// pick keeps what it knows by name; known is whether it does.
func (p *parsed) pick(key, value []byte) (known bool) {
	if at, ok := textMember(key); ok {
		p.texts[at] = contents(value)
		return true
	}
	switch string(key) {
	case "message":
		if value[0] == '{' {
			p.pickMessage(&walk{b: value})
		}
	case "timestamp":
		p.timestamp = value
	case "isMeta":
		p.meta = truth(value)
	case "isSidechain":
		p.sidechain = truth(value)
	case "isCompactSummary":
		p.summary = truth(value)
	case "isVisibleInTranscriptOnly":
		p.visible = truth(value)
	case "isApiErrorMessage":
		p.api = truth(value)
	case "planContent":
		p.plan = len(contents(value)) > 0
	case "toolUseResult":
		p.toolUseResult = value
	default:
		return p.pickRare(key, value)
	}
	return true
}

// textMember is the place of a member that is plain text.
func textMember(key []byte) (int, bool) {
	switch string(key) {
	case "type":
		return textType, true
	case "uuid":
		return textUUID, true
	case "parentUuid":
		return textParent, true
	case "sessionId":
		return textSession, true
	case "cwd":
		return textCwd, true
	case "gitBranch":
		return textBranch, true
	case "version":
		return textVersion, true
	case "entrypoint":
		return textEntrypoint, true
	case "requestId":
		return textRequest, true
	case "promptId":
		return textPrompt, true
	case "agentId":
		return textAgent, true
	case "subtype":
		return textSubtype, true
	case "permissionMode":
		return textMode, true
	case "promptSource":
		return textSource, true
	case "sourceToolAssistantUUID":
		return textSourceID, true
	case "logicalParentUuid":
		return textLogicalParent, true
	case "leafUuid":
		return textLeaf, true
	case "teamName":
		return textTeam, true
	case "requestSessionId":
		return textRequestSession, true
	case "continuedInSessionId":
		return textContinued, true
	case "relocatedCwd":
		return textRelocated, true
	case "operation":
		return textOperation, true
	}
	return 0, false
}

// pickRare keeps members that only some types have.
func (p *parsed) pickRare(key, value []byte) bool {
	switch string(key) {
	case "content", "lastPrompt":
		p.said = value
	case "origin":
		p.origin = value
	case "durationMs":
		p.duration = value
	case "compactMetadata":
		p.compact = value
	case "microcompactMetadata":
		p.micro = value
	case "attachment":
		p.attachment = value
	case "forkedFrom":
		p.forked = value
	case "worktreeSession":
		p.worktree = value
	case "error":
		p.problem = value
	case "customTitle":
		p.title, p.titleKind = value, CustomTitle
	case "aiTitle":
		p.title, p.titleKind = value, AITitle
	case "summary":
		p.title, p.titleKind = value, SummaryTitle
	case "tag", "agentName", "prUrl":
		p.label = value
	case "prNumber":
		p.number = value
	default:
		return false
	}
	return true
}

// pickMessage keeps what it knows of the message at w.i.
func (p *parsed) pickMessage(w *walk) {
	p.message = &answer{}
	start := w.enter()
	for key, ok := w.key(); ok; key, ok = w.key() {
		if string(key) == "content" && w.i < len(w.b) && w.b[w.i] == '[' {
			p.message.pieces = w.appendPieces(p.message.first[:0])
			continue
		}
		value := w.take(w.i)
		if len(value) == 0 {
			break
		}
		switch string(key) {
		case "id":
			p.texts[textMessageID] = contents(value)
		case "role":
			p.texts[textRole] = contents(value)
		case "model":
			p.texts[textModel] = contents(value)
		case "stop_reason":
			p.texts[textStop] = contents(value)
		case "usage":
			if value[0] == '{' {
				p.message.usage = parseUsage(value)
				p.message.Usage = &p.message.usage
			}
		case "content":
			p.message.pieces = appendPieces(p.message.first[:0], value)
		}
	}
	w.leave(start)
}

// copies makes the texts strings, all but escaped ones in one allocation.
func (p *parsed) copies() (out [textCount]string) {
	total := 0
	for _, t := range p.texts {
		total += len(t)
	}
	var all strings.Builder
	all.Grow(total)
	for i, t := range p.texts {
		if len(t) == 0 {
			continue
		}
		all.Write(t)
		s := all.String()
		out[i] = s[len(s)-len(t):]
		if strings.IndexByte(out[i], '\\') >= 0 {
			out[i] = Unquote(t)
		}
	}
	return out
}

// fill sets what records of any type may have.
func (p *parsed) fill(r *Record) {
	if at := field(p.origin, "kind"); at != nil {
		p.texts[textOrigin] = contents(at)
	}
	t := p.copies()
	r.Type, r.Subtype = t[textType], t[textSubtype]
	r.UUID, r.ParentUUID, r.LogicalParentUUID = t[textUUID], t[textParent], t[textLogicalParent]
	r.SessionID, r.AgentID, r.RequestID, r.PromptID = t[textSession], t[textAgent], t[textRequest], t[textPrompt]
	r.Cwd, r.Branch, r.Version, r.Entrypoint = t[textCwd], t[textBranch], t[textVersion], t[textEntrypoint]
	r.Origin, r.PromptSource, r.PermissionMode = t[textOrigin], t[textSource], t[textMode]
	r.TeamName, r.LeafUUID, r.SourceID = t[textTeam], t[textLeaf], t[textSourceID]
	r.Meta, r.Sidechain, r.CompactSummary = p.meta, p.sidechain, p.summary
	r.VisibleOnly, r.APIError, r.FromPlan = p.visible, p.api, p.plan
	r.Time = moment(p.timestamp)
	r.ToolResult = p.toolUseResult
	if p.message != nil && (r.Type == "user" || r.Type == "assistant") {
		m := &p.message.Message
		m.ID, m.Role, m.Model, m.StopReason = t[textMessageID], t[textRole], t[textModel], t[textStop]
		r.Message = m
	}
	if p.forked != nil || t[textRequestSession] != "" && t[textRequestSession] != r.SessionID ||
		t[textContinued] != "" || t[textRelocated] != "" || p.worktree != nil {
		r.Lineage = p.lineage(t[textRequestSession], t[textContinued], t[textRelocated])
	}
	if r.Type == "queue-operation" {
		r.Subtype = t[textOperation]
	}
}

// answer is a Message with room for its usage and its first block: most have no more.
type answer struct {
	Message
	usage Usage
	first [1]RawBlock
}

func (p *parsed) lineage(requested, continued, relocated string) *Lineage {
	return &Lineage{
		ForkedFrom:        cmp.Or(text(field(p.forked, "sessionId")), requested),
		ForkedMessageUUID: text(field(p.forked, "messageUuid")),
		ContinuedIn:       continued,
		RelocatedTo:       relocated,
		WorktreePath:      text(field(p.worktree, "worktreePath")),
	}
}

// moment reads a time: RFC 3339, or milliseconds since 1970. The zero time for what is none, or is implausible.
func moment(value []byte) time.Time { return PlausibleTime(written(value)) }

// plausible is t, or the zero time for one outside the years 1970 to 9999 of UTC: no record is from then, and beyond
// year 9999, which a zone can reach, a time has no form in JSON.
func PlausibleTime(t time.Time) time.Time {
	if y := t.Year(); y < 1970 || y > 9999 {
		return time.Time{}
	}
	return t
}

// written is the time, in UTC, that a value says.
func written(value []byte) time.Time {
	s := contents(value)
	if s == nil {
		if ms := whole(value); ms > 0 {
			return time.UnixMilli(ms).UTC()
		}
		return time.Time{}
	}
	if t, ok := plainTime(s); ok {
		return t
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// plainTime reads 2026-08-20T09:00:00.101Z, the form that Claude Code writes.
func plainTime(s []byte) (time.Time, bool) {
	if len(s) != 24 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[19] != '.' || s[23] != 'Z' {
		return time.Time{}, false
	}
	bad := false
	number := func(from, to int) (n int) {
		for _, c := range s[from:to] {
			bad = bad || c-'0' > 9
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second, ms := number(11, 13), number(14, 16), number(17, 19), number(20, 23)
	if bad || month < 1 || month > 12 || day < 1 || day > 28 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false // the last days of a month are left to the one who knows the calendar
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, ms*1e6, time.UTC), true
}
