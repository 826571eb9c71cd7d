//go:build unix

package viewer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const (
	largeID = "a5c0d1e2-7f34-4b9a-8c6d-0e1f2a3b4c5d"
	// largeMemory bounds the server's memory over all of the test: taking the session in, deriving, showing. It is the
	// same for every length of the session.
	largeMemory = 250 << 20
)

// largeBytes is how long the session is: 100 MB, or less where that takes too long.
func largeBytes() int {
	if long() {
		return 100 << 20
	}
	return 12 << 20
}

// largeScript is a session of n bytes: many short lines, some of hundreds of kilobytes.
func largeScript(n int) *script {
	r := rand.New(rand.NewPCG(5, 11))
	s := &script{id: largeID, cwd: "/home/kim/src/harbour", branch: "main", model: "claude-opus-5-5", at: t0, context: 20_000}
	vocabulary := strings.Fields("the board tide feed harbour sailing error timeout retry ok stop start zone minute record line north south pier kiosk")
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(vocabulary[r.IntN(len(vocabulary))])
			b.WriteByte(" \n"[b.Len()/90%2])
		}
		return b.String()
	}
	size := 0
	for i := 0; size < n; i++ {
		from := len(s.lines)
		if i%40 == 0 {
			s.prompt(fmt.Sprintf("Go on with part %d of the log", i/40))
		}
		output := 6000
		if i%50 == 49 {
			output = 300_000
		}
		s.tool("Bash", object{"command": fmt.Sprintf("sed -n %dp log", i), "description": "Read the log"}, text(output/2), object{"stdout": text(output / 2), "stderr": ""}, time.Second)
		s.say("This is what it says: " + text(400))
		s.context = 20_000
		for _, l := range s.lines[from:] {
			size += len(l) + 1
		}
	}
	return s
}

// TestLarge: a page has only a part of a long session, wherever it is opened. How long that takes is only reported.
func TestLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	script := largeScript(largeBytes())
	began := time.Now()
	must(t, s.send(s.key, where(largeID, "harbour", false), script.lines))
	stored := time.Since(began)
	s.settled(t)
	t.Logf("%d lines of %d MB stored in %.1f s, derived in %.1f s", len(script.lines), largeBytes()>>20, stored.Seconds(), time.Since(began).Seconds())
	b := newTab(t, s.url)
	b.login(s.key)
	last := len(script.lines) - 1
	for _, c := range []struct{ name, path, id string }{
		{"beginning", "", "L0"}, {"end", "?from=end", "L" + itoa(last)}, {"line in the middle", "/L/" + itoa(last/2), "L" + itoa(last/2)},
	} {
		b.open("/usage")
		began := time.Now()
		b.open("/sessions/" + largeID + c.path)
		took := time.Since(began)
		b.wait("the line is there", one("#"+c.id))
		t.Logf("%s: %d ms, %d KB, %d items", c.name, took.Milliseconds(), eval[int](b, `performance.getEntriesByType("navigation")[0].decodedBodySize >> 10`), b.count(".item"))
		n := eval[int](b, `document.documentElement.outerHTML.length`)
		kit.Check(t, n <= 4<<20, "%s: the page has %d MB", c.name, n>>20)
	}
	began = time.Now()
	b.open("/sessions/" + largeID + "/context")
	b.wait("the context chart is drawn", one(".only-wide .curve"))
	t.Logf("the context chart: %d ms, %d KB", time.Since(began).Milliseconds(), eval[int](b, `performance.getEntriesByType("navigation")[0].decodedBodySize >> 10`))
	b.open("/sessions/" + largeID)
	scrolled(b)
	b.wait("the prompts are listed", `document.querySelectorAll(".toc li").length > 20`)
	b.fill("#find", `"with part 7 of"`)
	b.wait("it is found", `document.querySelector(".hit")`)
	b.clickWait(".hit a.at-line", "the hit is shown", `location.hash && document.querySelector(location.hash)?.innerText.includes("part 7 of")`)
	if peak := s.peak(t); peak > 0 {
		t.Logf("the server's memory: at most %d MB", peak>>20)
		kit.Check(t, peak <= largeMemory, "the server took %d MB", peak>>20)
	}
}

// scrolled reads on: more comes as the end nears, the address follows, and a reload shows the same place.
func scrolled(b *tab) {
	b.t.Helper()
	const lastItem = `Number(/^L(\d+)/.exec([...document.querySelectorAll("#items .item")].at(-1).id)[1])`
	first := eval[int](b, lastItem)
	b.wait("more comes at the end", `(scrollTo(0, document.body.scrollHeight), `+lastItem+` > `+itoa(first+200)+`)`)
	b.wait("the address says where the reader is", `location.search.includes("from=") && location.hash.startsWith("#L")`)
	at := eval[string](b, `location.pathname + location.search + location.hash`)
	b.open("/usage")
	b.open(at)
	b.wait("the place is there again", `document.querySelector(location.hash)?.getBoundingClientRect().top < innerHeight`)
	b.wait("what is above comes too", `(scrollTo(0, 0), document.querySelector("#L0"))`)
	ids := eval[[]string](b, `[...document.querySelectorAll("#items [id]")].map((e) => e.id)`)
	seen := map[string]bool{}
	for _, id := range ids {
		kit.Check(b.t, !seen[id], "%s is on the page twice", id)
		seen[id] = true
	}
}
