package store

import (
	"path/filepath"
	"testing"
)

// TestDurability pins what COMMIT promises; no test can pull the plug.
func TestDurability(t *testing.T) {
	s, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "server.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "page_size": "8192"} {
		var got string
		if err := s.conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", pragma, got, want, err)
		}
	}
	if _, err := s.read.ExecContext(t.Context(), `DELETE FROM keys`); err == nil {
		t.Error("a reading connection can write")
	}
}
