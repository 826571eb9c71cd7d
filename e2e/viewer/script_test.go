//go:build unix

package viewer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// object is a JSON object.
type object = map[string]any

// script writes a transcript record by record, in the forms of Claude Code.
type script struct {
	id, cwd, branch, model string
	agent                  string // of an agent's transcript
	at                     time.Time
	context                int64 // tokens in the model's window
	lines                  []string

	parent  any // uuid of the record before; nil at first
	records int
	answers int
	fresh   int64 // tokens that are not in the cache yet
}

// record appends a record of the conversation's tree and answers its uuid.
func (s *script) record(r object) string {
	s.records++
	id := fmt.Sprintf("%s-%04d", s.id[:8], s.records)
	if s.agent != "" {
		id = s.agent[:8] + id[8:]
		r["agentId"] = s.agent
	}
	r["uuid"], r["parentUuid"], r["isSidechain"] = id, s.parent, s.agent != ""
	r["timestamp"], r["sessionId"], r["cwd"], r["gitBranch"], r["version"], r["userType"] =
		s.at.UTC().Format("2006-01-02T15:04:05.000Z"), s.id, s.cwd, s.branch, "2.1.328", "external"
	s.parent = id
	s.plain(r)
	return id
}

// plain appends a record as it is.
func (s *script) plain(r object) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		panic(err) // maps of strings, numbers and lists always can be written
	}
	s.lines = append(s.lines, string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
}

// wait lets time go by between two records.
func (s *script) wait(d time.Duration) { s.at = s.at.Add(d) }

func (s *script) user(content any, more object) string {
	s.fresh += 400
	r := object{"type": "user", "message": object{"role": "user", "content": content}}
	for k, v := range more {
		r[k] = v
	}
	return s.record(r)
}

// prompt is what a human typed; blocks come with it, such as pictures.
func (s *script) prompt(text string, blocks ...object) string {
	s.wait(40 * time.Second)
	var content any = text
	if len(blocks) > 0 {
		list := []object{{"type": "text", "text": text}}
		content = append(list, blocks...)
	}
	if s.agent != "" {
		return s.user(content, nil)
	}
	return s.user(content, object{"promptSource": "typed", "origin": object{"kind": "human"}, "permissionMode": "default"})
}

// answer is one response of the model, a record for each block. All have its usage.
func (s *script) answer(out int64, blocks ...object) {
	s.wait(time.Duration(3+out/90) * time.Second)
	s.answers++
	usage := object{"input_tokens": 14, "output_tokens": out, "cache_read_input_tokens": s.context, "cache_creation_input_tokens": s.fresh,
		"cache_creation": object{"ephemeral_5m_input_tokens": s.fresh, "ephemeral_1h_input_tokens": 0}}
	s.context, s.fresh = s.context+s.fresh, out
	id := fmt.Sprintf("msg_%s%s%04d", s.id[:8], s.agent, s.answers)
	for _, block := range blocks {
		s.record(object{"type": "assistant", "requestId": "req_" + id[4:], "message": object{"id": id, "type": "message", "role": "assistant",
			"model": s.model, "content": []object{block}, "stop_reason": nil, "usage": usage}})
	}
}

func words(text string) object { return object{"type": "text", "text": text} }

func thought(text string) object {
	return object{"type": "thinking", "thinking": text, "signature": "c2ln"}
}

func use(id, name string, input object) object {
	return object{"type": "tool_use", "id": id, "name": name, "input": input}
}

func picture(kind string, data []byte) object {
	return object{"type": "image", "source": object{"type": "base64", "media_type": kind, "data": base64.StdEncoding.EncodeToString(data)}}
}

// say is an answer of words alone.
func (s *script) say(text string) { s.answer(int64(120+len(text)/3), words(text)) }

// call names the next tool call.
func (s *script) call() string { return fmt.Sprintf("toolu_%s%s%04d", s.id[:8], s.agent, s.records) }

// tool is a call and its result, outcome what the program itself keeps of it.
func (s *script) tool(name string, input object, result any, outcome any, took time.Duration) {
	id := s.call()
	s.answer(260, use(id, name, input))
	s.result(id, result, outcome, took, false)
}

func (s *script) result(id string, result any, outcome any, took time.Duration, failed bool) {
	s.wait(took)
	if text, ok := result.(string); ok {
		s.fresh += int64(len(text) / 3)
	}
	s.user([]object{{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}}, object{"toolUseResult": outcome})
}

// bash runs a command.
func (s *script) bash(command, what, out string, took time.Duration) {
	s.tool("Bash", object{"command": command, "description": what}, out,
		object{"stdout": out, "stderr": "", "interrupted": false, "isImage": false}, took)
}

// edit changes a file; lines are those of the patch, with their signs.
func (s *script) edit(path, before, after string, start int, lines ...string) {
	s.tool("Edit", object{"file_path": path, "old_string": before, "new_string": after}, "The file "+path+" has been updated.",
		object{"filePath": path, "oldString": before, "newString": after,
			"structuredPatch": []object{{"oldStart": start, "newStart": start, "oldLines": len(lines), "newLines": len(lines), "lines": lines}}}, 80*time.Millisecond)
}

// read reads a file.
func (s *script) read(path, content string, start int) {
	s.tool("Read", object{"file_path": path}, content, object{"type": "text", "file": object{"filePath": path, "content": content,
		"numLines": bytes.Count([]byte(content), []byte("\n")), "startLine": start, "totalLines": 240}}, 40*time.Millisecond)
}

// titled names the session.
func (s *script) titled(title string) {
	s.plain(object{"type": "ai-title", "aiTitle": title, "sessionId": s.id})
}

// compact is a compaction: the boundary and the summary behind it.
func (s *script) compact(trigger, summary string, left int64) {
	before := s.context + s.fresh
	leaf := s.parent
	s.wait(50 * time.Second)
	s.parent = nil
	s.record(object{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": leaf, "level": "info",
		"compactMetadata": object{"trigger": trigger, "preTokens": before, "postTokens": left, "durationMs": 41200}})
	s.user(summary, object{"isCompactSummary": true, "isVisibleInTranscriptOnly": true})
	s.context, s.fresh = 0, left
}

// bytes are the lines as they stand in the file.
func (s *script) bytes() []byte {
	var b bytes.Buffer
	for _, l := range s.lines {
		b.WriteString(l + "\n")
	}
	return b.Bytes()
}
