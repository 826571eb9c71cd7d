package inbox

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
)

// noticesOf returns notices on a state of their own; fault can fail its steps. They run until stop.
func noticesOf(t *testing.T, fault func(step string) error) (n *notices, stop func()) {
	t.Helper()
	projections, err := projection.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1, Fault: fault})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n = newNotices(projections, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- n.run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		if err := projections.State.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, stop
}

func (n *notices) add(t *testing.T, session string, paths ...string) {
	t.Helper()
	var d projection.Derivation
	for _, path := range paths {
		d.Notices = append(d.Notices, projection.Notice{Session: session, Kind: projection.NoticeDocument, Path: path})
	}
	if _, err := n.projections.Commit(t.Context(), []projection.Derivation{d}); err != nil {
		t.Fatal(err)
	}
}

// taken takes until there is nothing more.
func (n *notices) taken(t *testing.T, session string, want int) (paths []string) {
	t.Helper()
	for len(paths) < want && t.Context().Err() == nil {
		for _, p := range n.take(t.Context(), session) {
			paths = append(paths, p.Path)
		}
	}
	if more := n.take(t.Context(), session); len(more) > 0 {
		t.Errorf("and then %v", more)
	}
	return paths
}

// A hook is not kept waiting by a disk that stands still. It gets nothing then, and a later one everything, once.
func TestNoticesOnASlowDisk(t *testing.T) {
	var slow atomic.Bool
	stuck, freed := make(chan struct{}, 1), make(chan struct{})
	n, _ := noticesOf(t, func(step string) error {
		if step == "commit" && slow.Load() {
			stuck <- struct{}{}
			<-freed
		}
		return nil
	})
	n.add(t, "s", "a", "b")
	n.add(t, "other", "c")
	slow.Store(true)
	for range 3 {
		if list := n.take(t.Context(), "s"); len(list) > 0 {
			t.Fatalf("handed over before it is durable: %v", list)
		}
	}
	if list := n.take(t.Context(), "nobody"); len(list) > 0 {
		t.Fatalf("for nobody: %v", list)
	}
	<-stuck
	slow.Store(false)
	close(freed)
	if diff := cmp.Diff([]string{"a", "b"}, n.taken(t, "s", 2)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c"}, n.taken(t, "other", 1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A disk that refuses costs no notice.
func TestNoticesOnABrokenDisk(t *testing.T) {
	var broken atomic.Bool
	n, _ := noticesOf(t, func(step string) error {
		if step == "delete notice" && broken.Load() {
			return errors.New("disk on fire")
		}
		return nil
	})
	n.add(t, "s", "a")
	broken.Store(true)
	if list := n.take(t.Context(), "s"); len(list) > 0 {
		t.Errorf("handed over, and yet still queued: %v", list)
	}
	broken.Store(false)
	if diff := cmp.Diff([]string{"a"}, n.taken(t, "s", 1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Hooks that run at once share what there is.
func TestHooksAtOnce(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a", "b", "c")
	var got atomic.Int64
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() { got.Add(int64(len(n.take(t.Context(), "s")))) })
	}
	all.Wait()
	if all := got.Load() + int64(len(n.taken(t, "s", 3-int(got.Load())))); all != 3 {
		t.Errorf("%d notices were handed over, want 3", all)
	}
}

// What was taken out of the state and fetched by nobody is there again for the next daemon.
func TestNoticesArePutBack(t *testing.T) {
	n, stop := noticesOf(t, nil)
	n.add(t, "s", "a", "b")
	<-n.request("s")
	if n.projections.Notices.Has("s") {
		t.Fatal("not taken out")
	}
	stop()
	list, err := n.projections.Notices.Take(t.Context(), "s")
	if err != nil || len(list["s"]) != 2 || list["s"][0].Path != "a" {
		t.Errorf("%v, err %v", list, err)
	}
}

// The texts, in both languages: in order, documents that were linked one after the other as one.
func TestNoticeText(t *testing.T) {
	list := []projection.Notice{
		{Kind: projection.NoticeDocument, Path: "docs/a.md"}, {Kind: projection.NoticeDocument, Path: "b.md"},
		{Kind: "auto_90", Checkpoint: "cp-1", Tokens: 15_999, Budget: 16_000}, {Kind: "of a later version"},
		{Kind: projection.NoticeDocument, Path: "c.md"}, {Kind: "auto_80", Checkpoint: "cp-2", Tokens: 5}, {Kind: "compact", Checkpoint: "cp-3"},
	}
	en := noticeText("en", list)
	for _, part := range []string{
		"[Document linked]\n- docs/a.md\n- b.md\n⚠️ [ccship] Token budget nearly used up (99%)\n", "(cp-1)\n[Document linked]\n- c.md\n💾", "(0% of", "cp-2", "cp-3",
	} {
		if !strings.Contains(en, part) {
			t.Errorf("no %q in\n%s", part, en)
		}
	}
	ko := noticeText(korean, list)
	for _, part := range []string{"[문서 연결됨]\n- docs/a.md\n- b.md\n⚠️ [ccship] 토큰 사용량 위험 수준 (99%)\n", "체크포인트: cp-2", "cp-3"} {
		if !strings.Contains(ko, part) {
			t.Errorf("no %q in\n%s", part, ko)
		}
	}
	if text := noticeText("en", nil); text != "" {
		t.Errorf("nothing is %q", text)
	}
}
