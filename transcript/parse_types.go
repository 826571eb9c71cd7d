package transcript

import (
	"bytes"
	"time"
)

// extend sets the fields that only one type of record has.
func (p *parsed) extend(r *Record) {
	switch r.Type {
	case "assistant":
		if r.APIError {
			r.Error = text(p.errorValue)
		}
	case "system":
		p.extendSystem(r)
	case "attachment":
		p.extendAttachment(r)
	case "file-history-snapshot", "file-history-delta":
		r.Snapshot = p.snapshot
	case "progress":
		r.AgentAnswer, r.AgentRecord = agentAnswer(p.data), field(p.data, "message")
		r.StartedBy = startedBy(field(p.data, "hookName"))
	case "queue-operation", "last-prompt":
		r.Text = text(p.content)
	case "custom-title", "ai-title", "summary":
		if t := text(p.title); t != "" {
			r.Title, r.TitleKind = t, p.titleKind
		}
	case "tag":
		r.Labels = &Labels{Tag: text(p.label)}
	case "agent-name":
		r.Labels = &Labels{AgentName: text(p.label)}
	case "pr-link":
		r.Labels = &Labels{PRURL: text(p.label), PRNumber: integer(p.number)}
	}
}

func (p *parsed) extendSystem(r *Record) {
	r.Text = text(p.content)
	switch r.Subtype {
	case "compact_boundary":
		r.Compact = compaction(p.compact)
	case "microcompact_boundary":
		r.Compact = compaction(p.micro)
		r.Compact.Micro, r.Compact.Pre, r.Compact.Post = true, 0, 0
		r.Compact.Saved = max(0, integer(field(p.micro, "tokensSaved")))
	case "turn_duration":
		r.Duration = milliseconds(p.duration)
	case "api_error":
		r.Error = apiError(p.errorValue)
	case "away_summary":
		if r.Text == "" && p.titleKind == SummaryTitle {
			r.Text = text(p.title)
		}
	}
}

func compaction(metadata []byte) *Compact {
	return &Compact{
		Trigger: text(field(metadata, "trigger")),
		Pre:     max(0, integer(field(metadata, "preTokens"))),
		Post:    max(0, integer(field(metadata, "postTokens"))),
		Took:    milliseconds(field(metadata, "durationMs")),
	}
}

// milliseconds returns a number of them as a duration; 0 for one that nothing takes.
func milliseconds(value []byte) time.Duration {
	n := integer(value)
	if n < 0 || n > (1e4*time.Hour).Milliseconds() {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// apiError returns the message of an api_error: the innermost message, otherwise a type or a code.
func apiError(problem []byte) string {
	if s := text(problem); s != "" {
		return s
	}
	best := ""
	for level := 0; len(problem) > 0 && problem[0] == '{' && level < 8; level++ {
		for _, name := range []string{"code", "type", "message"} {
			if s := text(field(problem, name)); s != "" && s != "error" {
				best = s
			}
		}
		inner := field(problem, "error")
		if inner == nil {
			inner = field(problem, "cause")
		}
		problem = inner
	}
	return best
}

// agentAnswer returns the usage that a progress record repeats; nil if it repeats no answer of a model.
func agentAnswer(data []byte) *UsageSample {
	record := field(data, "message")
	if text(field(record, "type")) != "assistant" || isTrue(field(record, "isApiErrorMessage")) {
		return nil
	}
	message := field(record, "message")
	usage := field(message, "usage")
	model := text(field(message, "model"))
	if len(usage) == 0 || usage[0] != '{' || model == SyntheticModel {
		return nil
	}
	tokens, billing := parseUsage(usage)
	return &UsageSample{
		MessageID: text(field(message, "id")), RequestID: text(field(record, "requestId")), Model: billing.name(model),
		UUID: text(field(record, "uuid")), Time: parseTime(field(record, "timestamp")), Usage: tokens,
		Sidechain: true,
	}
}

func (p *parsed) extendAttachment(r *Record) {
	r.Attached = p.attachment
	w := walkerOf(p.attachment)
	if len(p.attachment) > 0 && p.attachment[0] != '{' {
		return
	}
	var prompt, at []byte
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		switch string(key) {
		case "type":
			r.Subtype = text(value)
		case "prompt":
			prompt = value
		case "commandMode":
			r.Queued = text(value)
		case "origin":
			kind, name := originOf(value)
			r.Origin, r.OriginName = Unquote(kind), Unquote(name)
		case "hookName":
			r.StartedBy = startedBy(value)
		case "isMeta":
			r.Meta = r.Meta || isTrue(value)
		case "identity":
			r.AskedModel = text(field(value, "modelId"))
		case "timestamp":
			at = value
		}
	}
	if r.Subtype != "queued_command" {
		r.Queued = ""
		return
	}
	r.Text = joinText(appendBlocks(nil, prompt)) // a string or content blocks
	if t := parseTime(at); r.Time.IsZero() {
		r.Time = t
	}
}

// startedBy returns why a hook of that name ran at the start of a session; "" for other hooks.
func startedBy(name []byte) string {
	why, ok := bytes.CutPrefix(stringContents(name), []byte("SessionStart:"))
	if !ok {
		return ""
	}
	return Unquote(why)
}
