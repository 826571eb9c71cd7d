package outbox

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// newUploads is a rig with a server that is known to take blobs.
func newUploads(t testing.TB) (*rig, *shelf, *disk) {
	r, s := newShelf(t)
	took(r)
	r.queue.learned.Accepts = Kinds(0).With(Blob)
	r.queue.learned.Config = r.drainer.dest.fingerprint()
	return r, s, newDisk(r)
}

// settledOf adds up what became of rows.
func (q *memQueue) settledOf() (sum Settlement) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.settled {
		sum.Items, sum.Gone, sum.Unwanted = sum.Items+s.Items, sum.Gone+s.Gone, sum.Unwanted+s.Unwanted
		sum.Dead = append(sum.Dead, s.Dead...)
	}
	return sum
}

func (s *shelf) wants(name string, content []byte) {
	s.t.Helper()
	got, ok := s.content(name)
	kit.Check(s.t, ok && got == string(content), "%s: %d bytes on the server (%v), want %d", name, len(got), ok,
		len(content))
}

func TestBlobs(t *testing.T) {
	r, s, disk := newUploads(t)
	p := NewPacker()
	small, large := []byte("spilled text"), noise(2<<20+7)
	disk.put("/disk/large", large)
	r.queue.add(conversation(1), p.Blob(refOf("tool-results/small.txt", small), small), p.Blob(refOf("empty", nil), []byte{}),
		p.Blob(refOf("large", large), nil))
	r.drain()
	s.wants("tool-results/small.txt", small)
	s.wants("empty", nil)
	s.wants("large", large)
	want := []string{
		"POST blob start", "PUT blob 0", "POST blob end", "POST blob start", "POST blob end",
		"POST blob start", "PUT blob 0", "PUT blob 1048576", "PUT blob 2097152", "POST blob end",
	}
	kit.Equal(t, "asked", s.asked, want)
	r.until("they are counted", func() bool { return r.drainer.Health().Items == 3 })
}

func TestBlobThatIsThereIsOnlyNamed(t *testing.T) {
	r, s, _ := newUploads(t)
	s.set(func(what string, _ []byte) *canned {
		return kit.If(what == "POST blob start", &canned{status: 200, body: `{"offset":9,"complete":true}`}, &canned{status: 200, body: `{"success":true}`})
	})
	r.queue.add(conversation(1), NewPacker().Blob(refOf("x", []byte("123456789")), []byte("123456789")))
	r.drain()
	kit.Check(t, s.count("PUT") == 0 && s.count("POST blob end") == 1 && r.queue.settledOf().Items == 1, "asked %q",
		s.asked)
}

// Lines are not held back by a blob of their own session, nor by those of others.
func TestBlobsLetLinesPass(t *testing.T) {
	r, s, disk := newUploads(t)
	p := NewPacker()
	large := noise(3 << 20)
	for i := range 6 {
		name := fmt.Sprintf("large%d", i)
		disk.put("/disk/"+name, large)
		r.queue.add(conversation(uint64(i+1)), p.Blob(refOf(name, large), nil))
	}
	entered, release := make(chan struct{}, 100), make(chan struct{})
	take := r.beside
	r.beside = func(w http.ResponseWriter, q *http.Request) {
		entered <- struct{}{}
		<-release
		take(w, q)
	}
	r.start()
	receive(t, entered)
	receive(t, entered) // half of what may be in flight is stuck in blobs
	for i := range 6 {
		r.add(conversation(uint64(i+1)), rowsOf(0, 2, 1)...)
	}
	r.until("the lines have passed", func() bool {
		for i := range 6 {
			if len(r.stored(fmt.Sprintf("session-%d", i+1))) != 2 {
				return false
			}
		}
		return true
	})
	kit.Equal(t, "more than half of the requests in flight are of blobs", len(entered), 0)
	close(release)
	r.drained()
	for i := range 6 {
		s.wants(fmt.Sprintf("large%d", i), large)
	}
}

// TestBlobSurvives lets the server fail in every way now and then.
func TestBlobSurvives(t *testing.T) {
	large := noise(3<<20 + 1)
	for name, trouble := range map[string]canned{
		"dies in a chunk":          {cut: true},
		"dies behind a chunk":      {cut: true, store: true},
		"is busy":                  {status: 503},
		"loses the upload":         {status: 404},
		"says ahead":               {status: 200, body: `{"offset":3145729}`},
		"says behind":              {status: 200, body: `{"offset":0}`},
		"says negative":            {status: 200, body: `{"offset":-5}`},
		"says beyond":              {status: 200, body: `{"offset":99999999}`},
		"conflicts":                {status: 409, body: `{"offset":0}`},
		"conflicts without offset": {status: 409, body: `no`},
		"conflicts negative":       {status: 409, body: `{"offset":-1}`},
		"is too small for a chunk": {status: 413},
		"is a portal":              {status: 200, body: `<html>`},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, disk := newUploads(t)
			disk.put("/disk/large", large)
			once := map[string]bool{}
			s.set(func(what string, body []byte) *canned {
				if !strings.HasPrefix(what, "PUT") || once[what] || trouble.status == 413 && len(body) <= 300<<10 {
					return nil
				}
				once[what] = true
				return &trouble
			})
			r.queue.add(conversation(1), NewPacker().Blob(refOf("large", large), nil))
			r.start()
			r.retriedOften()
			s.wants("large", large)
			sum := r.queue.settledOf()
			kit.Check(t, sum.Items == 1 && len(sum.Dead) == 0 && sum.Unwanted == 0, "settled %+v", sum)
		})
	}
}

// TestBlobEndsOnceItIsStored: a 2xx to the end of an upload that does not say that the blob is stored is not the server's.
func TestBlobEndsOnceItIsStored(t *testing.T) {
	for _, body := range []string{"", " ", "null", "{}", `{"offset":9}`, `{"success":false}`, "<html>"} {
		t.Run(body, func(t *testing.T) {
			r, s, _ := newUploads(t)
			asked := 0
			s.set(func(what string, _ []byte) *canned {
				if what != "POST blob end" {
					return nil
				}
				if asked++; asked > 2 {
					return nil
				}
				return &canned{status: 200, body: body}
			})
			r.queue.add(conversation(1), NewPacker().Blob(refOf("x", []byte("123456789")), []byte("123456789")))
			r.start()
			r.retriedOften()
			s.wants("x", []byte("123456789"))
		})
	}
}

// TestBlobGivesUp holds that a server which never goes on is not asked for ever, and that lines go on.
func TestBlobGivesUp(t *testing.T) {
	large := noise(1<<20 + 1)
	for name, test := range map[string]struct {
		step    string
		trouble canned
		most    int // requests
	}{
		"hash is always wrong":     {"POST blob end", canned{status: 409, body: `{"offset":0}`}, 40},
		"offset is always behind":  {"PUT", canned{status: 200, body: `{"offset":0}`}, 40},
		"offset is always beyond":  {"PUT", canned{status: 200, body: `{"offset":9000000}`}, 40},
		"offset is always below 0": {"POST blob start", canned{status: 200, body: `{"offset":-1}`}, 40},
		"always conflicts":         {"PUT", canned{status: 409, body: `{"offset":0}`}, 40},
		"never takes the size":     {"POST blob start", canned{status: 413}, 2},
		"never takes a byte":       {"PUT", canned{status: 413}, 40},
		"refuses the name":         {"POST blob end", canned{status: 400}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, disk := newUploads(t)
			disk.put("/disk/large", large)
			s.set(func(what string, _ []byte) *canned {
				return kit.If(strings.HasPrefix(what, test.step), &test.trouble, nil)
			})
			r.queue.add(conversation(1), NewPacker().Blob(refOf("large", large), nil))
			r.start()
			r.until("it is refused", func() bool {
				h := r.drainer.Health()
				r.drainer.Retry(false)
				return h.State == StateRefused
			})
			kit.Equal(t, "dead letters before anything was accepted", len(r.queue.settledOf().Dead), 0)
			line := 0
			r.until("it is given up", func() bool {
				if r.queue.waiting() == 1 {
					r.add(conversation(1), rowsOf(line, line+1, 1)...)
					line++
				}
				return r.queue.waiting() == 0
			})
			sum := r.queue.settledOf()
			kit.Check(t, len(sum.Dead) == 1 && sum.Dead[0].Batch.Blob.Name == "large" && sum.Items == 0, "settled %+v", sum)
			r.holds("session-1", numbers(0, int64(line))...)
		})
	}
}

// TestBlobIsResumed stops a drainer in the middle of a blob: the next one goes on where the server is.
func TestBlobIsResumed(t *testing.T) {
	r, s, disk := newUploads(t)
	large := noise(4 << 20)
	disk.put("/disk/large", large)
	r.queue.add(conversation(1), NewPacker().Blob(refOf("large", large), nil))
	entered := make(chan struct{})
	s.set(func(what string, _ []byte) *canned {
		if what == "PUT blob 2097152" {
			close(entered)
			return &canned{status: 503}
		}
		return nil
	})
	r.start()
	receive(t, entered)
	r.stop()
	s.set(nil)
	next := NewDrainer(r.drainer.dest, origin, r.queue, r.queue, r.owner)
	next.Client = r.drainer.Client
	r.drainer = next
	r.drain()
	s.wants("large", large)
	kit.Equal(t, "the first chunk was sent times", s.count("PUT blob 0"), 1)
}

// TestBlobChanged holds that what is not what was queued any more never becomes a whole blob.
func TestBlobChanged(t *testing.T) {
	large := noise(3 << 20)
	other := bytes.Clone(large)
	other[len(other)-1]++
	for name, test := range map[string]struct {
		now  []byte // nil: gone
		when string // before this request; "": before all
	}{
		"gone before":       {nil, ""},
		"gone in between":   {nil, "PUT blob 1048576"},
		"shrunk":            {large[:1<<20], ""},
		"shrunk in between": {large[:2<<20], "PUT blob 1048576"},
		"grown in between":  {append(bytes.Clone(large), 1), "PUT blob 1048576"},
		"other bytes":       {other, ""},
		"other in between":  {other, "PUT blob 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, disk := newUploads(t)
			change := func() { disk.put("/disk/large", test.now) }
			disk.put("/disk/large", large)
			if test.when == "" {
				change()
			}
			s.set(func(what string, _ []byte) *canned {
				if what == test.when {
					change()
				}
				return nil
			})
			log, logged := testLog()
			r.drainer.Log = log
			p := NewPacker()
			r.queue.add(conversation(1), p.Blob(refOf("large", large), nil), p.Blob(refOf("next", []byte("x")), []byte("x")))
			r.drain()
			_, there := s.content("large")
			kit.Check(t, !there, "the server keeps it")
			s.wants("next", []byte("x"))
			sum := r.queue.settledOf()
			kit.Check(t, sum.Gone == 1 && sum.Items == 1 && len(sum.Dead) == 0, "settled %+v", sum)
			r.until("it is counted", func() bool { return r.drainer.Health().Gone == 1 })
			if n := strings.Count(logged(), "changed or was removed"); n != 1 || strings.Contains(logged(), "/disk/") {
				t.Errorf("logged %d times: %s", n, logged())
			}
		})
	}
}

// Nobody's key goes elsewhere, and a blob waits like everything else while the key is refused.
func TestBlobWaitsForKey(t *testing.T) {
	r, s, _ := newUploads(t)
	refuse := true
	s.set(func(string, []byte) *canned { return kit.If(refuse, &canned{status: 401}, nil) })
	r.queue.add(conversation(1), NewPacker().Blob(refOf("x", []byte("x")), []byte("x")))
	r.start()
	r.troubled(StateRefused, KindRefusedKey)
	kit.Locked(&s.mu, func() { refuse = false })
	r.drainer.Retry(true)
	r.drained()
	s.wants("x", []byte("x"))
}

func TestBlobOfForgottenSession(t *testing.T) {
	for _, step := range []string{"POST blob start", "PUT blob 0", "POST blob end"} {
		r, s, _ := newUploads(t)
		var forgot []uint64
		r.owner.forgotten = func(stream uint64) { forgot = append(forgot, stream) }
		s.set(func(what string, _ []byte) *canned {
			return kit.If(what == step, &canned{status: 200, body: `{"success":true,"forgotten":true}`}, nil)
		})
		r.queue.add(conversation(7), NewPacker().Blob(refOf("x", []byte("x")), []byte("x")))
		r.drain()
		r.stop()
		kit.Check(t, len(forgot) == 1 && forgot[0] == 7, "%s: forgot %v", step, forgot)
	}
}

func TestLinkRequestsAreNoted(t *testing.T) {
	r, _ := newShelf(t)
	heard := make(chan struct{}, 10)
	r.owner.linkRequests = func() { heard <- struct{}{} }
	r.set(func(*seen) *canned {
		return &canned{status: 200, header: map[string]string{"Ccship-Link-Requests": "1"}, body: `{"success":true}`, store: true}
	})
	r.start()
	r.add(conversation(1), rowsOf(0, 1, 1)...)
	receive(t, heard)
}
