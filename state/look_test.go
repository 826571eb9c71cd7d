package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/tail"
)

func TestCheck(t *testing.T) {
	path := filled(t)
	if err := Check(t.Context(), path); err != nil {
		t.Errorf("a whole state: %v", err)
	}
	if err := Check(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no state: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Check(over, path); !errors.Is(err, context.Canceled) || errors.Is(err, ErrCorrupt) {
		t.Errorf("no time: %v", err)
	}
	if err := os.WriteFile(path+suffixBroken, []byte("page 7: gone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), path); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "page 7: gone") {
		t.Errorf("found while in use: %v", err)
	}
	if err := os.Remove(path + suffixBroken); err != nil {
		t.Fatal(err)
	}
	b := usedBytes(t, path)
	clear(b[8192:])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), path); !errors.Is(err, ErrCorrupt) {
		t.Errorf("pages zeroed: %v", err)
	}
}

// A state that is written to at the same time is whole, and its writer waits for nobody.
func TestCheckInUse(t *testing.T) {
	path := filled(t)
	db := open(t, Options{Path: path})
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer writing.Wait()
	defer stop()
	wrote := make(chan struct{}, 1)
	writing.Go(func() {
		for id := tail.FileID(2000); ctx.Err() == nil; id++ {
			if _, err := db.Commit(ctx, []Step{advance(id, 0, 5, 300)}); err != nil && ctx.Err() == nil {
				t.Errorf("commit: %v", err)
				return
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	})
	for range 300 {
		<-wrote
		if err := Check(t.Context(), path); err != nil {
			t.Fatalf("while it is written to: %v", err)
		}
	}
}

func TestDiskSpace(t *testing.T) {
	free, head, err := DiskSpace(t.TempDir(), 0)
	if err != nil || free == 0 || head == 0 || head > 256<<20 {
		t.Errorf("%d %d %v", free, head, err)
	}
	if _, head, err := DiskSpace(t.TempDir(), 77); err != nil || head != 77 {
		t.Errorf("%d %v", head, err)
	}
	if _, _, err := DiskSpace(filepath.Join(t.TempDir(), "none"), 0); err == nil {
		t.Error("no folder, no error")
	}
}
