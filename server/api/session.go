package api

import (
	"time"

	"github.com/ccship/ccship/server"
)

// sessionAnswer is a session on the wire.
type sessionAnswer struct {
	SessionID     string    `json:"session_id"`
	User          string    `json:"user"` // name of its owner; "" without one
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
	LastActive    time.Time `json:"last_active"`
}

// sessionAnswerOf returns how a session is shown.
func sessionAnswerOf(x server.Session, names namesOf) sessionAnswer {
	a := sessionAnswer{
		SessionID: x.SessionID, User: names[x.Owner], Machine: x.Machine, Host: x.Host, ProjectHash: x.ProjectHash,
		Project: x.Project, Cwd: x.Cwd, Path: x.Path, Epoch: x.Epoch, Epochs: x.Epochs, Generation: x.Generation,
		Lines: x.Lines, Bytes: x.Bytes, FirstReceived: x.First, LastReceived: x.Last,
		LastActive: x.Active,
	}
	if x.Parent != "" {
		a.Parent = &x.Parent
	}
	return a
}

// summaryAnswer is what is derived of a session.
type summaryAnswer struct {
	Title       string     `json:"title"`
	FirstPrompt string     `json:"first_prompt"`
	Model       string     `json:"model"`
	Models      []string   `json:"models"`
	Branch      string     `json:"branch"`
	Version     string     `json:"version"`
	Started     *time.Time `json:"started"`
	Ended       *time.Time `json:"ended"`
	Prompts     int64      `json:"prompts"`
	Messages    int64      `json:"messages"`
	Tools       int64      `json:"tools"`
	Errors      int64      `json:"errors"`
	Compactions int64      `json:"compactions"`
	Context     int64      `json:"context_tokens"`
	Window      int64      `json:"window_tokens"`
	Limit       int64      `json:"compact_at_tokens"`
	Lines       int64      `json:"derived_lines"`
}

// summaryAnswerOf returns how a summary is shown.
func summaryAnswerOf(f server.Summary) summaryAnswer {
	a := summaryAnswer{
		Title: f.Title, FirstPrompt: f.FirstPrompt, Model: f.Model, Models: f.Models, Branch: f.Branch,
		Version: f.Version, Started: timeAnswer(f.Started), Ended: timeAnswer(f.Ended), Prompts: f.Prompts,
		Messages: f.Messages, Tools: f.Tools, Errors: f.Errors, Compactions: f.Compactions, Context: f.Context,
		Window: f.Window, Limit: f.Limit, Lines: f.Lines,
	}
	if a.Models == nil {
		a.Models = []string{}
	}
	return a
}

// timeAnswer is null for no time.
func timeAnswer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// groupAnswer is a project on a machine.
type groupAnswer struct {
	ProjectHash string    `json:"project_hash"`
	Repository  string    `json:"repository,omitempty"`
	Project     string    `json:"project"`
	Cwd         string    `json:"cwd"`
	Machine     string    `json:"machine"`
	Host        string    `json:"host"`
	User        string    `json:"user"`
	Sessions    int64     `json:"sessions"`
	Bytes       int64     `json:"bytes"`
	Last        time.Time `json:"last_active"`
}

// groupAnswerOf returns how a project on a machine is shown.
func groupAnswerOf(g *server.Group, names namesOf) groupAnswer {
	return groupAnswer{g.ProjectHash, g.Repository, g.Project, g.Cwd, g.Machine, g.Host, names[g.Owner], g.Sessions,
		g.Bytes, g.Last}
}
