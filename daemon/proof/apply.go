package proof

import (
	"context"
	"errors"
	"io/fs"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/tail"
)

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
