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
