package systemd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const (
	home       = "/home/" + userName
	session    = "0190a1b2-0000-7000-8000-000000000001"
	transcript = home + "/.claude/projects/-home-kim-shop/" + session + ".jsonl"
	keyFile    = home + "/key"
	serverURL  = "http://127.0.0.1:5000"
	serverDB   = "sqlite:/var/lib/ccship-server/server.db"
)

// machine is a box with both packages installed, the server running as its system unit, and a user with a conversation.
type machine struct {
	*box
	key   string
	lines int    // of the transcript
	text  []byte // of the transcript
}

// newMachine sets everything up but ccship itself.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{box: newBox(t)}
	m.put("/etc/systemd/logind.conf.d/quick.conf", "[Login]\nUserStopDelaySec=0\n", 0o644) // after the last logout
	m.boot()
	told := m.install(older)
	for _, want := range []string{"ccship setup", "systemctl enable --now ccship-server"} {
		kit.Has(t, "the packages do", told, want)
	}
	for _, unit := range []string{"ccship-server.service", "ccship@" + userName + ".service"} {
		kit.Equal(t, unit+" right after its installation", m.state("", unit).active, "inactive")
	}
	m.key = strings.TrimSpace(m.ok(m.rootDo("runuser", "-u", "ccship-server", "--",
		"ccship-server", "key", "create", "--name", userName, "--store", serverDB)))
	m.ok(m.rootDo("systemctl", "enable", "--quiet", "--now", "ccship-server"))
	m.serverAnswers()
	m.put(keyFile, m.key+"\n", 0o600)
	m.append(20)
	return m
}

// setUp does what a person does once.
func (m *machine) setUp() result {
	m.t.Helper()
	m.ok(m.userDo("ccship", "setup", "--server-url", serverURL, "--key-file", keyFile, "--no-install", "--yes"))
	r := m.userDo("ccship", "service", "install")
	m.ok(r)
	return r
}

// append adds lines to the transcript, as Claude Code does: open, one write, close. The box may be down.
func (m *machine) append(lines int) {
	m.t.Helper()
	var b strings.Builder
	for range lines {
		fmt.Fprintf(&b, `{"type":"user","sessionId":%q,"cwd":"/home/kim/shop","uuid":"u%d","message":{"role":"user","content":"line %d"}}`+"\n",
			session, m.lines, m.lines)
		m.lines++
	}
	m.text = append(m.text, b.String()...)
	if !m.exists(transcript) {
		m.put(transcript, "", 0o600)
	}
	f := kit.Try(os.OpenFile(filepath.Join(m.root, transcript), os.O_WRONLY|os.O_APPEND, 0)).Must(m.t)
	kit.Try(f.WriteString(b.String())).Must(m.t)
	must(m.t, f.Close())
}

// get asks the server, from inside the box: its network is the box's own. code is 0 when there is no answer.
func (m *machine) get(path string) (code int, body []byte) {
	m.t.Helper()
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:5000\r\nX-API-Key: %s\r\nConnection: close\r\n\r\n", path, m.key)
	r := m.inside(request, append(clean("/root", "root"), "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/5000 && cat >&3 && cat <&3"))
	if r.code != 0 {
		return 0, nil
	}
	answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(r.stdout)), nil)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	return answer.StatusCode, body
}

func (m *machine) serverAnswers() {
	m.t.Helper()
	m.eventually("the server answers", 30*time.Second, func() bool {
		code, _ := m.get("/healthz")
		return code == http.StatusOK
	})
}

// delivered waits until the server has the whole transcript, to the last byte.
func (m *machine) delivered() {
	m.t.Helper()
	var got []byte
	m.eventually("the server has every line", 30*time.Second, func() bool {
		_, got = m.get("/api/sessions/" + url.PathEscape(session) + "/raw")
		return len(got) >= len(m.text)
	})
	kit.Require(m.t, string(got) == string(m.text), "the server has %d bytes, the transcript %d, and they differ",
		len(got), len(m.text))
}

// past is what the server knows of the transcript's life: a new epoch or generation means that lines were sent again.
func (m *machine) past() string {
	m.t.Helper()
	code, body := m.get("/api/sessions/" + url.PathEscape(session) + "/digest")
	var digest struct {
		Machine, Epoch string
		Generations    []struct{ Generation int64 }
	}
	err := json.Unmarshal(body, &digest)
	kit.Require(m.t, code == http.StatusOK && err == nil && digest.Epoch != "", "digest: %d %v\n%s", code, err, body)
	return fmt.Sprintf("machine %s, epoch %s, generations %v", digest.Machine, digest.Epoch, digest.Generations)
}

// status is what the daemon says, the zero value when it does not run.
type status struct {
	Running bool
	Version string
	PID     int
	Outbox  struct{ Entries int64 }
	Sent    struct{ Entries int64 }
}

func (m *machine) status() status {
	m.t.Helper()
	r := m.userDo("ccship", "status", "--json")
	var s status
	err := json.Unmarshal([]byte(r.stdout), &s)
	kit.Require(m.t, err == nil, "status: %v\n%s", err, r)
	kit.Equal(m.t, fmt.Sprint("running, with exit ", r.code), s.Running, r.code == 0)
	return s
}

// running waits until a daemon other than the one with the number before answers.
func (m *machine) running(before int, limit time.Duration) status {
	m.t.Helper()
	var s status
	m.eventually(fmt.Sprintf("a daemon other than %d answers", before), limit, func() bool {
		s = m.status()
		return s.Running && s.PID != before
	})
	return s
}

// onlySent demands that the daemon, since it started, has sent just so many lines.
func (m *machine) onlySent(lines int) {
	m.t.Helper()
	if s := m.status(); s.Sent.Entries != int64(lines) || s.Outbox.Entries != 0 {
		m.t.Errorf("since its start the daemon has sent %d lines and %d wait, want %d and 0", s.Sent.Entries, s.Outbox.Entries, lines)
	}
}

// synced waits until everything is acknowledged, and the daemon knows.
func (m *machine) synced() {
	m.t.Helper()
	m.ok(m.userDo("ccship", "sync", "--wait", "--timeout", "30s"))
}

// unit is how systemd sees a unit.
type unit struct{ active, sub, result, file, enabled, restarts, status string }

// state asks the system's manager, or with --user the user's.
func (m *machine) state(manager, name string) unit {
	m.t.Helper()
	show := []string{"systemctl", "show", "--property=ActiveState,SubState,Result,FragmentPath,UnitFileState,NRestarts,ExecMainStatus", name}
	do := m.rootDo
	if manager != "" {
		show, do = append(show, manager), m.userDo
	}
	values := map[string]string{}
	for line := range strings.Lines(m.ok(do(show...))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = value
	}
	return unit{values["ActiveState"], values["SubState"], values["Result"], values["FragmentPath"],
		values["UnitFileState"], values["NRestarts"], values["ExecMainStatus"]}
}

// step says in the log which part of the story begins.
func (m *machine) step(name string) { m.t.Helper(); m.t.Logf("== %s", name) }

// The two versions that boxes get.
const (
	older = "0.1.0"
	newer = "0.2.0"
)

// must ends the test on an error that is the test's own.
var must = kit.Must

func TestMain(m *testing.M) {
	if link := os.Getenv(browseLink); link != "" {
		os.Exit(browse(link))
	}
	os.Exit(kit.Main(m, "ccsd"))
}

// built is the folders of both versions' packages, built once per test process as a release builds them.
var built = sync.OnceValues(func() (map[string]string, error) {
	folders := map[string]string{}
	for _, version := range []string{older, newer} {
		folders[version] = filepath.Join(kit.Workshop(), version)
		cmd := exec.Command("go", "run", "./packaging/release", "-version", "v"+version, "-systems", "linux/"+runtime.GOARCH, "-only", "deb", "-out", folders[version])
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000") // the tree need not be a checkout
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the packages of %s: %w\n%s", version, err, out)
		}
	}
	return folders, nil
})

// install lets dpkg install both programs, or upgrade them.
func (b *box) install(version string) string {
	b.t.Helper()
	folders := kit.Try(built()).Must(b.t)
	args := []string{"dpkg", "--install"}
	for _, program := range []string{"ccship", "ccship-server"} {
		name := fmt.Sprintf("%s_%s_%s.deb", program, version, runtime.GOARCH)
		b.copyIn(filepath.Join(folders[version], name), "/root/"+name)
		args = append(args, "/root/"+name)
	}
	r := b.rootDo(args...)
	return b.ok(r) + r.stderr
}
