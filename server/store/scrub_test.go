package store_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlite"
)

// onDisk reports in which files of a database a text is.
func onDisk(t *testing.T, path, text string) (found []string) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(name)
		kit.Require(t, err == nil || os.IsNotExist(err), "%v", err)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, filepath.Base(name))
		}
	}
	return found
}

// indexed reports whether the index of a database holds a run of three characters.
func indexed(t *testing.T, path, run string) bool {
	t.Helper()
	db := kit.Try(sql.Open("sqlite", "file:"+path)).Must(t)
	defer db.Close()
	rows := kit.Try(db.Query(`SELECT data FROM gram_segments`)).Must(t)
	defer rows.Close()
	for rows.Next() {
		var data []byte
		kit.Must(t, rows.Scan(&data))
		if has, err := search.Holds(data, run); err != nil {
			t.Fatal(err)
		} else if has {
			return true
		}
	}
	kit.Must(t, rows.Err())
	return false
}

// TestScrub: once a secret is masked and what it was in is derived again, nothing of it is in the files: not in pages
// that were freed long before, not in the log, and no three characters of it in the index.
func TestScrub(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	st := openAt(t, path)
	long := `{"text":"` + strings.Repeat("words ", 9000) + needle + `"}`
	for i := range 3 { // the pages of a long line become free when a short one replaces it
		put(t, st, batch("s", object(int64(i), long)))
		put(t, st, batch("s", object(int64(i), `{}`)))
	}
	put(t, st, batch("clean", object(0, prompt)))
	kit.Try(st.Forget(t.Context(), all, "clean", 0, start)).Must(t) // no page of it is left
	put(t, st, batch("s", object(3, prompt)))
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: said(object(3, prompt), start),
			State: []byte(needle), Live: true, Moments: []server.Moment{{Line: 1, Kind: "prompt", Data: []byte(needle)}},
			Summary: server.Summary{Title: needle}})
	}
	kit.Require(t, len(onDisk(t, path, needle)) != 0 && indexed(t, path, "fgh"), "there is nothing to scrub")
	snap := kit.Try(st.Open(t.Context(), server.Ref{SessionID: "s"})).Must(t)
	m := &server.Masking{Stream: snap.Session().ID, Lines: []server.LineMask{lineMask(t, snap, 3, prompt)}}
	for i := range int64(3) {
		m.Lines = append(m.Lines, lineMask(t, snap, i, long))
	}
	kit.Must(t, snap.Close())
	kit.Equal(t, "masked", mask(t, st, m), server.Masked{Lines: 4})
	var last int64
	kit.Must(t, st.Scrub(t.Context(), func(done, total int64) {
		kit.Check(t, done > last && done <= total, "%d of %d after %d", done, total, last)
		last = done
	}))
	clean(t, st, path)
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: said(object(3, says("prompt", "other words")), start)})
	}
	kit.Check(t, indexed(t, path, "wor"), "the index is not used")
	clean(t, st, path)
}

func clean(t *testing.T, st *sqlite.Store, path string) {
	t.Helper()
	for _, piece := range []string{needle, needle[4:20], strings.ToLower(needle)} {
		found := onDisk(t, path, piece)
		kit.Check(t, found == nil, "%q is in %q", piece, found)
	}
	kit.Check(t, !indexed(t, path, "fgh"), "the index knows pieces of it")
	var problems int
	db := kit.Try(sql.Open("sqlite", "file:"+path)).Must(t)
	defer db.Close()
	var answer string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&answer); err != nil || answer != "ok" {
		problems++
		t.Errorf("integrity check: %s, %v", answer, err)
	}
	if err := st.Scrub(t.Context(), func(int64, int64) { t.Error("it is scrubbed again") }); err != nil || problems > 0 {
		t.Error(fmt.Errorf("scrub: %w", err))
	}
}
