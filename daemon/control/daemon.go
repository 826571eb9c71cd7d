package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
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

// operations returns the handlers of everything that the socket answers, except the profiles of pprof, by method and
// path.
func (s *Endpoint) operations() map[string]http.HandlerFunc {
	d := s.daemon
	return map[string]http.HandlerFunc{
		"GET /v1/status":             s.status,
		"GET /v1/sessions":           asked(s, sessionsQuery, d.Sessions),
		"GET /metrics":               s.metrics,
		"POST /v1/sync":              post(s, s.sync),
		"POST /v1/verify":            s.verify,
		"POST /v1/resend":            post(s, d.Resend),
		"POST /v1/pause":             post(s, d.Pause),
		"POST /v1/resume":            get(s, d.Resume),
		"POST /v1/flush":             get(s, d.Flush),
		"POST /v1/forget":            post(s, d.Forget),
		"GET /v1/outbox":             asked(s, page, d.Outbox),
		"GET /v1/outbox/dead":        get(s, d.DeadLetters),
		"POST /v1/outbox/dead/retry": post(s, d.RetryDead),
		"POST /v1/outbox/dead/drop":  post(s, d.DropDead),
		"POST /v1/outbox/drop":       post(s, d.DropServer),
		"POST /v1/redact/apply":      post(s, d.Remask),
		"GET /v1/exclude":            get(s, d.Excludes),
		"POST /v1/reload":            get(s, d.Reload),
		"GET /v1/messages":           asked(s, messagesQuery, d.Messages),
		"DELETE /v1/messages":        asked(s, needed("session"), d.ClearMessages),
		"GET /v1/checkpoints":        asked(s, checkpointsQuery, d.Checkpoints),
		"POST /v1/checkpoints":       post(s, d.CreateCheckpoint),
		"GET /v1/checkpoint":         asked(s, needed("id"), d.Checkpoint),
		"GET /v1/budget":             asked(s, value("session"), d.Budgets),
		"PUT /v1/budget":             post(s, d.SetBudget),
		"GET /v1/documents":          asked(s, needed("session"), d.Documents),
		"POST /v1/documents":         post(s, d.LinkDocument),
		"DELETE /v1/documents":       post(s, d.UnlinkDocument),
		"POST /v1/documents/answer":  post(s, d.AnswerLink),
		"GET /v1/init":               asked(s, initQuery, d.Init),
		"POST /v1/pending":           post(s, d.Pending),
	}
}

// The largest page of a list, and the page size when a request names none.
const (
	maxPage     = 1000
	defaultPage = 100
)

// get makes a handler that answers what f returns.
func get[A any](s *Endpoint, f func(context.Context) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := f(r.Context())
		if err != nil {
			s.fail(w, asError(err))
			return
		}
		s.answer(w, http.StatusOK, answer)
	}
}

// asked makes a handler that answers what f returns for what read finds in a request.
func asked[Q, A any](s *Endpoint, read func(*http.Request) (Q, *Error),
	f func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := read(r)
		if err != nil {
			s.fail(w, err)
			return
		}
		get(s, func(ctx context.Context) (A, error) { return f(ctx, q) })(w, r)
	}
}

// post makes a handler that answers what f returns for the request's body.
func post[Q, A any](s *Endpoint, f func(context.Context, Q) (A, error)) http.HandlerFunc {
	return asked(s, body[Q], f)
}

// body decodes a request's body, which may be empty and is limited. Unknown members are the caller's error.
func body[Q any](r *http.Request) (q Q, err *Error) {
	in := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil && !errors.Is(err, io.EOF) {
		return q, Usage(fmt.Sprintf("read request: %v", err), "client and daemon may be of different versions")
	}
	return q, nil
}

// page reads offset and limit of a query.
func page(r *http.Request) (Page, *Error) {
	p := Page{Limit: defaultPage}
	for name, field := range map[string]*int{"offset": &p.Offset, "limit": &p.Limit} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return p, Usage(fmt.Sprintf("bad %s %q", name, text), "it is a whole number from 0 up")
		}
		*field = n
	}
	if p.Limit == 0 {
		p.Limit = defaultPage
	}
	p.Limit = min(p.Limit, maxPage)
	return p, nil
}

func (s *Endpoint) status(w http.ResponseWriter, r *http.Request) {
	switch how := r.URL.Query().Get("probe"); how {
	case "":
	case ProbeWait, ProbeBehind:
		s.daemon.Probe(r.Context(), how == ProbeWait)
	default:
		s.fail(w, Usage(fmt.Sprintf("bad probe %q", how), "it is wait or behind"))
		return
	}
	s.answer(w, http.StatusOK, s.daemon.Status(r.Context()))
}

// value reads a member of the query that may be missing.
func value(name string) func(*http.Request) (string, *Error) {
	return func(r *http.Request) (string, *Error) { return r.URL.Query().Get(name), nil }
}

// needed reads a member of the query that must be there.
func needed(name string) func(*http.Request) (string, *Error) {
	return func(r *http.Request) (string, *Error) {
		text := r.URL.Query().Get(name)
		if text == "" {
			return "", Usage("no "+name+" is named", "name one with ?"+name+"=")
		}
		return text, nil
	}
}

func sessionsQuery(r *http.Request) (SessionsQuery, *Error) {
	p, err := page(r)
	return SessionsQuery{Project: r.URL.Query().Get("project"), Page: p}, err
}

func checkpointsQuery(r *http.Request) (CheckpointsQuery, *Error) {
	p, err := page(r)
	return CheckpointsQuery{Session: r.URL.Query().Get("session"), Page: p}, err
}

func messagesQuery(r *http.Request) (q MessagesQuery, err *Error) {
	if q.Page, err = page(r); err != nil {
		return q, err
	}
	if limit := r.URL.Query().Get("limit"); limit == "" || limit == "0" {
		q.Limit = 0 // all: there are never many
	}
	q.Session, err = needed("session")(r)
	return q, err
}

func initQuery(r *http.Request) (q InitQuery, err *Error) {
	values := r.URL.Query()
	q = InitQuery{Cwd: values.Get("cwd"), Confirm: values.Get("confirm") == "true", Title: values.Get("title"),
		Source: values.Get("source")}
	q.Session, err = needed("session")(r)
	return q, err
}

// fail answers with an error.
func (s *Endpoint) fail(w http.ResponseWriter, e *Error) { s.answer(w, statusOf(e.Code), e) }

// statusOf returns the HTTP status of an error code.
func statusOf(code string) int {
	switch code {
	case CodeUsage, CodeConfig, CodeDocument, CodeAmbiguous:
		return http.StatusBadRequest
	case CodeForbidden:
		return http.StatusForbidden
	case CodeNotFound, CodeNoDeadLetter, CodeNoPattern, CodeNoSession, CodeNoCheckpoint:
		return http.StatusNotFound
	case CodeMethod:
		return http.StatusMethodNotAllowed
	}
	return http.StatusInternalServerError
}

// verify streams one JSON document per line: progress, or {} when there has been none for a while, then the report. The
// empty documents let a client tell a long verify from a daemon that hangs.
func (s *Endpoint) verify(w http.ResponseWriter, r *http.Request) {
	req, bad := body[VerifyRequest](r)
	if bad == nil {
		bad = checkTimeout(req.Timeout)
	}
	if bad != nil {
		s.fail(w, bad)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	events := &eventWriter{out: http.NewResponseController(w), encode: json.NewEncoder(w)}
	events.write(VerifyEvent{})
	report, err := func() (VerifyReport, error) {
		defer events.beat()()
		return s.daemon.Verify(r.Context(), req, events.progress)
	}()
	if err != nil {
		events.write(VerifyEvent{Error: asError(err)})
		return
	}
	report.SchemaVersion = SchemaVersion
	events.write(VerifyEvent{Report: &report})
}

// eventWriter writes the events of one answer. After a failed write the reader is gone and the rest is dropped: the
// request's context, which ends with the connection, stops the work.
type eventWriter struct {
	mu     sync.Mutex
	out    *http.ResponseController
	encode *json.Encoder
	last   time.Time // of the last progress
	broken bool
}

func (e *eventWriter) write(event VerifyEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken {
		return
	}
	if e.encode.Encode(event) != nil || e.out.Flush() != nil {
		e.broken = true
	}
}

// beat writes an empty event now and then until the returned function has returned, so that a comparison that panics
// leaves no writer behind.
func (e *eventWriter) beat() (stop func()) {
	done := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				e.write(VerifyEvent{})
			}
		}
	})
	return func() { close(done); beats.Wait() }
}

// progress passes on only as many reports as a person can see, and always the last one.
func (e *eventWriter) progress(p VerifyProgress) {
	e.mu.Lock()
	now := time.Now()
	due := now.Sub(e.last) >= progressRate || p.Files == p.FilesTotal && p.Bytes == p.BytesTotal
	if due {
		e.last = now
	}
	e.mu.Unlock()
	if due {
		e.write(VerifyEvent{Progress: &p})
	}
}
