package control

import (
	"context"
	"net/http"
	"net/url"
)

// Messages answers a session's short history; CodeNoSession when there is none under that name.
func (c *Client) Messages(ctx context.Context, q MessagesQuery) (Messages, error) {
	v := q.Page.query()
	v.Set("session", q.Session)
	var a Messages
	err := c.call(ctx, changeTimeout, http.MethodGet, "/v1/messages?"+v.Encode(), nil, &a)
	return a, err
}

// ClearMessages forgets a session's short history.
func (c *Client) ClearMessages(ctx context.Context, session string) (ClearResult, error) {
	var a ClearResult
	err := c.call(ctx, changeTimeout, http.MethodDelete, "/v1/messages?"+url.Values{"session": {session}}.Encode(), nil, &a)
	return a, err
}

// Checkpoints lists checkpoints, newest first.
func (c *Client) Checkpoints(ctx context.Context, q CheckpointsQuery) (Checkpoints, error) {
	v := q.Page.query()
	v.Set("session", q.Session)
	var a Checkpoints
	err := c.call(ctx, changeTimeout, http.MethodGet, "/v1/checkpoints?"+v.Encode(), nil, &a)
	return a, err
}

// Checkpoint answers one checkpoint; CodeNoCheckpoint when there is none with that id.
func (c *Client) Checkpoint(ctx context.Context, id string) (CheckpointAnswer, error) {
	var a CheckpointAnswer
	err := c.call(ctx, listTimeout, http.MethodGet, "/v1/checkpoint?"+url.Values{"id": {id}}.Encode(), nil, &a)
	return a, err
}

// CreateCheckpoint makes one of a session as it stands.
func (c *Client) CreateCheckpoint(ctx context.Context, req CheckpointRequest) (CheckpointAnswer, error) {
	var a CheckpointAnswer
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/checkpoints", req, &a)
	return a, err
}

// Budgets says how many tokens a session can hold; with "" what is known of all models.
func (c *Client) Budgets(ctx context.Context, session string) (Budgets, error) {
	var a Budgets
	err := c.call(ctx, changeTimeout, http.MethodGet, "/v1/budget?"+url.Values{"session": {session}}.Encode(), nil, &a)
	return a, err
}

// SetBudget sets how many tokens a session, or every session with a model, can hold.
func (c *Client) SetBudget(ctx context.Context, req BudgetRequest) (Budgets, error) {
	var a Budgets
	err := c.call(ctx, changeTimeout, http.MethodPut, "/v1/budget", req, &a)
	return a, err
}

// Documents lists what is linked to a session.
func (c *Client) Documents(ctx context.Context, session string) (Documents, error) {
	var a Documents
	err := c.call(ctx, listTimeout, http.MethodGet, "/v1/documents?"+url.Values{"session": {session}}.Encode(), nil, &a)
	return a, err
}

// LinkDocument links a file to a session.
func (c *Client) LinkDocument(ctx context.Context, req DocumentRequest) (Documents, error) {
	var a Documents
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/documents", req, &a)
	return a, err
}

// UnlinkDocument ends a link.
func (c *Client) UnlinkDocument(ctx context.Context, req DocumentRequest) (Documents, error) {
	var a Documents
	err := c.call(ctx, changeTimeout, http.MethodDelete, "/v1/documents", req, &a)
	return a, err
}

// Init answers what a session's Claude is told at its start.
func (c *Client) Init(ctx context.Context, q InitQuery) (Init, error) {
	var a Init
	err := c.call(ctx, statusTimeout, http.MethodGet, "/v1/init?"+url.Values{"session": {q.Session}, "cwd": {q.Cwd}}.Encode(), nil, &a)
	return a, err
}

// Pending takes what a session's Claude has not been told yet, and confirms that it has it. After an error the caller
// must not tell anything: the next one gets it.
func (c *Client) Pending(ctx context.Context, req PendingRequest) (Pending, error) {
	var a, confirmed Pending
	req.Confirm = true
	err := c.call(ctx, statusTimeout, http.MethodPost, "/v1/pending", req, &a)
	if err == nil && a.Receipt != "" {
		req.Confirm, req.Receipt = false, a.Receipt
		err = c.call(ctx, statusTimeout, http.MethodPost, "/v1/pending", req, &confirmed)
	}
	if err != nil {
		return Pending{}, err
	}
	return a, nil
}
