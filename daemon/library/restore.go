package library

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
)

// Codes of the errors of Restore.
const (
	CodeLive  = "session_live" // the session is in use
	CodeThere = "file_exists"  // --to names a file that is there
)

// Wish says what to restore, and where to.
type Wish struct {
	Session    string
	Machine    string // its id, the beginning of it, or a host name; "": this one, or the only one that has it
	Generation *int64 // of the session; its agents come in their newest. nil: the newest
	To         string // a file to write instead; then without agents
	Force      bool   // while the session is live, or over the file named by To
	Partial    bool   // lines that are not stored may be blank
	NoAgents   bool
}

// Restored says what was written.
type Restored struct {
	Session    string        `json:"session"`
	Generation int64         `json:"generation"`
	Cwd        string        `json:"cwd,omitempty"`
	CwdThere   bool          `json:"cwd_exists"`
	Files      []RestoredOne `json:"files"` // the session's first, then its agents'
}

// RestoredOne is one file.
type RestoredOne struct {
	Session string `json:"session"`
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Missing int64  `json:"missing_lines"` // blank ones
	Same    bool   `json:"same"`          // it was there already, byte for byte
	Aside   string `json:"aside,omitempty"`
}

// Restore puts a transcript, and its agents', back from the server. Each file gets its name only when it is whole and
// its bytes have the digest that the server computes of what it stores. A different file that is there is moved aside
// under a name that nobody takes for a transcript.
func (l *Library) Restore(ctx context.Context, w Wish) (Restored, error) {
	found, err := l.Find(ctx, w.Session)
	if err != nil {
		return Restored{}, err
	}
	s, err := l.stored(ctx, found, w.Machine)
	if err != nil {
		return Restored{}, err
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
	out := Restored{Session: s.SessionID, Cwd: s.Cwd}
	if info, err := os.Stat(s.Cwd); err == nil && info.IsDir() {
		out.CwdThere = true
	}
	one, generation, err := l.putBack(ctx, s, path, w)
	if err != nil {
		return Restored{}, err
	}
	out.Generation, out.Files = generation, []RestoredOne{one}
	if w.To == "" && !w.NoAgents {
		err = l.restoreAgents(ctx, s, filepath.Dir(path), &out, w)
	}
	return out, err
}

// restoreAgents puts back the transcripts of a session's agents, which lie in the folder of its own.
func (l *Library) restoreAgents(ctx context.Context, s *remote.Session, folder string, out *Restored, w Wish) error {
	var agents []remote.Session
	err := l.Server.Sessions(ctx, remote.Query{Machine: &s.Machine, Parent: s.SessionID}, 1000, func(a *remote.Session) bool {
		agents = append(agents, *a)
		return true
	})
	w.Generation = nil
	for i := range agents {
		if err != nil {
			break
		}
		var path string
		if path, err = below(filepath.Dir(folder), agents[i].Path); err != nil {
			break
		}
		// Its folder may have another name here than on the machine it comes from.
		rel, _ := filepath.Rel(filepath.Dir(folder), path)
		_, inside, _ := strings.Cut(filepath.ToSlash(rel), "/")
		var one RestoredOne
		if one, _, err = l.putBack(ctx, &agents[i], filepath.Join(folder, filepath.FromSlash(inside)), w); err == nil {
			out.Files = append(out.Files, one)
		}
	}
	if err != nil {
		return fmt.Errorf("restore the session's agents (the session itself is at %s): %w", out.Files[0].Path, err)
	}
	return nil
}

// placeOf is where a session's file goes: where it is, else where the server says it was, below the first root.
func (l *Library) placeOf(s *remote.Session, files []File, to string) (string, error) {
	if to != "" {
		return filepath.Abs(to)
	}
	if len(files) > 0 {
		return files[0].Path, nil
	}
	if len(l.Roots) == 0 {
		return "", control.BadConfig("there is no projects folder to restore to",
			"name a file with --to, or a folder with --roots")
	}
	root := l.Roots[0]
	for _, r := range l.Roots {
		folder, _, _ := strings.Cut(s.Path, "/")
		if info, err := os.Stat(filepath.Join(r, folder)); err == nil && info.IsDir() && filepath.IsLocal(folder) {
			root = r
			break
		}
	}
	return below(root, s.Path)
}

// below is a path that the server says, below a root. What would lead elsewhere, or is no transcript, is refused: the
// server may be wrong, or someone else's.
func below(root, path string) (string, error) {
	local := filepath.FromSlash(path)
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") }
	parts := strings.Split(path, "/")
	if !filepath.IsLocal(local) || strings.ContainsAny(path, "\\\x00") || !strings.HasSuffix(path, ".jsonl") || len(parts) < 2 || slices.ContainsFunc(parts, hidden) {
		return "", control.Failed(fmt.Sprintf("the server says that the file is %q, which is no place for a transcript", path),
			"name a file with --to")
	}
	return filepath.Join(root, local), nil
}

// putBack writes one file and answers which generation it is.
func (l *Library) putBack(ctx context.Context, s *remote.Session, path string, w Wish) (one RestoredOne, generation int64, err error) {
	ref := remote.Ref{Session: s.SessionID, Machine: &s.Machine, Epoch: s.Epoch, Generation: w.Generation}
	const tries = 3 // a live session's newest generation may grow between two questions
	for range tries {
		one, generation, err = l.putBackOnce(ctx, ref, path, w)
		if !errors.Is(err, errGrew) {
			break
		}
	}
	return one, generation, err
}

// errGrew says that the file is not what the digest before it was of.
var errGrew = control.Failed("what the server sent is not what it says it stores",
	"try again; `ccship-server verify` checks its store")

func (l *Library) putBackOnce(ctx context.Context, ref remote.Ref, path string, w Wish) (RestoredOne, int64, error) {
	one := RestoredOne{Session: ref.Session, Path: path}
	digest, err := l.Server.Digest(ctx, ref)
	if err != nil {
		return one, 0, err
	}
	if len(digest.Generations) == 0 {
		return one, 0, noGeneration(ref.Session, *cmp.Or(ref.Generation, new(int64)))
	}
	g := digest.Generations[len(digest.Generations)-1]
	number := int64(g.Generation)
	ref.Generation = &number
	file, err := l.Server.Raw(ctx, ref, w.Partial)
	if err != nil {
		return one, 0, err
	}
	defer file.Close()
	one.Missing = file.Missing
	draft, err := newDraft(path)
	if err != nil {
		return one, 0, err
	}
	defer draft.Discard()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(draft, sum), file)
	if err != nil {
		return one, 0, fmt.Errorf("restore %s: %w", ref.Session, err)
	}
	if one.Bytes = n; !same(sum, n, g, file.Missing) {
		return one, 0, errGrew
	}
	one.Same, one.Aside, err = draft.keep(w.To != "", w.Force)
	return one, number, err
}

// same says whether a file is what a digest is of. Of one with blank lines only the length is known.
func same(sum hash.Hash, n int64, g remote.Generation, missing int64) bool {
	want := g.Bytes + missing
	if !g.EOFNewline && g.EndLine > 0 {
		want--
		sum.Write([]byte{'\n'})
	}
	return n == want && (missing > 0 || hex.EncodeToString(sum.Sum(nil)) == g.SHA256)
}

// quiet is how long a transcript must not have been written to before its session counts as over.
const quiet = 2 * time.Minute

// refuseLive answers an error when a session is in use: its file was written to just now, or Claude Code's list of
// running processes names it.
func (l *Library) refuseLive(session, path string, now time.Time) error {
	refuse := func(why string) error {
		return control.NewError(CodeLive, "session "+session+" is live: "+why,
			"end it first, or restore it to another place with --to, or use --force")
	}
	if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) < quiet && info.ModTime().Sub(now) < quiet {
		return refuse("its transcript was written to " + now.Sub(info.ModTime()).Round(time.Second).String() + " ago")
	}
	for _, root := range l.Roots {
		if pid := runningIn(filepath.Join(filepath.Dir(root), "sessions"), session); pid != 0 {
			return refuse(fmt.Sprintf("process %d has it open", pid))
		}
	}
	return nil
}

// notThere says whether nothing has a name.
func notThere(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
