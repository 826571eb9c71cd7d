// Package why judges `ccship why` on a public repository that keeps the transcripts of its commits, as Entire's command
// line does: which sessions each commit is of, git says in a trailer, and the transcripts are on a branch.
package why

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/history"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/provenance"
)

// truth is what the branch says of checkpoints.
type truth struct {
	sessions map[string][]string // of a checkpoint
	agents   map[string]string   // of a session
	lost     map[string]bool     // sessions of which a transcript is not in the copy
	began    time.Time           // of the oldest transcript
}

// alone is the kind of commits that Claude Code's sessions alone are named for.
const alone = "Claude Code's alone"

// tally counts commits of a kind.
type tally struct{ commits, named, right, wrong, missed int }

func TestWhy(t *testing.T) {
	kit.OnlyInLab(t)
	repo := kit.Setting("repository", "")
	if repo == "" {
		t.Skip("name a clone that has the branch entire/checkpoints/v1: repository=FOLDER")
	}
	home := t.TempDir()
	roots := filepath.Join(home, ".claude", "projects")
	known := transcripts(t, repo, filepath.Join(roots, "-repository"))
	kinds := map[string]*tally{}
	commits, rows, lacking := known.commits(t, repo)
	l := &library.Library{Roots: []string{roots}, Machine: "m"}
	began := time.Now()
	written := kit.Try(l.Written(commits, func(string, string) string { return "" })).Must(t)
	t.Logf("| transcripts are read in | %.1f s |", time.Since(began).Seconds())
	users := map[string]bool{}
	for _, r := range rows {
		users[r[1]] = users[r[1]] || r[2] != "" || strings.Contains(r[3], "Claude")
	}
	others := newRivals(t, repo, home)
	lines := newVerbatim(filepath.Join(roots, "-repository"))
	for i, c := range commits {
		if i%100 == 0 && i > 0 {
			t.Logf("%d of %d commits are asked for", i, len(commits))
		}
		kind, want := known.kindOf(rows[i], users)
		if kinds[kind] == nil {
			kinds[kind] = &tally{}
		}
		answer := written.Answer(c, true)
		if kind == alone {
			lines.judge(t, repo, c, answer, want)
			others.judge(t, c.Name, want)
		}
		kinds[kind].add(answer, want)
	}
	t.Logf("| commits that the copy has not whole | %d |", lacking)
	t.Log(lines)
	others.tell(t)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		x := kinds[kind]
		t.Logf("| %s | %d commits | %d with a right name (%.1f %%) | %d names | %d wrong (precision %.1f %%) |", kind, x.commits,
			x.commits-x.missed, percent(x.commits-x.missed, x.commits), x.named, x.wrong, percent(x.right, x.named))
	}
}

// commits are those of the time since the oldest transcript, with what the log says of each, and how many the copy has
// not whole.
func (k *truth) commits(t *testing.T, repo string) (commits []provenance.Commit, rows [][]string, lacking int) {
	t.Helper()
	git := &history.Repo{Top: repo}
	log := strings.Split(gitIn(t, repo, "log", "main", "--no-merges", "--format=%H%x00%an <%ae>%x00"+
		"%(trailers:key=Entire-Checkpoint,valueonly,separator=%x2C)%x00%(trailers:key=Co-Authored-By,valueonly,separator=%x2C)%x00%ct"), "\n")
	for i, row := range log {
		if i%100 == 0 {
			t.Logf("%d of %d commits are read", i, len(log))
		}
		fields := strings.Split(row, "\x00")
		if len(fields) != 5 {
			continue
		}
		at := kit.Try(strconv.ParseInt(fields[4], 10, 64)).Must(t)
		if time.Unix(at, 0).Before(k.began) {
			continue
		}
		f, err := git.Facts(t.Context(), fields[0])
		if err != nil { // the copy lacks a file of it
			lacking++
			continue
		}
		commits, rows = append(commits, f.Commit), append(rows, fields)
	}
	return commits, rows, lacking
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// add counts an answer. It is missed when it names none of the commit's sessions.
func (x *tally) add(a provenance.Answer, want []string) {
	x.commits++
	before := x.right
	for _, s := range a.Sessions {
		x.named++
		if slices.Contains(want, s.SessionID) {
			x.right++
		} else {
			x.wrong++
		}
	}
	if x.right == before {
		x.missed++
	}
}

// kindOf says whose a commit is, and which sessions' it is.
func (k *truth) kindOf(row []string, users map[string]bool) (kind string, want []string) {
	agents := map[string]bool{}
	for _, id := range strings.Split(row[2], ",") {
		want = append(want, k.sessions[id]...)
	}
	for _, s := range want {
		if k.lost[s] {
			return "its transcript is not whole in the copy", want
		}
		agents[k.agents[s]] = true
	}
	switch {
	case len(want) > 0 && len(agents) == 1 && agents["Claude Code"]:
		return alone, want
	case row[2] != "":
		return "other agents', mixed or unknown", want
	case strings.Contains(row[3], "Claude"):
		return "without a trailer, co-authored by Claude", nil
	case users[row[1]]:
		return "without a trailer, of people who use Claude", nil
	}
	return "people's and bots'", nil
}

// timestamp is the first of a transcript.
var timestamp = regexp.MustCompile(`"timestamp":"([^"]+)"`)

var dated = regexp.MustCompile(`^\d{4}-\d\d-\d\d-`)

// transcripts writes the longest transcript of each session to a folder.
func transcripts(t *testing.T, repo, folder string) *truth {
	t.Helper()
	kit.Must(t, os.MkdirAll(folder, 0o700))
	k := &truth{sessions: map[string][]string{}, agents: map[string]string{}, lost: map[string]bool{}}
	files := map[string]string{}
	for _, l := range strings.Split(gitIn(t, repo, "ls-tree", "-r", "entire/checkpoints/v1"), "\n") {
		if head, path, ok := strings.Cut(l, "\t"); ok {
			files[path] = strings.Fields(head)[2]
		}
	}
	length := map[string]int{}
	for path, blob := range files {
		if filepath.Base(path) != "metadata.json" {
			continue
		}
		var m struct {
			Session string `json:"session_id"`
			Agent   string `json:"agent"`
		}
		if text, err := object(t.Context(), repo, blob); err != nil || json.Unmarshal(text, &m) != nil || m.Session == "" {
			continue
		}
		parts, id := strings.Split(path, "/"), dated.ReplaceAllString(m.Session, "")
		checkpoint := parts[0] + parts[1]
		k.sessions[checkpoint] = append(k.sessions[checkpoint], id)
		whole, there := files[strings.TrimSuffix(path, "metadata.json")+"full.jsonl"]
		if !there {
			continue
		}
		text, err := object(t.Context(), repo, whole)
		if err != nil {
			k.lost[id] = true
			continue
		}
		if stamp := timestamp.FindSubmatch(text); stamp != nil {
			at := kit.Try(time.Parse(time.RFC3339, string(stamp[1]))).Must(t)
			if k.began.IsZero() || at.Before(k.began) {
				k.began = at
			}
		}
		if len(text) > length[id] {
			length[id], k.agents[id] = len(text), m.Agent
			kit.Must(t, os.WriteFile(filepath.Join(folder, id+".jsonl"), text, 0o600))
		}
	}
	return k
}

func object(ctx context.Context, repo, name string) ([]byte, error) {
	return exec.CommandContext(ctx, "git", "-C", repo, "cat-file", "blob", name).Output()
}

func gitIn(t *testing.T, repo string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...).Output()
	if err != nil {
		t.Fatal(fmt.Errorf("git %v: %w", args, err))
	}
	return string(out)
}
