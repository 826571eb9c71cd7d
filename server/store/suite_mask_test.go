package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/redact"
)

const (
	needle   = "ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234"
	prompt   = `{"type":"user","message":{"role":"user","content":"use ` + needle + ` now"}}`
	ownToken = "[github:aaaabbbbccccddddeeeeff.........]"
)

// lineMask is the mask of a needle in a line of generation 0.
func lineMask(t *testing.T, snap server.Snapshot, line int64, raw string) protocol.LineMask {
	t.Helper()
	kit.Require(t, len(ownToken) == len(needle), "the token has %d bytes, not %d", len(ownToken), len(needle))
	at := protocol.LineMask{Epoch: snap.Epochs()[0].ID, Line: line, SHA256: sha256.Sum256([]byte(raw))}
	for i := strings.Index(raw, needle); i >= 0; i = strings.Index(raw, needle) {
		at.Tokens = append(at.Tokens, redact.Token{Start: i, Text: ownToken})
		raw = strings.Replace(raw, needle, ownToken, 1)
	}
	return at
}

func mask(t *testing.T, st full, m *server.Masking) protocol.Masked {
	t.Helper()
	m.At = start.Add(time.Hour)
	return kit.Try(st.Mask(t.Context(), m)).Must(t)
}

func masked(raw string) string { return strings.ReplaceAll(raw, needle, ownToken) }

// replacedOf are the bytes of generation 0 that others replaced.
func replacedOf(t *testing.T, snap server.Snapshot) (out []string) {
	t.Helper()
	kit.Must(t, snap.Replaced(t.Context(), server.Span{To: 100}, func(l server.Line, _ time.Time) error {
		out = append(out, string(l.Raw))
		return nil
	}))
	return out
}

// mask: a line, and the bytes that it replaced, get their tokens; what is derived is derived again; the second time
// nothing changes.
func (s suite) mask(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, prompt), object(1, `{"n":1}`)))
	put(t, st, batch("s", object(0, `{"n":0}`)))
	put(t, st, batch("s", object(0, prompt)))
	put(t, st, batch("other", object(0, prompt)))
	put(t, st, batch("s", server.Line{Index: 2, Kind: server.Opaque, Raw: []byte("no json " + needle + " \xff")}))
	texts := []server.Text{{Line: 0, Time: start, Kind: "prompt", Text: "use " + needle + " now"}}
	for name, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: texts, Summary: server.Summary{Title: "the " + needle, FirstPrompt: name}})
	}
	snap := openSession(t, st, "s")
	m := &server.Masking{Stream: snap.Session().ID, By: 7, Lines: []protocol.LineMask{
		lineMask(t, snap, 0, prompt), lineMask(t, snap, 2, "no json "+needle+" \xff"),
	}}
	kit.Equal(t, "masked", mask(t, st, m), protocol.Masked{Lines: 3})
	kit.Equal(t, "masked again", mask(t, st, m), protocol.Masked{})
	after := openSession(t, st, "s")
	kit.Equal(t, "lines", dump(t, after, 0), []string{"0:object:" + masked(prompt), `1:object:{"n":1}`,
		"2:opaque:no json " + ownToken + " \xff"})
	kit.Equal(t, "replaced", replacedOf(t, after), []string{masked(prompt), `{"n":0}`})
	kit.Equal(t, "bytes", after.Session().Bytes, snap.Session().Bytes)
	kit.Equal(t, "found", searched(t, st, all, server.SearchQuery{Text: needle}), []string{"other"})
	kit.Equal(t, "named so", names(t, st, all, server.SessionQuery{Text: needle, Page: server.Page{Limit: 10}}), []string{"other"})
	facts, err := st.SummaryOf(t.Context(), m.Stream)
	kit.Check(t, err == nil && !strings.Contains(fmt.Sprint(facts), needle), "%+v, %v", facts, err)
	kit.Equal(t, "masked by the server", kit.Try(after.Masked(t.Context())).Must(t), nil)
	list, err := st.Maskings(t.Context(), all)
	kit.Check(t, err == nil && len(list) == 1 && list[0].By == 7 && list[0].SessionID == "s" && list[0].Masked.Lines == 3 &&
		list[0].At.Equal(start.Add(time.Hour)), "note %+v, %v", list, err)
	task, ok := lease(t, st)["s"]
	kit.Require(t, ok && task.Position == (server.Position{}) && stateOf(t, st, task) == "",
		"it is not derived again: %+v", task)
	save(t, st, task, server.Derivation{Texts: []server.Text{{Line: 0, Time: start, Kind: "prompt", Text: masked(texts[0].Text)}}})
	kit.Equal(t, "found again", searched(t, st, all, server.SearchQuery{Text: "github"}), []string{"s"})
	kit.Should(t, st.Scrub(t.Context(), func(int64, int64) {}))
	kit.Equal(t, "found after scrubbing", searched(t, st, all, server.SearchQuery{Text: "github"}), []string{"s"})
}

// maskRefuses: other bytes are not masked, and nothing but tokens is written; of a refused masking nothing remains.
func (s suite) maskRefuses(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, prompt), object(1, prompt), server.Line{Index: 2, Kind: server.Oversize, Raw: []byte(needle)}))
	snap := openSession(t, st, "s")
	good, stream := lineMask(t, snap, 0, prompt), snap.Session().ID
	bad := lineMask(t, snap, 1, prompt)
	for name, token := range map[string]redact.Token{
		"a word":        {Start: bad.Tokens[0].Start, Text: strings.Repeat("x", len(needle))},
		"behind":        {Start: len(prompt) - 5, Text: ownToken},
		"two strings":   {Start: 3, Text: ownToken},
		"out of string": {Start: 8, Text: "***"},
	} {
		bad.Tokens = []redact.Token{token}
		_, err := st.Mask(t.Context(), &server.Masking{Stream: stream, Lines: []protocol.LineMask{good, bad}})
		kit.Check(t, errors.Is(err, server.ErrNoToken) && errors.Is(err, redact.ErrNoToken), "%s: %v", name, err)
	}
	kit.Err(t, "no stream", server.ErrNotFound)(st.Mask(t.Context(), &server.Masking{Stream: stream + 99}))
	other := good
	other.SHA256[0]++
	note := lineMask(t, snap, 2, needle)
	nowhere, elsewhere := good, good
	nowhere.Line, elsewhere.Generation = 7, 7
	m := &server.Masking{Stream: stream, Lines: []protocol.LineMask{other, note, nowhere, elsewhere}}
	kit.Equal(t, "masked", mask(t, st, m), protocol.Masked{})
	kit.Equal(t, "lines", dump(t, openSession(t, st, "s"), 0),
		[]string{"0:object:" + prompt, "1:object:" + prompt, "2:oversize:" + needle})
	list, err := st.Maskings(t.Context(), all)
	kit.Check(t, err == nil && len(list) <= 0, "notes %v, %v", list, err)
}

// maskedAgain: a line that the server masked is the same line when it comes again, in the clear or masked by a daemon,
// in whatever generation and epoch; another line is another line.
func (s suite) maskedAgain(t *testing.T) {
	st := s.open(t)
	a := &daemon{incarnation: "a"}
	wantCode(t, "the first write", a.write(t, st, batch("s", object(0, prompt), object(1, prompt))), "")
	snap := openSession(t, st, "s")
	mask(t, st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 0, prompt)}})
	wantCode(t, "the same line", a.write(t, st, batch("s", object(0, prompt))), "")
	wantCode(t, "by the daemon", a.write(t, st, batch("s", object(0, strings.Replace(masked(prompt), ":aaaa", ":zzzz", 1)))), "")
	wantCode(t, "masked", a.write(t, st, batch("s", object(0, masked(prompt)))), "")
	wantCode(t, "another line", a.write(t, st, batch("s", object(0, strings.Replace(prompt, "use", "USE", 1)))), protocol.CodeOtherBytes)
	next := batch("s", object(0, prompt), object(1, `{"n":1}`))
	next.Head.Generation = 1
	wantCode(t, "another generation", a.write(t, st, next), "")
	kit.Equal(t, "the batch changed", next.Lines[0].Raw, []byte(prompt))
	put(t, st, batch("s", object(0, prompt)), func(b *server.Batch) { b.Head.Epoch = "later" })
	want := []string{"0:object:" + masked(prompt), "1:object:" + prompt}
	for _, epoch := range []string{"e", "later"} {
		x := kit.Try(st.Open(t.Context(), server.Ref{SessionID: "s", Epoch: epoch})).Must(t)
		defer x.Close()
		list, err := x.Masked(t.Context())
		kit.Should(t, err)
		if epoch == "later" {
			kit.Equal(t, "later", dump(t, x, 0), want[:1])
			kit.Equal(t, "later list", list, []server.MaskedLine{{}})
			continue
		}
		kit.Equal(t, "first", dump(t, x, 0), want)
		kit.Equal(t, "second", dump(t, x, 1), []string{want[0], `1:object:{"n":1}`})
		kit.Equal(t, "list", list, []server.MaskedLine{{}, {Generation: 1}})
		kit.Equal(t, "replaced", replacedOf(t, x), []string(nil))
	}
}

// maskStale: what was read before a masking cannot be saved after it, regardless of who derives meanwhile.
func (s suite) maskStale(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, prompt)))
	before := lease(t, st)["s"]
	snap := openSession(t, st, "s")
	mask(t, st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 0, prompt)}})
	again, ok := lease(t, st)["s"]
	kit.Require(t, ok, "it is not derived again at once")
	d := server.Derivation{Task: before, Position: place(t, st, before), Done: true,
		Texts: []server.Text{{Time: start, Kind: "prompt", Text: needle}}}
	kit.Err(t, "saved", server.ErrStale)(nil, st.SaveDerived(t.Context(), &d))
	save(t, st, again, server.Derivation{})
	kit.Equal(t, "found", searched(t, st, all, server.SearchQuery{Text: needle}), []string{})
}

// maskFiles: a file gets its tokens across chunks, and its new address in every session of its user.
func (s suite) maskFiles(t *testing.T) {
	st := s.open(t)
	content := []byte(strings.Repeat("filler ", 10) + needle + " and " + needle + strings.Repeat(" end", 10))
	u := uploadOf(1, "s", "tool-results/t.txt", content)
	kit.Must(t, push(t, st, u, content, 25))
	upload(t, st, 1, "t", "tool-results/t.txt", content)
	upload(t, st, 2, "u", "tool-results/t.txt", content)
	putDocuments(t, st, 1, "s", "e", version("a.md", 1, "linked", string(content)), version("a.md", 2, "modified", "x"))
	stream := func(session string) int64 {
		x := kit.Try(st.Resolve(t.Context(), all, ofSession(session))).Must(t)
		return x.Stream
	}
	f := protocol.FileMask{SHA256: u.SHA256}
	for i := range content {
		if bytes.HasPrefix(content[i:], []byte(needle)) {
			f.Tokens = append(f.Tokens, redact.Token{Start: i, Text: ownToken})
		}
	}
	m := &server.Masking{Stream: stream("s"), By: 1, Files: []protocol.FileMask{f}}
	for name, token := range map[string]redact.Token{"a word": {Start: 1, Text: "word"}, "behind": {Start: len(content) - 9, Text: ownToken}} {
		bad := protocol.FileMask{SHA256: f.SHA256, Tokens: []redact.Token{token}}
		kit.Err(t, name,
			server.ErrNoToken)(st.Mask(t.Context(), &server.Masking{Stream: m.Stream, Files: []protocol.FileMask{bad}}))
	}
	kit.Equal(t, "another's session", mask(t, st, &server.Masking{Stream: stream("u"), Files: []protocol.FileMask{{SHA256: [32]byte{1}, Tokens: f.Tokens}}}), protocol.Masked{})
	kit.Equal(t, "masked", mask(t, st, m), protocol.Masked{Files: 1})
	kit.Equal(t, "masked again", mask(t, st, m), protocol.Masked{})
	now := sha256.Sum256([]byte(masked(string(content))))
	sum := fmt.Sprintf("%x", now)
	for _, session := range []string{"s", "t"} {
		list, err := st.Blobs(t.Context(), server.Scope{User: 1}, ofSession(session))
		kit.Check(t, err == nil && len(list) != 0 && list[0].SHA256 == sum, "%s: %+v, %v", session, list, err)
	}
	kit.Equal(t, "content", blobContent(t, st, sum), masked(string(content)))
	_, from, err := st.Content(t.Context(), all, ofSession("s"), "a.md", 1)
	kit.Must(t, err)
	var text bytes.Buffer
	kit.Try(text.ReadFrom(from)).Must(t)
	kit.Equal(t, "the version", text.String(), masked(string(content)))
	_, _, err = st.BlobContent(t.Context(), server.Scope{User: 1}, fmt.Sprintf("%x", u.SHA256))
	kit.Check(t, errors.Is(err, server.ErrNotFound), "the old address: %v", err)
	kit.Equal(t, "another user's", blobContent(t, st, fmt.Sprintf("%x", u.SHA256)), string(content))
	// The user sends the clear bytes again, while the masked ones are there: both become one.
	upload(t, st, 1, "s", "tool-results/t.txt", content)
	kit.Equal(t, "masked once more", mask(t, st, m), protocol.Masked{Files: 1})
	kit.Equal(t, "content", blobContent(t, st, sum), masked(string(content)))
	kit.Should(t, st.AuditBlobs(t.Context(), func(problem string) { t.Error(problem) }, func(int64, int64) {}))
}

// maskCheckpoints: texts of a checkpoint get their tokens, each by its own hash.
func (s suite) maskCheckpoints(t *testing.T) {
	st := s.open(t)
	c := mark("c", 1)
	c.Summary, c.PortID, c.ActiveFiles = "sum "+needle, needle, []string{"a.go", "/tmp/" + needle}
	putCheckpoints(t, st, 1, "s", "e", c, mark("d", 2))
	x := kit.Try(st.Resolve(t.Context(), all, ofSession("s"))).Must(t)
	m := &server.Masking{Stream: x.Stream, By: 1}
	for _, text := range []string{c.Summary, c.PortID, c.ActiveFiles[1], "another text " + needle} {
		m.Checkpoints = append(m.Checkpoints, protocol.CheckpointMask{ID: "c", SHA256: sha256.Sum256([]byte(text)),
			Tokens: []redact.Token{{Start: strings.Index(text, needle), Text: ownToken}}})
	}
	kit.Equal(t, "masked", mask(t, st, m), protocol.Masked{Checkpoints: 3})
	kit.Equal(t, "masked again", mask(t, st, m), protocol.Masked{})
	got, err := st.Checkpoint(t.Context(), all, "c", 0)
	kit.Check(t, err == nil && got.Summary == "sum "+ownToken && got.PortID == ownToken &&
		slices.Equal(got.ActiveFiles, []string{"a.go", "/tmp/" + ownToken}), "%+v, %v", got, err)
}

// maskForgotten: nothing remains of a masking when its session is forgotten.
func (s suite) maskForgotten(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, prompt)))
	snap := openSession(t, st, "s")
	mask(t, st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 0, prompt)}})
	kit.Try(st.Forget(t.Context(), all, "s", 0, start)).Must(t)
	list, err := st.Maskings(t.Context(), all)
	kit.Check(t, err == nil && len(list) <= 0, "notes %v, %v", list, err)
}
