package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/server/api"
)

// writes is a daemon that keeps a ledger: it sends what it knows and learns from each answer.
type writes struct {
	r           *rig
	incarnation string
	store       string
	count       string
	token       string
	version     string
}

type conflict struct {
	Error struct {
		Code   string `json:"code"`
		Stream *struct {
			Epoch            string `json:"epoch"`
			Generation, Line int64
		} `json:"stream"`
	} `json:"error"`
}

func (d *writes) post(path, body string) (int, conflict) {
	d.r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, d.r.http.URL+path, strings.NewReader(body))
	if err != nil {
		d.r.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", d.r.key)
	req.Header.Set("Ccship-Writer", strings.TrimSpace(d.incarnation+" "+d.count+" "+d.store+" "+d.token))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var c conflict
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		d.r.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		parts := strings.Split(resp.Header.Get("Ccship-Ledger"), " ")
		d.store, d.count, d.token = parts[0], parts[1], parts[2]
		d.version = resp.Header.Get("Ccship-Server")
	}
	return resp.StatusCode, c
}

// TestLedger: a write carries its writer's state; one that does not match is refused with what the client needs.
func TestLedger(t *testing.T) {
	r := newRig(t, func(s *api.Server) { s.Version = "1.2.3" })
	a := &writes{r: r, incarnation: "a", count: "0"}
	if status, _ := a.post("/api/conversations", piece{lines: objects("x", 0, 3)}.body("s")); status != http.StatusOK || a.count != "1" {
		t.Fatalf("%d, ledger %+v", status, a)
	}
	if a.version != "1.2.3" {
		t.Errorf("the answer to a write is of version %q", a.version)
	}
	if status, c := (&writes{r: r, incarnation: "b", count: "0"}).post("/api/conversations", piece{lines: objects("x", 0, 3)}.body("s")); status != http.StatusConflict || c.Error.Code != "writer_behind" {
		t.Errorf("a new state: %d %+v", status, c)
	}
	status, c := a.post("/api/conversations", piece{lines: objects("y", 1, 2), first: 1}.body("s"))
	if status != http.StatusConflict || c.Error.Code != "other_bytes" || c.Error.Stream == nil || c.Error.Stream.Line != 1 {
		t.Errorf("other bytes: %d %+v", status, c)
	}
	for _, header := range []string{"", "a", "a x", "a 1 s t u", "a 1 s $", "a -1", "ä 1", strings.Repeat("a", 65) + " 1"} {
		bad := &writes{r: r, incarnation: header}
		if status, c := bad.post("/api/conversations", piece{lines: objects("x", 3, 4)}.body("t")); header != "" && (status != http.StatusBadRequest || c.Error.Code != "bad_header") {
			t.Errorf("%q: %d %+v", header, status, c)
		}
	}
	var l struct {
		Store, Writer string
		Count         int64
		Changed       []struct {
			SessionID string `json:"session_id"`
			Count     int64
		}
	}
	r.getJSON("/api/ledger?machine=m1", &l)
	if l.Store != a.store || l.Count != 2 || len(l.Changed) != 2 || l.Changed[0].SessionID != "s" {
		t.Errorf("ledger %+v", l)
	}
}

// TestCopy: a clone under a name of its own gets the lines that both have, without sending them.
func TestCopy(t *testing.T) {
	r := newRig(t)
	a := &writes{r: r, incarnation: "a", count: "0"}
	a.post("/api/conversations", piece{lines: objects("x", 0, 10)}.body("s"))
	a.post("/api/conversations", piece{gen: 1, rewound: 4, first: 4, lines: objects("y", 4, 8)}.body("s"))
	clone := &writes{r: r, incarnation: "b", count: "0"}
	body := fmt.Sprintf(`{"from_machine":"m1","to_machine":"m2","host":"laptop (2)","epoch":"e","lines":%d}`, 6)
	if status, c := clone.post("/api/sessions/s/copy", body); status != http.StatusOK || clone.count == "0" {
		t.Fatalf("%d %+v", status, c)
	}
	want := r.raw("s", "?machine=m1")
	got := r.raw("s", "?machine=m2")
	if lines := strings.SplitAfter(want, "\n"); got != strings.Join(lines[:6], "") {
		t.Errorf("copied %q of %q", got, want)
	}
	if status, c := clone.post("/api/sessions/none/copy", body); status != http.StatusNotFound {
		t.Errorf("an unknown session: %d %+v", status, c)
	}
	if status, c := clone.post("/api/sessions/s/copy", `{"from_machine":"m1","to_machine":"m1","epoch":"e","lines":1}`); status != http.StatusBadRequest {
		t.Errorf("onto itself: %d %+v", status, c)
	}
}

// TestReplaced: what an older client overwrote can be read.
func TestReplaced(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("first", 0, 3)}.body("s"))
	r.post(piece{lines: objects("second", 1, 2), first: 1}.body("s"))
	var page struct {
		Entries []struct {
			LineIndex int64 `json:"line_index"`
			Record    json.RawMessage
		}
	}
	r.getJSON("/api/sessions/s/entries?replaced=1", &page)
	if len(page.Entries) != 1 || page.Entries[0].LineIndex != 1 || !strings.Contains(string(page.Entries[0].Record), "first") {
		t.Errorf("replaced %+v", page)
	}
}
