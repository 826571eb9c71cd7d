package library

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript"
)

// Codes of the errors of Resume.
const (
	CodeNoFolder   = "no_folder"   // the folder to resume in is not there
	CodeLongerHere = "longer_here" // this disk has lines of the session that the server's copy lacks
)

// ResumeRequest says which session to bring to this machine, and into which folder.
type ResumeRequest struct {
	Session string
	User    string // whose session; "": the only one's who has it
	Machine string // its id, a prefix of it, or a host name; "": the one that wrote to it last
	Folder  string // the working directory to resume in; "": the one that the session had
	Force   bool   // while the session is live; a longer past on this disk is moved aside
}

// Resumed is a session that Claude Code can resume on this machine.
type Resumed struct {
	Session    string         `json:"session"`
	Machine    string         `json:"machine"` // the copy's
	Host       string         `json:"host,omitempty"`
	Generation int64          `json:"generation"`
	From       string         `json:"from_cwd"` // the working directory there
	Folder     string         `json:"cwd"`      // here; it exists
	Masked     int64          `json:"masked"`   // secrets that are replaced by tokens, in all files
	Files      []RestoredFile `json:"files"`    // the session's first
}

// Resume writes a session of any machine below the project folder of a working directory of this machine, with its
// agents' transcripts and the files next to it, so that Claude Code resumes it there. Working directories in the
// records are mapped; what was said stays as it is.
//
// Everything is downloaded and checked before the first file gets its name, and the session's transcript gets its name
// last: after a crash Claude Code finds the session as it was before, or whole.
func (l *Library) Resume(ctx context.Context, w ResumeRequest) (Resumed, error) {
	found, err := l.Find(ctx, w.Session)
	if err != nil {
		return Resumed{}, err
	}
	s, err := l.lastWritten(ctx, found, Copy{w.Machine, w.User})
	if err != nil {
		return Resumed{}, err
	}
	if err := l.mayContinue(ctx, s, w.User); err != nil {
		return Resumed{}, err
	}
	if s.Parent != "" {
		return Resumed{}, control.Usage(s.SessionID+" is an agent's transcript",
			"resume its session: `ccship resume "+s.Parent+"`")
	}
	r := &resumption{Library: l, request: w, session: s, found: found}
	r.out = Resumed{Session: r.name(), Machine: s.Machine, Host: s.Host}
	defer r.discard()
	if err := r.choosePlace(); err != nil {
		return Resumed{}, err
	}
	if err := r.fetch(ctx); err != nil {
		return Resumed{}, err
	}
	return r.keep(ctx)
}

// lastWritten chooses the copy of a session that was written last, among those of one user.
func (l *Library) lastWritten(ctx context.Context, f Found, which Copy) (*remote.Session, error) {
	var last *remote.Session
	var users []string
	for _, s := range f.Stored {
		if which.User != "" && s.User != which.User {
			continue
		}
		if last == nil || s.Last.After(last.Last) {
			last = s
		}
		if !slices.Contains(users, s.User) {
			users = append(users, s.User)
		}
	}
	if which.Machine != "" || last == nil || len(users) > 1 {
		return l.stored(ctx, f, which)
	}
	return last, nil
}

// resumption is the work of one Resume.
type resumption struct {
	*Library
	request ResumeRequest
	session *remote.Session
	found   Found
	out     Resumed

	project string // the project folder here
	move    move
	staged  []staged // the session's transcript first
}

// staged is a file that is complete, under a name that nobody looks for.
type staged struct {
	*draft
	file       RestoredFile
	attachment bool // written once: the one that is here stays
}

func (r *resumption) discard() {
	for _, s := range r.staged {
		s.Discard()
	}
	// Folders that were made for nothing. One with a file in it stays.
	_ = os.Remove(filepath.Join(r.project, r.name(), "subagents"))
	_ = os.Remove(filepath.Join(r.project, r.name(), "tool-results"))
	_ = os.Remove(filepath.Join(r.project, r.name()))
	_ = os.Remove(r.project)
}

// choosePlace finds the folder to resume in, and its project folder.
func (r *resumption) choosePlace() error {
	folder := cmp.Or(r.request.Folder, r.session.Cwd)
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() || !filepath.IsAbs(folder) {
		return control.NewError(CodeNoFolder, fmt.Sprintf("the session's folder %q is not on this machine", folder),
			"go to the project's folder and use --here")
	}
	if r.out.Folder, err = filepath.EvalSymlinks(folder); err != nil {
		return fmt.Errorf("resolve folder: %w", err)
	}
	if len(r.Roots) == 0 {
		return control.BadConfig("no projects folder to bring the session to", "choose a folder with --roots")
	}
	r.project, err = r.projectFolder(r.out.Folder)
	if err != nil {
		return err
	}
	here := &remote.Session{SessionID: r.session.SessionID, Path: filepath.Base(r.project) + "/" + r.name() + ".jsonl"}
	if _, err := below(filepath.Dir(r.project), here); err != nil {
		return err
	}
	return r.refuseLiveHere()
}

func (r *resumption) refuseLiveHere() error {
	if r.request.Force {
		return nil
	}
	return r.refuseLive(r.name(), r.path(), time.Now())
}

// name returns the session's id, as Claude Code knows it.
func (r *resumption) name() string { return transcript.WithoutCopy(r.session.SessionID) }

// path returns where the session's transcript goes.
func (r *resumption) path() string { return filepath.Join(r.project, r.name()+".jsonl") }

// projectFolder returns the project folder of a working directory: one with a transcript that began there, or else the
// one that Claude Code will look for.
func (l *Library) projectFolder(cwd string) (string, error) {
	name, ok := folderName(cwd)
	for _, root := range l.Roots {
		if info, err := os.Stat(filepath.Join(root, name)); ok && err == nil && info.IsDir() {
			return filepath.Join(root, name), nil
		}
	}
	if ok {
		return filepath.Join(l.Roots[0], name), nil
	}
	for _, f := range Disk(l.Roots) {
		if readHead(f.Path).FirstCwd == cwd {
			return filepath.Dir(f.Path), nil
		}
	}
	return "", control.Failed("the name that Claude Code gives the project folder of "+cwd+" cannot be derived",
		"start `claude` there, say something, and try again")
}

// fetch stages all files, and compares them with what is on this disk.
func (r *resumption) fetch(ctx context.Context) error {
	if err := r.fetchMain(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	if err := r.fetchAgents(ctx); err != nil {
		return err
	}
	return r.fetchBlobs(ctx)
}

// fetchMain stages the session's transcript, and finds out which working directory it had.
func (r *resumption) fetchMain(ctx context.Context) error {
	raw, one, generation, err := r.download(ctx, r.session, r.path())
	if err != nil {
		return err
	}
	defer raw.Discard()
	r.out.Generation = generation
	folder, _, _ := strings.Cut(r.session.Path, "/")
	if r.out.From, err = oldFolder(ctx, raw.Name(), folder); err != nil {
		return err
	}
	r.move = newMove(r.out.From, r.out.Folder)
	return r.stage(ctx, raw, one)
}

// download gets a transcript, sealed.
func (r *resumption) download(ctx context.Context, s *remote.Session, path string) (d *draft, one RestoredFile,
	generation int64, err error) {
	ref := remote.Ref{Session: s.SessionID, User: s.User, Machine: &s.Machine, Epoch: s.Epoch}
	if d, one, generation, err = r.Library.fetch(ctx, ref, path, false); err != nil {
		return nil, one, 0, err
	}
	if err := d.Seal(); err != nil {
		d.Discard()
		return nil, one, 0, fmt.Errorf("restore %s: %w", path, err)
	}
	return d, one, generation, nil
}

// oldFolder returns the working directory that a session had at its end: the last one whose project folder the
// transcript was in, or else the first one.
func oldFolder(ctx context.Context, path, folder string) (string, error) {
	first, last := "", ""
	err := eachLine(ctx, path, func(line []byte, _ bool) error {
		cwd := transcript.Unquote(transcript.Scan(line).Cwd)
		if cwd == "" {
			return nil
		}
		first = cmp.Or(first, cwd)
		if name, _ := folderName(cwd); name == folder {
			last = cwd
		}
		return nil
	})
	return cmp.Or(last, first), err
}

// stage makes the file with mapped working directories out of a downloaded transcript.
func (r *resumption) stage(ctx context.Context, raw *draft, one RestoredFile) error {
	d, err := newDraft(raw.path)
	if err != nil {
		return err
	}
	r.staged = append(r.staged, staged{draft: d, file: one})
	s := &r.staged[len(r.staged)-1]
	r.out.Masked += one.Masked
	s.file.Bytes = 0
	out := bufio.NewWriterSize(d, 256<<10)
	err = eachLine(ctx, raw.Name(), func(line []byte, whole bool) error {
		n, err := out.Write(r.move.line(line))
		if err == nil && whole {
			err = out.WriteByte('\n')
			n++
		}
		s.file.Bytes += int64(n)
		return err
	})
	if err = errors.Join(err, out.Flush()); err == nil {
		err = d.Seal()
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", raw.path, err)
	}
	return nil
}

// fetchAgents stages the transcripts of the session's agents, in the places that they have next to it.
func (r *resumption) fetchAgents(ctx context.Context) error {
	err := r.eachAgent(ctx, r.session, r.project, func(a *remote.Session, path string) error {
		return r.fetchAgent(ctx, a, path)
	})
	if err != nil {
		return fmt.Errorf("bring the session's agents: %w", err)
	}
	return nil
}

func (r *resumption) fetchAgent(ctx context.Context, a *remote.Session, path string) error {
	raw, one, _, err := r.download(ctx, a, path)
	if err != nil {
		return err
	}
	defer raw.Discard()
	if err := r.stage(ctx, raw, one); err != nil {
		return err
	}
	return r.compareWith(ctx, r.staged[len(r.staged)-1].draft, path)
}

// keep gives the files their names, the session's transcript last. The session may have gone on here during the
// download: everything is compared again first.
func (r *resumption) keep(ctx context.Context) (Resumed, error) {
	if err := r.compareAgain(ctx); err != nil {
		return Resumed{}, err
	}
	slices.Reverse(r.staged)
	for i := range r.staged {
		var err error
		if r.staged[i].file, err = r.put(context.WithoutCancel(ctx), &r.staged[i]); err != nil {
			return Resumed{}, err
		}
	}
	slices.Reverse(r.staged)
	for _, s := range r.staged {
		r.out.Files = append(r.out.Files, s.file)
	}
	return r.out, nil
}

// put gives a file its name. What it replaces is compared once it is aside, and removed if the file has all of it: a
// line that came at the last moment stays there.
func (r *resumption) put(ctx context.Context, s *staged) (one RestoredFile, err error) {
	one = s.file
	one.Same, one.Aside, err = s.draft.keep(false, false)
	if err != nil || one.Aside == "" {
		return one, err
	}
	_, more, err := beyond(ctx, one.Aside, one.Path)
	if err != nil || more > 0 {
		return one, err
	}
	if err := os.Remove(one.Aside); err != nil {
		return one, fmt.Errorf("remove what %s replaced: %w", one.Path, err)
	}
	one.Aside = ""
	return one, nil
}
