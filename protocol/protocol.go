// Package protocol is what client and server share: names of headers and errors, the ledger of writes that both keep,
// and how each proves to the other that it knows a key and where it runs. It knows nothing of what they do with them.
package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
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
