package library

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// Codes of the errors of Restore.
const (
	CodeLive       = "session_live" // the session is in use
	CodeFileExists = "file_exists"  // the file named by To exists
)

// RestoreRequest says what to restore, and where.
type RestoreRequest struct {
	Session    string
	User       string // whose session; "": the only one's who has it
	Machine    string // its id, a prefix of it, or a host name; "": this one, or the only one that has it
	Generation *int64 // of the session; its agents come in their newest. nil: the newest
	To         string // a file to write instead; then without agents
	Force      bool   // while the session is live, or over the file named by To
	Partial    bool   // lines that are not stored may be blank
	NoAgents   bool
}

// Restored is what was written.
type Restored struct {
	SchemaVersion int `json:"schema_version"`

	Session    string         `json:"session"`
	Generation int64          `json:"generation"`
	Cwd        string         `json:"cwd,omitempty"`
	CwdThere   bool           `json:"cwd_exists"`
	Files      []RestoredFile `json:"files"` // the session's first, then its agents'
}

// RestoredFile is one file.
type RestoredFile struct {
	Session string `json:"session"`
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Missing int64  `json:"missing_lines"`    // blank ones
	Masked  int64  `json:"masked,omitempty"` // secrets that are replaced by tokens
	Same    bool   `json:"same"`             // the file existed, byte for byte equal
	Aside   string `json:"aside,omitempty"`
}

// Restore writes a transcript and its agents' transcripts back to disk. A file gets its name only when it is complete
// and its bytes have the digest that the server computes from what it stores. A different file at that path is moved
// aside under a name that no program reads as a transcript.
func (l *Library) Restore(ctx context.Context, w RestoreRequest) (Restored, error) {
	found, err := l.Find(ctx, w.Session)
	if err != nil {
		return Restored{}, err
	}
	s, err := l.stored(ctx, found, Copy{w.Machine, w.User})
	if err != nil {
		return Restored{}, err
	}
	if w.To == "" {
		if err := l.mayContinue(ctx, s, w.User); err != nil {
			return Restored{}, err
		}
	}
	path, err := l.placeOf(s, found.Files, w.To)
	if err != nil {
		return Restored{}, err
	}
	if !w.Force {
		if err := l.refuseLive(s.SessionID, path, time.Now()); err != nil {
			return Restored{}, err
		}
	}
	out := Restored{SchemaVersion: control.SchemaVersion, Session: s.SessionID, Cwd: s.Cwd}
	if info, err := os.Stat(s.Cwd); err == nil && info.IsDir() {
		out.CwdThere = true
	}
	one, generation, err := l.putBack(ctx, s, path, w)
	if err != nil {
		return Restored{}, err
	}
	out.Generation, out.Files = generation, []RestoredFile{one}
	if w.To == "" && !w.NoAgents {
		err = l.restoreAgents(ctx, s, filepath.Dir(path), &out, w)
	}
	return out, err
}

// restoreAgents restores the transcripts of a session's agents below the session's folder.
func (l *Library) restoreAgents(ctx context.Context, s *remote.Session, folder string, out *Restored,
	w RestoreRequest) error {
	w.Generation = nil
	err := l.eachAgent(ctx, s, folder, func(a *remote.Session, path string) error {
		one, _, err := l.putBack(ctx, a, path, w)
		if err == nil {
			out.Files = append(out.Files, one)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("restore the session's agents (the session itself is at %s): %w", out.Files[0].Path, err)
	}
	return nil
}

// eachAgent calls f with the transcripts of a session's agents on the server, and their places below a project folder
// of this machine, which may have another name than on the machine that the session comes from.
func (l *Library) eachAgent(ctx context.Context, s *remote.Session, project string,
	f func(a *remote.Session, path string) error) error {
	var agents []*remote.Session
	err := l.Server.Sessions(ctx, remote.Query{User: s.User, Machine: &s.Machine, Parent: s.SessionID}, 1000,
		func(a *remote.Session) bool {
			agents = append(agents, a)
			return true
		})
	for _, a := range agents {
		if err != nil {
			break
		}
		if _, err = below(filepath.Dir(project), a); err == nil {
			_, inside, _ := strings.Cut(a.Path, "/")
			err = f(a, filepath.Join(project, filepath.FromSlash(inside)))
		}
	}
	return err
}

// placeOf returns where a session's file goes: its path on disk, or else the server's path below a root.
func (l *Library) placeOf(s *remote.Session, files []File, to string) (string, error) {
	if to != "" {
		return filepath.Abs(to)
	}
	if len(files) > 0 {
		return files[0].Path, nil
	}
	if len(l.Roots) == 0 {
		return "", control.BadConfig("no projects folder to restore to",
			"choose a file with --to, or a folder with --roots")
	}
	root := l.Roots[0]
	for _, r := range l.Roots {
		folder, _, _ := strings.Cut(s.Path, "/")
		if info, err := os.Stat(filepath.Join(r, folder)); err == nil && info.IsDir() && filepath.IsLocal(folder) {
			root = r
			break
		}
	}
	return below(root, s)
}

// below joins root and a session's path from the server. It refuses a path outside root, one that is not a transcript,
// and one that is another session's: the server is not trusted.
func below(root string, s *remote.Session) (string, error) {
	path := s.Path
	local := filepath.FromSlash(path)
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") }
	parts := strings.Split(path, "/")
	if !filepath.IsLocal(local) || strings.ContainsAny(path, "\\\x00") || !strings.HasSuffix(path, ".jsonl") ||
		len(parts) < 2 || slices.ContainsFunc(parts, hidden) || !calledAfter(parts, s) {
		return "", control.Failed(fmt.Sprintf("the server's path %q is not a valid place for a transcript", path),
			"choose a file with --to")
	}
	return filepath.Join(root, local), nil
}

// calledAfter reports whether a path fits a session's name; an agent's transcript lies in its session's folder, or
// directly in a project folder. A "~" and a number may count copies or be of the name, which resume escapes.
func calledAfter(parts []string, s *remote.Session) bool {
	called := func(part, name string) bool {
		names := []string{name, transcript.WithoutCopy(name)}
		return slices.Contains(names, part) || slices.Contains(names, transcript.EscapeName(part))
	}
	_, name := path.Split(s.SessionID)
	stem := strings.TrimSuffix(parts[len(parts)-1], ".jsonl")
	folder := len(parts) == 2 || slices.ContainsFunc(parts, func(part string) bool { return called(part, s.Parent) })
	return called(stem, name) && (s.Parent == "" || strings.HasPrefix(stem, "agent-") && folder)
}

// putBack writes one file and returns its generation.
func (l *Library) putBack(ctx context.Context, s *remote.Session, path string, w RestoreRequest) (one RestoredFile,
	generation int64, err error) {
	ref := remote.Ref{Session: s.SessionID, User: s.User, Machine: &s.Machine, Epoch: s.Epoch, Generation: w.Generation}
	draft, one, generation, err := l.fetch(ctx, ref, path, w.Partial)
	if err != nil {
		return one, 0, err
	}
	defer draft.Discard()
	if !w.Force { // the download took a while
		if err := l.refuseLive(ref.Session, path, time.Now()); err != nil {
			return one, 0, err
		}
	}
	one.Same, one.Aside, err = draft.keep(w.To != "", w.Force)
	return one, generation, err
}

// errGrew means that the file does not match the digest fetched before it.
var errGrew = control.Failed("the server sent a file that does not match its digest",
	"try again; `ccship-server verify` checks its store")

// fetch is fetchOnce, again while the newest generation of a live session grows between two requests.
func (l *Library) fetch(ctx context.Context, ref remote.Ref, path string,
	partial bool) (d *draft, one RestoredFile, generation int64, err error) {
	const tries = 3
	for range tries {
		if d, one, generation, err = l.fetchOnce(ctx, ref, path, partial); !errors.Is(err, errGrew) {
			break
		}
	}
	return d, one, generation, err
}

// fetchOnce downloads one file and checks its digest. The caller keeps or discards the draft.
func (l *Library) fetchOnce(ctx context.Context, ref remote.Ref, path string,
	partial bool) (_ *draft, one RestoredFile, generation int64, err error) {
	one = RestoredFile{Session: ref.Session, Path: path}
	digest, err := l.Server.Digest(ctx, ref)
	if err != nil {
		return nil, one, 0, err
	}
	if len(digest.Generations) == 0 {
		return nil, one, 0, noGeneration(ref.Session, *cmp.Or(ref.Generation, new(int64)))
	}
	g := digest.Generations[len(digest.Generations)-1]
	generation = g.Generation
	ref.Generation = &generation
	file, err := l.Server.Raw(ctx, ref, partial)
	if err != nil {
		return nil, one, 0, err
	}
	defer file.Close()
	one.Missing = file.Missing
	draft, err := newDraft(path)
	if err != nil {
		return nil, one, 0, err
	}
	sum, tokens := sha256.New(), redact.Counter{}
	most := max(g.Bytes+file.Missing, 0) + 1 // a server that sends without end fills no disk
	n, err := io.Copy(io.MultiWriter(draft, sum, &tokens), io.LimitReader(file, most))
	switch {
	case err != nil:
		err = fmt.Errorf("restore %s: %w", ref.Session, err)
	case !same(sum, n, g, file.Missing):
		err = errGrew
	default:
		one.Bytes, one.Masked = n, tokens.N
		return draft, one, generation, nil
	}
	draft.Discard()
	return nil, one, 0, err
}

// same says whether a file matches its digest. If lines are blank, only the length can be compared.
func same(sum hash.Hash, n int64, g protocol.ViewDigest, missing int64) bool {
	want := g.Bytes + missing
	if !g.EOFNewline && g.EndLine > 0 {
		want--
		sum.Write([]byte{'\n'})
	}
	return n == want && (missing > 0 || hex.EncodeToString(sum.Sum(nil)) == g.SHA256)
}

// quiet is how long after the last write a session still counts as live.
const quiet = 2 * time.Minute

// refuseLive returns an error if a session is in use: its file was just written to, or Claude Code lists a running
// process for it.
func (l *Library) refuseLive(session, path string, now time.Time) error {
	refuse := func(why string) error {
		return control.NewError(CodeLive, "session "+session+" is live: "+why,
			"end it first, restore it elsewhere with --to, or use --force")
	}
	if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) < quiet && info.ModTime().Sub(now) < quiet {
		return refuse("its transcript was written to " + now.Sub(info.ModTime()).Round(time.Second).String() + " ago")
	}
	if p, ok := l.Running()[session]; ok {
		return refuse(fmt.Sprintf("process %d has it open", p.PID))
	}
	return nil
}

// notThere says whether path does not exist.
func notThere(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Process is a Claude Code that has a session open.
type Process struct {
	PID    int
	Status string // "idle", "busy" or "shell"; "" where it does not say
}

// Running returns the processes that have sessions open on this machine, by session.
func (l *Library) Running() map[string]Process {
	all := map[string]Process{}
	for _, root := range l.Roots {
		maps.Copy(all, runningIn(filepath.Join(filepath.Dir(root), "sessions")))
	}
	return all
}

// runningIn returns the processes of Claude Code's list (<folder>/<pid>.json), by session. Claude Code leaves entries
// of ended processes behind.
func runningIn(folder string) map[string]Process {
	all := map[string]Process{}
	entries, _ := os.ReadDir(folder) // versions before 2.1 have none
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		n, err := strconv.Atoi(name)
		if !ok || err != nil || n <= 0 || !alive(n) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		var said struct {
			Session string `json:"sessionId"`
			Status  string `json:"status"`
		}
		if err == nil && json.Unmarshal(text, &said) == nil && said.Session != "" {
			all[said.Session] = Process{n, said.Status}
		}
	}
	return all
}

// alive says whether a process exists.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false // only Windows checks
	}
	defer func() { _ = p.Release() }()
	if runtime.GOOS == "windows" {
		return true
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}
