//go:build unix

package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// rewoundSession sends a session of 90 lines of 3 KB that a rewind cut to 60, and another one to 30. It returns what its
// newest view is, as a file.
func (p *program) rewoundSession(key, session string) (file string, err error) {
	line := func(generation, i int) string {
		return fmt.Sprintf(`"n":%d,"of":%d,"pad":%q}`, i, generation, strings.Repeat(session, 3000/len(session)))
	}
	var now []string
	for g := range 3 {
		var entries []string
		now = now[:min(len(now), 90-30*g)]
		for i := len(now); i < 90; i++ {
			now = append(now, "{"+line(g, i))
			entries = append(entries, fmt.Sprintf(`{"line_index":%d,`, i)+line(g, i))
		}
		err := p.post(key, fmt.Sprintf(`{"project_hash":"ph","session_id":%q,"ccship":{"v":1,"machine":"m","host":"h","epoch":"e",
"project":%q,"generation":%d,"rewound_to":%d},"entries":[%s]}`, session, strings.TrimRight(session, "0123456789"), g,
			90-len(entries), strings.Join(entries, ",")))
		if err != nil {
			return "", err
		}
	}
	return strings.Join(now, "\n") + "\n", nil
}

// digestOf is what the server proves of the lines of all generations of a session.
func (p *program) digestOf(t *testing.T, key, session string) string {
	t.Helper()
	type generation struct{ Generation, Lines, Missing, Bytes int64 }
	var a struct{ Generations []generation }
	at := "/api/sessions/" + session + "/digest"
	kit.Must(t, json.Unmarshal(p.must(t, key, "GET", at, nil), &a))
	out := fmt.Sprint(a.Generations)
	for _, g := range a.Generations {
		var of struct {
			Hashes json.RawMessage `json:"line_hashes"`
		}
		kit.Must(t, json.Unmarshal(p.must(t, key, "GET", fmt.Sprintf("%s?generation=%d&from=0", at, g.Generation), nil), &of))
		out += string(of.Hashes)
	}
	return out
}

// TestRetentionKilled kills the server in the middle of what rules of retention remove: what is kept is whole, what was
// removed is known, and in the end nothing is left to remove. lab kill does it long, and kills databases too.
func TestRetentionKilled(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "server.db")
		key := newKeyIn(t, path)
		retentionKilled(t, "sqlite:"+path, "sqlite", path, key)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		c := pgtest.New(t, pgtest.Fast)
		at := c.URL("postgres")
		out, _ := tool(t, 0, "key", "create", "--name", "first", "--store", at)
		retentionKilled(t, at, "pgx", at, strings.TrimSpace(out))
	})
}

func retentionKilled(t *testing.T, store, driver, at, key string) {
	const rounds = 2
	db, err := sql.Open(driver, at)
	kit.Must(t, err)
	defer db.Close()
	runs := func() (n int) {
		if err := db.QueryRow(`SELECT count(*) FROM retired`).Scan(&n); err != nil {
			n = 0 // the database is busy
		}
		return n
	}
	serve := func(every string) *program {
		return launch(t, "", "--store", store, "--retention-every", every, "--log-level", "error")
	}
	for _, rule := range []string{"generations --older-than 30d", "sessions --older-than 60d --project drop"} {
		tool(t, 0, append([]string{"retention", "add", "--store", store}, strings.Fields(rule)...)...)
	}
	files, digests := map[string]string{}, map[string]string{}
	for round := range rounds {
		p := serve("0")
		for i := range 6 {
			name := fmt.Sprintf("%s%d", []string{"keep", "drop"}[i%2], 10*round+i)
			if files[name], err = p.rewoundSession(key, name); err != nil {
				t.Fatal(err)
			}
			digests[name] = p.digestOf(t, key, name)
		}
		p.kill(t)
		for _, query := range []string{
			`UPDATE streams SET last_received = last_received - 90 * 86400000000 WHERE last_received > 90 * 86400000000 + (SELECT max(last_received) - 180 * 86400000000 FROM streams)`,
			`UPDATE generations SET first_seen = first_seen - 90 * 86400000000`,
		} {
			if _, err := db.Exec(query); err != nil {
				t.Fatal(err)
			}
		}
		had := runs()
		p = serve("400ms")
		until(t, "lines are retired", func() bool { return runs() > had+(7*round)%20 })
		p.kill(t)
	}
	until(t, "nothing is left to remove", func() bool {
		var out, words bytes.Buffer
		code := run(t.Context(), []string{"retention", "--yes", "--json", "--store", store}, &out, &words)
		return code == 0 && strings.Contains(out.String(), `"counts": []`)
	})
	p := serve("0")
	for name, file := range files {
		if got := p.digestOf(t, key, name); got != digests[name] {
			t.Errorf("the digests of %s were %s, are %s", name, digests[name], got)
		}
		if strings.HasPrefix(name, "keep") {
			if got := p.raw(t, key, name); got != file {
				t.Errorf("%s has %d bytes, or others than the %d that were sent", name, len(got), len(file))
			}
			continue
		}
		if status, answer, err := p.call(key, "GET", "/api/sessions/"+name+"/raw", nil); err != nil || status != 409 ||
			!strings.Contains(string(answer), "retired by policy") {
			t.Errorf("%s, which was dropped: %d %.200s %v", name, status, answer, err)
		}
		if _, err := p.rewoundSession(key, name); err != nil {
			t.Errorf("%s sent again: %v", name, err)
		}
	}
	p.kill(t)
	var left int
	query := `SELECT (SELECT count(*) FROM lines) + (SELECT coalesce(sum(lines), 0) FROM blocks)`
	if err := db.QueryRow(query).Scan(&left); err != nil || left != rounds*3*90 {
		t.Errorf("%d lines are stored, want %d of those that are kept; %v", left, rounds*3*90, err)
	}
	_, words := tool(t, 0, "verify", "--store", store)
	t.Logf("%d rounds, %d sessions, %d runs; verify: %s", rounds, len(files), runs(), words)
}
