package library

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// compare refuses to bring a session that has lines on this disk which the server's copy lacks, in any project folder.
func (r *resumption) compare(ctx context.Context) error {
	main := r.staged[0].draft
	if err := r.compareWith(ctx, main, r.path()); err != nil {
		return err
	}
	for _, f := range r.found.Files {
		if f.Path != r.path() {
			if err := r.compareWith(ctx, main, f.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareAgain refuses if the session or one of its agents went on here since the comparison before the download. It
// leaves out attachments that are here by now.
func (r *resumption) compareAgain(ctx context.Context) error {
	if err := r.compare(ctx); err != nil {
		return err
	}
	var kept []staged
	for i, s := range r.staged {
		switch {
		case s.attachment && !notThere(s.path):
			s.Discard()
			continue
		case i > 0 && !s.attachment:
			if err := r.compareWith(ctx, s.draft, s.path); err != nil {
				return err
			}
		}
		kept = append(kept, s)
	}
	r.staged = kept
	return r.refuseLiveHere()
}

// compareWith compares a staged transcript with the file at path, which need not exist. Working directories do not
// count.
func (r *resumption) compareWith(ctx context.Context, d *draft, path string) error {
	if notThere(path) {
		return nil
	}
	common, more, err := beyond(ctx, path, d.Name())
	if err != nil || more == 0 || r.request.Force {
		return err
	}
	_, incoming, err := beyond(ctx, d.Name(), path)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s has %s that the server's copy from %s lacks", path, amount.Counted(more, "line", "lines"),
		strings.TrimSpace(r.session.Host+" "+r.session.Machine))
	if incoming > 0 {
		what = fmt.Sprintf("%s differs from the server's copy from %s after line %d", path,
			strings.TrimSpace(r.session.Host+" "+r.session.Machine), common)
	}
	return control.NewError(CodeLongerHere, what, "`"+r.hereCommand(path)+"` goes on with the one on this disk; "+
		"--force moves it aside")
}

// hereCommand resumes the session as it is on this disk.
func (r *resumption) hereCommand(path string) string {
	command := "claude --resume " + control.ShellWord(r.name())
	if cwd := readHead(path).FirstCwd; cwd != "" && path != r.path() {
		return "cd " + control.ShellWord(cwd) + " && " + command
	}
	return command
}

// beyond counts the lines at the beginning of a file that another file has too, and the lines after them.
func beyond(ctx context.Context, path, other string) (common, more int64, err error) {
	b, err := sys.OpenRegular(other)
	if err != nil {
		return 0, 0, fmt.Errorf("compare: %w", err)
	}
	defer b.Close()
	theirs := bufio.NewReaderSize(b, 256<<10)
	err = eachLine(ctx, path, func(line []byte, _ bool) error {
		if more == 0 {
			their, err := theirs.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if len(their) > 0 && bytes.Equal(neutral(line), neutral(bytes.TrimSuffix(their, []byte("\n")))) {
				common++
				return nil
			}
		}
		more++
		return nil
	})
	return common, more, err
}

// maxAttachment is the largest file next to a session that is brought, in bytes.
const maxAttachment = 256 << 20

// fetchBlobs stages the files next to the session: large tool results, and how agents were started.
func (r *resumption) fetchBlobs(ctx context.Context) error {
	list, err := r.Server.Blobs(ctx, remote.Ref{
		Session: r.session.SessionID, User: r.session.User, Machine: &r.session.Machine,
	})
	if remote.Is(err, control.CodeNoSession) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bring the session's attachments: %w", err)
	}
	newest := map[string]remote.Blob{}
	for _, b := range list {
		newest[b.Name] = b
	}
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		if err := r.fetchBlob(ctx, newest[name]); err != nil {
			return fmt.Errorf("bring attachment %s: %w", name, err)
		}
	}
	return nil
}

func (r *resumption) fetchBlob(ctx context.Context, b remote.Blob) error {
	parts := strings.Split(b.Name, "/")
	hidden := func(part string) bool { return part == "" || strings.HasPrefix(part, ".") }
	if !filepath.IsLocal(filepath.FromSlash(b.Name)) || strings.ContainsAny(b.Name, "\\\x00") ||
		slices.ContainsFunc(parts, hidden) || strings.HasSuffix(b.Name, ".jsonl") {
		return control.Failed("the server's name for it is not valid", "`ccship-server verify` checks its store")
	}
	content, err := r.Server.Blob(ctx, b.SHA256, maxAttachment)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != b.SHA256 {
		return errGrew
	}
	path := filepath.Join(r.project, r.name(), filepath.FromSlash(b.Name))
	if !notThere(path) { // Claude Code writes such a file once
		return nil
	}
	d, err := newDraft(path)
	if err != nil {
		return err
	}
	var tokens redact.Counter
	_, _ = tokens.Write(content) // it never fails
	r.out.Masked += tokens.N
	r.staged = append(r.staged, staged{draft: d, attachment: true, file: RestoredFile{
		Session: r.session.SessionID, Path: path, Bytes: int64(len(content)), Masked: tokens.N,
	}})
	if _, err := d.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return d.Seal()
}

// worktrees are where Claude Code, and by habit people, put a repository's worktrees, below it.
var worktrees = []string{"/.claude/worktrees/", "/.worktrees/"}

// structural are the members of a record that name its working directory. No other text is ever changed.
var structural = []string{"cwd", "relocatedCwd"}

// move maps working directories of the machine that a session comes from to this one.
type move struct {
	pairs []pair // the longest old folder first
}

// pair is a folder there, and what it is here.
type pair struct{ old, now string }

// newMove maps the folder old, and for one in a worktree its repository too, to now: a user who resumes a session in a
// folder means that folder.
func newMove(old, now string) move {
	separators := "/"
	if isWindows(old) {
		separators = `\/`
	}
	old = strings.TrimRight(old, separators)
	if old == "" {
		return move{}
	}
	m := move{[]pair{{old, now}}}
	for _, place := range worktrees {
		if i := strings.Index(slashed(old), place); i > 0 {
			m.pairs = append(m.pairs, pair{old[:i], now})
			break
		}
	}
	return m
}

// to returns where a working directory is here. One outside the mapped folders stays as it is.
func (m move) to(cwd string) string {
	for _, p := range m.pairs {
		if rest, ok := inside(cwd, p.old); ok {
			if isWindows(p.old) != isWindows(p.now) {
				rest = strings.NewReplacer(`\`, string(filepath.Separator), "/", string(filepath.Separator)).Replace(rest)
			}
			return p.now + rest
		}
	}
	return cwd
}

// line returns a record with its working directories mapped. A damaged line is left as it is.
func (m move) line(line []byte) []byte {
	if len(m.pairs) == 0 || transcript.Scan(line).Shape != transcript.Object {
		return line
	}
	return transcript.ReplaceStrings(line, structural, m.to)
}

// neutral returns a record without its working directories, to compare copies that were moved.
func neutral(line []byte) []byte {
	if transcript.Scan(line).Shape != transcript.Object {
		return line
	}
	return transcript.ReplaceStrings(line, structural, func(string) string { return "" })
}

// inside says whether a path is folder or below it, and what follows folder in it. Windows ignores case.
func inside(path, folder string) (rest string, ok bool) {
	if len(path) < len(folder) {
		return "", false
	}
	begin, rest := path[:len(folder)], path[len(folder):]
	same := begin == folder || isWindows(folder) && strings.EqualFold(slashed(begin), slashed(folder))
	return rest, same && (rest == "" || rest[0] == '/' || isWindows(folder) && rest[0] == '\\')
}

// isWindows says whether a path is one of Windows: C:\… or \\server\….
func isWindows(path string) bool {
	return strings.HasPrefix(path, `\\`) ||
		len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/') && unicode.IsLetter(rune(path[0]))
}

func slashed(path string) string {
	if isWindows(path) {
		return strings.ReplaceAll(path, `\`, "/")
	}
	return path
}

// longestFolder is how long a project folder's name may be before Claude Code shortens it and appends a hash.
const longestFolder = 200

// folderName returns the name that Claude Code gives the project folder of a working directory. ok is false if it
// cannot be shown: for a long path, and for characters that Unicode can compose.
func folderName(cwd string) (name string, ok bool) {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(cwd)) {
		if r := rune(unit); r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	composed := strings.ContainsFunc(cwd, func(r rune) bool { return unicode.Is(unicode.M, r) })
	return b.String(), b.Len() <= longestFolder && !composed
}
