package control

import (
	"context"
	"net/http"
	"net/url"
)

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
