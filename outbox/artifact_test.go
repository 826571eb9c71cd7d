package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

const acceptsAll = "checkpoints, documents, blobs"

// shelf keeps what lies next to lines, unless answer says otherwise.
type shelf struct {
	t testing.TB

	mu      sync.Mutex // guards what follows
	asked   []string   // "POST checkpoints", "PUT blobs 1048576", …
	items   []string   // checkpoints and events, in the order of their arrival
	bodies  [][]byte   // of POSTs
	partial map[string][]byte
	whole   map[string]string // name → content
	answer  func(what string, body []byte) *canned
}

// newShelf makes a server that keeps lines and what lies next to them.
func newShelf(t testing.TB) (*rig, *shelf) {
	r, s := newRig(t), &shelf{t: t, partial: map[string][]byte{}, whole: map[string]string{}}
	r.accept, r.beside = acceptsAll, s.ServeHTTP
	return r, s
}

func (s *shelf) set(answer func(what string, body []byte) *canned) {
	kit.Locked(&s.mu, func() { s.answer = answer })
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	body, err := decode(r.Header.Get("Content-Encoding"), raw)
	if err != nil {
		s.t.Errorf("%s: %v", r.URL, err)
	}
	place := strings.TrimPrefix(r.URL.Path, "/base/api/")
	what := r.Method + " " + place
	hash, step := "", ""
	if rest, ok := strings.CutPrefix(place, "blobs/"); ok {
		hash, step, _ = strings.Cut(rest, "/")
		what = r.Method + " blob " + step + r.URL.Query().Get("offset")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
	if s.answer != nil {
		if c := s.answer(what, body); c != nil {
			if c.store {
				s.take(&strings.Builder{}, r, place, hash, step, body)
			}
			if c.cut {
				panic(http.ErrAbortHandler)
			}
			for k, v := range c.header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
			return
		}
	}
	var out strings.Builder
	w.WriteHeader(s.take(&out, r, place, hash, step, body))
	_, _ = io.WriteString(w, out.String())
}

func (s *shelf) take(out *strings.Builder, r *http.Request, place, hash, step string, body []byte) (status int) {
	if r.Method == http.MethodPost {
		s.bodies = append(s.bodies, body)
	}
	if hash == "" {
		var doc map[string]json.RawMessage
		var items []json.RawMessage
		kit.Err(s.t, fmt.Sprintf("%s: in %s", place, body), nil)(json.Unmarshal(body, &doc))
		for _, member := range []string{"checkpoints", "events"} {
			if json.Unmarshal(doc[member], &items) == nil {
				for _, item := range items {
					s.items = append(s.items, string(item))
				}
			}
		}
		fmt.Fprintf(out, `{"success":true,"stored":%d}`, len(items))
		return 200
	}
	have := s.partial[hash]
	switch step {
	case "start":
		fmt.Fprintf(out, `{"offset":%d,"complete":false}`, len(have))
	case "":
		if at := r.URL.Query().Get("offset"); at != strconv.Itoa(len(have)) || len(body) > blobChunk {
			fmt.Fprintf(out, `{"offset":%d}`, len(have))
			return http.StatusConflict
		}
		s.partial[hash] = append(bytes.Clone(have), body...)
		fmt.Fprintf(out, `{"offset":%d}`, len(s.partial[hash]))
	case "end":
		if sum := sha256.Sum256(have); hex.EncodeToString(sum[:]) != hash {
			delete(s.partial, hash)
			_, _ = out.WriteString(`{"offset":0}`)
			return http.StatusConflict
		}
		var doc struct{ Name string }
		kit.Err(s.t, "end", nil)(json.Unmarshal(body, &doc))
		s.whole[doc.Name] = string(have)
		_, _ = out.WriteString(`{"success":true}`)
	}
	return 200
}

func (s *shelf) has(items ...string) {
	s.t.Helper()
	kit.Equal(s.t, "the server", kit.Under(&s.mu, func() []string { return slices.Clone(s.items) }), items)
}

// count returns how many requests began with what.
func (s *shelf) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if strings.HasPrefix(a, what) {
			n++
		}
	}
	return n
}

func (s *shelf) content(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.whole[name]
	return c, ok
}

func itemsOf(texts ...string) (items []json.RawMessage) {
	for _, t := range texts {
		items = append(items, json.RawMessage(t))
	}
	return items
}

func refOf(name string, content []byte) BlobRef {
	sum := sha256.Sum256(content)
	return BlobRef{SHA256: hex.EncodeToString(sum[:]), Name: name, Media: "text/plain", Size: int64(len(content)), Root: "/disk", Path: name}
}

// disk is files that blobs are read from.
type disk struct {
	mu     sync.Mutex
	files  map[string][]byte // guarded by mu
	opened int               // guarded by mu
}

func newDisk(r *rig) *disk {
	d := &disk{files: map[string][]byte{}}
	r.owner.openBlob = func(root, path string) (Content, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.opened++
		content, ok := d.files[root+"/"+path]
		if !ok {
			return nil, errors.New("no such file")
		}
		return inRow{bytes.NewReader(content)}, nil
	}
	return d
}

// put writes a file; nil removes it.
func (d *disk) put(path string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[path] = content; content == nil {
		delete(d.files, path)
	}
}

// noise is bytes that do not repeat.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(2463534242)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func TestItemsGoInOrderWithLines(t *testing.T) {
	r, s := newShelf(t)
	p := NewPacker()
	rows := rowsOf(0, 2, 1)
	r.queue.add(conversation(1), rows[0], p.Checkpoints(itemsOf(`{"id":"a"}`, ` {"id":"b"} `)), p.Documents(itemsOf(`{"path":"x","version":1}`)), rows[1])
	var before []int
	s.set(func(string, []byte) *canned {
		before = append(before, r.count())
		return nil
	})
	r.drain()
	s.has(`{"id":"a"}`, `{"id":"b"}`, `{"path":"x","version":1}`)
	r.holds(conversation(1).SessionID, 0, 1)
	// A server of unknown abilities gets lines first, whatever waits between them.
	lines := r.last().lines
	kit.Check(t, slices.Equal(before, []int{1, 1}) && len(lines) == 2, "items came after %v requests of lines, the last of %v", before, lines)
	r.until("the acknowledgements are counted", func() bool {
		h := r.drainer.Health()
		return h.Items == 3 && h.Entries == 2
	})
	h := r.drainer.Health()
	if h.Unwanted != 0 || len(h.Accepts.Names()) != 3 {
		t.Errorf("health %+v", h)
	}
}

func TestItemsKeepTheirPlaceAmongLines(t *testing.T) {
	r, s := newShelf(t)
	took(r)
	r.queue.learned.Accepts = Kinds(0).With(Checkpoints)
	p := NewPacker()
	rows := rowsOf(0, 2, 1)
	r.queue.add(conversation(1), rows[0], p.Checkpoints(itemsOf(`{"id":"a"}`)), rows[1])
	var before []int
	s.set(func(string, []byte) *canned {
		before = append(before, r.count())
		return nil
	})
	r.drain()
	kit.Equal(t, "requests of lines before the checkpoint", before, []int{1})
}

func TestServerWithoutKindsWithholds(t *testing.T) {
	for _, test := range []struct {
		name, accept string
		plain        bool
		taken        int64
	}{
		{"none", "", false, 0}, {"documents only", "Documents;q=1, more", false, 1}, {"plain", acceptsAll, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, s := newShelf(t)
			r.accept, r.announce = test.accept, !test.plain
			p := NewPacker()
			r.queue.add(conversation(1), append(rowsOf(0, 1, 1), p.Checkpoints(itemsOf(`{"id":"a"}`, `{"id":"b"}`)), p.Documents(itemsOf(`{"path":"x"}`)))...)
			r.queue.add(conversation(1), p.Blob(refOf("b", []byte("text")), []byte("text")))
			r.drain()
			r.until("it is counted", func() bool {
				h := r.drainer.Health()
				return h.Unwanted == 4-test.taken && h.Items == test.taken
			})
			h := r.drainer.Health()
			kit.Check(t, h.Withheld == 0 && s.count("POST checkpoints")+s.count("POST blob") == 0, "health %+v, asked %q", h, s.asked)
		})
	}
}

// A server that begins to take a kind is reported once, before that is remembered, and once more when telling failed.
func TestBeginningToAcceptIsTold(t *testing.T) {
	r, _ := newShelf(t)
	r.accept = ""
	type call struct {
		kinds string
		again bool
	}
	calls := make(chan call, 10)
	fail := true
	r.owner.accepts = func(k Kinds, again bool) error {
		r.queue.mu.Lock()
		defer r.queue.mu.Unlock()
		kit.Equal(t, "it was remembered before", r.queue.learned.Accepts, 0)
		calls <- call{strings.Join(k.Names(), ","), again}
		if fail {
			fail = false
			return errors.New("disk full")
		}
		return nil
	}
	r.start()
	r.add(conversation(1), rowsOf(0, 1, 1)...)
	r.drained()
	r.accepts("blobs, checkpoints")
	r.add(conversation(1), rowsOf(1, 2, 1)...)
	for range 2 {
		kit.Equal(t, "told", receive(t, calls), call{"checkpoints,blobs", true})
	}
	r.add(conversation(1), rowsOf(2, 3, 1)...)
	r.drained()
	r.until("it is remembered", func() bool {
		r.queue.mu.Lock()
		defer r.queue.mu.Unlock()
		return r.queue.learned.Accepts.Has(Blob)
	})
	if len(calls) != 0 {
		t.Errorf("told again: %+v", <-calls)
	}
}

func TestFirstWordIsNotAgain(t *testing.T) {
	r, _ := newShelf(t)
	again := make(chan bool, 1)
	r.owner.accepts = func(_ Kinds, a bool) error { again <- a; return nil }
	r.start()
	r.add(conversation(1), rowsOf(0, 1, 1)...)
	kit.Check(t, !receive(t, again), "nothing can have been withheld")
}

func TestPoisonedItemIsBuriedAlone(t *testing.T) {
	for status, reason := range map[int]string{400: "rejected", 422: "rejected", 413: "too_large"} {
		r, s := newShelf(t)
		took(r)
		r.queue.learned.Accepts = Kinds(0).With(Documents)
		r.queue.learned.Config = r.drainer.dest.fingerprint()
		s.set(func(_ string, body []byte) *canned {
			return kit.If(bytes.Contains(body, []byte("poison")), &canned{status: status, body: `{"error":"no"}`}, nil)
		})
		p := NewPacker()
		r.queue.add(conversation(1), p.Documents(itemsOf(`{"n":0}`, `{"n":1}`, `{"n":"poison,{"}`, `{"n":3}`, `{"n":"poison, and no small one"}`)), rowsOf(0, 1, 1)[0])
		r.drain()
		s.has(`{"n":0}`, `{"n":1}`, `{"n":3}`, `{"n":3}`) // the last one again, as a proof that the server works
		var dead []DeadLetter
		for _, x := range r.queue.settled {
			dead = append(dead, x.Dead...)
		}
		if len(dead) != 2 || dead[0].Line != 2 || dead[1].Line != 4 || dead[0].Reason != reason || dead[0].Batch.Items != 1 || dead[0].Batch.Kind != Documents {
			t.Errorf("%d: dead letters %+v", status, dead)
		}
		r.until("it is counted", func() bool { h := r.drainer.Health(); return h.Entries == 1 && h.Items == 3 })
	}
}

// A server that takes none of a kind is not called refusing for it: its lines go on.
func TestRefusedKindIsWithheldAlone(t *testing.T) {
	for _, status := range []int{404, 405, 410, 501} {
		r, s := newShelf(t)
		took(r)
		r.queue.learned.Accepts = Kinds(0).With(Checkpoints)
		r.queue.learned.Config = r.drainer.dest.fingerprint()
		s.set(func(string, []byte) *canned { return &canned{status: status} })
		p := NewPacker()
		for i := range 12 {
			r.queue.add(conversation(uint64(i+1)), p.Checkpoints(itemsOf(fmt.Sprintf(`{"id":%d}`, i))), rowsOf(0, 1, 1)[0])
		}
		r.drain()
		r.until("they are counted, and lines delivered", func() bool {
			h := r.drainer.Health()
			return h.Unwanted+h.Dead == 12 && h.Entries == 12
		})
		h := r.drainer.Health()
		kit.Check(t, h.State == StateOK && !h.Accepts.Has(Checkpoints) && h.Unwanted != 0, "%d: health %+v", status, h)
		n := s.count("POST")
		kit.Check(t, n <= 8+4, "%d: asked %d times", status, n)
	}
}
