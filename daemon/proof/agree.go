package proof

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// agreement is how much of a file on disk is in the view that the server shows by default.
type agreement struct {
	lines  int64        // common to both sides, from the first
	prefix *tail.Prefix // of these lines on disk
	total  int64        // lines that the server shows

	epochInFront string // at the server
	epoch        string // to continue in; "": this state's own
	generation   uint32 // the newest of the epoch in front
	remasked     int64  // lines that the rules of masking in force change; counted to the end
	clear        int64  // those of them that the server has unmasked
	unfinished   bool   // the last line that the server shows had no newline yet
}

// agreed reads a file and finds out how much of it a server has. has is nil if the server has nothing under this
// machine's name.
func (c *comparison) agreed(ctx context.Context, t *tail.Tracked, f *state.Routing,
	has *protocol.Digest) (*agreement, error) {
	ref := c.ref(t.File.ID)
	if has == nil || len(has.Generations) == 0 {
		return c.copyFormer(ctx, t, f)
	}
	g := has.Generations[len(has.Generations)-1]
	at := &agreement{total: g.EndLine, unfinished: !g.EOFNewline}
	at.front(has.Epoch, g, c.Origin.Epoch)
	if c.repair && at.unfinished && t.Provisional.Length == 0 {
		g.EndLine-- // the server lacks the newline of its last line
	}
	g.EndLine = min(g.EndLine, c.before, c.limit)
	return at, c.measure(ctx, t, f, at, view{ref: ref, digest: g})
}

// front records the epoch in front at the server, and its newest generation. own is this state's epoch.
func (a *agreement) front(epoch string, g protocol.ViewDigest, own string) {
	a.epochInFront, a.generation, a.epoch = epoch, uint32(g.Generation), epoch
	if epoch == own {
		a.epoch = ""
	}
}

// copyFormer asks the server to copy what it has under a former name of this machine, the last one that it knows.
func (c *comparison) copyFormer(ctx context.Context, t *tail.Tracked, f *state.Routing) (*agreement, error) {
	at := &agreement{prefix: &tail.Prefix{}}
	for _, former := range c.Machine.Former() {
		ref := remote.Ref{Session: f.Stream.SessionID, User: remote.Me, Machine: &former}
		has, err := c.reader.Digest(ctx, ref)
		if remote.Is(err, control.CodeNoSession) || err == nil && len(has.Generations) == 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		g := has.Generations[len(has.Generations)-1]
		if err := c.measure(ctx, t, f, at, view{ref: ref, digest: g}); err != nil || at.lines == 0 {
			return at, err
		}
		err = c.reader.Copy(ctx, f.Stream.SessionID, protocol.CopyRequest{
			From: former, To: c.Origin.Machine, Host: c.Origin.Host, Epoch: c.Origin.Epoch, Lines: at.lines,
		})
		if err != nil {
			return nil, fmt.Errorf("copy to this machine's new name: %w", err)
		}
		c.copied++
		at.total, at.epochInFront, at.generation = at.lines, c.Origin.Epoch, 0
		break
	}
	return at, nil
}

// view is a server's view of a transcript.
type view struct {
	ref    remote.Ref
	digest protocol.ViewDigest
}

// measure finds the lines that the disk and a view have in common. If the digest of the view matches the beginning of
// the file, no lines are requested.
func (c *comparison) measure(ctx context.Context, t *tail.Tracked, f *state.Routing, at *agreement, v view) error {
	whole, err := c.holds(ctx, t, f, at, v)
	if err != nil || whole {
		return err
	}
	hashes, held := NewHashes(c.reader, v.ref), NewHeld(c.reader, v.ref)
	defer held.Close()
	at.prefix, at.lines = &tail.Prefix{}, 0
	byServer, notes := v.digest.MaskedLines(), Notes(&v.digest)
	return c.eachLine(ctx, t, func(l *tail.Line) (bool, error) {
		if l.Index >= v.digest.EndLine {
			return false, nil
		}
		want, err := hashes.At(ctx, l.Index, v.digest.EndLine)
		if err != nil {
			return false, err
		}
		there, same := want != nil, true
		switch {
		case l.Oversize:
			there, same = HoldsOversize(l, want, notes)
		case there:
			as := seen{l.Raw, l.Index, *want, byServer[l.Index], v.digest.IsRetired(l.Index)}
			same, err = c.same(ctx, held, as, c.Masking.For(f.Dest, f.Stream.Cwd), at)
		}
		agrees := same && (there || c.excused(t, f, l))
		if err != nil || !agrees && !c.remask {
			return false, err
		}
		if !c.remask || at.remasked == 0 {
			at.prefix.Add(l.Whole)
			at.lines++
		}
		return true, nil
	})
}

// seen is a line on disk that a server has, with the server's hash.
type seen struct {
	raw   []byte
	index int64
	hash  string

	byServer bool // the server itself masked it
	retired  bool // the server has only the hash
}

// same reports whether a server's line is the one on disk: unmasked, or with its secrets masked by any rules. It counts
// in at the lines that the rules in force would send in another form.
func (c *comparison) same(ctx context.Context, held *Held, l seen, m *redact.Masker,
	at *agreement) (bool, error) {
	sent, masked := m.Line(l.raw)
	if LineHash(sent) == l.hash {
		return true, nil
	}
	if l.retired && l.byServer {
		return true, nil // no bytes are left to compare; the server takes none in its place
	}
	if l.byServer {
		return held.SameButTokens(ctx, l.index, l.hash, l.raw, sent)
	}
	if len(masked) > 0 && LineHash(l.raw) == l.hash {
		at.remasked++
		at.clear++
		return true, nil
	}
	if l.retired {
		return false, nil
	}
	_, _, explained, err := held.Explain(ctx, ProofOf(c.Masking.Proof(), m), l.index, l.raw, l.hash)
	if explained {
		at.remasked++
	}
	return explained, err
}

// holds reports whether the file begins with the whole view; then it fills in at.
func (c *comparison) holds(ctx context.Context, t *tail.Tracked, f *state.Routing, at *agreement,
	v view) (bool, error) {
	if v.digest.SHA256 == "" { // some of it was retired: only its lines can be compared
		return false, nil
	}
	sum := sha256.New()
	var layout transcript.Layout
	at.prefix, at.lines = &tail.Prefix{}, 0
	masker := c.Masking.For(f.Dest, f.Stream.Cwd)
	err := c.eachLine(ctx, t, func(l *tail.Line) (bool, error) {
		switch {
		case l.Index >= v.digest.EndLine:
			return false, nil
		case l.Oversize:
			layout.Oversize(l.Index, NoteOf(l))
		case !c.excused(t, f, l):
			layout.Line(l.Index)
			sent, _ := masker.Line(l.Raw)
			sum.Write(sent)
			sum.Write([]byte{'\n'})
		}
		at.prefix.Add(l.Whole)
		at.lines++
		return true, nil
	})
	same := at.lines == v.digest.EndLine && hex.EncodeToString(layout.Sum(at.lines, sum.Sum(nil))) == v.digest.SHA256
	return same, err
}

// excused reports whether a server may rightly lack a line.
func (c *comparison) excused(t *tail.Tracked, f *state.Routing, l *tail.Line) bool {
	return c.dead[uint64(t.File.ID)][l.Index] ||
		!l.Oversize && (l.Index < f.SentBefore || c.Rules.LeavesOut(&t.File, l.Raw))
}

// eachLine calls fn with the whole lines of a file, from the first, until it returns false. Text without a newline is
// not a line yet.
func (c *comparison) eachLine(ctx context.Context, t *tail.Tracked, fn func(*tail.Line) (bool, error)) error {
	file, err := sys.OpenRegular(t.File.Path)
	if err != nil {
		return fmt.Errorf("compare transcript: %w", err)
	}
	defer file.Close()
	lines := tail.NewLineReader(file, c.LineCap, t.Cursor.Offset)
	lines.Keep = true
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := lines.Next()
		if errors.Is(err, io.EOF) || err == nil && !l.Newline {
			return nil
		}
		if err != nil {
			return fmt.Errorf("compare transcript: %w", err)
		}
		if on, err := fn(&l); err != nil || !on {
			return err
		}
	}
}

// remasked counts the lines on servers that the masking rules in force change.
type remasked struct {
	Transcripts int
	Lines       int64    // that servers have with other tokens, or in clear
	Clear       int64    // those of them that are in clear
	Resent      int64    // from the first of these lines of each transcript to its end
	Paths       []string // the transcripts with lines in clear
}

// Remask compares transcripts with what their servers have, and finds the lines that the masking rules in force would
// send in another form. Unless dry, each transcript continues in a new generation from the first of these lines.
// Transcripts for servers without masking are left out.
func (r *Reconciler) Remask(ctx context.Context, files []tail.Tracked, dry bool) (remasked, error) {
	var sum remasked
	comparisons := map[string]*comparison{}
	for _, t := range files {
		f, known, err := r.State.Files.Routing(ctx, t.File.ID)
		if err != nil {
			return sum, err
		}
		if !known || !f.Decided || f.Dest == "" || t.Gone != 0 || r.Masking.For(f.Dest, f.Stream.Cwd) == nil ||
			!r.Servers.SpeaksExtension(f.Dest) {
			continue
		}
		c := comparisons[f.Dest]
		if c == nil {
			if c, err = r.newComparison(ctx, f.Dest); err != nil {
				return sum, err
			}
			c.remask, c.sending = true, true
			comparisons[f.Dest] = c
		}
		if err := c.remaskFile(ctx, t, dry, &sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// remaskFile is Remask for one transcript.
func (c *comparison) remaskFile(ctx context.Context, t tail.Tracked, dry bool, sum *remasked) error {
	f := c.routings[t.File.ID]
	if err := c.limitCommon(ctx, t.File.ID); err != nil {
		return err
	}
	has, err := c.reader.Digest(ctx, c.ref(t.File.ID))
	if remote.Is(err, control.CodeNoSession) || err == nil && len(has.Generations) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	at, err := c.agreed(ctx, &t, &f, &has)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || at.remasked == 0 {
		return err
	}
	sum.Transcripts++
	sum.Lines += at.remasked
	sum.Clear += at.clear
	sum.Resent += at.total - at.lines
	if at.clear > 0 {
		sum.Paths = append(sum.Paths, t.File.Path)
	}
	if dry {
		return nil
	}
	return c.rejoin(ctx, &t, &f, at)
}

// Why lines are left out.
const (
	whySentBefore = "sent before ccship was installed"
	whyTypes      = "of a type in exclude_types"
	whyPrompts    = "prompts of projects that are excluded"
)

// whyOfLines returns why the rules leave lines of a transcript out.
func whyOfLines(file *control.FileReport) string {
	if filepath.Base(file.Path) == "history.jsonl" {
		return whyPrompts
	}
	return whyTypes
}

// excludedLines counts lines that a rule leaves out. The caller holds mu.
func (r *recorder) excludedLines(why string, n int64) {
	if n > 0 {
		r.excluded(why).Lines += n
	}
}

// excluded returns the count of a rule. The caller holds mu.
func (r *recorder) excluded(why string) *control.ExclusionCount {
	for i := range r.ExcludedWhy {
		if r.ExcludedWhy[i].Why == why {
			return &r.ExcludedWhy[i]
		}
	}
	r.ExcludedWhy = append(r.ExcludedWhy, control.ExclusionCount{Why: why})
	return &r.ExcludedWhy[len(r.ExcludedWhy)-1]
}
