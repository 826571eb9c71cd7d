//go:build unix

package viewer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// sendArtifacts posts what a daemon sends besides lines: kind is "checkpoints" or "documents".
func (s *site) sendArtifacts(key string, x stream, kind string, list ...object) error {
	member := kind
	if kind == "documents" {
		member = "events"
	}
	body, err := json.Marshal(object{"project_hash": "hash-of-" + x.project, "session_id": x.id, "ccship": x.head(), member: list})
	if err != nil {
		return fmt.Errorf("write a request: %w", err)
	}
	return s.posts("POST", "/api/"+kind, key, body)
}

// head describes a stream in a request.
func (x stream) head() object {
	var parent any
	if x.parent != "" {
		parent = x.parent
	}
	return object{"v": 1, "machine": x.machine, "host": x.host, "epoch": "epoch-of-" + x.machine,
		"path": strings.ReplaceAll(x.cwd, "/", "-") + "/" + x.id + ".jsonl", "cwd": x.cwd, "project": x.project, "parent_session_id": parent}
}

func (s *site) posts(method, path, key string, body []byte) error {
	status, answer, err := s.ask(method, path, key, "", body)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, answer)
	}
	return err
}

// sendFile sends a file of a session.
func (s *site) sendFile(key string, x stream, name, content string) error {
	sum := sha256.Sum256([]byte(content))
	at := "/api/blobs/" + hex.EncodeToString(sum[:])
	body, err := json.Marshal(object{"project_hash": "hash-of-" + x.project, "session_id": x.id, "ccship": x.head(), "size": len(content), "media_type": "text/plain", "name": name})
	if err != nil {
		return fmt.Errorf("write a request: %w", err)
	}
	if err := s.posts("POST", at+"/start", key, body); err != nil {
		return err
	}
	if err := s.posts("PUT", at+"?offset=0", key, []byte(content)); err != nil {
		return err
	}
	return s.posts("POST", at+"/end", key, body)
}

// mark is a checkpoint behind a line.
func mark(id, trigger string, line int, used int64, at time.Time, summary string, files ...string) object {
	return object{"id": "cp-" + id, "tokens_used": used, "token_budget": 167_000, "trigger_type": trigger, "context_hash": "5eed", "summary": summary,
		"active_files": files, "created_at": at.UTC().Format(time.RFC3339), "generation": 0, "line": line}
}

// version is a version of a document.
func version(path string, version int, at time.Time, content string) object {
	sum := sha256.Sum256([]byte(content))
	change, by := "modified", "claude"
	if version == 1 {
		change, by = "linked", "user"
	}
	return object{"path": path, "change": change, "by": by, "added_at": t0.UTC().Format(time.RFC3339), "at": at.UTC().Format(time.RFC3339), "version": version,
		"size": len(content), "sha256": hex.EncodeToString(sum[:]), "encoding": "utf-8", "content": content}
}

// linkRequest is what a machine's daemon is asked for.
type linkRequest struct {
	ID, Path string
	Link     bool
}

// linkRequests lists what waits for a machine's daemon.
func (s *site) linkRequests(key, machine string) ([]linkRequest, error) {
	status, body, err := s.ask("GET", "/api/link-requests?"+url.Values{"machine": {machine}}.Encode(), key, "", nil)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("link requests: %d %s: %w", status, body, err)
	}
	var out struct {
		LinkRequests []linkRequest `json:"link_requests"`
	}
	err = json.Unmarshal(body, &out)
	return out.LinkRequests, err
}
