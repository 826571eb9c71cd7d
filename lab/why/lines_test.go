package why

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/provenance"
)

// introduction is a line that a session put into a file with a name.
type introduction struct{ session, name, text string }

// verbatim knows which lines edits of sessions introduced, by a reading of its own: in the new text of an edit, and not in
// its old one, and how many times.
type verbatim struct {
	folder string
	read   map[string]bool
	at     map[introduction][]time.Time

	lines, right int
	wrong        int
	missed       map[string]int
	named, alien int // of all lines: those that are named for a session, and of them for another than the commit's
}

func newVerbatim(folder string) *verbatim {
	return &verbatim{folder: folder, read: map[string]bool{}, at: map[introduction][]time.Time{}, missed: map[string]int{}}
}

// session reads a transcript.
func (v *verbatim) session(t *testing.T, id string) {
	t.Helper()
	if v.read[id] {
		return
	}
	v.read[id] = true
	data := kit.Try(os.ReadFile(filepath.Join(v.folder, id+".jsonl"))).Must(t)
	type input struct {
		File   string `json:"file_path"`
		Before string `json:"old_string"`
		After  string `json:"new_string"`
		Text   string `json:"content"`
		Edits  []struct {
			Before string `json:"old_string"`
			After  string `json:"new_string"`
		}
	}
	calls := map[string]input{}
	for line := range bytes.Lines(data) {
		var r struct {
			Timestamp time.Time
			Message   struct{ Content json.RawMessage }
		}
		var blocks []struct {
			Type, ID, Name string
			Input          json.RawMessage
			Call           string `json:"tool_use_id"`
			Failed         bool   `json:"is_error"`
		}
		if json.Unmarshal(line, &r) != nil || json.Unmarshal(r.Message.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			var in input
			switch {
			case b.Type == "tool_use" && (b.Name == "Edit" || b.Name == "Write" || b.Name == "MultiEdit"):
				if json.Unmarshal(b.Input, &in) == nil {
					calls[b.ID] = in
				}
			case b.Type == "tool_result" && !b.Failed:
				in := calls[b.Call]
				delete(calls, b.Call)
				v.add(id, in.File, in.Before, in.After+in.Text, r.Timestamp)
				for _, e := range in.Edits {
					v.add(id, in.File, e.Before, e.After, r.Timestamp)
				}
			}
		}
	}
}

func (v *verbatim) add(session, file, before, after string, at time.Time) {
	had := map[string]int{}
	for _, l := range strings.Split(before, "\n") {
		had[l]++
	}
	for _, l := range strings.Split(after, "\n") {
		if had[l]--; had[l] < 0 {
			k := introduction{session, path.Base(file), l}
			v.at[k] = append(v.at[k], at)
		}
	}
}

// judge compares an answer about a commit with what edits of its sessions introduced verbatim.
func (v *verbatim) judge(t *testing.T, repo string, c provenance.Commit, a provenance.Answer, want []string) {
	t.Helper()
	for _, s := range want {
		v.session(t, s)
	}
	said := map[string]provenance.LineAnswer{}
	for _, l := range a.Lines {
		said[fmt.Sprint(l.Path, ":", l.Line)] = l
		if l.SessionID != "" {
			v.named++
			if !slices.Contains(want, l.SessionID) {
				v.alien++
			}
		}
	}
	for _, f := range c.Files {
		text := strings.Split(gitIn(t, repo, "show", c.Name+":"+f.Paths[0]), "\n")
		alike := map[string][]provenance.Added{}
		for _, l := range f.Lines {
			alike[text[l.Number-1]] = append(alike[text[l.Number-1]], l)
		}
		for line, list := range alike {
			times := 0 // that edits of the commit's sessions introduced it
			for _, s := range want {
				for _, at := range v.at[introduction{s, path.Base(f.Paths[0]), line}] {
					if !at.After(c.At) {
						times++
					}
				}
			}
			slices.SortStableFunc(list, func(a, b provenance.Added) int { // those that are right come first
				is := func(l provenance.Added) int {
					return slices.Index([]bool{true, false}, slices.Contains(want, said[fmt.Sprint(f.Paths[0], ":", l.Number)].SessionID))
				}
				return cmp.Compare(is(a), is(b))
			})
			for _, l := range list[:min(times, len(list))] {
				x := said[fmt.Sprint(f.Paths[0], ":", l.Number)]
				v.count(x, l.Plain, slices.Contains(want, x.SessionID))
			}
		}
	}
}

// count counts a line that was introduced verbatim.
func (v *verbatim) count(x provenance.LineAnswer, plain, right bool) {
	v.lines++
	little := ""
	if plain {
		little = ", says little"
	}
	switch {
	case right:
		v.right++
	case x.SessionID != "":
		v.wrong++
	default:
		v.missed[cmp.Or(x.Reason, "no answer")+little]++
	}
}

// String is the result as a row of a table, and what was missed.
func (v *verbatim) String() string {
	out := fmt.Sprintf("| lines that an edit introduced verbatim | %d lines | %d right (%.1f %%) | %d wrong | of %d named lines %.1f %% are the commit's |",
		v.lines, v.right, percent(v.right, v.lines), v.wrong, v.named, percent(v.named-v.alien, v.named))
	for _, reason := range slices.Sorted(maps.Keys(v.missed)) {
		out += fmt.Sprintf("\n| missed: %s | %d (%.1f %%) |", reason, v.missed[reason], percent(v.missed[reason], v.lines))
	}
	return out
}
