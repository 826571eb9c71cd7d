//go:build linux

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/load"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// remembered is a transcript whose title was taken out.
type remembered struct {
	corpus.Session
	title string   // "": it has none
	said  []string // texts of prompts and answers
}

// TestRecall searches for sessions of a folder by up to four words of their titles, which are not stored, and for
// phrases that are in them.
func TestRecall(t *testing.T) {
	w := newWorld(t)
	all := w.forgetful(t)
	for _, store := range w.stores {
		f := &figures{w, store}
		t.Run(store, func(t *testing.T) {
			b := newBench(t, w, w.now, store)
			b.users(1)
			var sessions []corpus.Session
			for _, x := range all {
				sessions = append(sessions, x.Session)
			}
			raw := b.send(sessions)
			b.derived()
			b.quiet()
			before := b.use()
			spent := func() time.Duration { return b.use().Sub(before).CPU }
			recall(t, f, all, spent, func(text string, exact bool, id string) int { return b.place(b.user(0), text, exact, id) })
			b.db.compact() // what merges left free is used again
			search, _ := b.db.share()
			f.Add(recalling, "index ÷ raw", float64(search)/float64(raw), "")
		})
	}
}

const recalling = "Recall"

// recall adds how well a program finds sessions: place is where one stands among those that are found, negative: nowhere.
func recall(t *testing.T, f *figures, all []remembered, spent func() time.Duration, place func(text string, exact bool, id string) int) {
	t.Helper()
	var first, three, absent, titled, phrases, kept int
	random := rand.New(rand.NewPCG(1, 2))
	for _, x := range all {
		if x.title != "" {
			titled++
			switch at := place(searchWords(x.title), false, x.ID); {
			case at == 0:
				first++
				three++
			case at > 0 && at < 3:
				three++
			case at < 0:
				absent++
			}
		}
		if phrase := x.phrase(random); phrase != "" {
			if phrases++; place(phrase, true, x.ID) >= 0 {
				kept++
			} else {
				t.Logf("%s lacks the phrase %q", x.ID, phrase)
			}
		}
	}
	of := func(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }
	f.Add(recalling, "titles remembered", float64(titled), "")
	f.Add(recalling, "… first", of(first, titled), "%")
	f.Add(recalling, "… among three", of(three, titled), "%")
	f.Add(recalling, "… absent", of(absent, titled), "%")
	f.Add(recalling, "exact phrases found", of(kept, phrases), "%")
	f.Add(recalling, "CPU a search", spent().Seconds()*1000/float64(max(titled+phrases, 1)), "ms")
}

// place is where a session stands among those that a search finds; negative: nowhere.
func (b *bench) place(as *load.Client, text string, exact bool, id string) int {
	b.t.Helper()
	if exact {
		text = `"` + text + `"`
	}
	for at, after := 0, ""; ; {
		answer, err := as.Get(context.Background(), "/api/search?"+url.Values{"facets": {"1"}, "q": {text}, "after": {after}}.Encode())
		kit.Must(b.t, err)
		var page struct {
			Sessions []struct {
				Session struct {
					ID string `json:"session_id"`
				}
			}
			Next *string
		}
		kit.Must(b.t, json.Unmarshal(answer, &page))
		for _, x := range page.Sessions {
			if x.Session.ID == id {
				return at
			}
			at++
		}
		if page.Next == nil {
			return -1
		}
		after = *page.Next
	}
}

// forgetful reads the transcripts of the folder, one of each session and none of agents, without lines that say their
// titles.
func (w *world) forgetful(t *testing.T) (all []remembered) {
	t.Helper()
	if w.folder == "" {
		t.Skip("name a folder of transcripts: folder=DIR")
	}
	sessions := kit.Try(corpus.Plan{Seed: 1, Owners: 1}.Folder(w.folder)).Must(t)
	seen := map[string]bool{}
	for _, s := range sessions {
		whole := []byte(strings.Join(s.Chunks(nil)[0].Lines, "\n"))
		id, _ := transcript.FirstSessionID(whole)
		if seen[id] || bytes.Contains(whole, []byte(`"isSidechain":true`)) {
			continue
		}
		seen[id] = true
		x := remembered{}
		var fold session.Fold
		var titles, lines []string
		for i, line := range s.Chunks(nil)[0].Lines {
			r := transcript.Parse([]byte(line))
			fold.Add(int64(i), r)
			if r.Title != "" {
				titles = append(titles, r.Title)
				continue
			}
			lines = append(lines, line)
			if speech := r.Speech(); speech.Speaker.Human() {
				x.said = append(x.said, speech.Text)
			}
			if r.Type == "assistant" && r.Message != nil {
				x.said = append(x.said, r.Message.Text())
			}
		}
		x.Session = s.With(lines)
		if title := fold.Summary().Title; slices.Contains(titles, title) { // others stand in the texts
			x.title = title
		}
		all = append(all, x)
	}
	return all
}

// searchWords are up to four words of a title, without those that everybody leaves out.
func searchWords(title string) string {
	var out []string
	for _, w := range strings.Fields(title) {
		plain := strings.ToLower(strings.TrimFunc(w, unicode.IsPunct))
		if slices.Contains(strings.Fields("the a an and or of to in for with on by from is as at via"), plain) || len(out) == 4 {
			continue
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// phrase is some words of what was said, as they stand there; "" if they are no plain words.
func (x *remembered) phrase(random *rand.Rand) string {
	if len(x.said) == 0 {
		return ""
	}
	words := strings.Fields(x.said[random.IntN(len(x.said))])
	if len(words) < 6 {
		return ""
	}
	at := random.IntN(len(words) - 5)
	text := strings.Join(words[at:at+5], " ")
	if strings.ContainsAny(text, `"“”„`) || len(text) > 200 {
		return ""
	}
	return text
}
