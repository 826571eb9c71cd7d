package delivery

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/outbox"
)

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestNewNetwork: while a server cannot be reached, other addresses of this machine mean another try at once; the same
// ones do not, and while all is well nobody looks.
func TestNewNetwork(t *testing.T) {
	s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{})
	var log syncBuffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	looked, now := 0, "10.0.0.7/24"
	s.addresses = func() string { looked++; return now }
	s.RetryOnNewNetwork()
	if looked != 0 {
		t.Error("it looks for networks though no server is away")
	}
	queue(t, s.db, 1, ownURL)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
	}()
	for limit := time.After(2 * time.Minute); !s.anyUnreachable(); {
		select {
		case <-limit:
			t.Fatalf("the server is never away: %+v", s.drainers()[ownURL].Health())
		case <-time.After(time.Millisecond):
		}
	}
	for _, step := range []struct {
		addresses string
		changes   int
	}{{"10.0.0.7/24", 0}, {"10.0.0.7/24", 0}, {"192.168.1.5/24", 1}, {"192.168.1.5/24", 1}, {"", 2}, {"10.0.0.7/24", 2}} {
		now = step.addresses
		s.RetryOnNewNetwork()
		if n := strings.Count(log.String(), "network has changed"); n != step.changes {
			t.Errorf("at %q: %d changes noticed, want %d", now, n, step.changes)
		}
	}
	if h := s.drainers()[ownURL].Health(); h.Kind != outbox.KindUnreachable {
		t.Errorf("health %+v", h)
	}
}
