package control

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	listTimeout   = 10 * time.Second // for answers that read the state
	changeTimeout = 30 * time.Second // for answers that write it
	forgetTimeout = 10 * time.Minute // a server overwrites what it removes
	resendTimeout = 10 * time.Minute // transcripts are read and compared
)

// Sessions lists main transcripts, those changed last first.
func (c *Client) Sessions(ctx context.Context, q SessionsQuery) (Sessions, error) {
	v := q.Page.query()
	if q.Project != "" {
		v.Set("project", q.Project)
	}
	return ask[Sessions](ctx, c, listTimeout, http.MethodGet, "/v1/sessions?"+v.Encode(), nil)
}

func (p Page) query() url.Values {
	return url.Values{"offset": {strconv.Itoa(p.Offset)}, "limit": {strconv.Itoa(p.Limit)}}
}

// named returns a path whose query has one member.
func named(path, member, value string) string {
	return path + "?" + url.Values{member: {value}}.Encode()
}

// Outbox lists what waits.
func (c *Client) Outbox(ctx context.Context, p Page) (OutboxList, error) {
	return ask[OutboxList](ctx, c, listTimeout, http.MethodGet, "/v1/outbox?"+p.query().Encode(), nil)
}

// DeadLetters lists the entries that a server refuses because of their content.
func (c *Client) DeadLetters(ctx context.Context) (DeadLetters, error) {
	return ask[DeadLetters](ctx, c, listTimeout, http.MethodGet, "/v1/outbox/dead", nil)
}

// RetryDead queues dead letters again; CodeNoDeadLetter when one of them does not exist.
func (c *Client) RetryDead(ctx context.Context, req DeadRequest) (DeadResult, error) {
	return ask[DeadResult](ctx, c, changeTimeout, http.MethodPost, "/v1/outbox/dead/retry", req)
}

// DropServer removes what waits for a retired server; CodeUsage if lines still go to that server, or nothing waits for
// it.
func (c *Client) DropServer(ctx context.Context, req DropServerRequest) (DropServerResult, error) {
	return ask[DropServerResult](ctx, c, changeTimeout, http.MethodPost, "/v1/outbox/drop", req)
}

// DropDead removes dead letters permanently; CodeNoDeadLetter when one of them does not exist.
func (c *Client) DropDead(ctx context.Context, req DeadRequest) (DeadResult, error) {
	return ask[DeadResult](ctx, c, changeTimeout, http.MethodPost, "/v1/outbox/dead/drop", req)
}

// Resend sends transcripts again; CodeUsage for an unknown session.
func (c *Client) Resend(ctx context.Context, req ResendRequest) (ResendResult, error) {
	return ask[ResendResult](ctx, c, resendTimeout, http.MethodPost, "/v1/resend", req)
}

// Pause ends sending for a while, or until Resume.
func (c *Client) Pause(ctx context.Context, req PauseRequest) (PauseState, error) {
	return ask[PauseState](ctx, c, changeTimeout, http.MethodPost, "/v1/pause", req)
}

// Resume ends the user's pause.
func (c *Client) Resume(ctx context.Context) (PauseState, error) {
	return ask[PauseState](ctx, c, changeTimeout, http.MethodPost, "/v1/resume", nil)
}

// Flush ends back-off and the pauses of servers that refuse: every server is tried now.
func (c *Client) Flush(ctx context.Context) (FlushResult, error) {
	return ask[FlushResult](ctx, c, statusTimeout, http.MethodPost, "/v1/flush", nil)
}

// Forget removes a session everywhere but on disk.
func (c *Client) Forget(ctx context.Context, req ForgetRequest) (ForgetResult, error) {
	return ask[ForgetResult](ctx, c, forgetTimeout, http.MethodPost, "/v1/forget", req)
}

// Excludes says what keeps transcripts from being delivered.
func (c *Client) Excludes(ctx context.Context) (Excludes, error) {
	return ask[Excludes](ctx, c, listTimeout, http.MethodGet, "/v1/exclude", nil)
}

// Reload makes the daemon read the configuration again.
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	return ask[ReloadResult](ctx, c, changeTimeout, http.MethodPost, "/v1/reload", nil)
}

// Remask sends again what the rules of masking in force change in some transcripts; see RemaskRequest.Offset.
func (c *Client) Remask(ctx context.Context, req RemaskRequest) (RemaskResult, error) {
	return ask[RemaskResult](ctx, c, forgetTimeout, http.MethodPost, "/v1/redact/apply", req)
}

// Messages answers a session's short history; CodeNoSession when no session has that name.
func (c *Client) Messages(ctx context.Context, q MessagesQuery) (Messages, error) {
	v := q.Page.query()
	v.Set("session", q.Session)
	return ask[Messages](ctx, c, changeTimeout, http.MethodGet, "/v1/messages?"+v.Encode(), nil)
}

// ClearMessages forgets a session's short history.
func (c *Client) ClearMessages(ctx context.Context, session string) (ClearResult, error) {
	return ask[ClearResult](ctx, c, changeTimeout, http.MethodDelete, named("/v1/messages", "session", session), nil)
}

// Checkpoints lists checkpoints, newest first.
func (c *Client) Checkpoints(ctx context.Context, q CheckpointsQuery) (Checkpoints, error) {
	v := q.Page.query()
	v.Set("session", q.Session)
	return ask[Checkpoints](ctx, c, changeTimeout, http.MethodGet, "/v1/checkpoints?"+v.Encode(), nil)
}

// Checkpoint answers one checkpoint; CodeNoCheckpoint when none has that id.
func (c *Client) Checkpoint(ctx context.Context, id string) (CheckpointAnswer, error) {
	return ask[CheckpointAnswer](ctx, c, listTimeout, http.MethodGet, named("/v1/checkpoint", "id", id), nil)
}

// CreateCheckpoint makes a checkpoint of a session as it is now.
func (c *Client) CreateCheckpoint(ctx context.Context, req CheckpointRequest) (CheckpointAnswer, error) {
	return ask[CheckpointAnswer](ctx, c, changeTimeout, http.MethodPost, "/v1/checkpoints", req)
}

// Budgets answers how many tokens a session can hold; with "", what is known of all models.
func (c *Client) Budgets(ctx context.Context, session string) (Budgets, error) {
	return ask[Budgets](ctx, c, changeTimeout, http.MethodGet, named("/v1/budget", "session", session), nil)
}

// SetBudget sets how many tokens a session, or every session with a model, can hold.
func (c *Client) SetBudget(ctx context.Context, req BudgetRequest) (Budgets, error) {
	return ask[Budgets](ctx, c, changeTimeout, http.MethodPut, "/v1/budget", req)
}

// Documents lists what is linked to a session.
func (c *Client) Documents(ctx context.Context, session string) (Documents, error) {
	return ask[Documents](ctx, c, listTimeout, http.MethodGet, named("/v1/documents", "session", session), nil)
}

// LinkDocument links a file to a session.
func (c *Client) LinkDocument(ctx context.Context, req DocumentRequest) (Documents, error) {
	return ask[Documents](ctx, c, changeTimeout, http.MethodPost, "/v1/documents", req)
}

// UnlinkDocument ends a link.
func (c *Client) UnlinkDocument(ctx context.Context, req DocumentRequest) (Documents, error) {
	return ask[Documents](ctx, c, changeTimeout, http.MethodDelete, "/v1/documents", req)
}

// AnswerLink makes an answer of ccship-mcp to Claude take effect. It asks the daemon behind c.
func AnswerLink(ctx context.Context, c *Client, req LinkAnswerRequest) (LinkAnswer, error) {
	return ask[LinkAnswer](ctx, c, listTimeout, http.MethodPost, "/v1/documents/answer", req)
}

// Init returns the introduction for Claude at a session's start. With q.Confirm the caller confirms the
// receipt: see Pending.
func (c *Client) Init(ctx context.Context, q InitQuery) (Init, error) {
	v := url.Values{"session": {q.Session}, "cwd": {q.Cwd}}
	if q.Confirm {
		v.Set("confirm", "true")
	}
	if q.Title != "" {
		v.Set("title", q.Title)
	}
	if q.Source != "" {
		v.Set("source", q.Source)
	}
	return ask[Init](ctx, c, statusTimeout, http.MethodGet, "/v1/init?"+v.Encode(), nil)
}

// Pending takes what a session's Claude has not been shown yet. With req.Confirm the caller confirms the receipt once
// it has passed the text on, in another call.
func (c *Client) Pending(ctx context.Context, req PendingRequest) (Pending, error) {
	return ask[Pending](ctx, c, statusTimeout, http.MethodPost, "/v1/pending", req)
}
