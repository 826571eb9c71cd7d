package route

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/tail"
)

// agentChunk is the first chunk of an agent of session A, in a folder below root.
func agentChunk(id tail.FileID, root, folder, lines string) *tail.Chunk {
	name := sessionA + "/subagents/agent-a1"
	return &tail.Chunk{
		File: tail.File{ID: id, Kind: tail.Agent, Path: filepath.Join(root, folder, filepath.FromSlash(name)+".jsonl"),
			Root: root, Name: name, Copy: 1},
		Lines: []byte(lines), To: tail.Cursor{Offset: int64(len(lines)), Line: 1},
	}
}

// TestAgentsOfExcluded: an agent that works in another folder stays here with its session, whichever is read first and
// whenever the exclusion comes.
func TestAgentsOfExcluded(t *testing.T) {
	const out = `{"conversation_tracking":{"enabled":false}}`
	elsewhere := lineIn(t.TempDir())
	t.Run("main on disk", func(t *testing.T) {
		b, root := newBench(t), t.TempDir()
		c := agentChunk(1, root, "-secret", elsewhere)
		kit.Must(t, os.MkdirAll(filepath.Join(root, "-secret"), 0o700))
		main := filepath.Join(root, "-secret", sessionA+".jsonl")
		secret := projectFolder(t, out)
		kit.Must(t, os.WriteFile(main, []byte(`{"type":"mode"}`+"\n"+lineIn(secret)), 0o600))
		d := b.decide(c)
		kit.Check(t, d.Verdict == Excluded && d.Exclusion.Cwd == filepath.ToSlash(secret), "%+v", d)
	})
	t.Run("main gone", func(t *testing.T) {
		b := newBench(t)
		b.decide(chunk(1, lineIn(projectFolder(t, out)))) // another session in the same folder
		d := b.decide(agentChunk(2, "/claude/projects", "-shop", elsewhere))
		kit.Check(t, d.Verdict == Excluded, "%+v", d)
	})
	t.Run("excluded later", func(t *testing.T) {
		b, dir := newBench(t), t.TempDir()
		for _, c := range []*tail.Chunk{chunk(1, lineIn(dir)), agentChunk(2, "/claude/projects", "-shop", elsewhere)} {
			d := b.decide(c)
			kit.Require(t, d.Verdict == Take, "before: %+v", d)
			b.commit(c, d)
		}
		kit.Must(t, os.WriteFile(filepath.Join(dir, project.IgnoreName), nil, 0o600))
		b.load()
		_, err := b.router.Reroute(t.Context())
		kit.Check(t, err == nil && len(b.router.Excluded()) == 2, "excluded: %v, %v", b.router.Excluded(), err)
		next := agentChunk(2, "/claude/projects", "-shop", elsewhere)
		next.Prev, next.From = next.To, next.To
		d := b.decide(next)
		kit.Check(t, d.Verdict == Excluded, "its next lines: %+v", d)
		kit.Must(t, os.Remove(filepath.Join(dir, project.IgnoreName)))
		kit.Check(t, b.router.ExclusionEnded() && len(b.router.Excluded()) == 0,
			"after the exclusion: %v", b.router.Excluded())
	})
}
