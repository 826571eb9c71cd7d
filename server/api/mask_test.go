package api_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/transcript/redact"
)

const (
	secret = "ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234"
	token  = "[github:aaaabbbbccccddddeeeeff.........]"
	clear  = `{"type":"user","uuid":"u0","timestamp":"2026-11-21T08:00:00Z","message":{"role":"user","content":"use ` + secret + `"}}`
)

// maskItem is a text in a request to mask: with names, the text, and its token.
func maskItem(names, text string) string {
	return fmt.Sprintf(`{%s"sha256":"%x","tokens":[{"start":%d,"text":%q}]}`, names, sha256.Sum256([]byte(text)),
		strings.Index(text, secret), token)
}

// leaky are two members with a session of the same name, in which a secret is everywhere.
func leaky(t *testing.T) (owner, ann, bob *rig) {
	owner = newRig(t)
	ann, bob = owner.person("ann", server.Member), owner.person("bob", server.Member)
	for _, r := range []*rig{ann, bob} {
		r.post(piece{lines: []string{clear, `{"type":"user"}`}}.body("s"))
		r.post(piece{gen: 1, rewound: 0, first: 0, lines: []string{`{"type":"user","n":1}`}}.body("s"))
		r.putDocument("s", linked("plan.md", 1, "plan "+secret))
		r.send("POST", "/api/checkpoints", artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, "half", secret, 1)+`]`), 200)
		r.sendBlob("s", "tool-results/t.txt", "result "+secret)
	}
	owner.waitDerived()
	return owner, ann, bob
}

// leaks are the answers that show the secret.
func (r *rig) leaks() (found []string) {
	r.t.Helper()
	paths := append([]string{"/api/sessions/s/entries?generation=0", "/api/sessions/s/raw?generation=0", "/api/sessions",
		"/api/search?q=ghp", fmt.Sprintf("/api/blobs/%x", sha256.Sum256([]byte("result "+secret)))}, sessionReads...)
	for _, path := range paths {
		if strings.Contains(string(r.get(path).body), secret) {
			found = append(found, path)
		}
	}
	return found
}

// TestMask: a member has the secrets of a session masked everywhere, and of nobody else's.
func TestMask(t *testing.T) {
	owner, ann, bob := leaky(t)
	before := len(ann.leaks())
	_, problems := owner.audit()
	if before < 6 {
		t.Fatalf("only %q leak", ann.leaks())
	}
	body := `{"machine":"m1","epoch":"e1","lines":[` + maskItem(`"generation":0,"line":0,`, clear) + `],"checkpoints":[` +
		maskItem(`"id":"cp-1",`, "<b>"+secret+"</b>") + `],"files":[` + maskItem("", "plan "+secret) + "," + maskItem("", "result "+secret) + `]}`
	const path = "/api/sessions/s/mask"
	owner.send("POST", path, body, 404) // may read it, and has none
	owner.person("eve", server.Viewer).send("POST", path, body, 403)
	ann.send("POST", path, strings.Replace(body, `"m1"`, `"m2"`, 1), 404)
	ann.send("POST", path, strings.Replace(body, token, strings.Repeat("x", len(token)), 1), 422)
	ann.send("POST", path, strings.Replace(body, `"sha256":"`, `"sha256":"0`, 1), 400)
	ann.send("POST", path, `{"machine":"m1"}`, 200)
	kit.Equal(t, "answers leak after refusals", len(ann.leaks()), before)
	sent := ann.send("POST", path, body, 200)
	kit.Equal(t, "answer", strings.TrimSpace(string(sent.body)), `{"lines":1,"checkpoints":1,"files":2}`)
	ann.send("POST", path, body, 200)
	owner.waitDerived()
	kit.Equal(t, "still there in", ann.leaks(), nil)
	kit.Equal(t, "bob's answers that leak", len(bob.leaks()), before)
	kit.Equal(t, "the first generation is", ann.raw("s", "?generation=0"),
		strings.Replace(clear, secret, token, 1)+"\n"+`{"type":"user"}`+"\n")
	kit.Has(t, "the token is", string(ann.get("/api/search?q=github").body), "aaaabbbb")
	notes := string(ann.get("/api/maskings").body)
	kit.Check(t, strings.Count(notes, "session_id") == 1 && strings.Contains(notes, `"by":"ann"`) &&
		strings.Contains(notes, `"files":2`), "noted %s", notes)
	notes = string(bob.get("/api/maskings").body)
	kit.Check(t, !strings.Contains(notes, "session_id"), "bob sees %s", notes)
	_, now := owner.audit()
	kit.Check(t, now == problems, "the audit finds %s", now)
}

// TestMaskedByServer: digests list the lines that the server masked by itself, in each view that has them, and a daemon
// that sends such a line again is not refused.
func TestMaskedByServer(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: []string{`{"n":0}`, clear, clear}}.body("s"))
	r.post(piece{gen: 1, rewound: 2, first: 2, lines: []string{`{"n":2}`}}.body("s"))
	snap := kit.Try(r.store.Open(t.Context(), server.Ref{SessionID: "s"})).Must(t)
	m := &server.Masking{Stream: snap.Session().ID, At: time.Now()}
	for line := range int64(2) {
		m.Lines = append(m.Lines, protocol.LineMask{Epoch: snap.Epochs()[0].ID, Line: line + 1, SHA256: sha256.Sum256([]byte(clear)),
			Tokens: []redact.Token{{Start: strings.Index(clear, secret), Text: token}}})
	}
	kit.Must(t, snap.Close())
	done, err := r.store.Mask(t.Context(), m)
	kit.Require(t, err == nil && done.Lines == 2, "%v %v", done, err)
	for _, path := range []string{"/api/sessions/s/digest", "/api/sessions/s/digest?epochs=all"} {
		kit.Has(t, path, string(r.get(path).body), `"masked":[1,2]`, `"masked":[1]`)
	}
	r.post(piece{lines: []string{`{"n":0}`, clear}}.body("s"))
	r.post(piece{epoch: "e2", machine: "m1", lines: []string{`{"n":0}`, clear}}.body("s"))
	kit.Equal(t, "sent again", strings.Count(string(r.get("/api/sessions/s/digest?epochs=all").body), `"masked":[1]`),
		2)
	kit.Check(t, !strings.Contains(r.raw("s", ""), secret), "the secret is back")
	r.send("POST", "/api/sessions/s/copy", `{"from_machine":"m1","to_machine":"m2","epoch":"copy","lines":2}`, 200)
	r.post(piece{machine: "m2", epoch: "later", lines: []string{`{"n":0}`, clear}}.body("s"))
	body := string(r.get("/api/sessions/s/digest?epochs=all&machine=m2").body)
	kit.Check(t, strings.Count(body, `"masked":[1]`) == 2 && !strings.Contains(r.raw("s", "?machine=m2"), secret),
		"a copy: %s", body)
}

// TestMaskUTF16: a token is put into a file in UTF-16 as it is sent, and nowhere into a line, which would be none then.
func TestMaskUTF16(t *testing.T) {
	ann := newRig(t).person("ann", server.Member)
	wide := func(text string) string { return strings.Join(strings.Split(text, ""), "\x00") + "\x00" }
	ann.post(piece{lines: []string{clear}}.body("s"))
	before, after := "\xff\xfe"+wide("result "+secret+"\r\n"), "\xff\xfe"+wide("result "+token+"\r\n")
	ann.sendBlob("s", "tool-results/t.txt", before)
	text := kit.Try(json.Marshal(wide(token))).Must(t)
	ask := func(kind, names, text string, at int, wide []byte) string {
		return fmt.Sprintf(`{"machine":"m1","epoch":"e1",%q:[{%s"sha256":"%x","tokens":[{"start":%d,"text":%s}]}]}`, kind, names,
			sha256.Sum256([]byte(text)), at, wide)
	}
	const path = "/api/sessions/s/mask"
	ann.send("POST", path, ask("lines", `"generation":0,"line":0,`, clear, 20, text), 422)
	ann.send("POST", path, ask("files", "", before, strings.Index(before, wide(secret)), text), 200)
	kit.Equal(t, "the file is", string(ann.get(fmt.Sprintf("/api/blobs/%x", sha256.Sum256([]byte(after)))).body), after)
}

// TestMaskBomb: millions of empty parts are refused before they are read.
func TestMaskBomb(t *testing.T) {
	r := newRig(t)
	for _, body := range []string{`{"lines":[` + strings.Repeat("{},", 1<<20) + `{}]}`, `{"lines":[{"tokens":[` + strings.Repeat("{},", 1<<20) + `{}]}]}`} {
		r.send("POST", "/api/sessions/s/mask", body, 413)
	}
}

// audit is what is found, a line each.
func (r *rig) audit() (audit.Progress, string) {
	r.t.Helper()
	var found []string
	a := kit.Try(audit.Run(r.t.Context(), r.store, func(f audit.Finding) {
		found = append(found, f.SessionID+": "+f.Problem)
	}, func(audit.Progress) {})).Must(r.t)
	return a, strings.Join(found, "\n")
}

// whole is a request for a whole file, whose length is true.
func whole(session string, gen, rewound int64, lines ...string) string {
	p := piece{gen: gen, rewound: rewound, first: rewound, lines: lines[rewound:]}
	size := 0
	for _, l := range lines {
		size += len(l) + 1
	}
	body := p.body(session)
	head, _, _ := strings.Cut(body, `"to":{"offset":`)
	return head + `"to":{"offset":` + strconv.Itoa(size) + `,"line":` + strconv.Itoa(len(lines)) + `},"eof_newline":true,"edges":[]}}`
}

func TestAudit(t *testing.T) {
	r := newRig(t)
	r.post(whole("s", 0, 0, `{"a":0}`, `{"a":1}`, `{"a":2}`))
	r.post(whole("s", 1, 1, `{"a":0}`, `{"b":1}`))
	r.post(bare)
	a, found := r.audit()
	kit.Require(t, found == "" && a.Streams == 2 && a.Generations == 3, "%+v, found %q", a, found)
	tests := []struct{ name, sql, undo, want string }{
		{"an object is none", `UPDATE lines SET raw = CAST('{"a":' AS BLOB) WHERE line = 2`,
			`UPDATE lines SET raw = CAST('{"a":2}' AS BLOB) WHERE line = 2`, "line 3 is no JSON object any more"},
		{"bytes are missing", `UPDATE lines SET raw = CAST('{}' AS BLOB) WHERE line = 2`,
			`UPDATE lines SET raw = CAST('{"a":2}' AS BLOB) WHERE line = 2`, "its 3 lines are 19 bytes; the file had 24"},
	}
	for _, test := range tests {
		for _, sql := range []string{test.sql, test.undo} {
			kit.Try(r.db().Exec(sql)).Must(t)
			if sql == test.undo {
				break
			}
			_, found := r.audit()
			kit.Check(t, strings.Contains(found, test.want) && strings.HasPrefix(found, "s: "), "%s: found %q", test.name, found)
		}
	}
	_, found = r.audit()
	kit.Check(t, found == "", "put right again: found %q", found)
}
