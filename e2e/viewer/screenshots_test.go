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
