package control

import (
	"context"
	"io"
)

// Daemon is what the socket offers to its owner. Every method may be called by several goroutines at once. An *Error is
// sent to the caller as it is; any other error becomes a CodeFailed.
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

// Observed is what a caller can observe of a daemon.
type Observed interface {
	Status(ctx context.Context) Status
	// Probe probes the servers that have not answered for ContactFresh. With wait it returns when the probes have ended,
	// after a second at most; otherwise at once.
	Probe(ctx context.Context, wait bool)
	Sessions(ctx context.Context, q SessionsQuery) (Sessions, error)
	// Metrics writes Prometheus' text format.
	Metrics(w io.Writer)
}

// Delivery is what a caller can ask about lines and their delivery.
type Delivery interface {
	// Sync returns when the sync has ended or its time is up; the result says which. An error means that it was not tried.
	Sync(ctx context.Context, req SyncRequest) (SyncResult, error)
	// Verify may call progress as often as it likes, from one goroutine at a time.
	Verify(ctx context.Context, req VerifyRequest, progress func(VerifyProgress)) (VerifyReport, error)
	// Resend sends transcripts again from the first line that their servers do not hold as it is on disk. CodeUsage for an
	// unknown session.
	Resend(ctx context.Context, req ResendRequest) (ResendResult, error)
	Pause(ctx context.Context, req PauseRequest) (PauseState, error)
	Resume(ctx context.Context) (PauseState, error)
	Flush(ctx context.Context) (FlushResult, error)
	// Forget removes a session everywhere except on disk, and makes sure that it is never sent again.
	Forget(ctx context.Context, req ForgetRequest) (ForgetResult, error)
	// Remask sends the lines again that the masking rules in force change. Each request handles some transcripts.
	Remask(ctx context.Context, req RemaskRequest) (RemaskResult, error)
}

// Queue is what waits for servers, and what servers refused.
type Queue interface {
	Outbox(ctx context.Context, p Page) (OutboxList, error)
	DeadLetters(ctx context.Context) (DeadLetters, error)
	// RetryDead and DropDead handle all letters of the request, or none and answer CodeNoDeadLetter.
	RetryDead(ctx context.Context, req DeadRequest) (DeadResult, error)
	DropDead(ctx context.Context, req DeadRequest) (DeadResult, error)
	// DropServer removes what waits for a retired server.
	DropServer(ctx context.Context, req DropServerRequest) (DropServerResult, error)
}

// Settings is what a caller can change in a daemon.
type Settings interface {
	Excludes(ctx context.Context) (Excludes, error)
	Reload(ctx context.Context) (ReloadResult, error)
}

// MessageLog is the short history of sessions.
type MessageLog interface {
	// Messages answers a session's current log; CodeNoSession when no session has that name.
	Messages(ctx context.Context, q MessagesQuery) (Messages, error)
	ClearMessages(ctx context.Context, session string) (ClearResult, error)
}

// CheckpointList is the checkpoints of sessions, and their token budgets.
type CheckpointList interface {
	// Checkpoints answers the newest first.
	Checkpoints(ctx context.Context, q CheckpointsQuery) (Checkpoints, error)
	// Checkpoint answers CodeNoCheckpoint when none has that id.
	Checkpoint(ctx context.Context, id string) (CheckpointAnswer, error)
	CreateCheckpoint(ctx context.Context, req CheckpointRequest) (CheckpointAnswer, error)
	// Budgets answers the budget of a session; with "", those of all models and of sessions with a known budget.
	Budgets(ctx context.Context, session string) (Budgets, error)
	SetBudget(ctx context.Context, req BudgetRequest) (Budgets, error)
}

// DocumentList is the documents that are linked to sessions.
type DocumentList interface {
	// Documents answers what is linked to a session, in the order of linking.
	Documents(ctx context.Context, session string) (Documents, error)
	// LinkDocument and UnlinkDocument answer the linked documents after the change; CodeDocument when the file cannot be
	// linked, or is not linked.
	LinkDocument(ctx context.Context, req DocumentRequest) (Documents, error)
	UnlinkDocument(ctx context.Context, req DocumentRequest) (Documents, error)
	// AnswerLink answers what ccship-mcp adds to its answer to Claude, so that the answer takes effect.
	AnswerLink(ctx context.Context, req LinkAnswerRequest) (LinkAnswer, error)
}

// Inbox holds the introduction and the notices for a session's Claude.
type Inbox interface {
	// Init answers within a few milliseconds, also for sessions that have no transcript yet.
	Init(ctx context.Context, q InitQuery) (Init, error)
	// Pending hands over notices. It answers within a few milliseconds, unless a tool is named.
	Pending(ctx context.Context, req PendingRequest) (Pending, error)
}
