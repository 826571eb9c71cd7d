//go:build unix

package viewer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// rewrittenID is a session whose file lost lines when it was rewritten.
const rewrittenID = "8d31c5f0-47be-4a90-b7f2-60c2e1a95d38"

// lastDropped is said in a line that is no longer in the file.
const lastDropped = "Keep the old format as well, for the kiosks"

// gallery is a server with months of invented conversations, for tests that only read.
var gallery struct {
	once  sync.Once
	site  *site
	other string // key of a member who sees none of it
	link  string // path of a link to the tale
	err   error
}

// needGallery starts the gallery at first use.
func needGallery(t testing.TB) *site {
	t.Helper()
	gallery.once.Do(func() {
		gallery.err = errors.New("the gallery could not be hung: see the first test that needed it")
		hang(t)
		gallery.err = nil
	})
	must(t, gallery.err)
	return gallery.site
}

func closeGallery() {
	if gallery.site == nil {
		return
	}
	if err := gallery.site.proc.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// hang starts the server and sends it everything, the oldest first.
func hang(t testing.TB) {
	t.Helper()
	dir := filepath.Join(kit.Workshop(), "gallery")
	must(t, os.Mkdir(dir, 0o700))
	s := kit.Try(openSite(dir)).Must(t)
	gallery.site = s
	s.mustAdmin(t, "user", "add", "robin")
	gallery.other = s.mustAdmin(t, "key", "create", "--user", "robin", "--name", "robins-tower")
	now := time.Now()
	for i, e := range errands {
		p := e.play(now, i)
		must(t, s.send(s.key, where(p.id, e.project, e.desk), p.lines))
	}
	sendRewritten(t, s, now)
	sendRobins(t, s, now)
	main, agent := tale(now)
	x := where(taleID, "harbour", false)
	a := x
	a.id, a.parent = taleID+"/agent-"+taleAgent, taleID
	must(t, s.send(s.key, a, agent.lines))
	must(t, s.send(s.key, x, main.lines))
	layBeside(t, s, x, now)
	s.settled(t)
	for name, body := range map[string]string{"Board with errors": `{"query":"q=board&view=failed"}`,
		"Everything about the night the clocks change": `{"page":"search","query":"q=clock&kind=prompt"}`} {
		must(t, s.posts("PUT", "/api/views/"+url.PathEscape(name), s.key, []byte(body)))
	}
	_, answer, err := s.ask("POST", "/api/sessions/"+taleID+"/share-links", s.key, "", []byte(`{}`))
	must(t, err)
	var made struct{ URL string }
	must(t, json.Unmarshal(answer, &made))
	gallery.link = strings.TrimPrefix(made.URL, s.url)
	kit.Require(t, strings.HasPrefix(gallery.link, "/s/"), "share the tale: %s", answer)
}

// clockNotes is the document that the tale's prompts and answers work on.
const clockNotes = "# Clock changes\n\nA day is **not** 24 hours twice a year.\n\n| night | sailing | shown |\n|---|---|---|\n| 25 October | 02:30 Skerry | twice |\n\n```go\nat := time.Date(y, m, d, s.Hour, s.Minute, 0, 0, b.zone)\n```\n"

// layBeside gives the tale checkpoints, linked documents and a file.
func layBeside(t testing.TB, s *site, x stream, now time.Time) {
	t.Helper()
	must(t, s.sendArtifacts(s.key, x, "checkpoints",
		mark("51b0c4e97a20", "manual", 12, 27_300, now.Add(-96*time.Minute), "The board walks in steps of 24 hours. A test shows it.", "timetable/board.go", "timetable/clock_test.go"),
		mark("7d1e90a3f6c8", "compact", 25, 31_000, now.Add(-60*time.Minute), "Departures are built from calendar dates; both nights are tested. Open: quiet hours, changelog.")))
	after := strings.Replace(clockNotes, "| twice |", "| once, in summer time |", 1) + "\n- *fallback*: of the hour that comes twice the first counts\n"
	gone := version("notes/old-rule.txt", 2, now.Add(-20*time.Minute), "")
	gone["change"] = "deleted"
	delete(gone, "content")
	must(t, s.sendArtifacts(s.key, x, "documents", version("docs/clock.md", 1, now.Add(-100*time.Minute), clockNotes), version("docs/clock.md", 2, now.Add(-50*time.Minute), after),
		version("timetable/board.go", 1, now.Add(-99*time.Minute), boardGo), version("notes/old-rule.txt", 1, now.Add(-98*time.Minute), "Twice a year somebody looks."), gone))
	must(t, s.sendFile(s.key, x, "tool-results/toolu_01Clock.txt", failingTest))
}

// sendRewritten is a session of which a rewrite took two prompts out.
func sendRewritten(t testing.TB, s *site, now time.Time) {
	t.Helper()
	p := &script{id: rewrittenID, cwd: "/home/kim/src/tideboard", branch: "kiosk", model: "claude-sonnet-5-5", at: now.Add(-9 * time.Hour), context: 12_000, fresh: 4000}
	p.prompt("Write the kiosk's data in the new format")
	p.titled("New data format for the kiosks")
	p.say("The kiosk reads `board.json`; I'll version it.")
	kept := len(p.lines)
	p.prompt(lastDropped + " that are not renewed yet.")
	p.say("Then both are written until the last one is renewed: `board.json` and `board.v2.json`.")
	p.prompt("And say which kiosk asks for which.")
	p.say("The access log has it: the path tells.")
	x := where(rewrittenID, "tideboard", false)
	must(t, s.send(s.key, x, p.lines))
	q := *p
	q.lines = append([]string(nil), p.lines[:kept]...)
	q.prompt("Only the new format. The kiosks are renewed on Monday.")
	q.say("Then `board.json` has the new format from Monday on, and nothing else is written.")
	x.generation, x.rewoundTo = 1, int64(kept)
	must(t, s.send(s.key, x, q.lines[kept:]))
}

// sendRobins is a session of another user.
func sendRobins(t testing.TB, s *site, now time.Time) {
	t.Helper()
	p := &script{id: "e2c94b07-10ad-4f6e-8b35-97d0c4f1a682", cwd: "/home/robin/lighthouse", branch: "main", model: "claude-sonnet-5-5", at: now.Add(-26 * time.Hour), context: 9000, fresh: 3000}
	p.prompt("Make a page of the lamps that are due for service")
	p.titled("Service plan for the lamps")
	p.say("Seven are due this month.")
	must(t, s.send(gallery.other, stream{id: p.id, machine: "77aa01be3c52", host: "robins-tower", project: "lighthouse", cwd: p.cwd}, p.lines))
}
