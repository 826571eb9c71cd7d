package protocol

import (
	"net/http"
	"strconv"
	"strings"
)

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
