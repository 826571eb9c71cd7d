package derive

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
)

// noticesOf returns notices on a state of their own; fault can fail its steps. They run until stop.
func noticesOf(t *testing.T, fault func(step string) error) (n *notices, stop func()) {
	t.Helper()
	projections := kit.Try(projection.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1, Fault: fault})).Must(t)
	log := slog.New(slog.DiscardHandler)
	introductions := kit.Try(LoadIntroductions(t.Context(), projections, log)).Must(t)
	ctx, cancel := context.WithCancel(t.Context())
	n = NewNotices(projections, introductions, log)
	n.leaseTime = time.Hour
	ended := make(chan error, 1)
	go func() { ended <- n.run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			err := <-ended
			kit.Check(t, err == nil, "%v", err)
		})
	}
	t.Cleanup(func() {
		stop()
		kit.Should(t, projections.State.Close())
	})
	return n, stop
}

func (n *notices) add(t *testing.T, session string, paths ...string) {
	t.Helper()
	var d projection.Derivation
	for _, path := range paths {
		d.Notices = append(d.Notices, projection.Notice{Session: session, Kind: projection.NoticeDocument, Path: path})
	}
	kit.Try(n.projections.Commit(t.Context(), []projection.Derivation{d})).Must(t)
}

// What was printed and the transcript does not show comes once more, after a minute and two answers, and then never.
func TestToldAtMostTwice(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a", "b")
	n.prints(t, "s", "a", "b")
	n.shown("s", "[Document linked]\n- b")
	n.gets(t, "s")
	n.againAfter = 0
	n.gets(t, "s") // Claude Code may not have read it yet
	for _, message := range []string{"m1", "m1", "m1"} {
		n.answered("s", message, "2.1.197")
	}
	n.gets(t, "s")
	n.answered("s", "m2", "2.1.197")
	n.againAfter = time.Hour
	n.gets(t, "s")
	n.againAfter = 0
	n.prints(t, "s", "a")
	n.answered("s", "m3", "2.1.197")
	n.answered("s", "m4", "2.1.197")
	n.gets(t, "s")
	kit.Eventually(t, "only what the transcript shows waits for its fold", 10*time.Second, func() bool { return len(n.projections.Notices.Of("s")) == 1 })
}

// Versions that do not write down what hooks tell are shown once.
func TestToldOnceToOldVersions(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.againAfter = 0
	for _, version := range []string{"2.0.76", "2.1.97"} {
		n.add(t, version, "a")
		n.prints(t, version, "a")
		n.answered(version, "m1", version)
		n.answered(version, "m2", version)
		n.gets(t, version)
		kit.Eventually(t, "it is gone", 10*time.Second, func() bool { return len(n.projections.Notices.Of(version)) == 0 })
	}
	for version, want := range map[string]bool{"2.1.98": true, "2.2.0": true, "3.0.1": true, "": true, "dev": true, "1.0.128": false} {
		kit.Check(t, writesHooks(version) == want, "%q", version)
	}
}

// A hook is not kept waiting by a disk that stands still, and a notice comes once all the same.
func TestNoticesOnASlowDisk(t *testing.T) {
	var slow atomic.Bool
	freed := make(chan struct{})
	n, _ := noticesOf(t, func(step string) error {
		if step == "commit" && slow.Load() {
			<-freed
		}
		return nil
	})
	n.add(t, "s", "a", "b")
	slow.Store(true)
	n.prints(t, "s", "a", "b")
	n.gets(t, "s")
	slow.Store(false)
	close(freed)
	kit.Eventually(t, "the state knows", 10*time.Second, func() bool { return n.projections.Notices.Of("s")[1].Printed > 0 })
	n.gets(t, "s")
}

// A disk that refuses is tried again.
func TestNoticesOnABrokenDisk(t *testing.T) {
	var broken atomic.Bool
	n, _ := noticesOf(t, func(step string) error {
		return kit.If[error](step == "put notice" && broken.Load(), errors.New("disk on fire"), nil)
	})
	n.add(t, "s", "a")
	broken.Store(true)
	n.prints(t, "s", "a")
	n.gets(t, "s")
	kit.Eventually(t, "saving has failed", 10*time.Second, func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.failing })
	broken.Store(false)
	kit.Eventually(t, "it is saved", 10*time.Second, func() bool { return n.projections.Notices.Of("s")[0].Printed > 0 })
}

// Hooks that run at once share what there is.
func TestHooksAtOnce(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a", "b", "c")
	var got, introductions atomic.Int64
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			l, _ := n.lend("s", true, every)
			got.Add(int64(len(l.list)))
			if l.init {
				introductions.Add(1)
			}
		})
	}
	all.Wait()
	kit.Check(t, got.Load() == 3 && introductions.Load() == 1,
		"%d notices and %d introductions were handed over, want 3 and 1", got.Load(), introductions.Load())
}

// The texts, in both languages: in order, documents that were linked one after the other as one.
func TestNoticeText(t *testing.T) {
	list := []projection.Notice{
		{Kind: projection.NoticeDocument, Path: "docs/a.md"}, {Kind: projection.NoticeDocument, Path: "b.md"},
		{Kind: "auto_90", Checkpoint: "cp-1", Tokens: 15_999, Budget: 16_000}, {Kind: "of a later version"},
		{Kind: projection.NoticeDocument, Path: "c.md"}, {Kind: "auto_80", Checkpoint: "cp-2", Tokens: 5}, {Kind: "compact", Checkpoint: "cp-3"},
		{Kind: projection.NoticeRefused, Path: ".env", Reason: "it may hold\npasswords"}, {Kind: projection.NoticeRefused, Path: "x", Reason: "why"},
		{Kind: projection.NoticeDocument, Path: "big.bin", Reason: "too large"},
	}
	en := noticeText("en", list)
	for _, part := range []string{
		"[Document linked]\n- docs/a.md\n- b.md\n⚠️ [ccship] Token budget nearly used up (99%)\n", "(cp-1)\n[Document linked]\n- c.md\n💾", "(0% of", "cp-2", "cp-3",
		"\n[Document not linked]\n- .env: it may hold passwords\n- x: why\n[Document linked]\n- big.bin: too large",
	} {
		kit.Check(t, strings.Contains(en, part), "no %q in\n%s", part, en)
	}
	for i := range list {
		kit.Check(t, (list[i].Kind == "of a later version" || contains(en, &list[i])) &&
			!contains("[Document linked]\n- docs/a.md.bak", &list[i]),
			"%+v is not found, or anywhere", list[i])
	}
	ko := noticeText(korean, list)
	for _, part := range []string{"[문서 연결됨]\n- docs/a.md\n- b.md\n⚠️ [ccship] 토큰 사용량 위험 수준 (99%)\n", "체크포인트: cp-2", "cp-3"} {
		kit.Check(t, strings.Contains(ko, part), "no %q in\n%s", part, ko)
	}
	kit.Equal(t, "nothing", noticeText("en", nil), "")
}

// TestDueAfterClockAhead prints a notice again whose first print bears a time that has not come.
func TestDueAfterClockAhead(t *testing.T) {
	n := &notices{againAfter: time.Hour}
	for ahead, due := range map[time.Duration]bool{365 * 24 * time.Hour: true, -2 * time.Hour: true, 0: false} {
		h := (&listener{handed: map[uint64]*handOver{}}).of(&projection.Notice{Printed: time.Now().Add(ahead).UnixMilli()})
		h.answers = againAnswers
		kit.Check(t, n.due(h) == due, "printed %s ahead: due %v, want %v", ahead, n.due(h), due)
	}
}
