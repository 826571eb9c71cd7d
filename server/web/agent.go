package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/thread"
)

// maxMeta is the longest file about an agent that is read, in bytes.
const maxMeta = 64 << 10

// agentMeta is the content of the metadata file next to an agent's transcript.
type agentMeta struct {
	Type        string `json:"agentType"`
	Description string `json:"description"`
	Worktree    string `json:"worktreePath"`
}

// agentOf reads an agent's metadata file. It returns nothing for other sessions, or when the file is not stored.
func (v *Viewer) agentOf(ctx context.Context, who server.Login, s thread.Stream) (m agentMeta, err error) {
	_, name, found := strings.Cut(s.ID, "/")
	if !found {
		return m, nil
	}
	files, err := v.sessionFiles(ctx, who, s)
	if err != nil {
		return m, err
	}
	for path, f := range files {
		if !strings.HasPrefix(path, "subagents/") || !strings.HasSuffix(path, "/"+name+".meta.json") || f.Size > maxMeta {
			continue
		}
		_, from, err := v.store.BlobContent(ctx, server.ScopeOf(who.User), f.SHA256)
		if errors.Is(err, server.ErrNotFound) || errors.Is(err, server.ErrNoContent) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		b, err := io.ReadAll(from)
		if err != nil {
			return m, fmt.Errorf("read about agent: %w", err)
		}
		_ = json.Unmarshal(b, &m) // a member of another kind leaves its field empty
		return m, nil
	}
	return m, nil
}
