package cli

import (
	"context"
	"sync"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
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

// drawImport moves the bar by what is read and acknowledged until ctx is done.
func drawImport(ctx context.Context, client *control.Client, bar *term.Bar) {
	for bar != nil && Sleep(ctx, 200*time.Millisecond) == nil {
		status, err := client.Status(ctx)
		if err == nil && status.Files != nil && status.Outbox != nil {
			bar.Set(status.Files.ReadBytes-status.Outbox.Bytes, status.Files.Bytes)
		}
	}
}
