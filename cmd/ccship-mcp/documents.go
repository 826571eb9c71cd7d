package main

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ccship/ccship/daemon/control"
)

// The session argument of most tools, and the path of two.
const (
	sessionProperty = `"session":{"type":"string","description":"Session id; default: this session"}`
	pathProperty    = `"path":{"type":"string","description":"File below the session's working directory"}`
)

// maxPath is the longest path that is taken, in bytes.
const maxPath = 4096

// documentTools are link_document, unlink_document and list_documents. The first two do nothing: the daemon reads their
// answers in the transcript, which says better than anything else which session they belong to. The daemon's nonce in an
// answer tells it from one that something else made up.
func (t *tools) documentTools(s *mcp.Server) {
	type document struct {
		Path string `json:"path"`
	}
	for _, tool := range []struct{ name, action, description string }{
		{"link_document", "link", "Link a file to this session: its versions are kept, and later starts of the session name it."},
		{"unlink_document", "unlink", "End the link of a file to this session."},
	} {
		add(s, tool.name, tool.description, pathProperty, []string{"path"}, func(ctx context.Context, a document) ([]string, error) {
			return t.ask(ctx, tool.action, a.Path)
		})
	}
	type session struct {
		Session string `json:"session"`
	}
	add(s, "list_documents", "List the files linked to this session.", sessionProperty, nil, func(ctx context.Context, a session) ([]string, error) {
		client, name, err := t.about(ctx, a.Session)
		if err != nil {
			return nil, err
		}
		found, err := client.Documents(ctx, name)
		if err != nil {
			return nil, err
		}
		return text(found)
	})
}

// ask is the answer that the daemon reads, and words beside it when there is no daemon, and so no nonce.
func (t *tools) ask(ctx context.Context, action, path string) ([]string, error) {
	if path == "" || len(path) > maxPath || strings.ContainsRune(path, 0) {
		return nil, usage("path must name a file")
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
	}{action, path, nonce.Nonce})
	if err == nil && missing != nil {
		answer = append(answer, "Not done: "+words(missing)+"\nAsk again when it runs, and see list_documents.")
	}
	return answer, err
}
