package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ccship/ccship/daemon/control"
)

// checkpointTools are checkpoint_list, checkpoint_get and checkpoint_create.
func (t *tools) checkpointTools(s *mcp.Server) {
	type list struct {
		Session string `json:"session"`
		Limit   int    `json:"limit"`
	}
	add(s, tool{
		name: "checkpoint_list", description: "List this session's checkpoints, newest first.",
		properties: sessionProperty + `,"limit":{"type":"integer","minimum":1,"maximum":100,"default":10}`,
	}, func(ctx context.Context, a list) ([]string, error) {
		limit, err := atMost(a.Limit, 10, 100)
		if err != nil {
			return nil, err
		}
		client, name, err := t.about(ctx, a.Session)
		if err != nil {
			return nil, err
		}
		return quote(client.Checkpoints(ctx, control.CheckpointsQuery{Session: name, Page: control.Page{Limit: limit}}))
	})
	type get struct {
		ID string `json:"id"`
	}
	add(s, tool{
		name: "checkpoint_get", description: "Get one checkpoint.",
		properties: `"id":{"type":"string","description":"cp-…"}`, required: []string{"id"},
	}, func(ctx context.Context, a get) ([]string, error) {
		if a.ID == "" {
			return nil, usage("id must name a checkpoint; checkpoint_list lists them")
		}
		client, err := t.daemon(ctx)
		if err != nil {
			return nil, err
		}
		return quote(client.Checkpoint(ctx, a.ID))
	})
	add(s, tool{
		name:        "checkpoint_create",
		description: "Create a checkpoint of this session as it is now.",
		properties: sessionProperty +
			`,"trigger":{"enum":["manual","pre_heavy"],"description":"pre_heavy: before heavy work"}` +
			`,"summary":{"type":"string","description":"Default: taken from the conversation"}` +
			`,"port_id":{"type":"string","description":"Your own name for the work"}`,
	}, t.create)
}

// create answers checkpoint_create.
func (t *tools) create(ctx context.Context, req control.CheckpointRequest) ([]string, error) {
	client, name, err := t.about(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	req.Session = name
	return text(client.CreateCheckpoint(ctx, req))
}

// atMost checks a limit; 0 is the default.
func atMost(limit, usual, most int) (int, error) {
	switch {
	case limit == 0:
		return usual, nil
	case limit < 0 || limit > most:
		return 0, usage(fmt.Sprintf("limit must be 1 to %d", most))
	}
	return limit, nil
}

// The session argument of most tools, and the path of two.
const (
	sessionProperty = `"session":{"type":"string","description":"Session id; default: this session"}`
	pathProperty    = `"path":{"type":"string","description":"File below the session's working directory"}`
)

// maxPath is the longest path that is taken, in bytes.
const maxPath = 4096

// documentTools are link_document, unlink_document and list_documents. The first two change nothing themselves: the
// daemon reads their answers in the transcript, because only the transcript says for sure which session they belong to.
// The daemon's nonce in an answer proves that this program wrote it.
func (t *tools) documentTools(s *mcp.Server) {
	type document struct {
		Path string `json:"path"`
	}
	for _, verb := range []struct{ name, action, description string }{
		{"link_document", "link",
			"Link a file to this session: its versions are kept, and the session learns of it whenever it starts."},
		{"unlink_document", "unlink", "Remove the link of a file to this session."},
	} {
		add(s, tool{
			name: verb.name, description: verb.description, properties: pathProperty, required: []string{"path"},
		}, func(ctx context.Context, a document) ([]string, error) { return t.ask(ctx, verb.action, a.Path) })
	}
	type session struct {
		Session string `json:"session"`
	}
	add(s, tool{
		name: "list_documents", description: "List the files linked to this session.", properties: sessionProperty,
	}, func(ctx context.Context, a session) ([]string, error) {
		client, name, err := t.about(ctx, a.Session)
		if err != nil {
			return nil, err
		}
		return text(client.Documents(ctx, name))
	})
}

// ask returns the answer that the daemon reads. Without a daemon there is no nonce, and a second text says so.
func (t *tools) ask(ctx context.Context, action, path string) ([]string, error) {
	if path == "" || len(path) > maxPath || strings.ContainsRune(path, 0) {
		return nil, usage(fmt.Sprintf("path must name a file, in at most %d bytes", maxPath))
	}
	var nonce control.LinkAnswer
	client, missing := t.daemon(ctx)
	if missing == nil {
		nonce, missing = control.AnswerLink(ctx, client, control.LinkAnswerRequest{Action: action, Path: path})
	}
	answer, err := text(struct {
		Action string `json:"action"`
		Path   string `json:"path"`
		Nonce  string `json:"nonce,omitempty"`
	}{action, path, nonce.Nonce}, nil)
	if err == nil && missing != nil {
		answer = append(answer, "Not done: "+words(missing)+"\nAsk again when it runs, and see list_documents.")
	}
	return answer, err
}
