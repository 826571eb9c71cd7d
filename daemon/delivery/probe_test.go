package delivery

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

func TestProbe(t *testing.T) {
	var asked []string
	status, body, announces := 0, "", false
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base"+protocol.KeyProofPath {
			hash, nonce := sha256.Sum256([]byte("k3y")), r.URL.Query().Get("nonce")
			a := protocol.KeyProof{Store: "s", Proof: protocol.ServerProof(hash, nonce, "s")}
			if !protocol.EqualProofs(r.URL.Query().Get("proof"), protocol.ClientProof(hash, nonce)) {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":{"code":"`+protocol.CodeUnknownKey+`"}}`)
				return
			}
			_ = json.NewEncoder(w).Encode(a)
			return
		}
		text, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-API-Key")+" "+string(text))
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		if announces {
			w.Header().Set("Ccship-Protocol", "1")
		}
		switch r.URL.Path {
		case "/base/healthz":
			_, _ = io.WriteString(w, `{"ok":true,"version":"1.2.3"}`)
		default:
			if status/100 == 3 {
				w.Header().Set("Location", "https://elsewhere.example/")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}))
	defer web.Close()
	const ok = `{"success":true,"entries_stored":0}`
	for _, c := range []struct {
		name      string
		announces bool
		status    int
		body      string
		code      string // of the error; "" none
		version   string
	}{
		{"ccship-server", true, 200, `{"sessions":[]}`, "", "1.2.3"},
		{"ccship-server refuses the key", true, 401, `{}`, control.CodeRefusedKey, "1.2.3"},
		{"ccship-server in trouble", true, 500, `{}`, control.CodeUnreachable, "1.2.3"},
		{"plain", false, 200, ok, "", ""},
		{"plain, wants entries", false, 400, `{"error":"entries is empty"}`, "", ""},
		{"plain, refuses the key", false, 403, ``, control.CodeRefusedKey, ""},
		{"plain, busy", false, 429, ``, control.CodeUnreachable, ""},
		{"behind a dead gateway", false, 502, `<html>`, control.CodeUnreachable, ""},
		{"a web page", false, 200, `<html>`, "protocol", ""},
		{"something else that speaks JSON", false, 200, `{"ok":1}`, "protocol", ""},
		{"nothing there", false, 404, ``, "not_found", ""},
		{"moved", false, 301, ``, "redirect", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked, status, body, announces = nil, c.status, c.body, c.announces
			found, err := Probe(t.Context(), Candidate{Server: web.URL + "/base", Key: "k3y", Agent: "ccship/test"})
			var e *control.Error
			errors.As(err, &e)
			kit.Check(t, (c.code != "" || err == nil) && (c.code == "" || e != nil && e.Code == c.code && e.Hint != ""),
				"%v, want %q", err, c.code)
			kit.Check(t, found.Extension == c.announces && found.Version == c.version, "%+v", found)
			want := `POST /base/api/conversations k3y {"project_hash":"","session_id":"ccship-probe","entries":[]}`
			if c.announces {
				want = "GET /base/api/sessions?limit=1 k3y "
			}
			kit.Check(t, found.Skew >= time.Hour-2*time.Minute && found.Skew <= time.Hour,
				"clock ahead by %s, it was an hour", found.Skew)
			kit.Check(t, len(asked) == 2 && asked[1] == want, "asked %q", asked)
		})
	}
	web.Close()
	var e *control.Error
	if _, err := Probe(t.Context(), Candidate{Server: web.URL}); !errors.As(err, &e) || e.Code != control.CodeUnreachable || !strings.Contains(e.Message, "refused") {
		t.Errorf("nobody listens: %v", err)
	}
	var mistake *config.Error
	_, err := Probe(t.Context(), Candidate{Server: "ftp://x"})
	kit.Check(t, errors.As(err, &mistake), "no URL: %v", err)
}

// TestProbeProof: over plain HTTP nobody is shown the key who was a ccship-server, or says so, and does not prove it.
func TestProbeProof(t *testing.T) {
	for _, c := range []struct {
		name              string
		announces, proven bool
		proof             string // the answer to the question for it, 401; "": as to any other
		code, hint        string
	}{
		{"says that it is a ccship-server", true, false, "", "unproven", "tunnel"},
		{"was one before", false, true, "", "unproven", "tunnel"},
		{"was never one", false, false, "", "", ""},
		{"is older than the proof", true, false, "unauthorized", "unproven", "update ccship-server"},
		{"does not have the key", true, false, protocol.CodeUnknownKey, "refused_key", "key create"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := 0
			thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-API-Key") != "" {
					keys++
				}
				if r.URL.Path == protocol.KeyProofPath && c.proof != "" {
					w.WriteHeader(http.StatusUnauthorized)
					_, _ = io.WriteString(w, `{"error":{"code":"`+c.proof+`"}}`)
					return
				}
				if c.announces {
					w.Header().Set("Ccship-Protocol", "1")
				}
				_, _ = io.WriteString(w, `{"success":true,"sessions":[]}`)
			}))
			defer thief.Close()
			_, err := Probe(t.Context(), Candidate{Server: thief.URL, Key: "k3y", Proven: c.proven})
			var e *control.Error
			errors.As(err, &e)
			if c.code == "" && err != nil || c.code != "" && (e == nil || e.Code != c.code || !strings.Contains(e.Hint, c.hint)) {
				t.Errorf("%v, want %q", err, c.code)
			}
			kit.Check(t, (keys > 0) == (c.code == ""), "the key was shown %d times", keys)
		})
	}
}

// A date that any moment between question and answer could have had proves nothing.
func TestSkew(t *testing.T) {
	sent := time.Date(2026, 11, 21, 12, 0, 0, 400e6, time.UTC)
	received := sent.Add(300 * time.Millisecond)
	for date, want := range map[string]time.Duration{
		"":                              0,
		"yesterday":                     0,
		"Sat, 21 Nov 2026 12:00:00 GMT": 0,
		"Sat, 21 Nov 2026 11:59:59 GMT": -400 * time.Millisecond,
		"Sat, 21 Nov 2026 12:00:01 GMT": 300 * time.Millisecond,
		"Sat, 21 Nov 2026 12:01:00 GMT": 59*time.Second + 300*time.Millisecond,
		"Sat, 21 Nov 2026 11:59:00 GMT": -59*time.Second - 400*time.Millisecond,
	} {
		got := skew(date, sent, received)
		kit.Check(t, got == want, "%q: %s, want %s", date, got, want)
	}
}
