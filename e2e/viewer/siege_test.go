//go:build unix

package viewer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
)

const (
	// siegeMemory bounds the server's memory under all attacks at once. Two bodies of the largest size are taken at a
	// time.
	siegeMemory = 600 << 20
	bombBytes   = 400 << 20 // more than a request may have
)

// TestSiege throws all at once what the server must refuse: its memory stays bounded, and who behaves is answered.
func TestSiege(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mustAdmin(t, "user", "add", "mallory")
	mallory := s.mustAdmin(t, "key", "create", "--user", "mallory", "--name", "pit")
	var wg sync.WaitGroup
	wg.Go(func() { bombs(t, s, mallory) })
	wg.Go(func() { nonsense(t, s, mallory) })
	x := where("11111111-0000-4000-8000-000000000001", "harbour", false)
	for range 50 {
		err := s.send(s.key, x, []string{`{"type":"user","uuid":"u","message":{"role":"user","content":"go on"}}`})
		kit.Check(t, err == nil, "who behaves: %v", err)
	}
	wg.Wait()
	peak := s.peak(t)
	t.Logf("the server's memory: at most %d MB", peak>>20)
	kit.Check(t, peak <= siegeMemory, "the server took %d MB", peak>>20)
}

// refused posts a body that the server must not take.
func refused(t *testing.T, s *site, key, encoding string, body []byte) {
	t.Helper()
	status, answer, err := s.ask("POST", "/api/conversations", key, encoding, body)
	if err != nil && encoding != "" {
		return // cut off while it still sends
	}
	kit.Check(t, err == nil && (status/100 == 4 || status == http.StatusServiceUnavailable),
		"%s %.30q was answered %d %s %v", encoding, body, status, answer, err)
}

// bombs sends little that becomes much.
func bombs(t *testing.T, s *site, key string) {
	var gz, zs bytes.Buffer
	zw, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Error(err)
		return
	}
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for _, w := range []io.WriteCloser{gzip.NewWriter(&gz), zw} {
		for range bombBytes >> 20 {
			_, _ = w.Write(blank) // Close reports what went wrong
		}
		if err := w.Close(); err != nil {
			t.Error(err)
			return
		}
	}
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00} // a frame that wants 2 GiB to be kept
	for range 4 {
		refused(t, s, key, "gzip", gz.Bytes())
		for _, bomb := range [][]byte{zs.Bytes(), window, bytes.Repeat(window, 1000)} {
			refused(t, s, key, "zstd", bomb)
		}
	}
}

// nonsense sends what is no HTTP, and JSON that is deep, or wrong in every way.
func nonsense(t *testing.T, s *site, key string) {
	_, addr, _ := strings.Cut(s.url, "://")
	for _, junk := range []string{"\x16\x03\x01\x02\x00\x01\x00", "\x00\x00\x00", "GET\r\n\r\n", strings.Repeat("A", 200_000), "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /api/conversations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nffffffffffffffff\r\n"} {
		throw(t, addr, []byte(junk))
	}
	for _, body := range []string{strings.Repeat("[", 20<<20), `{"session_id":"x","entries":` + strings.Repeat(`{"a":`, 4<<20), `{"session_id":"x","entries":[` + strings.Repeat(`{"line_index":0},`, 200_000) + `{}]}`,
		`{"session_id":"x","entries":[{"line_index":-1}]}`, `{"session_id":"x","entries":[{"line_index":1e99}]}`, "\xff\xfe", "null", ""} {
		refused(t, s, key, "", []byte(body))
	}
}

// throw sends bytes and waits for the connection's end.
func throw(t *testing.T, addr string, junk []byte) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_, _ = conn.Write(junk) // it may be cut off in the middle
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_, err = io.Copy(io.Discard, conn)
	late, ok := errors.AsType[net.Error](err)
	kit.Check(t, !ok || !late.Timeout(), "after %.20q the connection stays open", junk)
}

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
