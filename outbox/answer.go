package outbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
)

// verdict is what an answer means for the entries of its request.
type verdict uint8

const (
	retryLater          verdict = iota // the same request may succeed later
	refused                            // only a person can fix it
	acknowledged                       // acknowledged
	tooLarge                           // a smaller request may succeed
	rejected                           // something in it is refused for its content
	unsupportedEncoding                // the server does not accept the compression
	damagedRow                         // one of its batches cannot be unpacked
	unsupportedKind                    // the server does not accept this kind
	partial                            // of a blob: chunks remain
	contentGone                        // of a blob: its file has changed or is gone
	outOfStep                          // the server stores other lines than the request continues
)

// Kinds of failures, as Health and the status show them.
const (
	KindUnreachable = "unreachable"  // no connection, or no answer in time
	KindServerError = "server_error" // 5xx
	KindBusy        = "busy"         // 408, 425, 429
	KindProtocol    = "protocol"     // a 2xx that is not this protocol
	KindRefusedKey  = "refused_key"  // 401, 403, or no key to send
	KindRefused     = "refused"      // any other 4xx
	KindNotFound    = "not_found"    // 404, 405, 410
	KindRedirect    = "redirect"     // to a server that must not get the key
	KindUnproven    = "unproven"     // the server does not prove to be the server that was there
	KindOutOfStep   = "out_of_step"  // what the server stores is being compared
	KindOverQuota   = "over_quota"   // 507: the user stores as much as the server allows
)

// hintKey says what to do when the server rejects the key.
const hintKey = "`ccship-server key create --name NAME` on the server makes one; `ccship setup` asks for it"

// hintQuota says what to do when the server stores no more of this user.
const hintQuota = "nothing is lost, it waits here: forget sessions with `ccship forget`, or have the server's owner " +
	"raise the limit with `ccship-server user set`"

// announcement is what the headers of an answer say about the server.
type announcement struct {
	extension, zstd bool
	accepts         Kinds
}

// reply is a classified answer. The zero reply is a failure to retry.
type reply struct {
	verdict      verdict
	status       int // 0: there was no answer
	announced    announcement
	retryAfter   time.Duration
	kind         string
	summary      string // may be logged: holds no text of the server
	message      string // the server's text; shown, not logged
	hint         string
	answer       string           // first bytes of the answer, for dead letters
	forgotten    bool             // with acknowledged: the server has forgotten the stream
	linkRequests bool             // link requests wait at the server
	ledger       protocol.Ledger  // of the answer
	foreign      bool             // from a proxy or another server, not from the known one
	counted      bool             // with acknowledged: it names the number of the entries sent
	entry        bool             // the refusal is about the request's content, in the protocol's words
	refusal      protocol.Refusal // with outOfStep
	damage       *damageError     // with damagedRow
}

// detail is summary and message on one line.
func (r *reply) detail() string {
	if r.message == "" {
		return r.summary
	}
	return r.summary + ": " + r.message
}

const (
	answerKept    = 64 << 10  // bytes of an answer that are read
	answerDrained = 256 << 10 // further bytes discarded so that the connection can be reused
	answerShown   = 1 << 10   // bytes kept with a dead letter
)

// interpret classifies the answer to a request of n entries that was sent compressed, or not.
func interpret(resp *http.Response, text []byte, n int, compressed bool) reply {
	r := reply{
		status:       resp.StatusCode,
		announced:    announcementOf(resp.Header),
		linkRequests: hasToken(resp.Header.Values(protocol.HeaderLinkRequests), "1"),
		ledger:       protocol.LedgerOf(resp.Header),
		retryAfter:   retryAfter(resp.Header, time.Now()),
		summary:      "answered " + statusText(resp.StatusCode),
		answer:       string(text[:min(len(text), answerShown)]),
	}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		r.success(text, n)
		return r
	case code >= 300 && code < 400:
		r.verdict, r.kind = refused, KindRedirect
		r.summary += " to " + RedirectedTo(resp.Header)
		r.hint = "set server_url to the server's new address"
		return r
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		r.verdict, r.kind = retryLater, KindBusy
	case code == http.StatusInsufficientStorage && problemCode(text) == protocol.CodeOverQuota:
		r.verdict, r.kind, r.hint = refused, KindOverQuota, hintQuota
	case code >= 500, code < 200:
		r.verdict, r.kind = retryLater, KindServerError
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		r.verdict, r.kind = refused, KindRefusedKey
		r.hint = hintKey
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusGone:
		r.verdict, r.kind = refused, KindNotFound
		r.hint = "check server_url: no server accepts conversations at that address"
	case code == http.StatusRequestEntityTooLarge:
		r.verdict, r.kind = tooLarge, KindRefused
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		r.verdict, r.kind = rejected, KindRefused
		r.hint = "the server refuses every request; check its log"
	case code == http.StatusConflict && protocol.IsRefusal(problemCode(text)):
		r.outOfStep(problemCode(text))
	case code == http.StatusUnsupportedMediaType && compressed:
		r.verdict, r.kind = unsupportedEncoding, KindRefused
	default:
		r.verdict, r.kind = refused, KindRefused
		r.hint = "check server_url and any proxy between here and the server"
	}
	r.message = problemMessage(text)
	return r
}

// outOfStep makes this reply a refusal because the server stores other lines than the request continues.
func (r *reply) outOfStep(code string) {
	r.verdict, r.kind = outOfStep, KindOutOfStep
	r.refusal = protocol.Refusal{Code: code, Store: r.ledger.Store}
	r.hint = "nothing to do: ccship compares both sides, then delivery continues"
}

// success decides whether a 2xx is an acknowledgement. A captive portal answers 200 too.
func (r *reply) success(text []byte, n int) {
	var a struct {
		Success *bool    `json:"success"`
		Stored  *float64 `json:"entries_stored"`
		Forgot  bool     `json:"forgotten"`
	}
	r.verdict, r.kind = retryLater, KindProtocol
	switch err := json.Unmarshal(text, &a); {
	case err != nil || a.Success == nil:
		r.summary += " with something that is not this protocol"
		r.hint = "check server_url: another program may be answering there"
	case !*a.Success:
		r.summary += " with success:false"
		r.message = problemMessage(text)
	case r.announced.extension && a.Forgot:
		r.verdict, r.kind, r.forgotten = acknowledged, "", true
	case r.announced.extension && a.Stored != nil && *a.Stored != float64(n):
		r.summary += fmt.Sprintf(" but stored %v of %d entries", *a.Stored, n)
	default:
		r.verdict, r.kind, r.counted = acknowledged, "", a.Stored != nil && *a.Stored == float64(n)
	}
}

// forKind adapts the verdict to artifacts: a missing endpoint for them says nothing about lines.
func (r *reply) forKind(k Kind) {
	switch r.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented:
		if k.artifact() {
			r.verdict, r.kind, r.hint = unsupportedKind, "", ""
		}
	}
}

func statusText(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// judgeOrigin finds out who answered. speaks: the server has announced the extension before. Such a server announces it
// in every answer, counts what it stored, and names each refusal in JSON. Any other answer comes from a proxy, or from
// another program at its address: it acknowledges nothing, and no entry is blamed for it.
func (r *reply) judgeOrigin(text []byte, speaks, lines bool) {
	own := r.announced.extension || problemCode(text) != ""
	switch r.verdict {
	case acknowledged:
		if lines && (speaks || r.announced.extension) && !r.forgotten && !r.counted {
			r.verdict, r.kind, r.foreign = retryLater, KindProtocol, true
			r.summary += " without the number of the entries sent"
			r.hint = "check server_url and any proxy: the server that was there before counts what it stores"
		}
	case tooLarge, rejected, refused:
		r.foreign = speaks && !own
		r.entry = own && r.status >= 400 && r.kind != KindRefusedKey
		if r.foreign && r.verdict == rejected {
			r.verdict, r.kind = refused, KindProtocol
			r.summary += " with something that is not this protocol"
			r.hint = "check any proxy between here and the server: it refuses requests"
		}
	}
}

// Announced reports whether an answer announces the extension that this package speaks.
func Announced(h http.Header) bool { return announcementOf(h).extension }

func announcementOf(h http.Header) announcement {
	if !hasToken(h.Values(protocol.HeaderVersion), strconv.Itoa(protocol.Version)) {
		return announcement{}
	}
	a := announcement{extension: true, zstd: hasToken(h.Values("Accept-Encoding"), "zstd")}
	for _, k := range artifactKinds() {
		if hasToken(h.Values(protocol.HeaderAccept), k.announced()) {
			a.accepts = a.accepts.With(k)
		}
	}
	return a
}
