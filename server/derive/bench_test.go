package derive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/sqlite"
)

// benchStore is a store for a benchmark.
func benchStore(b *testing.B) *sqlite.Store {
	b.Helper()
	st, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "server.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	return st
}

// prose is text in which words come about as often as they do in code and talk.
func prose(r *rand.Rand, bytes int) string {
	var out strings.Builder
	for out.Len() < bytes {
		n := int(r.ExpFloat64() * 400)
		fmt.Fprintf(&out, "%s%x ", []string{"func", "the", "return", "err", "value", "검색", "parse"}[n%7], n)
	}
	return out.String()
}

// conversation is lines as a session has them: a prompt, an answer, a tool call and its result, and a repetition of
// the request, which nobody looks for.
func conversation(r *rand.Rand, bytes int) (lines []server.Line, size int) {
	add := func(raw string) {
		lines = append(lines, server.Line{Index: int64(len(lines)), Raw: []byte(raw)})
		size += len(raw) + 1
	}
	for n := 0; size < bytes; n += 5 {
		id := fmt.Sprintf("m%x", r.Uint64())
		add(prompt(n, prose(r, 200)))
		add(answerLine(n+1, id, 50, textBlock(prose(r, 600))))
		add(answerLine(n+2, id, 90, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":%q}}`, id, prose(r, 150))))
		add(result(n+3, id, prose(r, 2000), false))
		add(fmt.Sprintf(`{"type":"api-request-blob","hash":"%x","message":{"role":"user","content":%q}}`, n, prose(r, 4000)))
	}
	return lines, size
}

// ship puts a conversation as a daemon does: 100 lines a batch.
func ship(b *testing.B, st *sqlite.Store, session string, lines []server.Line) {
	b.Helper()
	for len(lines) > 0 {
		n := min(100, len(lines))
		batch := &server.Batch{Owner: 1, Received: time.Now(), Lines: lines[:n], Head: server.Head{
			SessionID: session, Machine: "m", Epoch: "e", ProjectHash: "ph", Project: "p", EndLine: lines[n-1].Index + 1}}
		if err := st.Put(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		lines = lines[n:]
	}
}

// BenchmarkDerive derives 16 MiB of lines.
func BenchmarkDerive(b *testing.B) {
	lines, size := conversation(rand.New(rand.NewPCG(1, 2)), 16<<20)
	for b.Loop() {
		b.StopTimer()
		st := benchStore(b)
		ship(b, st, "s", lines)
		b.StartTimer()
		drain(b, st)
	}
	b.SetBytes(int64(size))
}

// drain runs a Deriver until nothing lags.
func drain(b *testing.B, st *sqlite.Store) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- (&derive.Deriver{Store: st}).Run(ctx) }()
	for {
		n, err := st.Lag(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			break
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIngestDeriving imports 64 MiB with and without a running Deriver.
func BenchmarkIngestDeriving(b *testing.B) {
	lines, size := conversation(rand.New(rand.NewPCG(1, 2)), 16<<20)
	for _, deriving := range []bool{false, true} {
		b.Run(fmt.Sprint("deriving=", deriving), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				st := benchStore(b)
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan error, 1)
				if deriving {
					go func() { ended <- (&derive.Deriver{Store: st}).Run(ctx) }()
				} else {
					ended <- nil
				}
				b.StartTimer()
				for i := range 4 {
					ship(b, st, fmt.Sprint("s", i), lines)
				}
				b.StopTimer()
				cancel()
				if err := <-ended; err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.SetBytes(int64(4 * size))
		})
	}
}

// BenchmarkFind lists pages of 100 of 10 000 sessions.
func BenchmarkFind(b *testing.B) {
	st := benchStore(b)
	for i := range 10_000 {
		ship(b, st, fmt.Sprintf("s%05d", i), []server.Line{{Raw: []byte(prompt(i, fmt.Sprint("needle of ", i)))},
			{Index: 1, Raw: []byte(answerLine(i, fmt.Sprint("m", i), 5, textBlock("x")))}})
	}
	drain(b, st)
	for name, q := range map[string]server.SessionQuery{
		"recent": {Page: server.Page{Recent: true}}, "text": {Page: server.Page{Recent: true}, Text: "of 77"},
		"absent": {Page: server.Page{Recent: true}, Text: "nowhere"}, "model": {Page: server.Page{Recent: true}, Model: "claude-x"},
	} {
		q.Limit = 100
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := st.Find(b.Context(), server.Scope{All: true}, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("member", func(b *testing.B) {
		for b.Loop() {
			if _, err := st.Find(b.Context(), server.Scope{User: 1}, server.SessionQuery{Page: server.Page{Recent: true, Limit: 100}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("groups", func(b *testing.B) {
		for b.Loop() {
			if _, err := st.Groups(b.Context(), server.Scope{All: true}, server.GroupQuery{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("usage", func(b *testing.B) {
		for b.Loop() {
			_, err := st.Usage(b.Context(), server.Scope{All: true}, server.UsageQuery{By: []string{"day", "project", "model"}})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSearch looks for what is common, rare, short and nowhere in 100 MB of text.
func BenchmarkSearch(b *testing.B) {
	st := benchStore(b)
	r := rand.New(rand.NewPCG(3, 4))
	for text, i := 0, 0; text < 100e6; i++ {
		lines, _ := conversation(r, 8<<20)
		lines[len(lines)/2].Raw = []byte(prompt(i, fmt.Sprintf("Rarity%d zq", i)))
		ship(b, st, fmt.Sprint("s", i), lines)
		text += (8 << 20) * 3 / 8
	}
	drain(b, st)
	for name, text := range map[string]string{
		"common": "return", "phrase": `"return1a return"`, "rare": "rarity7", "korean": "검색", "nowhere": "xylophone", "short": "fu", "short and rare": "zq",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := st.Search(b.Context(), server.Scope{All: true}, server.SearchQuery{Text: text, Limit: 50})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
