package control

import (
	"context"
	"io"
)

// Daemon is what the socket lets its owner see and ask for. Every method may be called by several goroutines at once.
// An *Error returned decides what the caller gets to read; any other error is a CodeFailed.
type Daemon interface {
	Observed
	Delivery
	Settings
}

// Observed is what can be seen of a daemon.
type Observed interface {
	Status(ctx context.Context) Status
	Sessions(ctx context.Context, q SessionsQuery) (Sessions, error)
	Outbox(ctx context.Context, p Page) (OutboxList, error)
	DeadLetters(ctx context.Context) (DeadLetters, error)
	// Events answers what happens from now on, an EventStatus first. The channel is closed when ctx ends, and when
	// its reader is too slow.
	Events(ctx context.Context) (<-chan Event, error)
	// Metrics writes Prometheus' text format.
	Metrics(w io.Writer)
}

// Delivery is what can be asked for about the lines on their way.
type Delivery interface {
	// Sync answers when it is done or its time is up; how it ended is in the result. An error: it was not tried.
	Sync(ctx context.Context, req SyncRequest) (SyncResult, error)
	// Verify may call progress as often as it likes, from one goroutine at a time.
	Verify(ctx context.Context, req VerifyRequest, progress func(VerifyProgress)) (VerifyReport, error)
	// RetryDead and DropDead do all that is asked for, or nothing and answer a CodeNoDeadLetter.
	RetryDead(ctx context.Context, req DeadRequest) (DeadResult, error)
	DropDead(ctx context.Context, req DeadRequest) (DeadResult, error)
	Pause(ctx context.Context, req PauseRequest) (PauseState, error)
	Resume(ctx context.Context) (PauseState, error)
	Flush(ctx context.Context) (FlushResult, error)
	// Forget removes a session everywhere but on disk, and has it never sent again.
	Forget(ctx context.Context, req ForgetRequest) (ForgetResult, error)
}

// Settings is what can be changed of a daemon.
type Settings interface {
	Excludes(ctx context.Context) (Excludes, error)
	Exclude(ctx context.Context, req ExcludeRequest) (Excludes, error)
	Include(ctx context.Context, pattern string) (Excludes, error)
	Reload(ctx context.Context) (ReloadResult, error)
}
