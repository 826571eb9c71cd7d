//go:build unix

package viewer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
