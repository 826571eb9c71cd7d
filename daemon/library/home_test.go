package library

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

// said is what an invented answer's line says. Empty fields are left out of the line.
type said struct {
	message, request, session, model, at string
	input, output                        int
	side                                 bool
	more                                 string // members of the record
}

func (s said) line() string {
	record := map[string]any{
		"type": "assistant", "isSidechain": s.side, "cwd": "/work/shop", "version": "2.1.200",
		"uuid": fmt.Sprintf("%x", []byte(s.message+s.request+s.session)), "timestamp": "2026-11-20T09:00:00.000Z",
	}
	message := map[string]any{"role": "assistant", "content": []any{}, "model": "claude-opus-5", "usage": map[string]any{
		"input_tokens": s.input, "output_tokens": s.output, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 30,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}}}
	for name, text := range map[string]string{"requestId": s.request, "sessionId": s.session, "timestamp": s.at} {
		if text != "" {
			record[name] = text
		}
	}
	for name, text := range map[string]string{"id": s.message, "model": s.model} {
		if text != "" {
			message[name] = text
		}
	}
	record["message"] = message
	text, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	if s.more != "" {
		return strings.TrimSuffix(string(text), "}") + "," + s.more + "}"
	}
	return string(text)
}

// put writes transcripts below a new projects folder, by path.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "projects")
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		kit.WriteFile(t, path, text)
	}
	return root
}

func usageLines(all ...said) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(s.line() + "\n")
	}
	return b.String()
}

// disk sums what is below root, with a project's folder as its hash.
func disk(root string) UsageDisk {
	return UsageDisk{
		Roots: []string{root}, Machine: "m1", Host: "laptop", Prices: transcript.DefaultPrices(),
		Project: func(cwd, folder string) (hash, repository string) {
			if main, found := strings.CutSuffix(cwd, "-beside"); found {
				cwd, repository = main, main
			}
			return cwd + "|" + folder, repository
		},
	}
}

func sum(t *testing.T, root string, by ...string) Report {
	t.Helper()
	return kit.Try(disk(root).Sum(t.Context(), Query{By: by, Zone: time.UTC})).Must(t)
}
