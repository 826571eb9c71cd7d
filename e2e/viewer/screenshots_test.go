//go:build unix

package viewer_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/ccship/ccship/e2e/kit"
)

// mostShot is the size a picture may have, in bytes: they stand in the README.
const mostShot = 300 << 10

// TestScreenshots takes the pictures of docs/screenshots. `lab screenshots` keeps them; without it
// they are looked at all the same, for a page that can't be shown.
func TestScreenshots(t *testing.T) {
	b, s := reader(t)
	call(b, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-GB"})
	b.size(1280, 800)
	generation := int64(-1)
	if !kit.Within(patience, func() bool { // a session is live for a minute, which may not be enough to show it
		generation++
		must(t, sendLive(s, generation))
		b.open("/")
		return b.count(".row.live") > 0
	}) {
		t.Fatal("nobody is at work")
	}
	keep(b, "list")
	b.open("/usage?range=90")
	keep(b, "usage")
	b.open("/search?q=clock+change")
	keep(b, "search")
	b.open("/sessions/" + rewrittenID + "/compare")
	keep(b, "generations")
	b.open("/sessions/" + taleID + "/entry/9")
	keep(b, "record")
	b.open("/sessions/" + taleID)
	b.wait("the prompts are listed", `document.querySelectorAll(".toc li").length >= 5`)
	keep(b, "conversation")
	must(t, sendWindows(s))
	b.open("/sessions/" + artifactsID)
	openContextChart(b)
	keep(b, "context")
	b.colorScheme("dark")
	keep(b, "context-dark")
	b.colorScheme("light")
	b.open("/sessions/" + taleID + "/document/compare?path=docs/clock.md")
	keep(b, "document-versions")
	b.open("/sessions/" + taleID)
	b.wait("the prompts are listed", `document.querySelectorAll(".toc li").length >= 5`)
	openTool(b, "Run the tests of the board")
	openTool(b, "Find other day arithmetic")
	eval[any](b, `document.querySelector("details.tool.error").closest(".item").scrollIntoView(), scrollBy(0, -90)`)
	b.colorScheme("dark")
	keep(b, "tools-dark")
	b.open("/")
	keep(b, "list-dark")
	b.colorScheme("light")
	b.size(390, 844)
	b.open("/")
	keep(b, "phone-list")
	b.open("/sessions/" + taleID)
	eval[any](b, `document.querySelector(".item.answer").scrollIntoView(), scrollBy(0, -120)`)
	keep(b, "phone-conversation")
	b.open("/sessions/" + artifactsID)
	b.wait("the context chart is drawn", one(".only-narrow .curve"))
	eval[any](b, `document.querySelector("h1").scrollIntoView(), scrollBy(0, -10)`)
	keep(b, "phone-context")
}

// keep takes the picture of what is in sight.
func keep(b *tab, name string) {
	b.t.Helper()
	eval[any](b, `Promise.all([...document.images].filter((i) => i.getBoundingClientRect().top < innerHeight).map((i) => i.decode()))`)
	data := b.picture()
	picture, err := png.Decode(bytes.NewReader(data))
	must(b.t, err)
	colours := map[any]bool{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y += 3 {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x += 3 {
			colours[picture.At(x, y)] = true
		}
	}
	if len(colours) < 20 {
		b.t.Errorf("the picture %s has %d colours: nothing is on it", name, len(colours))
	}
	if len(data) > mostShot {
		b.t.Errorf("the picture %s has %d KB", name, len(data)>>10)
	}
	if dir := kit.Setting("screenshots", ""); dir != "" {
		must(b.t, os.MkdirAll(dir, 0o755))
		must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644))
	}
}

// sendWindows is a session whose context filled up, with documents.
func sendWindows(s *site) error {
	talk, x, marks := windows(time.Now().Add(-50 * time.Minute))
	talk.titled("Winter plan from the tide tables of all piers")
	if err := s.send(s.key, x, talk.lines); err != nil {
		return err
	}
	if err := s.sendArtifacts(s.key, x, "checkpoints", marks...); err != nil {
		return err
	}
	if err := s.sendArtifacts(s.key, x, "documents", version("docs/winter-plan.md", 1, t0, "# Winter plan\n"), version("tides/predict.go", 1, t0, "package tides\n")); err != nil {
		return err
	}
	return s.settle()
}

// sendLive is a session in which a tool is running. Its transcript was written so often before.
func sendLive(s *site, generation int64) error {
	p := newScript("b7d40e19-6c52-4f83-9ae0-5d1f28c3b670")
	p.at = p.at.Add(-4 * time.Minute)
	p.prompt("The kiosk at the east pier stops each night when the feed is renewed. Find out why")
	p.titled("East pier kiosk stops when the feed is renewed")
	p.say("I'll compare the kiosk's log with the times of the feed.")
	p.at = time.Now().Add(-5 * time.Second)
	p.answer(160, use(p.call(), "Bash", object{"command": "journalctl -u kiosk --since yesterday | grep -n feed", "description": "What the kiosk says of the feed"}))
	x := where(p.id, "tideboard", false)
	x.generation = generation
	if err := s.send(s.key, x, p.lines); err != nil {
		return err
	}
	return s.settle()
}
