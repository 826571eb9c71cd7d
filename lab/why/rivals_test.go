package why

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// rivals asks what others say of the same commits: Entire of a commit, deja of the file that it adds most lines to. What
// is not answered within a limit is not known.
type rivals struct {
	repo, home             string
	deja, entire           string // programs, where they are named
	asked, listed, first   int    // of deja: commits, those whose session it lists, and lists first
	named                  int    // sessions that deja lists
	explained, explainedAs int    // by Entire: commits, and with their session
	late                   int    // questions without an answer
	known                  map[string][]string
}

func newRivals(t *testing.T, repo, home string) *rivals {
	r := &rivals{repo: repo, home: home, deja: kit.Setting("deja", ""), entire: kit.Setting("entire", ""), known: map[string][]string{}}
	if r.deja != "" {
		out, err := r.ask(t, 10*time.Minute, r.deja, "index")
		kit.Require(t, err == nil, "deja index: %v\n%s", err, out)
	}
	return r
}

// ask runs a program and returns what it prints; one that takes longer than a limit is ended.
func (r *rivals) ask(t *testing.T, limit time.Duration, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = r.repo, []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	cmd.WaitDelay = time.Second // a program of its own may hold the pipe
	out, err := cmd.Output()
	if ctx.Err() != nil {
		r.late++
	}
	return out, err
}

// perQuestion is how long a program may think about a commit.
const perQuestion = time.Minute

func (r *rivals) judge(t *testing.T, commit string, want []string) {
	t.Helper()
	if r.entire != "" {
		out, err := r.ask(t, perQuestion, r.entire, "explain", "--short", "--no-pager", "--commit", commit)
		if r.explained++; err == nil && slices.ContainsFunc(want, func(id string) bool { return bytes.Contains(out, []byte(id)) }) {
			r.explainedAs++
		}
	}
	file := mostAdded(t, r.repo, commit)
	if r.deja == "" || file == "" {
		return
	}
	ids, asked := r.known[file]
	if !asked {
		var found []struct{ Session struct{ ID string } }
		out, err := r.ask(t, perQuestion, r.deja, "blame", file, "--json", "--all")
		if err == nil && json.Unmarshal(out, &found) == nil { // it fails where it knows nobody
			for _, x := range found {
				ids = append(ids, x.Session.ID)
			}
		}
		r.known[file] = ids
	}
	r.asked++
	r.named += len(ids)
	switch at := slices.IndexFunc(ids, func(id string) bool { return slices.Contains(want, id) }); {
	case at == 0:
		r.first++
		fallthrough
	case at > 0:
		r.listed++
	}
}

// mostAdded is the file that a commit adds most lines to, "" when it renames it or adds none.
func mostAdded(t *testing.T, repo, commit string) (file string) {
	most := 0
	for _, row := range strings.Split(gitIn(t, repo, "show", "--numstat", "--format=", "-M", commit), "\n") {
		f := strings.Split(row, "\t")
		if n, err := strconv.Atoi(f[0]); err == nil && len(f) == 3 && n > most && !strings.Contains(f[2], "=>") {
			most, file = n, f[2]
		}
	}
	return file
}

func (r *rivals) tell(t *testing.T) {
	if r.late > 0 {
		t.Logf("| questions without an answer within %v | %d |", perQuestion, r.late)
	}
	if r.entire != "" {
		t.Logf("| Entire, %s | %d commits | %d explained with their session |", alone, r.explained, r.explainedAs)
	}
	if r.deja != "" {
		t.Logf("| deja, by file | %d commits | %d with their session in its list (%.1f %%) | %d as the first (%.1f %%) | %.0f sessions a list |",
			r.asked, r.listed, percent(r.listed, r.asked), r.first, percent(r.first, r.asked), float64(r.named)/float64(max(r.asked, 1)))
	}
}
