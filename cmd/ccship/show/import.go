package show

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// ShowImport shows the progress of the import until every line that was on disk is delivered. Each sync may take as
// long as within; if it ends before everything is delivered, again says whether another one starts.
func (a *App) ShowImport(ctx context.Context, client *control.Client, within time.Duration,
	again func(control.SyncResult) bool) (control.SyncResult, error) {
	bar := term.NewBar(a.Stderr, "importing")
	defer bar.Clear()
	showing, hide := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	drawing.Go(func() { drawImport(showing, client, bar) })
	defer drawing.Wait()
	defer hide()
	for {
		result, err := client.Sync(ctx, control.SyncRequest{Wait: true, Timeout: within.String()})
		if err != nil && !Temporary(err) || err == nil && (result.Done || !again(result)) {
			return result, err
		}
		if err := Sleep(ctx, time.Second); err != nil {
			return result, err
		}
	}
}

// SayHowFar says how much of what is on disk is on the server, and what happens with the rest.
func (a *App) SayHowFar(s control.Status, then string) {
	if s.Files == nil || s.Outbox == nil || s.Files.Bytes == 0 {
		return
	}
	there := max(0, s.Files.ReadBytes-s.Outbox.Bytes)
	a.Say("%s of %s (%d %%) are on the server; %s", amount.Size(there), amount.Size(s.Files.Bytes),
		100*there/s.Files.Bytes, then)
}

// drawImport moves the bar by what is read and acknowledged until ctx is done.
func drawImport(ctx context.Context, client *control.Client, bar *term.Bar) {
	for bar != nil && Sleep(ctx, 200*time.Millisecond) == nil {
		status, err := client.Status(ctx)
		if err == nil && status.Files != nil && status.Outbox != nil {
			bar.Set(status.Files.ReadBytes-status.Outbox.Bytes, status.Files.Bytes)
		}
	}
}

// indexPatience is how long a server may take without finishing a single transcript before AwaitIndex stops waiting.
const indexPatience = 15 * time.Second

// index asks a server how many transcripts its lists and its search do not show yet, of all that it stores.
type index func(ctx context.Context) (left, all int64, err error)

// AwaitIndex shows how far the server's index is until lists and search show everything that it has. It returns how
// much of it is shown by then, in per cent: 100, or less when the server is busy with something else. ok is false where
// the server does not say. ask is remote.Indexing.
func (a *App) AwaitIndex(ctx context.Context, ask index) (percent int64, ok bool) {
	bar := term.NewBar(a.Stderr, "indexing")
	defer bar.Clear()
	best, since := int64(-1), time.Now()
	for {
		left, all, err := ask(ctx)
		if err != nil {
			return percent, best >= 0
		}
		if percent = 100 * (all - left) / max(all, 1); left == 0 {
			return 100, true
		}
		bar.Note(fmt.Sprintf("%d%%, %d of %d transcripts left", percent, left, all))
		if best < 0 || left < best {
			best, since = left, time.Now()
		}
		if time.Since(since) > indexPatience || Sleep(ctx, 200*time.Millisecond) != nil {
			return percent, true
		}
	}
}
