// Package protocol is what client and server share: names of headers and errors, the ledger of writes that both keep,
// and how each proves to the other that it knows a key and where it runs. It knows nothing of what they do with them.
package protocol

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Headers of requests.
const (
	// Writer of a write names the daemon's incarnation, the last count of the server's ledger that it knows, and the id
	// of the store that it knows, which is left out before the first answer.
	HeaderWriter = "Ccship-Writer"
)

// Headers of answers to writes.
const (
	HeaderVersion      = "Ccship-Protocol"      // versions of the extension that the server speaks
	HeaderAccept       = "Ccship-Accept"        // kinds of entries that it takes next to lines
	HeaderLedger       = "Ccship-Ledger"        // the store's id, the count of the ledger after the request, and its token
	HeaderServer       = "Ccship-Server"        // the server's own version
	HeaderLinkRequests = "Ccship-Link-Requests" // 1: some wait to be fetched
)

// Store of every answer to a valid key is the store's id: reading from two databases in turn shows.
const HeaderStore = "Ccship-Store"

// Headers of answers that hold a file.
const (
	HeaderGeneration      = "Ccship-Generation" // that is shown
	HeaderLines           = "Ccship-Lines"      // in it
	HeaderMissing         = "Ccship-Missing"    // of these, how many are not stored
	HeaderDocumentVersion = "Ccship-Version"    // number of a document's version
)

// CodeOverQuota is the code of an answer 507: storing the request would exceed a limit of its user. It succeeds once
// something of the user is forgotten or the limit is raised.
const CodeOverQuota = "over_quota"

// Version is the version of the extension that client and server speak.
const Version = 1

// StreamIdentity says in every request which transcript of which machine it is about. The golden requests fix the order
// of its members, and those of Extension.
type StreamIdentity struct {
	Version    int     `json:"v"`
	Machine    string  `json:"machine"`
	Host       string  `json:"host"`
	Epoch      string  `json:"epoch"`
	Path       string  `json:"path"`
	Cwd        string  `json:"cwd"`
	Project    string  `json:"project"`
	Parent     *string `json:"parent_session_id"` // nil: it has none
	Repository string  `json:"repository,omitempty"`
}

// Extension is the ccship object next to the entries of a request: what the base protocol cannot say of them.
type Extension struct {
	StreamIdentity
	Generation int64    `json:"generation"`
	RewoundTo  int64    `json:"rewound_to"` // line at which the generation starts
	From       Position `json:"from"`
	To         Position `json:"to"`
	EOFNewline *bool    `json:"eof_newline"` // absent: true
	Edges      []Edge   `json:"edges,omitempty"`
}

// Position is a place in a transcript, in bytes and lines.
type Position struct {
	Offset int64 `json:"offset"`
	Line   int64 `json:"line"`
}

// Edge is the bytes of a line around its object: [line_index, base64 before, base64 after].
type Edge struct {
	Line          int64
	Before, After []byte
}

// MarshalJSON writes the triple.
func (e Edge) MarshalJSON() ([]byte, error) {
	// Appended to an empty slice, bytes that are nil become "" instead of null.
	return json.Marshal([3]any{e.Line, append([]byte{}, e.Before...), append([]byte{}, e.After...)})
}

// UnmarshalJSON reads the triple.
func (e *Edge) UnmarshalJSON(b []byte) error {
	parts := [3]any{&e.Line, &e.Before, &e.After}
	triple := parts[:]
	if err := json.Unmarshal(b, &triple); err != nil {
		return err
	}
	if len(triple) != len(parts) {
		return fmt.Errorf("an edge has %d parts, not 3", len(triple))
	}
	return nil
}

// maxGaps bounds the counts that Receipts remembers as not seen yet.
const maxGaps = 256

// Receipts are the counts with which a store acknowledged writes. A store counts each write of a machine once, so two
// acknowledgements with one count mean that it went back in time in between: writes that were in flight then are in
// one of its two histories only, and the counts that follow agree. The zero Receipts have seen nothing.
type Receipts struct {
	store string
	high  int64   // the highest count so far
	gaps  []int64 // counts below high that were not seen, ascending: of answers that are lost, late, or another writer's
}

// ReceiptsAfter has seen all counts of a known ledger.
func ReceiptsAfter(known *Ledger) Receipts { return Receipts{store: known.Store, high: known.Count} }

// Repeats takes the ledger of an acknowledgement, and reports whether its count was seen before, or
// is another store's.
func (r *Receipts) Repeats(at *Ledger) bool {
	if at.Store == "" {
		return false // it counted nothing
	}
	if r.store == "" { // a store takes writes of a machine that knows none only if it has no others of that machine
		r.store = at.Store
	}
	if at.Store != r.store {
		return true
	}
	if at.Count <= r.high {
		i, missing := slices.BinarySearch(r.gaps, at.Count)
		if missing {
			r.gaps = slices.Delete(r.gaps, i, i+1)
		}
		return !missing
	}
	for n := max(r.high+1, at.Count-maxGaps); n < at.Count; n++ {
		r.gaps = append(r.gaps, n)
	}
	r.high = at.Count
	if more := len(r.gaps) - maxGaps; more > 0 {
		r.gaps = slices.Delete(r.gaps, 0, more)
	}
	return false
}

// Ledger is how many writes of this machine a server's store has, according to its last answer. Client and server both
// keep it, so that each detects when either of them was set back in time (docs/internals/adr/0041-ledger.md).
type Ledger struct {
	Store   string `json:",omitempty"` // id of the store; "" before its first answer
	Count   int64  `json:",omitempty"`
	Token   string `json:",omitempty"` // that the store drew for the write of that count: another history has another one
	Version string `json:",omitempty"` // of the server; "": it does not say
	Writer  string `json:",omitempty"` // incarnation of the write that was counted last
	// Doubt: the store went back in time, and counts that agree prove nothing until everything is compared.
	Doubt bool `json:",omitempty"`
}

// Writer is who writes to a server, and what it knows of the server's ledger. It is never changed.
type Writer struct {
	Incarnation string // "": no ledger is kept
	Known       Ledger
}

// Refusals by a server's ledger, as Refusal.Code.
const (
	// CodeOtherStore: another database answers than the one that the writer knows.
	CodeOtherStore = "other_store"
	// CodeStoreBehind: the database has fewer writes than it acknowledged: it went back in time.
	CodeStoreBehind = "store_behind"
	// CodeWriterBehind: the database has writes that the writer does not know: its state went back in time, or another
	// writer used its name.
	CodeWriterBehind = "writer_behind"
	// CodeWriterReplaced: another incarnation took over, and still this one writes: two daemons use one machine's name.
	CodeWriterReplaced = "writer_replaced"
)

// Refusals of one stream, as Refusal.Code.
const (
	// CodeOtherEpoch: another epoch is in front. The writer is to go on in that one.
	CodeOtherEpoch = "other_epoch"
	// CodeOtherBytes: a line is stored with other bytes, or the generation with another start. The writer is to begin a
	// new generation.
	CodeOtherBytes = "other_bytes"
)

// Refusal is a server's answer that it stores other lines than the request continues.
type Refusal struct {
	Code   string
	Store  string // id of the store that refuses
	Stream uint64 // of a refusal of one stream; 0: nothing can be sent to this server
}

// RefusesStream reports whether only one stream is refused.
func RefusesStream(code string) bool { return code == CodeOtherEpoch || code == CodeOtherBytes }

// IsRefusal reports whether an error code is one of those above.
func IsRefusal(code string) bool {
	switch code {
	case CodeOtherStore, CodeStoreBehind, CodeWriterBehind, CodeWriterReplaced:
		return true
	}
	return RefusesStream(code)
}

// Set tells the server who writes, and which writes it knows.
func (w *Writer) Set(h http.Header) {
	if w.Incarnation == "" {
		return
	}
	text := w.Incarnation + " " + strconv.FormatInt(w.Known.Count, 10)
	if w.Known.Store != "" {
		text += " " + w.Known.Store
		if w.Known.Token != "" {
			text += " " + w.Known.Token
		}
	}
	h.Set(HeaderWriter, text)
}

// maxVersion bounds what is kept of a server's version, in bytes.
const maxVersion = 64

// LedgerOf reads the ledger of an answer; the zero Ledger when it has none.
func LedgerOf(h http.Header) Ledger {
	store, count, _ := strings.Cut(h.Get(HeaderLedger), " ")
	count, token, _ := strings.Cut(count, " ")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 0 || store == "" {
		return Ledger{}
	}
	version := h.Get(HeaderServer)
	return Ledger{Store: store, Count: n, Token: token, Version: version[:min(len(version), maxVersion)]}
}

// After reports whether an answer's ledger is newer: of two answers of one store the higher count is the later one.
func (l Ledger) After(known *Ledger) bool {
	return l.Store != "" && (l.Store != known.Store || l.Count > known.Count)
}

// KeepVersion fills in the version of a server whose answer does not say it.
func (l *Ledger) KeepVersion(was *Ledger) {
	if l.Version == "" && l.Store == was.Store {
		l.Version = was.Version
	}
}

// Doubted returns the code of the refusal with which a run begins that ended in doubt before its comparison; "": it did
// not.
func (l *Ledger) Doubted() string {
	if l.Doubt {
		return CodeStoreBehind
	}
	return ""
}

// DoubtLike takes the doubt of a later ledger of the same store.
func (l *Ledger) DoubtLike(later *Ledger) {
	if l.Store == later.Store {
		l.Doubt = later.Doubt
	}
}
