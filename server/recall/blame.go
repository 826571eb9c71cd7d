package recall

import (
	"context"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/session"
)

// Bounds of one answer.
const (
	blamePage  = 100 // hits asked for at once
	blamePages = 10
)

// Touch is a turn in which a file was read or changed, with the newest line that did.
type Touch struct {
	server.Hit
	Path   string // as a tool named it, with slashes
	Edits  int    // of the file in this turn, as far as they were looked at
	Reads  int
	Prompt *session.Moment // that the turn began with; nil when none is known
}

// Blame lists the turns that read or changed a file, newest first. q chooses sessions, its File is set here; Limit is
// the number of turns. more: there are further ones.
func Blame(ctx context.Context, st Store, scope server.Scope, file string, q server.SearchQuery) (out []Touch,
	more bool, err error) {
	err = within(ctx, func(ctx context.Context) error {
		out, more, err = blame(ctx, st, scope, file, q)
		return err
	})
	return out, more, err
}

func blame(ctx context.Context, st Store, scope server.Scope, file string, q server.SearchQuery) (out []Touch,
	more bool, err error) {
	turns, limit := map[[2]int64]int{}, q.Limit
	q.Text, q.File, q.Kinds, q.Limit, q.Superseded = "", file, kindsOf(q.Kinds), blamePage, false
	for pages := 0; pages < blamePages; {
		hits, err := st.Search(ctx, scope, q)
		if err != nil {
			return nil, false, err
		}
		for _, h := range hits.List {
			prompt, err := promptBefore(ctx, st, &h.Session, h.Line)
			if err != nil {
				return nil, false, err
			}
			turn := [2]int64{h.Session.ID, -1}
			if prompt != nil {
				turn[1] = prompt.Line
			}
			i, known := turns[turn]
			if !known {
				if len(out) == limit {
					return out, true, nil
				}
				i = len(out)
				turns[turn] = i
				out = append(out, Touch{Hit: h, Path: pathIn(h.Snippet), Prompt: prompt})
			}
			out[i].count(h.Kind)
		}
		if hits.Next == "" {
			return out, false, nil
		}
		if q.After = hits.Next; !hits.More {
			pages++
		}
	}
	return out, true, nil
}

// kindsOf are the kinds that touch files, of those asked for.
func kindsOf(asked []string) []string {
	if len(asked) > 0 {
		return asked
	}
	return []string{server.EditKind, server.ReadKind}
}

func (t *Touch) count(kind string) {
	if kind == server.EditKind {
		t.Edits++
		t.Kind = kind // a turn that changed a file also read it
		return
	}
	t.Reads++
}

// pathIn is the path that a snippet shows: the one with the match.
func pathIn(snippet string) string {
	at := max(strings.IndexByte(snippet, 2), 0)
	from, to := 0, len(snippet)
	if strings.HasPrefix(snippet[at:], "\x02<") {
		from = at
	} else if i := strings.LastIndexByte(snippet[:at], '<'); i >= 0 {
		from = i
	}
	if i := strings.IndexByte(snippet[at:], '>'); i >= 0 {
		to = at + i
	}
	return unmarked(snippet[from:to])
}

// unmarked is a snippet without its marks and without the frames of paths.
func unmarked(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 2 || r == 3 || r == '<' || r == '>' {
			return -1
		}
		return r
	}, s)
}
