//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
)

// TestPostgresKillUpload: the database is killed in the middle of uploads; what was acknowledged is there, and all files
// are in the end.
func TestPostgresKillUpload(t *testing.T) {
	c := pgtest.New(t, nil)
	s := openPostgres(t, c.URL("postgres"))
	const files, chunks = 4, 40
	progress := make(chan struct{}, files*chunks)
	contents := make([][]byte, files)
	var wg sync.WaitGroup
	for i := range files {
		contents[i] = bytes.Repeat(fmt.Appendf(nil, "file %d ", i), chunks*1000)
		wg.Go(func() {
			furthest := int64(0)
			u := uploadOf(1, fmt.Sprint("s", i), "tool-results/t.txt", contents[i])
			for {
				have, complete, err := s.StartBlob(t.Context(), u)
				kit.Check(t, err != nil || complete || have >= furthest, "file %d goes on at %d, and %d were acknowledged", i,
					have, furthest)
				for err == nil && have < u.Size {
					have, err = s.PutBlob(t.Context(), 1, u.SHA256, have, contents[i][have:min(have+7000, u.Size)], start)
					if err == nil {
						furthest = have
						progress <- struct{}{}
					}
				}
				if err == nil {
					err = s.EndBlob(t.Context(), u)
				}
				if err == nil {
					return
				}
				if _, moved := errors.AsType[*server.OffsetError](err); !moved && t.Context().Err() != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		for range files * chunks / 4 {
			<-progress
		}
		kit.Should(t, errors.Join(c.Kill(), c.Start()))
	}
	wg.Wait()
	for i, content := range contents {
		sum := fmt.Sprintf("%x", uploadOf(1, "", "", content).SHA256)
		kit.Equal(t, fmt.Sprintf("file %d: bytes of %d, or others", i, len(content)), blobContent(t, s, sum), string(content))
	}
	noFindings(t, s, files)
}
