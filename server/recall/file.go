package recall

import (
	"context"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// fileTurns is how many turns of a file are listed.
const fileTurns = 100

// FileQuery asks for the turns that wrote to a file.
type FileQuery struct {
	File    string    // its path below its repository, or an absolute one
	Project string    // of the repository that its project_hash, name or id tells; "": of any
	To      time.Time // not later
	URL     func(x server.Session, line int64) string
}

// FileTurn is a prompt whose turn wrote to a file.
type FileTurn struct {
	Author provenance.Author
	Prompt provenance.Prompt
	Edits  int64
}

// FileTurns lists the turns that wrote to a file, the newest first; more says that there are older ones. What a fork
// repeats is listed once. users are the names of users. server.ErrBusy when the time for an answer does not suffice.
func FileTurns(ctx context.Context, st Store, scope server.Scope, users func(int64) string, q FileQuery) (
	out []FileTurn, more bool, err error) {
	err = within(ctx, func(ctx context.Context) error {
		w := newWritten(ctx, st, scope, users)
		w.URL = q.URL
		list, err := st.EditsOf(ctx, scope, server.EditQuery{Name: provenance.Name(q.File), Project: q.Project, To: q.To,
			Limit: whyEdits})
		if err != nil {
			return err
		}
		type turn struct {
			session int
			line    int64
		}
		file := strings.ReplaceAll(q.File, `\`, "/")
		names := []string{file, strings.TrimPrefix(file, "/")}
		seen := map[turn]int{}
		more = len(list) == whyEdits
		for _, x := range list {
			if x.Copied || x.Copy || !provenance.SamePath(x.Path, names) {
				continue
			}
			c := w.candidate(x)
			p := w.Prompt(c.Session, &c.Edit)
			k := turn{c.Session, p.Line}
			at, known := seen[k]
			if !known && len(out) == fileTurns {
				more = true
				break
			}
			if !known {
				at, seen[k] = len(out), len(out)
				out = append(out, FileTurn{Author: w.Author(c.Session), Prompt: p})
			}
			out[at].Edits++
		}
		return w.err
	})
	return out, more, err
}
