//go:build unix

package viewer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/ccship/ccship/e2e/kit"
)

// mostShot is the size a picture may have, in bytes.
const mostShot = 300 << 10

// TestScreenshots takes the README's picture; `lab screenshots` keeps it, else the page is only looked at.
func TestScreenshots(t *testing.T) {
	b, _ := reader(t)
	call(b, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-GB"})
	b.size(1280, 800)
	b.open("/sessions/" + taleID)
	b.wait("the prompts are listed", `document.querySelectorAll(".toc li").length >= 5`)
	keep(b, "conversation")
}

// keep takes the picture of what is in sight.
func keep(b *tab, name string) {
	b.t.Helper()
	eval[any](b, `Promise.all([...document.images].filter((i) => i.getBoundingClientRect().top < innerHeight).map((i) => i.decode()))`)
	data := b.picture()
	picture := kit.Try(png.Decode(bytes.NewReader(data))).Must(b.t)
	colours := map[any]bool{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y += 3 {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x += 3 {
			colours[picture.At(x, y)] = true
		}
	}
	kit.Check(b.t, len(colours) >= 20, "the picture %s has %d colours: nothing is on it", name, len(colours))
	kit.Check(b.t, len(data) <= mostShot, "the picture %s has %d KB", name, len(data)>>10)
	if dir := kit.Setting("screenshots", ""); dir != "" {
		must(b.t, os.MkdirAll(dir, 0o755))
		must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644))
	}
}

// sendLive is a session in which a tool is running.
func sendLive(t testing.TB, s *site) {
	t.Helper()
	p := newScript("b7d40e19-6c52-4f83-9ae0-5d1f28c3b670")
	p.at = p.at.Add(-4 * time.Minute)
	p.prompt("The kiosk at the east pier stops each night when the feed is renewed. Find out why")
	p.titled("East pier kiosk stops when the feed is renewed")
	p.say("I'll compare the kiosk's log with the times of the feed.")
	p.at = time.Now().Add(-5 * time.Second)
	p.answer(160, use(p.call(), "Bash", object{"command": "journalctl -u kiosk --since yesterday | grep -n feed", "description": "What the kiosk says of the feed"}))
	x := where(p.id, "tideboard", false)
	must(t, s.send(s.key, x, p.lines))
	s.settled(t)
}

// person is one person's machine: a home with Claude Code's transcripts in it, and the daemon that ships them.
type person struct {
	t   testing.TB
	dir string
}

// newPerson starts the daemon in a home of its own.
func newPerson(t testing.TB, s *site) *person {
	t.Helper()
	daemon := kit.Try(kit.Build("ccship")).Must(t)
	dir, err := os.MkdirTemp(kit.Workshop(), "h") // short: a socket's path may have only about a hundred bytes
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &person{t, dir}
	must(t, os.MkdirAll(p.projects(), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte(s.key+"\n"), 0o600))
	proc, err := launch([]string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "CCSHIP_ROOTS=" + p.projects(),
		"CCSHIP_SERVER_URL=" + s.url, "CCSHIP_API_KEY_FILE=" + filepath.Join(dir, "key"),
	}, daemon, "run")
	must(t, err)
	proc.StopAfter(t)
	return p
}

func (p *person) projects() string { return filepath.Join(p.dir, ".claude", "projects") }

// transcript is the file of a session.
func (p *person) transcript(id string) string {
	dir := filepath.Join(p.projects(), "-home-kim-src-harbour")
	must(p.t, os.MkdirAll(dir, 0o700))
	return filepath.Join(dir, id+".jsonl")
}

// write appends what a script has said since the last time, as Claude Code does: open, one write, close.
func (p *person) write(s *script) {
	p.t.Helper()
	f, err := os.OpenFile(p.transcript(s.id), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	must(p.t, err)
	_, err = f.Write(s.bytes())
	s.lines = nil
	must(p.t, errors.Join(err, f.Close()))
}

// newScript is a conversation that begins now.
func newScript(id string) *script {
	return &script{id: id, cwd: "/home/kim/src/harbour", branch: "main", model: "claude-opus-5-5", at: time.Now(), context: 12_000, fresh: 900}
}

// TestAxe has axe-core find nothing serious, in both looks and at three widths. `lab axe` names axe.min.js.
func TestAxe(t *testing.T) {
	path := kit.Setting("axe", "")
	if path == "" {
		t.Skip("lab axe runs it")
	}
	axe := kit.Try(os.ReadFile(path)).Must(t)
	b, s := reader(t)
	sendLive(t, s)
	b.allow("404")
	for name, page := range pages() {
		b.open(page)
		unfold(b)
		eval[any](b, string(axe)+"; null")
		for _, scheme := range []string{"light", "dark"} {
			b.colorScheme(scheme)
			for _, width := range []int64{1920, 1280, 390} {
				b.size(width, 900)
				for _, fault := range axeFaults(b) {
					t.Errorf("%s, %s, %d: %s", name, scheme, width, fault)
				}
			}
		}
	}
}

// axeFaults is what axe-core calls serious or critical on the page.
func axeFaults(b *tab) (out []string) {
	b.t.Helper()
	got := eval[string](b, `axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "))))`)
	must(b.t, json.Unmarshal([]byte(got), &out))
	return out
}

// TestGalleryPictures writes pictures of every page to CCSHIP_TEST=gallery=FOLDER, for people to look at.
func TestGalleryPictures(t *testing.T) {
	dir := kit.Setting("gallery", "")
	if dir == "" {
		t.Skip("lab gallery runs it")
	}
	must(t, os.MkdirAll(dir, 0o755))
	b, s := reader(t)
	sendLive(t, s)
	b.allow("404")
	for _, width := range []int64{1920, 1280, 390} {
		b.size(width, 900)
		for name, page := range pages() {
			b.open(page)
			for _, scheme := range []string{"light", "dark"} {
				b.colorScheme(scheme)
				must(t, os.WriteFile(filepath.Join(dir, name+"-"+itoa(int(width))+"-"+scheme+".png"), b.picture(), 0o644))
			}
		}
	}
}
