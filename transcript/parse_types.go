package transcript

import (
	"bytes"
	"time"
)

// extend sets what only one type of record has.
func (p *parsed) extend(r *Record) {
	switch r.Type {
	case "assistant":
		if r.APIError {
			r.Error = text(p.problem)
		}
	case "system":
		p.extendSystem(r)
	case "attachment":
		p.extendAttachment(r)
	case "queue-operation", "last-prompt":
		r.Text = text(p.said)
	case "custom-title", "ai-title", "summary":
		if t := text(p.title); t != "" {
			r.Title, r.TitleKind = t, p.titleKind
		}
	case "tag":
		r.Labels = &Labels{Tag: text(p.label)}
	case "agent-name":
		r.Labels = &Labels{AgentName: text(p.label)}
	case "pr-link":
		r.Labels = &Labels{PRURL: text(p.label), PRNumber: whole(p.number)}
	}
}

func (p *parsed) extendSystem(r *Record) {
	r.Text = text(p.said)
	switch r.Subtype {
	case "compact_boundary":
		r.Compact = compaction(p.compact)
	case "microcompact_boundary":
		r.Compact = compaction(p.micro)
		r.Compact.Micro = true
		if saved := whole(field(p.micro, "tokensSaved")); saved > 0 && saved < r.Compact.Pre {
			r.Compact.Post = r.Compact.Pre - saved
		}
	case "turn_duration":
		r.Duration = time.Duration(whole(p.duration)) * time.Millisecond
		if r.Duration < 0 || r.Duration > 1e4*time.Hour {
			r.Duration = 0
		}
	case "api_error":
		r.Error = apiError(p.problem)
	case "away_summary":
		if r.Text == "" && p.titleKind == SummaryTitle {
			r.Text = text(p.title)
		}
	}
}

func compaction(metadata []byte) *Compact {
	return &Compact{
		Trigger: text(field(metadata, "trigger")),
		Pre:     max(0, whole(field(metadata, "preTokens"))),
		Post:    max(0, whole(field(metadata, "postTokens"))),
	}
}

// apiError is what an api_error says is wrong: the innermost message, else a type or a code.
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

func (p *parsed) extendAttachment(r *Record) {
	r.Attached = p.attachment
	w := within(p.attachment)
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
			r.Origin = text(field(value, "kind"))
		case "timestamp":
			at = value
		}
	}
	if r.Subtype != "queued_command" {
		r.Queued = ""
		return
	}
	r.Text = promptText(prompt)
	if t := moment(at); r.Time.IsZero() {
		r.Time = t
	}
}

// promptText is the text of a queued prompt: a string, or content blocks.
func promptText(value []byte) string {
	return joined(appendPieces(nil, value))
}

func parseUsage(object []byte) Usage {
	var u Usage
	var flat int64
	w := within(object)
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		switch string(key) {
		case "input_tokens":
			u.Input = tokens(value)
		case "output_tokens":
			u.Output = tokens(value)
		case "cache_read_input_tokens":
			u.CacheRead = tokens(value)
		case "cache_creation_input_tokens":
			flat = tokens(value)
		case "cache_creation":
			if !bytes.HasPrefix(value, []byte("{")) {
				continue
			}
			u.CacheWrite5m = tokens(field(value, "ephemeral_5m_input_tokens"))
			u.CacheWrite1h = tokens(field(value, "ephemeral_1h_input_tokens"))
		case "server_tool_use":
			u.WebSearches = tokens(field(value, "web_search_requests"))
			u.WebFetches = tokens(field(value, "web_fetch_requests"))
		}
	}
	// The flat number was 0 at times before 2.1.152, and older builds have nothing else.
	u.CacheWrite5m += max(0, flat-u.CacheWrite5m-u.CacheWrite1h)
	return u
}

// tokens keeps a count within what sums of them can hold.
func tokens(value []byte) int64 { return min(max(0, whole(value)), 1<<40) }
