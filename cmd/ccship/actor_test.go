package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// stage is what an actor remembers: it is one program for the length of a script.
type stage struct {
	mu    sync.Mutex
	pause *control.Pause
	dead  []string
}

func newActor() actor { return actor{stage: &stage{dead: []string{"7-3", "7-4", "12-0"}}} }

func (a actor) Outbox(_ context.Context, p control.Page) (control.OutboxList, error) {
	now := time.Now().Add(-90 * time.Second)
	l := control.OutboxList{
		SchemaVersion: 1, Outbox: control.Outbox{Batches: 2, Entries: 5, Dead: 3}, Servers: []control.Server{},
		Rows: []control.OutboxRow{
			{Server: "http://127.0.0.1:5000", Session: "aaaa", Batches: 1, Entries: 4, Bytes: 4321, Stored: 400, OldestAt: now},
			{Server: "http://127.0.0.1:5000", Path: "-p/b.jsonl", Batches: 1, Entries: 1, Bytes: 10, Stored: 9, OldestAt: now},
			{Server: "http://127.0.0.1:5000", Session: "aaaa", Kind: "blobs", Batches: 2, Bytes: 2_000_000, Stored: 900, OldestAt: now},
			{Server: "http://127.0.0.1:5000", Session: "cccc", Kind: "lines", Batches: 1, Bytes: 300, Stored: 200, OldestAt: now},
		},
	}
	if p.Limit == 1 {
		l.Rows, l.Next = l.Rows[:1], 1
	}
	if p.Offset > 1 {
		l.Rows = nil
	}
	return l, nil
}

func (a actor) DeadLetters(context.Context) (control.DeadLetters, error) {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	d := control.DeadLetters{SchemaVersion: 1, Letters: []control.DeadLetter{}}
	for i, id := range a.stage.dead {
		d.Letters = append(d.Letters, control.DeadLetter{
			ID: id, Server: "http://127.0.0.1:5000", Session: "aaaa", Line: int64(3 + i), Generation: uint32(i), Entries: 1, Bytes: 1234,
			Reason: []string{"rejected", "too_large", "damaged"}[i%3], Status: 422, Answer: "no\x1b[31m thanks", At: time.Now().Add(-time.Hour),
		})
	}
	return d, nil
}

func (a actor) take(req control.DeadRequest) (control.DeadResult, error) {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	n := len(a.stage.dead)
	for _, id := range req.IDs {
		if !slices.Contains(a.stage.dead, id) {
			return control.DeadResult{}, &control.Error{Code: control.CodeNoDeadLetter, Message: "there is no dead letter " + id}
		}
	}
	a.stage.dead = slices.DeleteFunc(a.stage.dead, func(id string) bool { return req.All || slices.Contains(req.IDs, id) })
	return control.DeadResult{SchemaVersion: 1, Letters: n - len(a.stage.dead)}, nil
}

func (a actor) RetryDead(_ context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return a.take(req)
}

func (a actor) DropServer(_ context.Context, req control.DropServerRequest) (control.DropServerResult, error) {
	if req.Server != "http://old.example.org" {
		return control.DropServerResult{}, &control.Error{Code: control.CodeUsage, Message: "nothing waits for " + req.Server}
	}
	return control.DropServerResult{SchemaVersion: 1, Server: req.Server, Rows: 2, Entries: 7, Letters: 1}, nil
}

func (a actor) DropDead(_ context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return a.take(req)
}

func (a actor) Pause(_ context.Context, req control.PauseRequest) (control.PauseState, error) {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	p := &control.Pause{Since: time.Now()}
	if length, err := time.ParseDuration(req.For); err == nil {
		until := p.Since.Add(length)
		p.Until = &until
	}
	was := a.stage.pause != nil
	a.stage.pause = p
	return control.PauseState{SchemaVersion: 1, Paused: true, Was: was, Pause: p}, nil
}

func (a actor) Resume(context.Context) (control.PauseState, error) {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	was := a.stage.pause != nil
	a.stage.pause = nil
	return control.PauseState{SchemaVersion: 1, Was: was}, nil
}

func (a actor) Flush(context.Context) (control.FlushResult, error) {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	return control.FlushResult{SchemaVersion: 1, Paused: a.stage.pause != nil, Waiting: 5}, nil
}

func (a actor) Excludes(context.Context) (control.Excludes, error) {
	return control.Excludes{
		SchemaVersion: 1, Config: "/c/config.toml", Origin: "file",
		Patterns: []control.Exclusion{{Pattern: "/clients/*", Transcripts: 1}},
		Others:   []control.Reason{{Why: "excluded by /x/.ccshipignore", Transcripts: 1200}},
	}, nil
}

func (a actor) Forget(_ context.Context, req control.ForgetRequest) (control.ForgetResult, error) {
	r := control.ForgetResult{SchemaVersion: 1, Session: req.Session, Transcripts: 1, Lines: 12, Pending: []string{}, Kept: []string{}, OnDisk: []string{}}
	if req.Session == "pending" {
		r.Pending = append(r.Pending, "http://127.0.0.1:5000")
	}
	return r, nil
}

func (a actor) Sessions(context.Context, control.SessionsQuery) (control.Sessions, error) {
	return control.Sessions{SchemaVersion: 1, Matching: 1, Sessions: []control.Session{{Session: "3f2a9c01-0000-4000-8000-000000000001", Project: "shop"}}}, nil
}

func (a actor) Reload(context.Context) (control.ReloadResult, error) {
	return control.ReloadResult{SchemaVersion: 1, Config: "/c/config.toml", Changed: []string{"history", "roots"}, Restart: []string{"watch"}}, nil
}

// paused is a status with the actor's pause in it.
func (a actor) paused(s control.Status) control.Status {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	if s.Pause = a.stage.pause; s.Pause != nil {
		s.State = "paused"
	}
	return s
}
