package limit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/provenance"
)

// slow is a real store in which questions of some users are held until they are let go or given up.
type slow struct {
	server.Store
	held int64 // user

	mu      sync.Mutex
	running int // guarded by mu, as is most
	most    int
	entered chan struct{}
	let     chan struct{}
}

// asked asks once a question of the user who is held may go on.
func asked[T any](ctx context.Context, s *slow, scope server.Scope, ask func() (T, error)) (answer T, err error) {
	if err := s.hold(ctx, scope); err != nil {
		return answer, err
	}
	return ask()
}

// hold holds up a question of the user who is held.
func (s *slow) hold(ctx context.Context, scope server.Scope) error {
	if scope.User != s.held {
		return nil
	}
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.running--; s.mu.Unlock() }()
	s.entered <- struct{}{}
	select {
	case <-s.let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended waits until no question is held.
func (s *slow) ended(t *testing.T) {
	t.Helper()
	running := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.running }
	for late := time.After(5 * time.Minute); running() > 0; runtime.Gosched() {
		select {
		case <-late:
			t.Fatalf("%d questions that were given up run still", running())
		default:
		}
	}
}

func (s *slow) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	return asked(ctx, s, scope, func() (server.Hits, error) { return s.Store.Search(ctx, scope, q) })
}

func (s *slow) Rank(ctx context.Context, scope server.Scope, a server.RankQuery) (server.Ranked, error) {
	return asked(ctx, s, scope, func() (server.Ranked, error) { return s.Store.Rank(ctx, scope, a) })
}

func (s *slow) EditsOf(ctx context.Context, scope server.Scope, q server.EditQuery) ([]server.WrittenEdit, error) {
	return asked(ctx, s, scope, func() ([]server.WrittenEdit, error) { return s.Store.EditsOf(ctx, scope, q) })
}

func (s *slow) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	return asked(ctx, s, scope, func() ([]server.UsageRow, error) { return s.Store.Usage(ctx, scope, q) })
}

func (s *slow) Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	return asked(ctx, s, scope, func() (server.Found, error) { return s.Store.Find(ctx, scope, q) })
}

func (s *slow) Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error) {
	return asked(ctx, s, scope, func() (server.Groups, error) { return s.Store.Groups(ctx, scope, q) })
}

func (s *slow) Drops(ctx context.Context, scope server.Scope, q server.DropQuery) ([]server.Drop, error) {
	return asked(ctx, s, scope, func() ([]server.Drop, error) { return s.Store.Drops(ctx, scope, q) })
}

func (s *slow) Checkpoints(ctx context.Context, scope server.Scope, q server.CheckpointQuery) (server.CheckpointPage,
	error) {
	return asked(ctx, s, scope, func() (server.CheckpointPage, error) { return s.Store.Checkpoints(ctx, scope, q) })
}

// site is a server with two users.
type site struct {
	t        testing.TB
	url      string
	store    *sqlite.Store
	viewer   server.User // eve
	other    server.User // ann
	ann, eve string      // keys: of a member, of a viewer
}

func newSite(t testing.TB, wrap func(server.Store, *site) server.Store) *site {
	t.Helper()
	st := kit.Try(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	s := &site{t: t, store: st}
	for name, key := range map[string]*string{"ann": &s.ann, "eve": &s.eve} {
		u := kit.Try(st.AddUser(t.Context(), name, server.Member, server.By{At: time.Now()})).Must(t)
		var hash [32]byte
		*key, hash = auth.NewKey()
		kit.Must(t, st.AddKey(t.Context(), server.Key{User: u, Name: name, Hash: hash, Created: time.Now()}))
		if name == "eve" {
			s.viewer = u
		} else {
			s.other = u
		}
	}
	web := httptest.NewServer(api.New(wrap(st, s), auth.New(st, nil), server.NewHub(st)).Handler())
	s.url = web.URL
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		kit.Should(t, st.Close())
	})
	return s
}

// ask makes a request and answers its status; 0 for one that was given up.
func (s *site) ask(ctx context.Context, key, method, path, body string) (int, http.Header) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	req.Header.Set("X-API-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header
}

func lineOf(session string, n int, text string) string {
	return fmt.Sprintf(`{"project_hash":"ph","session_id":%q,"entries":[{"line_index":%d,"type":"user","message":{"role":"user","content":%q}}]}`,
		session, n, text)
}

// questions are what one user may not ask so often that others wait.
var questions = []string{
	"/api/search?q=wombat", "/api/usage?by=day", "/api/sessions", "/api/groups", "/api/drops", "/api/checkpoints",
	"/api/why?q=" + url.QueryEscape(whoWrote()),
}

// whoWrote asks about a commit that adds a line.
func whoWrote() string {
	sum, _, _ := provenance.SumOf("func total(c Cart) int {")
	f := provenance.File{Paths: []string{"cart.go"}, Lines: []provenance.Added{{Number: 1, Sum: sum}}}
	b, err := json.Marshal(map[string]any{"commits": []provenance.Commit{{Name: "c0ffee", Files: []provenance.File{f}}}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestQuestionsOfOne: forty questions of one user are answered one after the other, and hold up neither lines nor
// questions of others. Those that are given up free their slots at once.
func TestQuestionsOfOne(t *testing.T) {
	for _, path := range questions {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var gate *slow
			s := newSite(t, func(st server.Store, s *site) server.Store {
				gate = &slow{Store: st, held: s.viewer.ID, entered: make(chan struct{}, 100), let: make(chan struct{})}
				return limit.NewFair(gate)
			})
			given, giveUp := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() { s.ask(given, s.eve, "GET", path, "") })
			}
			<-gate.entered
			code, _ := s.ask(t.Context(), s.ann, "POST", "/api/conversations", lineOf("s", 0, "a wombat"))
			kit.Check(t, code == 200, "a line beside the questions: %d", code)
			for _, other := range questions {
				code, _ := s.ask(t.Context(), s.ann, "GET", other, "")
				kit.Check(t, code == 200, "%s of another user: %d", other, code)
			}
			giveUp()
			wg.Wait()
			close(gate.let)
			code, _ = s.ask(t.Context(), s.eve, "GET", path, "")
			kit.Check(t, code == 200, "after the others were given up: %d", code)
			gate.ended(t)
			want := limit.PerUser()
			kit.Check(t, int64(gate.most) <= want, "%d questions of one user were asked at once, want at most %d", gate.most, want)
		})
	}
}

// TestDeadline: a question that takes too long is ended, and its user gets an answer to try again.
func TestDeadline(t *testing.T) {
	for _, path := range questions {
		s := newSite(t, func(st server.Store, s *site) server.Store {
			f := limit.NewFair(&slow{Store: st, held: s.viewer.ID, entered: make(chan struct{}, 9), let: make(chan struct{})})
			f.Patience = 20 * time.Millisecond
			return f
		})
		code, h := s.ask(t.Context(), s.eve, "GET", path, "")
		kit.Check(t, code == 503 && h.Get("Retry-After") != "", "%s: %d %v, want 503 with Retry-After", path, code, h)
	}
}

// TestSlotsInTurn: one user gets at most its share, others wait for their turn and for nobody who waits for its own bytes.
func TestSlotsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limit.NewSlots(100, 40)
		var order []int64
		ask := func(ctx context.Context, user, n int64) (release func()) {
			got := make(chan func(), 1)
			go func() {
				if r, err := b.Acquire(ctx, user, n, time.Hour); err == nil {
					order = append(order, 1000*user+min(n, 40))
					got <- r
				}
			}()
			synctest.Wait()
			return func() { (<-got)(); synctest.Wait() }
		}
		expect := func(when string, want ...int64) {
			t.Helper()
			for i, w := range want {
				kit.Require(t, i < len(order) && order[i] == w, "%s: %v, want %v", when, order, want)
			}
			kit.Require(t, len(order) == len(want), "%s: %v, want %v", when, order, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		one := ask(ctx, 1, 1000) // all that is one user's
		_ = ask(ctx, 1, 1)       // waits for the user's own
		two := ask(ctx, 2, 30)
		expect("of one", 1040, 2030)
		gone, give := context.WithCancel(t.Context())
		_ = ask(gone, 3, 40) // more than is free
		four := ask(ctx, 4, 10)
		expect("in turn", 1040, 2030)
		give()
		synctest.Wait()
		expect("after one gave up", 1040, 2030, 4010)
		one()
		expect("after a release", 1040, 2030, 4010, 1001)
		two()
		four()
		five := ask(ctx, 5, 40)
		six := ask(ctx, 6, 40)
		expect("everything is given back", 1040, 2030, 4010, 1001, 5040, 6040)
		five()
		six()
		cancel()
	})
}

// TestHugeLines: readers of huge lines hold a share of the server's memory at most. More of the same user wait and are
// told to come back; those of another user, and of lines that are not huge, do not.
func TestHugeLines(t *testing.T) {
	s := newSite(t, func(st server.Store, _ *site) server.Store {
		f := limit.NewFair(st)
		f.Patience = 50 * time.Millisecond
		return f
	})
	huge := `{"text":"` + strings.Repeat("x", 30<<20) + `"}`
	for _, u := range []server.User{s.viewer, s.other} {
		b := &server.Batch{Owner: u.ID, Received: time.Now(), Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 2}}
		for n, raw := range []string{`{"a":1}`, huge} {
			b.Lines = append(b.Lines, server.Line{Index: int64(n), Kind: server.Object, Raw: []byte(raw)})
		}
		kit.Must(t, s.store.Put(t.Context(), b))
	}
	const raw, whole = "/api/sessions/s/raw", "/api/sessions/s/entries?after=0"
	slow, leave := context.WithCancel(t.Context())
	s.begin(slow, s.eve, raw)
	for _, path := range []string{raw, whole, "/api/sessions/s/export?format=jsonl", "/api/sessions/s/export?format=json"} {
		code, h := s.ask(t.Context(), s.eve, "GET", path, "")
		kit.Check(t, code == http.StatusServiceUnavailable && h.Get("Retry-After") != "",
			"%s beside a slow reader of a huge line: %d, %v", path, code, h)
	}
	for key, paths := range map[string][]string{
		s.eve: {"/api/sessions/s/entries?limit=1", whole + "&most=100"}, s.ann: {raw, whole},
	} {
		for _, path := range paths {
			code, _ := s.ask(t.Context(), key, "GET", path, "")
			kit.Check(t, code == http.StatusOK, "%s: %d", path, code)
		}
	}
	leave()
	for late := time.After(5 * time.Minute); ; runtime.Gosched() {
		if code, _ := s.ask(t.Context(), s.eve, "GET", whole, ""); code == http.StatusOK {
			return
		}
		select {
		case <-late:
			t.Fatal("a reader who is gone still holds a line")
		default:
		}
	}
}

// begin makes a request of which it reads the beginning of the answer.
func (s *site) begin(ctx context.Context, key, path string) {
	req := kit.Try(http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)).Must(s.t)
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Accept-Encoding", "identity") // or the answer is small
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		_, err = io.ReadFull(res.Body, make([]byte, 1<<20))
	}
	kit.Must(s.t, err)
	s.t.Cleanup(func() { _ = res.Body.Close() })
}
