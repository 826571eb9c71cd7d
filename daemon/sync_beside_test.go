package daemon

import (
	"errors"
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSyncBesideWriter: sync and verify end while a session is written to without a pause.
func TestSyncBesideWriter(t *testing.T) {
	w := newWorld(t)
	path := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	w.deliver()
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		const most = 50_000 // lines, for a slow machine
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		for n := 0; err == nil && n < most; n++ {
			select {
			case <-over:
				ended <- f.Close()
				return
			default:
				_, err = f.WriteString(record("/home/kim/shop", 3))
			}
		}
		ended <- errors.Join(err, f.Close())
	}()
	for range 3 {
		r := w.sync()
		kit.Check(t, r.Done, "sync: %+v", r)
	}
	r := w.verify()
	kit.Check(t, r.Equal, "verify: %+v", r.Differences)
	close(over)
	kit.Must(t, <-ended)
}
