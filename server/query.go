package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	pageDefault = 100
	pageMax     = 1000
)

// sessionAnswer is a session on the wire.
type sessionAnswer struct {
	SessionID     string    `json:"session_id"`
	Machine       string    `json:"machine"`
	Host          string    `json:"host"`
	ProjectHash   string    `json:"project_hash"`
	Project       string    `json:"project"`
	Cwd           string    `json:"cwd"`
	Path          string    `json:"path"`
	Parent        *string   `json:"parent_session_id"`
	Epoch         string    `json:"epoch"`
	Epochs        int       `json:"epochs"`
	Generation    int64     `json:"generation"`
	Lines         int64     `json:"lines"`
	Bytes         int64     `json:"bytes"`
	FirstReceived time.Time `json:"first_received"`
	LastReceived  time.Time `json:"last_received"`
}

func answerSession(x Session) sessionAnswer {
	a := sessionAnswer{
		SessionID: x.SessionID, Machine: x.Machine, Host: x.Host, ProjectHash: x.ProjectHash, Project: x.Project,
		Cwd: x.Cwd, Path: x.Path, Epoch: x.Epoch, Epochs: x.Epochs, Generation: x.Generation, Lines: x.Lines,
		Bytes: x.Bytes, FirstReceived: x.First, LastReceived: x.Last,
	}
	if x.Parent != "" {
		a.Parent = &x.Parent
	}
	return a
}

// sessions is GET /api/sessions?after&limit&order: all streams, those of all machines.
func (s *Server) sessions(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := number(q, "limit", pageDefault)
	if err != nil || limit < 1 {
		return badRequest("bad_query", "limit is not a number from 1")
	}
	page := Page{After: q.Get("after"), Limit: int(min(limit, pageMax)), Recent: q.Get("order") == "recent"}
	list, err := s.store.Sessions(r.Context(), page)
	if err != nil {
		return err
	}
	a := struct {
		Sessions []sessionAnswer `json:"sessions"`
		Next     *string         `json:"next"` // null on the last page
	}{Sessions: make([]sessionAnswer, 0, len(list.List))}
	for _, x := range list.List {
		a.Sessions = append(a.Sessions, answerSession(x))
	}
	if list.Next != "" {
		a.Next = &list.Next
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

type epochAnswer struct {
	Epoch         string    `json:"epoch"`
	FirstReceived time.Time `json:"first_received"`
}

type generationAnswer struct {
	Generation    int64     `json:"generation"`
	RewoundTo     int64     `json:"rewound_to"`
	EndLine       int64     `json:"end_line"`
	EOFNewline    bool      `json:"eof_newline"`
	FirstReceived time.Time `json:"first_received"`
}

// session is GET /api/sessions/{id}?machine&epoch: one stream with its epochs, newest first, and the generations of
// the one in front or named.
func (s *Server) session(w http.ResponseWriter, r *http.Request) error {
	return s.open(r, func(_ context.Context, snap Snapshot) error {
		a := struct {
			sessionAnswer
			EpochList   []epochAnswer      `json:"epoch_list"`
			Generations []generationAnswer `json:"generations"`
		}{sessionAnswer: answerSession(snap.Session())}
		for _, e := range snap.Epochs() {
			a.EpochList = append(a.EpochList, epochAnswer{e.Name, e.First})
		}
		for _, g := range snap.Generations() {
			a.Generations = append(a.Generations,
				generationAnswer{g.Number, g.RewoundTo, max(g.EndLine, g.RewoundTo), g.EOFNewline, g.First})
		}
		s.answer(w, http.StatusOK, a)
		return nil
	})
}

// open pins the stream that the request names for as long as fn runs.
func (s *Server) open(r *http.Request, fn func(context.Context, Snapshot) error) (err error) {
	q := r.URL.Query()
	ref := Ref{SessionID: r.PathValue("id"), Epoch: q.Get("epoch")}
	if q.Has("machine") {
		m := q.Get("machine")
		ref.Machine = &m
	}
	snap, err := s.store.Open(r.Context(), ref)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := snap.Close(); cerr != nil {
			s.Log.Error("request half done", "path", r.URL.Path, "error", cerr)
		}
	}()
	return fn(r.Context(), snap)
}

// pickView is the view of the generation that the query names, else of the newest.
func pickView(q url.Values, snap Snapshot) (View, error) {
	gens := snap.Generations()
	g, err := number(q, "generation", gens[len(gens)-1].Number)
	if err != nil {
		return View{}, err
	}
	return ViewOf(gens, g)
}

// number reads a whole number ≥ 0 from the query.
func number(q url.Values, name string, absent int64) (int64, error) {
	if !q.Has(name) {
		return absent, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 || n > maxNumber {
		return 0, badRequest("bad_query", fmt.Sprintf("%s is not a whole number from 0", name))
	}
	return n, nil
}
