//go:build linux

package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// remembered is a transcript whose title was taken out.
type remembered struct {
	id, title string
	lines     [][]byte
	said      []string // texts of prompts and answers
}

// TestRecall searches for sessions of a folder by up to four words of their titles, which are not stored, and for
// phrases that are in them.
func TestRecall(t *testing.T) {
	s := newSettings(t)
	if s.folder == "" {
		t.Skip("lab recall folder=DIR")
	}
	all, raw := forgetful(t, s.folder)
	w := &world{settings: s, now: kit.Program(t, "ccship-server")}
	for _, store := range s.stores {
		t.Run(store, func(t *testing.T) { w.recalls(t, store, all, raw) })
	}
}

func (w *world) recalls(t *testing.T, store string, all []remembered, raw int64) {
	b := newBench(t, w, w.now, store)
	for i := range all {
		all[i].send(t, b)
	}
	b.derived()
	b.quiet()
	var first, three, absent, titled, phrases, kept int
	spent := b.use()
	random := rand.New(rand.NewPCG(1, 2))
	for _, x := range all {
		if x.title != "" {
			titled++
			switch at := b.place(searchWords(x.title), x.id); {
			case at == 0:
				first++
				three++
			case at > 0 && at < 3:
				three++
			case at < 0:
				absent++
				t.Logf("absent: %q", x.title)
			}
		}
		if phrase := x.phrase(random); phrase != "" {
			if phrases++; b.place(`"`+phrase+`"`, x.id) >= 0 {
				kept++
			} else {
				t.Logf("%s lacks the phrase %q", x.id, phrase)
			}
		}
	}
	now := b.use()
	b.db.vacuum(true) // what merges left free is used again
	search, _ := share(b.db.tables())
	of := func(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }
	say("%s: %d sessions, %.0f MB; %d titles: first %.1f %%, among three %.1f %%, absent %.1f %%", store, len(all),
		float64(raw)/1e6, titled, of(first, titled), of(three, titled), of(absent, titled))
	say("%s: exact phrases %.1f %% of %d; index %.4f of the raw bytes; %.0f ms CPU a search", store, of(kept, phrases),
		phrases, float64(search)/float64(raw), 1000*(now.CPU-spent.CPU).Seconds()/float64(titled+phrases))
}

// place is where a session stands among those that a search finds; negative: nowhere.
func (b *bench) place(text, id string) int {
	b.t.Helper()
	at, after := 0, ""
	for {
		answer, err := b.owner.Get(context.Background(),
			"/api/search?"+url.Values{"facets": {"1"}, "q": {text}, "after": {after}}.Encode())
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

// forgetful reads the transcripts of a folder, without lines that say their titles.
func forgetful(t *testing.T, folder string) (all []remembered, raw int64) {
	seen := map[string]bool{}
	kit.Must(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		raw += int64(len(data))
		x := remembered{id: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
		if seen[x.id] {
			x.id += "-" + strconv.Itoa(len(all))
		}
		seen[x.id] = true
		var fold session.Fold
		var titles []string
		for line := range bytes.Lines(data) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			r := transcript.Parse(line)
			fold.Add(int64(len(x.lines)), r)
			if r.Title != "" {
				titles = append(titles, r.Title)
				continue
			}
			if len(line) == 0 {
				continue
			}
			x.lines = append(x.lines, line)
			if s := r.Speech(); s.Speaker.Human() {
				x.said = append(x.said, s.Text)
			}
			if r.Type == "assistant" && r.Message != nil {
				x.said = append(x.said, r.Message.Text())
			}
		}
		if sum := fold.Summary(); slices.Contains(titles, sum.Title) { // others stand in the texts
			x.title = sum.Title
		}
		all = append(all, x)
		return nil
	}))
	return all, raw
}

// send stores a transcript.
func (x *remembered) send(t *testing.T, b *bench) {
	const most = 4 << 20
	for at := 0; at < len(x.lines); {
		body := []byte(`{"project_hash":"recall","session_id":` + strconv.Quote(x.id) + `,"entries":[`)
		for n := 0; at < len(x.lines) && (n == 0 || len(body)+len(x.lines[at]) < most); n++ {
			if n > 0 {
				body = append(body, ',')
			}
			body = append(body, `{"line_index":`+strconv.Itoa(at)...)
			if line := x.lines[at]; json.Valid(line) && line[0] == '{' && len(line) > 2 {
				body = append(append(body, ','), line[1:]...)
			} else {
				body = append(body, `,"type":"ccship.opaque","encoding":"base64","data":"`...)
				body = append(base64.StdEncoding.AppendEncode(body, line), '"', '}')
			}
			at++
		}
		_, err := b.owner.Post(context.Background(), "/api/conversations", json.RawMessage(append(body, ']', '}')))
		kit.Must(t, err)
	}
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
