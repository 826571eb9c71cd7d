package transcript

import (
	"bytes"
	"cmp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// parsed is where the parts of a Record are in the line. Texts are the contents of JSON strings, still escaped.
type parsed struct {
	Record
	texts                             [textCount][]byte
	message                           *messageSpace
	title, label, content, errorValue []byte
	compact, micro, attachment        []byte
	duration, number, origin, forked  []byte
	data, snapshot                    []byte
	titleKind                         TitleKind
}

// Texts that every record may have. They are copied together, so that a record costs one allocation instead of a dozen.
const (
	textType = iota
	textSubtype
	textUUID
	textParent
	textLogicalParent
	textSession
	textAgent
	textRequest
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
	textContinued
	textRequestSession
	textOperation
	textTurnOrigin
	textOriginName
	textAsked
	textCount
)

// Parse parses a line that Scan called an Object, or an object that Recover found. It never fails: what it does not
// understand is left out.
func Parse(line []byte) Record { return ParseScanned(line, Line{Start: skipSpace(line, 0)}) }

// ParseScanned is Parse for a line with a known Scan result. It is faster because it reuses what Scan found.
func ParseScanned(line []byte, l Line) Record {
	if l.Start >= len(line) || line[l.Start] != '{' {
		return Record{}
	}
	var p parsed
	p.members(line, &l)
	p.fill(&p.Record)
	p.extend(&p.Record)
	return p.Record
}

// members finds the parts.
func (p *parsed) members(line []byte, l *Line) {
	w := walker{line, l.Start + 1}
	far := l.spans[:]
	for {
		key, ok := w.key()
		if !ok {
			return
		}
		if string(key) == "message" && w.i < len(line) && line[w.i] == '{' {
			p.pickMessage(&w)
			continue
		}
		value := w.knownValue(&far)
		if len(value) == 0 {
			return
		}
		if !p.pick(key, value) && len(key) <= longestName && bytes.IndexByte(key, '\\') >= 0 {
			p.pick([]byte(Unquote(key)), value)
		}
	}
}

// knownValue takes the value at w.i. It does not search for the end of long values, which Scan found.
func (w *walker) knownValue(far *[]span) []byte {
	for len(*far) > 0 && (*far)[0].start < w.i {
		*far = (*far)[1:]
	}
	start := w.i
	if len(*far) > 0 && (*far)[0].start == start && (*far)[0].end <= len(w.b) {
		w.i = (*far)[0].end
		return w.b[start:w.i]
	}
	return w.value(start)
}

// longestName is the length of the longest name that is understood, with every letter escaped.
const longestName = 6 * len("isVisibleInTranscriptOnly")

// pick stores a member that it knows by name, and reports whether it does.
func (p *parsed) pick(key, value []byte) (known bool) {
	if at, ok := textMembers[string(key)]; ok {
		p.texts[at] = stringContents(value)
		return true
	}
	switch string(key) {
	case "message":
		if value[0] == '{' {
			p.pickMessage(&walker{b: value})
		}
	case "timestamp":
		p.Time = parseTime(value)
	case "isMeta":
		p.Meta = isTrue(value)
	case "isSidechain":
		p.Sidechain = isTrue(value)
	case "isCompactSummary":
		p.CompactSummary = isTrue(value)
	case "isVisibleInTranscriptOnly":
		p.VisibleOnly = isTrue(value)
	case "isApiErrorMessage":
		p.APIError = isTrue(value)
	case "planContent":
		p.FromPlan = len(stringContents(value)) > 0
	case "toolUseResult":
		p.ToolResult = value
	case "scheduledTaskId", "wakeupSource":
		p.Scheduled = p.Scheduled || string(value) != "null"
	case "turnCompanion":
		p.Companion = isTrue(value)
	default:
		return p.pickRare(key, value)
	}
	return true
}

// textMembers are the members that are plain text.
var textMembers = map[string]int{
	"type": textType, "uuid": textUUID, "parentUuid": textParent, "sessionId": textSession, "cwd": textCwd,
	"requestedModel": textAsked, "gitBranch": textBranch, "version": textVersion, "entrypoint": textEntrypoint,
	"requestId": textRequest, "agentId": textAgent, "subtype": textSubtype, "permissionMode": textMode,
	"promptSource":            textSource,
	"sourceToolAssistantUUID": textSourceID, "logicalParentUuid": textLogicalParent, "leafUuid": textLeaf,
	"teamName": textTeam, "requestSessionId": textRequestSession, "continuedInSessionId": textContinued,
	"operation": textOperation, "turnOrigin": textTurnOrigin,
}

// pickRare stores members that only some types have.
func (p *parsed) pickRare(key, value []byte) bool {
	switch string(key) {
	case "content", "lastPrompt":
		p.content = value
	case "origin":
		p.origin = value
	case "data":
		p.data = value
	case "durationMs":
		p.duration = value
	case "compactMetadata":
		p.compact = value
	case "microcompactMetadata":
		p.micro = value
	case "attachment":
		p.attachment = value
	case "snapshot", "trackingPath":
		p.snapshot = value
	case "forkedFrom":
		p.forked = value
	case "error":
		p.errorValue = value
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

// pickMessage stores what is understood of the message at w.i.
func (p *parsed) pickMessage(w *walker) {
	if p.message == nil {
		p.message = &messageSpace{}
	}
	*p.message = messageSpace{Message: Message{blocks: p.message.blocks[:0]}} // the last of several counts
	start := w.enter()
	for key, ok := w.key(); ok; key, ok = w.key() {
		if string(key) == "content" && w.i < len(w.b) && w.b[w.i] == '[' {
			p.message.blocks = w.appendBlocks(p.message.buffer())
			continue
		}
		value := w.value(w.i)
		if len(value) == 0 {
			break
		}
		switch string(key) {
		case "id":
			p.texts[textMessageID] = stringContents(value)
		case "model":
			p.texts[textModel] = stringContents(value)
		case "stop_reason":
			p.texts[textStop] = stringContents(value)
		case "usage":
			if value[0] == '{' {
				p.message.usage, p.message.Billing = parseUsage(value)
				p.message.Usage = &p.message.usage
			}
		case "content":
			p.message.blocks = appendBlocks(p.message.buffer(), value)
		}
	}
	w.leave(start)
}

// copies converts the texts to strings, in one allocation for all that have no escapes.
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

// fill sets the fields that records of any type may have.
func (p *parsed) fill(r *Record) {
	p.texts[textOrigin], p.texts[textOriginName] = originOf(p.origin)
	t := p.copies()
	r.Type, r.Subtype = t[textType], t[textSubtype]
	r.UUID, r.ParentUUID, r.LogicalParentUUID = t[textUUID], t[textParent], t[textLogicalParent]
	r.SessionID, r.AgentID, r.RequestID = t[textSession], t[textAgent], t[textRequest]
	r.Cwd, r.Branch, r.Version, r.Entrypoint = t[textCwd], t[textBranch], t[textVersion], t[textEntrypoint]
	r.Origin, r.PromptSource, r.PermissionMode = t[textOrigin], t[textSource], t[textMode]
	r.TeamName, r.LeafUUID, r.SourceID = t[textTeam], t[textLeaf], t[textSourceID]
	r.TurnOrigin, r.OriginName, r.AskedModel = t[textTurnOrigin], t[textOriginName], t[textAsked]
	if r.TeamName != "" {
		r.TeamAgent = text(p.label)
	}
	if p.message != nil && (r.Type == "user" || r.Type == "assistant") {
		m := &p.message.Message
		m.ID, m.Model, m.StopReason = t[textMessageID], t[textModel], t[textStop]
		r.Message = m
	}
	if p.forked != nil || t[textRequestSession] != "" && t[textRequestSession] != r.SessionID || t[textContinued] != "" {
		forked := cmp.Or(text(field(p.forked, "sessionId")), t[textRequestSession])
		r.Lineage = &Lineage{ForkedFrom: forked, ContinuedIn: t[textContinued]}
	}
	if r.Type == "queue-operation" {
		r.Subtype = t[textOperation]
	}
}

// originOf returns the kind of an origin and who that is, as far as it says.
func originOf(object []byte) (kind, name []byte) {
	w := walkerOf(object)
	if len(object) > 0 && object[0] != '{' {
		return stringContents(object), nil
	}
	best := 0
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		rank := 0
		switch string(key) {
		case "kind":
			kind = stringContents(value)
		case "name":
			rank = 3
		case "server", "source", "subkind":
			rank = 2
		case "from":
			rank = 1
		}
		if s := stringContents(value); rank > best && len(s) > 0 {
			name, best = s, rank
		}
	}
	return kind, name
}

// messageSpace is a Message with space for its usage and its first block; most messages have no more.
type messageSpace struct {
	Message
	usage Usage
	first [1]RawBlock
}

// buffer returns where blocks go.
func (m *messageSpace) buffer() []RawBlock {
	if cap(m.blocks) > 0 {
		return m.blocks[:0]
	}
	return m.first[:0]
}

// Compose returns a text in Unicode's composed form (NFC), so that texts that look the same are the same: names of
// files on macOS come decomposed. A text that is composed is returned as it is.
func Compose(text string) string { return norm.NFC.String(text) }
