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
	Queue
	Settings
	MessageLog
	CheckpointList
	DocumentList
	Inbox
}

// Observed is what can be seen of a daemon.
type Observed interface {
	Status(ctx context.Context) Status
	// Probe has the servers probed that were silent for ContactFresh. With wait it returns when that is done, after a
	// second at most; else at once.
	Probe(ctx context.Context, wait bool)
	Sessions(ctx context.Context, q SessionsQuery) (Sessions, error)
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
	// Resend has transcripts go on behind the lines that their servers hold as they are on disk. CodeUsage for a session
	// that is not known.
	Resend(ctx context.Context, req ResendRequest) (ResendResult, error)
	Pause(ctx context.Context, req PauseRequest) (PauseState, error)
	Resume(ctx context.Context) (PauseState, error)
	Flush(ctx context.Context) (FlushResult, error)
	// Forget removes a session everywhere but on disk, and has it never sent again.
	Forget(ctx context.Context, req ForgetRequest) (ForgetResult, error)
	// Remask sends again what the rules of masking in force change. Each request handles some transcripts.
	Remask(ctx context.Context, req RemaskRequest) (RemaskResult, error)
}

// Queue is what waits for servers, and what they refused.
type Queue interface {
	Outbox(ctx context.Context, p Page) (OutboxList, error)
	DeadLetters(ctx context.Context) (DeadLetters, error)
	// RetryDead and DropDead do all that is asked for, or nothing and answer a CodeNoDeadLetter.
	RetryDead(ctx context.Context, req DeadRequest) (DeadResult, error)
	DropDead(ctx context.Context, req DeadRequest) (DeadResult, error)
	// DropServer removes what waits for a server that lines go to no more.
	DropServer(ctx context.Context, req DropServerRequest) (DropServerResult, error)
}

// Settings is what can be changed of a daemon.
type Settings interface {
	Excludes(ctx context.Context) (Excludes, error)
	Exclude(ctx context.Context, req ExcludeRequest) (Excludes, error)
	Include(ctx context.Context, pattern string) (Excludes, error)
	Reload(ctx context.Context) (ReloadResult, error)
}

// MessageLog is the short history of sessions.
type MessageLog interface {
	// Messages answers a session's log as it stands now; CodeNoSession when there is none of that name.
	Messages(ctx context.Context, q MessagesQuery) (Messages, error)
	ClearMessages(ctx context.Context, session string) (ClearResult, error)
}

// CheckpointList is the checkpoints of sessions, and their token budgets.
type CheckpointList interface {
	// Checkpoints answers the newest first.
	Checkpoints(ctx context.Context, q CheckpointsQuery) (Checkpoints, error)
	// Checkpoint answers CodeNoCheckpoint when there is none with that id.
	Checkpoint(ctx context.Context, id string) (CheckpointAnswer, error)
	CreateCheckpoint(ctx context.Context, req CheckpointRequest) (CheckpointAnswer, error)
	// Budgets answers what holds for a session, or with "" for all models and sessions with a known budget.
	Budgets(ctx context.Context, session string) (Budgets, error)
	SetBudget(ctx context.Context, req BudgetRequest) (Budgets, error)
}

// DocumentList is the documents that are linked to sessions.
type DocumentList interface {
	// Documents answers what is linked to a session, in the order of linking.
	Documents(ctx context.Context, session string) (Documents, error)
	// LinkDocument and UnlinkDocument answer what is linked then; CodeDocument when the file cannot be linked, or is
	// not.
	LinkDocument(ctx context.Context, req DocumentRequest) (Documents, error)
	UnlinkDocument(ctx context.Context, req DocumentRequest) (Documents, error)
	// AnswerLink answers what ccship-mcp puts into an answer to Claude, so that it counts in the transcript.
	AnswerLink(ctx context.Context, req LinkAnswerRequest) (LinkAnswer, error)
}

// Inbox holds the introduction and the notices for a session's Claude.
type Inbox interface {
	// Init answers within a few milliseconds, for sessions too that have no transcript yet.
	Init(ctx context.Context, q InitQuery) (Init, error)
	// Pending hands over notices, each once. It answers within a few milliseconds.
	Pending(ctx context.Context, req PendingRequest) (Pending, error)
}
