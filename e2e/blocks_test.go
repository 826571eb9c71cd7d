//go:build unix

package e2e

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/lines"
)

// unpack turns the blocks of a SQLite store into rows of lines, which a statement of the same transaction can change:
// the server packs them again soon.
func unpack(t testing.TB, tx *sql.Tx) {
	t.Helper()
	packed(t, tx, func(at [4]int64, l *lines.Line) {
		_, err := tx.Exec(`INSERT INTO lines (owner, stream, epoch, generation, line, kind, raw, received) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`, at[0], at[1], at[2], at[3], l.Index, l.Kind, append([]byte{}, l.Raw...), l.Received)
		must(t, err)
	})
	_, err := tx.Exec(`DELETE FROM blocks`)
	must(t, err)
}

// packed passes on every line in the blocks of a SQLite store, with its owner, stream, epoch and generation.
func packed(t testing.TB, tx *sql.Tx, each func(at [4]int64, l *lines.Line)) {
	t.Helper()
	codec, err := lines.NewCodec()
	must(t, err)
	rows, err := tx.Query(`SELECT owner, stream, epoch, generation, first, last, lines, raw_bytes, sha256, header, data FROM blocks`)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var at [4]int64
		var b lines.Block
		must(t, rows.Scan(&at[0], &at[1], &at[2], &at[3], &b.First, &b.Last, &b.Lines, &b.RawBytes, &b.SHA256, &b.Header, &b.Data))
		content, err := codec.Open(&b)
		must(t, err)
		for i := range content.Entries {
			l := content.Line(i)
			each(at, &l)
		}
		codec.Release(content)
	}
	must(t, rows.Err())
}

// TestDamagedBlock: a byte of a packed block is flipped on the server's disk. Both verify commands name the session and
// the lines, the repair sends them again, and then everything is equal.
func TestDamagedBlock(t *testing.T) {
	w := aloneWorld(t)
	c, path := shipped(w, 2150, 400)
	other, otherPath := shipped(w, 2151, 40)
	db, err := sql.Open("sqlite", w.exact.database()+"?_pragma=busy_timeout(60000)")
	must(t, err)
	defer db.Close()
	result, err := db.Exec(`
UPDATE blocks SET data = CAST(substr(data, 1, 99) || X'00FF' || substr(data, 102) AS BLOB)
WHERE id = (SELECT min(b.id) FROM blocks b JOIN streams s ON s.id = b.stream WHERE s.session_id = ?)`, c.session)
	must(t, err)
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%d blocks damaged, %v", n, err)
	}
	w.unequal(c.session, "not on the server", "`ccship verify --repair`")
	if out := w.runProgram(kit.Program(t, "ccship-server"), "verify", "--store", w.exact.store()); out.code == 0 || !strings.Contains(out.stdout+out.stderr, c.session) {
		t.Errorf("ccship-server verify: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	if out := w.ccship("verify", "--repair"); out.code != 0 || !strings.HasPrefix(out.stdout, "equal") {
		t.Errorf("verify --repair: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	w.verified()
	w.same(c.session, path)
	w.same(other.session, otherPath)
}
