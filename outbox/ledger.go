package outbox

import (
	"net/http"
	"strconv"
	"strings"
)

// Ledger is how many writes of this machine a server's store has, as its last answer said. Client and server both keep
// it, so that each notices when the other, or it itself, went back in time (docs/adr/0041-ledger.md).
type Ledger struct {
	Store   string `json:",omitempty"` // id of the store; "" before its first answer
	Count   int64  `json:",omitempty"`
	Version string `json:",omitempty"` // of the server; "": it does not say
	Writer  string `json:",omitempty"` // Origin.Incarnation of the write that was counted last
}

// Refusals by a server's ledger, as Refusal.Code.
const (
	// CodeOtherStore: another database answers than the one before.
	CodeOtherStore = "other_store"
	// CodeStoreBehind: the database has fewer writes than it acknowledged.
	CodeStoreBehind = "store_behind"
	// CodeWriterBehind: the database has writes that this state does not know.
	CodeWriterBehind = "writer_behind"
	// CodeWriterReplaced: another daemon writes in the name of this machine.
	CodeWriterReplaced = "writer_replaced"
)

// Refusals of one stream, as Refusal.Code.
const (
	// CodeOtherEpoch: another epoch is in front.
	CodeOtherEpoch = "other_epoch"
	// CodeOtherBytes: a line of the generation is stored with other bytes.
	CodeOtherBytes = "other_bytes"
)

// Refusal is a server's answer that what it stores is not what the request goes on from.
type Refusal struct {
	Code   string
	Store  string // id of the store that refuses
	Stream uint64 // of a refusal of one stream; 0: nothing can be sent to this server
}

// ofStream reports whether only one stream is refused.
func ofStream(code string) bool { return code == CodeOtherEpoch || code == CodeOtherBytes }

// isRefusal reports whether an error code is one of those above.
func isRefusal(code string) bool {
	switch code {
	case CodeOtherStore, CodeStoreBehind, CodeWriterBehind, CodeWriterReplaced:
		return true
	}
	return ofStream(code)
}

const (
	writerHeader = "Ccship-Writer"
	ledgerHeader = "Ccship-Ledger"
	serverHeader = "Ccship-Server" // version of the server, in answers to writes
)

// setWriter tells the server who writes, and which writes it knows. known.Writer is this drainer's incarnation.
func setWriter(h http.Header, known *Ledger) {
	if known.Writer == "" {
		return
	}
	text := known.Writer + " " + strconv.FormatInt(known.Count, 10)
	if known.Store != "" {
		text += " " + known.Store
	}
	h.Set(writerHeader, text)
}

// maxVersion bounds what is kept of a server's version, in bytes.
const maxVersion = 64

// ledgerOf reads the ledger of an answer; the zero Ledger when it has none.
func ledgerOf(h http.Header) Ledger {
	store, count, _ := strings.Cut(h.Get(ledgerHeader), " ")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 0 || store == "" {
		return Ledger{}
	}
	version := h.Get(serverHeader)
	return Ledger{Store: store, Count: n, Version: version[:min(len(version), maxVersion)]}
}

// after reports whether an answer's ledger is news: of two answers of one store the higher count is the later one.
func (l Ledger) after(known *Ledger) bool {
	return l.Store != "" && (l.Store != known.Store || l.Count > known.Count)
}
