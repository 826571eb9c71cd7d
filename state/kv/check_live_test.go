package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestCheck(t *testing.T) {
	path := filled(t)
	kit.Err(t, "a whole state", nil)(Check(t.Context(), path))
	kit.Err(t, "no state", fs.ErrNotExist)(Check(t.Context(), filepath.Join(t.TempDir(), "none")))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := Check(over, path)
	kit.Check(t, errors.Is(err, context.Canceled) && !errors.Is(err, ErrCorrupt), "no time: %v", err)
	kit.Must(t, os.WriteFile(path+suffixBroken, []byte("page 7: gone\n"), 0o600))
	err = Check(t.Context(), path)
	kit.Check(t, errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), "page 7: gone"), "found while in use: %v", err)
	kit.Must(t, os.Remove(path+suffixBroken))
	b := usedBytes(t, path)
	clear(b[8192:])
	kit.Must(t, os.WriteFile(path, b, 0o600))
	kit.Err(t, "pages zeroed", ErrCorrupt)(Check(t.Context(), path))
}

// A state that is written to at the same time is whole, and its writer waits for nobody.
func TestCheckInUse(t *testing.T) {
	path := filled(t)
	s := open(t, Options{Path: path})
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer writing.Wait()
	defer stop()
	wrote := make(chan struct{}, 1)
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := s.putRows(ctx, 300, fmt.Sprintf("more%d", i)); err != nil && ctx.Err() == nil {
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
		err := Check(t.Context(), path)
		kit.Require(t, err == nil, "while it is written to: %v", err)
	}
}
