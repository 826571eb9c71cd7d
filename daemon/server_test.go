package daemon

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript"
)

// memServer keeps what it is sent in memory, by stream and generation. It speaks the extension while announces is set.
type memServer struct {
	mu          sync.Mutex
	announces   bool
	status      int    // answers every request with it, when not 0
	says        string // with status: the body
	busy        bool   // takes nothing now, but can be asked
	asked       func() // before a digest is answered, without the lock
	taking      func() // before a batch is taken, without the lock
	forgetting  func() // before it forgets a session, without the lock
	refusals    int    // so many batches are not taken now
	streams     map[string]map[uint32]*memGeneration
	order       []string // session ids in the order of their requests
	hashes      map[string]string
	keys        []string // the X-API-Key of each request
	asks        []int    // streams in each request for digests
	epoch       string   // of the client
	machine     string   // of the client
	lagging     int      // answers to requests for rewrites that say they are not derived yet
	forgotten   map[string]bool
	keeps       bool // lets nobody forget
	resent      int  // requests about what was forgotten
	attachments attachmentServer

	checkpoints http.HandlerFunc       // takes them; nil: nobody does
	refuses     func(line []byte) bool // for what it is; nil: none
}

type memGeneration struct {
	start   int64
	end     int64
	newline bool
	lines   map[int64][]byte
	notes   map[int64]transcript.Oversize
}

func newMemServer() *memServer {
	return &memServer{announces: true, streams: map[string]map[uint32]*memGeneration{}, hashes: map[string]string{}}
}

// with does something while nothing is served.
func (s *memServer) with(do func()) { kit.Locked(&s.mu, do) }

func (s *memServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.asked != nil && (strings.HasSuffix(r.URL.Path, "/digest") || r.URL.Path == "/api/digests") {
		s.asked()
	}
	if s.taking != nil && r.URL.Path == "/api/conversations" {
		s.taking()
	}
	if s.forgetting != nil && r.Method == http.MethodDelete {
		s.forgetting()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announces {
		w.Header().Set("Ccship-Protocol", "1")
		w.Header().Set("Accept-Encoding", "zstd, gzip")
		s.attachments.announce(w)
	}
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
		io.WriteString(w, s.says)
	case r.URL.Path == "/api/conversations" && (s.busy || s.refusals > 0):
		s.refusals--
		w.WriteHeader(http.StatusTooManyRequests)
	case r.URL.Path == "/api/conversations" && r.Method == http.MethodPost:
		s.take(w, r)
	case r.URL.Path == "/api/checkpoints" && s.checkpoints != nil:
		s.checkpoints(w, r)
	case s.attachments.serves(r):
		s.attachments.serve(w, r)
	case strings.HasSuffix(r.URL.Path, "/digest"):
		s.digest(w, r)
	case r.URL.Path == "/api/digests":
		s.digests(w, r)
	case strings.HasSuffix(r.URL.Path, "/raw"):
		s.raw(w, r)
	case r.URL.Path == "/api/sessions":
		s.list(w)
	case r.URL.Path == "/api/drops":
		s.drops(w, r.URL.Query().Get("session"))
	case r.URL.Path == "/api/forgotten":
		list := []any{}
		for name := range s.forgotten {
			list = append(list, map[string]string{"session_id": name})
		}
		json.NewEncoder(w).Encode(map[string]any{"forgotten": list})
	case r.Method == http.MethodDelete && s.keeps:
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"error":{"code":"forbidden","message":"not yours"}}`)
	case r.Method == http.MethodDelete:
		s.forget(w, r)
	default:
		http.NotFound(w, r)
	}
}

// body is a request's body, unpacked.
func body(r *http.Request) []byte {
	var from io.Reader = r.Body
	switch r.Header.Get("Content-Encoding") {
	case "zstd":
		d, _ := zstd.NewReader(r.Body)
		defer d.Close()
		from = d
	case "gzip":
		from, _ = gzip.NewReader(r.Body)
	}
	text, _ := io.ReadAll(from)
	return text
}

func (s *memServer) take(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ProjectHash string            `json:"project_hash"`
		SessionID   string            `json:"session_id"`
		Entries     []json.RawMessage `json:"entries"`
		Ccship      *struct {
			Epoch      string               `json:"epoch"`
			Machine    string               `json:"machine"`
			Generation uint32               `json:"generation"`
			RewoundTo  int64                `json:"rewound_to"`
			To         struct{ Line int64 } `json:"to"`
			Newline    bool                 `json:"eof_newline"`
			Edges      [][3]any             `json:"edges"`
		} `json:"ccship"`
	}
	if err := json.Unmarshal(body(r), &req); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, entry := range req.Entries {
		if s.refuse(w, entry) {
			return
		}
	}
	root, _, _ := strings.Cut(req.SessionID, "/")
	if s.forgotten[root] {
		s.resent++
		io.WriteString(w, `{"success":true,"entries_stored":0,"forgotten":true}`)
		return
	}
	s.order = append(s.order, req.SessionID)
	s.keys = append(s.keys, r.Header.Get("X-API-Key"))
	s.hashes[req.SessionID] = req.ProjectHash
	g := s.generation(req.SessionID, 0, 0)
	if e := req.Ccship; e != nil && s.announces {
		s.epoch, s.machine = e.Epoch, e.Machine
		g = s.generation(req.SessionID, e.Generation, e.RewoundTo)
		g.end, g.newline = max(g.end, e.To.Line), e.Newline
	}
	for _, entry := range req.Entries {
		i, raw, kind, err := transcript.RestoreEntry(entry)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if kind == transcript.OversizeEntry {
			g.notes[i], _ = transcript.ParseOversize(entry)
		} else {
			g.lines[i] = bytes.Clone(raw)
		}
		g.end = max(g.end, i+1)
	}
	if req.Ccship != nil && s.announces {
		for _, e := range req.Ccship.Edges {
			g.frame(int64(e[0].(float64)), e[1].(string), e[2].(string))
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"success": true, "entries_stored": len(req.Entries)})
}

func (g *memGeneration) frame(line int64, before, after string) {
	b, _ := base64.StdEncoding.DecodeString(before)
	a, _ := base64.StdEncoding.DecodeString(after)
	g.lines[line] = bytes.Join([][]byte{b, g.lines[line], a}, nil)
}

func (s *memServer) generation(session string, number uint32, start int64) *memGeneration {
	if s.streams[session] == nil {
		s.streams[session] = map[uint32]*memGeneration{}
	}
	g := s.streams[session][number]
	if g == nil {
		g = &memGeneration{start: start, end: start, newline: true, lines: map[int64][]byte{}, notes: map[int64]transcript.Oversize{}}
		s.streams[session][number] = g
	}
	return g
}

// view is the lines of a generation as a reader sees them; nil where there is none.
func (s *memServer) view(session string, number uint32) (lines [][]byte, newline bool) {
	top := s.streams[session][number]
	if top == nil {
		return nil, true
	}
	for i := range top.end {
		lines = append(lines, s.holder(session, number, i).lines[i])
	}
	return lines, top.newline
}

// holder is the generation from which a view has a line.
func (s *memServer) holder(session string, number uint32, line int64) *memGeneration {
	for n := int64(number); n >= 0; n-- {
		if g := s.streams[session][uint32(n)]; g != nil && g.start <= line {
			return g
		}
	}
	return &memGeneration{}
}

// newest is the bytes of a stream's newest generation.
func (s *memServer) newest(session string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var number uint32
	for n := range s.streams[session] {
		number = max(number, n)
	}
	lines, newline := s.view(session, number)
	text := string(bytes.Join(lines, []byte("\n")))
	if newline && len(lines) > 0 {
		text += "\n"
	}
	return text
}

func (s *memServer) digest(w http.ResponseWriter, r *http.Request) {
	escaped := strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/api/sessions/"), "/digest")
	session, _ := url.PathUnescape(escaped)
	if s.streams[session] == nil {
		notFound(w)
		return
	}
	out := s.account(session)
	if q := r.URL.Query(); q.Has("from") {
		number, _ := strconv.Atoi(q.Get("generation"))
		from, _ := strconv.Atoi(q.Get("from"))
		to, _ := strconv.Atoi(q.Get("to"))
		lines, _ := s.view(session, uint32(number))
		for i := from; i < to; i++ {
			var hash *string
			if i < len(lines) && lines[i] != nil {
				h := lineHash(lines[i])
				hash = &h
			}
			out.LineHashes = append(out.LineHashes, hash)
		}
	}
	json.NewEncoder(w).Encode(out)
}

func lineHash(raw []byte) string {
	sum := sha256.Sum256(append(bytes.Clone(raw), '\n'))
	return hex.EncodeToString(sum[:])
}

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, `{"error":{"code":"not_found","message":"no such session"}}`)
}

// account digests all generations of a stream.
func (s *memServer) account(session string) protocol.Digest {
	out := protocol.Digest{SessionID: session, Epoch: s.epoch}
	for _, number := range slices.Sorted(maps.Keys(s.streams[session])) {
		lines, newline := s.view(session, number)
		g := protocol.ViewDigest{Generation: int64(number), RewoundTo: s.streams[session][number].start, EndLine: int64(len(lines)), EOFNewline: newline}
		sum := sha256.New()
		var layout transcript.Layout
		for i, l := range lines {
			i := int64(i)
			note, over := s.holder(session, number, i).notes[i]
			switch {
			case over:
				layout.Oversize(i, note)
				g.Oversize = append(g.Oversize, protocol.OversizeLine{Line: i, Offset: note.Offset, Length: note.Length, SHA256: hex.EncodeToString(note.SHA256[:])})
			case l != nil:
				g.Lines++
				g.Bytes += int64(len(l)) + 1
				sum.Write(append(bytes.Clone(l), '\n'))
				layout.Line(i)
			}
		}
		g.Missing = g.EndLine - g.Lines
		g.SHA256 = hex.EncodeToString(layout.Sum(g.EndLine, sum.Sum(nil)))
		out.Generations = append(out.Generations, g)
	}
	return out
}

// digests answers about many streams at once.
func (s *memServer) digests(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Sessions []struct {
			SessionID string `json:"session_id"`
		}
		Epochs string
	}
	json.NewDecoder(r.Body).Decode(&q)
	s.asks = append(s.asks, len(q.Sessions))
	answers := []any{}
	for _, x := range q.Sessions {
		d := s.account(x.SessionID)
		switch {
		case s.streams[x.SessionID] == nil:
			answers = append(answers, map[string]any{"session_id": x.SessionID, "machine": nil, "error": map[string]string{"code": "not_found", "message": "no"}})
			continue
		case q.Epochs == "all":
			d = protocol.Digest{SessionID: d.SessionID, Epochs: []protocol.EpochDigest{{Epoch: d.Epoch, Generations: d.Generations}}}
		}
		answers = append(answers, d)
	}
	json.NewEncoder(w).Encode(map[string]any{"digests": answers})
}

// raw answers the bytes of a view.
func (s *memServer) raw(w http.ResponseWriter, r *http.Request) {
	escaped := strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/api/sessions/"), "/raw")
	session, _ := url.PathUnescape(escaped)
	number, _ := strconv.Atoi(r.URL.Query().Get("generation"))
	lines, newline := s.view(session, uint32(number))
	if !r.URL.Query().Has("partial") && slices.ContainsFunc(lines, func(l []byte) bool { return l == nil }) {
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"error":{"code":"incomplete","message":"some lines are not stored"}}`)
		return
	}
	text := bytes.Join(lines, []byte("\n"))
	if newline && len(lines) > 0 {
		text = append(text, '\n')
	}
	w.Write(text)
}

// forget removes a session and its agents' streams.
func (s *memServer) forget(w http.ResponseWriter, r *http.Request) {
	session, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/api/sessions/"))
	lines := 0
	for name, generations := range s.streams {
		if name == session || strings.HasPrefix(name, session+"/") {
			for _, g := range generations {
				lines += len(g.lines)
			}
			delete(s.streams, name)
		}
	}
	if lines == 0 {
		notFound(w)
		return
	}
	if s.forgotten == nil {
		s.forgotten = map[string]bool{}
	}
	s.forgotten[session] = true
	json.NewEncoder(w).Encode(map[string]any{"session_id": session, "user": "", "at": time.Now(), "lines_removed": lines})
}

// list answers all streams with what a deep verify wants to know of them.
func (s *memServer) list(w http.ResponseWriter) {
	list := []any{}
	for name, generations := range s.streams {
		list = append(list, remote.Session{SessionID: name, Epochs: 1, Generation: int64(slices.Max(slices.Collect(maps.Keys(generations))))})
	}
	json.NewEncoder(w).Encode(map[string]any{"sessions": list, "next": nil})
}
