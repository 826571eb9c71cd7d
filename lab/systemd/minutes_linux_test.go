package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/table"
)

// minutes is the way of a newcomer, as docs/getting-started.md sums it up.
type minutes struct {
	*desk
	found *table.Table
	took  time.Duration
	keys  int // that answered a question or chose something
}

// TestFirstMinutes goes from two package files to a conversation found again, on a clean Debian, in a terminal and on the
// pages: install, setup, the first session in sight, a search, the command that resumes it. How long it took is printed
// and not tested; that it takes six decisions at most is.
func TestFirstMinutes(t *testing.T) {
	m := newcomer(t, "The first five minutes, without typing", nil, "ccship", "ccship-server")
	write(m.box)
	m.step("Install", 0, func() { m.run("#", "apt-get install ./ccship_*.deb ./ccship-server_*.deb") })
	m.step("Set up", 1, func() { // the package brings the service's unit: whether to install it is no question
		m.run("$", "ccship setup", answer{"server address (empty: start a server on this machine): ", "\r"})
	})
	link := regexp.MustCompile(`http://\S+/login\?ticket=\S+`).FindString(m.all)
	said := strings.Join(strings.Fields(m.since), " ")
	if !strings.Contains(said, "all 5 sessions (") || !strings.Contains(said, "are on your server; Claude Code would have deleted 2 of them within 7 days") || link == "" {
		t.Fatalf("setup does not end with what was saved and a link:\n%s", m.all)
	}
	var seen browsed
	m.step("See them on the pages", 1, func() { seen = m.browse(link) })
	m.step("Find one again", 0, func() { m.run("$", "ccship search off by one cent") })
	id := regexp.MustCompile(`(?m)^  ([0-9a-f]{8})  shop`).FindStringSubmatch(m.since)
	kit.Require(t, id != nil && strings.Contains(m.since, "off by one cent"), "the search does not find it:\n%s",
		m.since)
	m.step("Resume it", 0, func() { m.run("$", "ccship resume "+id[1]) })
	kit.Require(t, strings.Contains(m.since, "claude in "+home+"/shop: --resume "+id[1]),
		"Claude Code does not start with it:\n%s", m.since)
	m.step("See that it stays so", 0, func() { m.run("$", "ccship status") })
	kit.Has(t, "the status is", m.since, "everything is on the server")
	if !strings.Contains(seen.List, "Fix the rounding of the cart total") || seen.Hits == 0 || !strings.Contains(seen.Resume, "claude --resume ") {
		t.Errorf("the pages show %+v", seen)
	}
	m.tell()
	if file := kit.Setting("svg", ""); file != "" {
		m.picture(file)
	}
}

// TestSecondMachine joins two more machines to the first one's server, each by the two commands of the guide: one of the
// same person, which goes on with a conversation of the first, and one of another person, who sees only their own.
func TestSecondMachine(t *testing.T) {
	first := newcomer(t, "A second machine and a second person", nil, "ccship", "ccship-server")
	write(first.box)
	first.step("Set up the first", 0, func() {
		first.run("#", "apt-get install ./ccship_*.deb ./ccship-server_*.deb")
		first.run("$", "ccship setup --local --yes")
	})
	join := func(key string) *minutes {
		m := newcomer(t, "", first.box, "ccship")
		m.found = first.found
		m.run("#", "apt-get install ./ccship_*.deb")
		m.put(keyFile, first.ok(first.userDo("sh", "-c", key)), 0o600)
		m.run("$", "ccship setup", answer{"server address [http://127.0.0.1:5000]: ", "\r"}, // the network is the first's
			answer{"API key (empty: none): ", strings.TrimSpace(m.ok(m.userDo("cat", keyFile))) + "\r"})
		return m
	}
	first.step("A second machine", 2, func() {
		m := join("ccship-server key create --name desktop")
		m.run("$", "ccship search off by one cent")
		id := regexp.MustCompile(`(?m)^  ([0-9a-f]{8})  shop`).FindStringSubmatch(m.since)
		if id == nil {
			t.Fatalf("the second machine does not find it:\n%s", m.since)
		}
		m.ok(m.userDo("mkdir", "shop"))
		m.run("$", "cd shop && ccship resume --here "+id[1])
		kit.Has(t, "Claude Code does", m.since, "claude in "+home+"/shop: --resume "+id[1])
	})
	first.step("A second person", 2, func() {
		m := join("ccship-server user add lee --role member && ccship-server key create --user lee --name lees-laptop")
		r := m.userDo("ccship", "search", "off by one cent")
		kit.Check(t, !strings.Contains(r.stdout, "shop"), "a member finds what another person said: %s", r)
	})
	first.tell()
}

// newcomer is at a desk of a box that is up and has the programs' package files, and a Claude Code that says how it was
// started.
func newcomer(t *testing.T, title string, beside *box, programs ...string) *minutes {
	t.Helper()
	b := newBox(t)
	b.beside = beside
	b.boot()
	b.put("/usr/local/bin/claude", "#!/bin/sh\necho claude in $PWD: $*\n", 0o755)
	folders := kit.Try(built()).Must(t)
	for _, program := range programs {
		name := fmt.Sprintf("%s_%s_%s.deb", program, older, runtime.GOARCH)
		b.copyIn(filepath.Join(folders[older], name), home+"/"+name)
	}
	return &minutes{desk: &desk{box: b}, found: &table.Table{Title: title}}
}

// step does a part and notes how long it took.
func (m *minutes) step(name string, keys int, do func()) {
	m.t.Helper()
	from := time.Now()
	do()
	took := time.Since(from)
	m.found.Add("seconds", name, "", took.Seconds())
	m.found.Add("decisions", name, "", float64(keys))
	m.took, m.keys = m.took+took, m.keys+keys
	m.t.Logf("%s: %.1f s\n%s", name, took.Seconds(), m.since)
}

// tell prints what the steps took.
func (m *minutes) tell() {
	m.t.Helper()
	m.found.Add("seconds", "altogether", "", m.took.Seconds())
	m.found.Add("decisions", "altogether", "", float64(m.keys))
	m.found.Print(os.Stdout)
	kit.Check(m.t, m.keys <= 6, "it takes %d decisions", m.keys)
}

// write writes a month of conversations, of which Claude Code is about to delete two.
func write(b *box) {
	b.t.Helper()
	for i, c := range []struct {
		project, title, prompt, answer string
		ago                            time.Duration
	}{
		{"shop", "Fix the rounding of the cart total", "The cart total is off by one cent for three items. Find out why.", "Each item was rounded by itself. The total is summed in cents now.", 3 * time.Hour},
		{"shop", "Add a test for empty carts", "Add a test for a cart without items", "Added TestEmptyCart; it passes.", 26 * time.Hour},
		{"clock", "Draw the departures board in dark", "The board is unreadable at night", "It follows prefers-color-scheme now.", 4 * 24 * time.Hour},
		{"clock", "Find out why the clock drifts", "Why does the clock drift by a second a day?", "It was read once, at the start.", 24 * 24 * time.Hour},
		{"notes", "Index the notes by tag", "Make an index of all notes by tag", "Wrote index.md with 41 tags.", 25 * 24 * time.Hour},
	} {
		id := fmt.Sprintf("%08x-5a1b-4c2d-8e3f-0123456789ab", 0x3f2a9c01+i*0x1111)
		at := time.Now().Add(-c.ago)
		cwd := home + "/" + c.project
		b.ok(b.userDo("mkdir", "-p", cwd))
		var text strings.Builder
		for n, message := range []string{
			fmt.Sprintf(`"type":"user","message":{"role":"user","content":%q}`, c.prompt),
			fmt.Sprintf(`"type":"assistant","requestId":"r%d","message":{"id":"m%d","type":"message","role":"assistant","model":"claude-opus-4-5-20251101","content":[{"type":"text","text":%q}],"usage":{"input_tokens":1200,"output_tokens":300,"cache_read_input_tokens":40000}}`, i, i, c.answer),
		} {
			fmt.Fprintf(&text, `{"parentUuid":null,"uuid":"u%d-%d","sessionId":%q,"cwd":%q,"version":"2.1.143","gitBranch":"main","timestamp":%q,%s}`+"\n",
				i, n, id, cwd, at.Add(time.Duration(n)*time.Minute).UTC().Format("2006-01-02T15:04:05.000Z"), message)
		}
		fmt.Fprintf(&text, `{"type":"ai-title","aiTitle":%q,"sessionId":%q}`+"\n", c.title, id)
		name := home + "/.claude/projects/" + strings.ReplaceAll(cwd, "/", "-") + "/" + id + ".jsonl"
		b.put(name, text.String(), 0o600)
		must(b.t, os.Chtimes(filepath.Join(b.root, name), at, at))
	}
}

// browse opens the link. It runs in this test's binary, in the network of the box.
func (m *minutes) browse(link string) (seen browsed) {
	m.t.Helper()
	cmd := exec.Command("nsenter", "--target", strconv.Itoa(m.leader), "--net", "--", os.Args[0])
	cmd.Env = append(os.Environ(), browseLink+"="+link)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &seen)
	}
	kit.Require(m.t, err == nil, "browse: %v\n%s", err, out)
	return seen
}
