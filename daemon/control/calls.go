package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	listTimeout   = 10 * time.Second // for answers that read the state
	changeTimeout = 30 * time.Second // for answers that write it
	eventsStall   = 3 * eventBeat
	forgetTimeout = 10 * time.Minute // a server overwrites what it removes
)

// Sessions lists main transcripts, those changed last first.
func (c *Client) Sessions(ctx context.Context, q SessionsQuery) (Sessions, error) {
	v := q.Page.query()
	if q.Project != "" {
		v.Set("project", q.Project)
	}
	var a Sessions
	err := c.call(ctx, listTimeout, http.MethodGet, "/v1/sessions?"+v.Encode(), nil, &a)
	return a, err
}

func (p Page) query() url.Values {
	return url.Values{"offset": {strconv.Itoa(p.Offset)}, "limit": {strconv.Itoa(p.Limit)}}
}

// Outbox lists what waits.
func (c *Client) Outbox(ctx context.Context, p Page) (OutboxList, error) {
	var a OutboxList
	err := c.call(ctx, listTimeout, http.MethodGet, "/v1/outbox?"+p.query().Encode(), nil, &a)
	return a, err
}

// DeadLetters lists the entries that a server refuses for what they are.
func (c *Client) DeadLetters(ctx context.Context) (DeadLetters, error) {
	var a DeadLetters
	err := c.call(ctx, listTimeout, http.MethodGet, "/v1/outbox/dead", nil, &a)
	return a, err
}

// RetryDead queues dead letters again; CodeNoDeadLetter when one of them is not there.
func (c *Client) RetryDead(ctx context.Context, req DeadRequest) (DeadResult, error) {
	var a DeadResult
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/outbox/dead/retry", req, &a)
	return a, err
}

// DropServer removes what waits for a server that lines go to no more; CodeUsage for one they go to, or that nothing
// waits for.
func (c *Client) DropServer(ctx context.Context, req DropServerRequest) (DropServerResult, error) {
	var a DropServerResult
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/outbox/drop", req, &a)
	return a, err
}

// DropDead removes dead letters for good; CodeNoDeadLetter when one of them is not there.
func (c *Client) DropDead(ctx context.Context, req DeadRequest) (DeadResult, error) {
	var a DeadResult
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/outbox/dead/drop", req, &a)
	return a, err
}

// Pause ends sending for a while, or until Resume.
func (c *Client) Pause(ctx context.Context, req PauseRequest) (PauseState, error) {
	var a PauseState
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/pause", req, &a)
	return a, err
}

// Resume ends the user's pause.
func (c *Client) Resume(ctx context.Context) (PauseState, error) {
	var a PauseState
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/resume", nil, &a)
	return a, err
}

// Flush ends back-off and the pauses of servers that refuse: everything is tried now.
func (c *Client) Flush(ctx context.Context) (FlushResult, error) {
	var a FlushResult
	err := c.call(ctx, statusTimeout, http.MethodPost, "/v1/flush", nil, &a)
	return a, err
}

// Forget removes a session everywhere but on disk.
func (c *Client) Forget(ctx context.Context, req ForgetRequest) (ForgetResult, error) {
	var a ForgetResult
	err := c.call(ctx, forgetTimeout, http.MethodPost, "/v1/forget", req, &a)
	return a, err
}

// Excludes says what keeps transcripts from being delivered.
func (c *Client) Excludes(ctx context.Context) (Excludes, error) {
	var a Excludes
	err := c.call(ctx, listTimeout, http.MethodGet, "/v1/exclude", nil, &a)
	return a, err
}

// Exclude adds a pattern to exclude_projects.
func (c *Client) Exclude(ctx context.Context, req ExcludeRequest) (Excludes, error) {
	var a Excludes
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/exclude", req, &a)
	return a, err
}

// Include takes a pattern out of exclude_projects.
func (c *Client) Include(ctx context.Context, pattern string) (Excludes, error) {
	var a Excludes
	err := c.call(ctx, changeTimeout, http.MethodDelete, "/v1/exclude?"+url.Values{"pattern": {pattern}}.Encode(), nil, &a)
	return a, err
}

// Reload has the configuration read again.
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	var a ReloadResult
	err := c.call(ctx, changeTimeout, http.MethodPost, "/v1/reload", nil, &a)
	return a, err
}

// Events calls f with everything that happens, until ctx is done, f answers an error, or the daemon ends or cuts the
// stream, for then something was missed. It returns that error; nil when the stream ended.
func (c *Client) Events(ctx context.Context, f func(Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(eventsStall, func() { cancel(context.DeadlineExceeded) })
	defer stall.Stop()
	answer, err := c.do(ctx, http.MethodGet, "/v1/events", nil)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		stall.Reset(eventsStall)
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			return c.explain(ctx, fmt.Errorf("read event: %w", err))
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return c.explain(ctx, fmt.Errorf("read events: %w", err))
	}
	return nil
}
