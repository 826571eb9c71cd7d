package derive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/transcript/session"
)

// A notice that a hook has printed and the transcript does not show is handed over once more when both are over: a hook
// may print what nobody reads, and Claude Code writes down what it has read only with its next request to the model.
const (
	againAfter   = time.Minute
	againAnswers = 2 // the request for the second one was made after the hook had printed
)

// notices hands over notices: each at least once, and at most twice. A notice stays in the state until the transcript
// shows it, or a hook has printed it twice. Hooks do not wait for the disk. Its methods are safe for concurrent use.
type notices struct {
	projections   *projection.DB
	introductions *Introductions
	log           *slog.Logger
	bell          outbox.Bell
	follow        *follow

	leaseTime, againAfter time.Duration

	mu       sync.Mutex
	sessions map[string]*listener         // guarded by mu
	leases   map[string]*lease            // by receipt; guarded by mu
	unsaved  map[uint64]projection.Notice // printed, which the state does not know yet; guarded by mu
	failing  bool                         // the last save failed; guarded by mu
}

// listener is a session that has notices: what is known of it and them beyond the state.
type listener struct {
	handed     map[uint64]*handOver // by the notices' numbers
	introduced bool                 // a lease holds its introduction
	answer     string               // id of the newest message of the model
	version    string               // of Claude Code
}

// handOver is how far a notice has come.
type handOver struct {
	leased    bool
	prints    int       // by hooks
	printedAt time.Time // last
	answers   int       // of the model since then
	shown     bool      // the transcript shows it
}

// NewNotices returns the notices in the state. An inbox's Run saves what becomes of them.
func NewNotices(projections *projection.DB, introductions *Introductions, log *slog.Logger) *notices {
	return &notices{
		projections: projections, introductions: introductions, log: log, bell: introductions.bell, follow: newFollow(),
		leaseTime: leaseTime, againAfter: againAfter, sessions: map[string]*listener{}, leases: map[string]*lease{},
		unsaved: map[uint64]projection.Notice{},
	}
}

// listenerOf returns what is known of a session, and begins to know it. The caller holds mu.
func (n *notices) listenerOf(session string) *listener {
	l := n.sessions[session]
	if l == nil {
		l = &listener{handed: map[uint64]*handOver{}}
		n.sessions[session] = l
	}
	return l
}

// of returns how far a notice has come. The caller holds mu.
func (l *listener) of(p *projection.Notice) *handOver {
	h := l.handed[p.Seq]
	if h == nil {
		h = &handOver{}
		if p.Printed > 0 {
			h.prints, h.printedAt = 1, time.UnixMilli(p.Printed)
		}
		l.handed[p.Seq] = h
	}
	return h
}

// due reports whether a hook may have the notice now. The caller holds mu.
func (n *notices) due(h *handOver) bool {
	switch {
	case h.leased, h.shown:
		return false
	case h.prints == 0:
		return true
	}
	// A clock that was ahead at the time holds a notice up no longer than one that was right.
	return h.prints == 1 && h.answers >= againAnswers && time.Since(h.printedAt).Abs() >= n.againAfter
}

// held returns a session's notices that are due, oldest first. The caller holds mu.
func (n *notices) held(session string) (list []projection.Notice) {
	all := n.projections.Notices.Of(session)
	l := n.sessions[session]
	if len(all) == 0 {
		if l != nil && !l.introduced {
			delete(n.sessions, session)
		}
		return nil
	}
	l = n.listenerOf(session)
	for i := range all {
		if n.due(l.of(&all[i])) {
			list = append(list, all[i])
		}
	}
	return list
}

// any reports whether there is something to tell a session now.
func (n *notices) any(session string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.held(session)) > 0
}

// print notes that a hook has printed notices. The caller holds mu.
func (n *notices) print(session string, list []projection.Notice) {
	l := n.listenerOf(session)
	now := time.Now()
	for _, p := range list {
		h := l.of(&p)
		h.prints++
		h.printedAt, h.answers = now, 0
		if p.Printed = now.UnixMilli(); h.prints > 1 {
			p.Printed = finished
		}
		n.unsaved[p.Seq] = p
	}
	n.bell.Ring()
}

// finished is in the field Printed of notices that are to be removed. The state never holds it.
const finished = -1

// answered notes that the model has answered. In a version that does not write down what hooks print, what was printed
// counts as shown then.
func (n *notices) answered(session, message, version string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.sessions[session]
	if l == nil || l.answer == message {
		return
	}
	l.answer, l.version = message, version
	for _, p := range n.projections.Notices.Of(session) {
		h := l.of(&p)
		if h.prints == 0 {
			continue
		}
		if h.answers++; h.answers >= againAnswers && !h.shown && !writesHooks(version) {
			p.Printed, h.shown = finished, true
			n.unsaved[p.Seq] = p
			n.bell.Ring()
		}
	}
}

// writesHooks reports whether a version of Claude Code writes into the transcript what the model was shown by hooks:
// those from 2.1.98 on were seen to. A version that is not known does.
func writesHooks(version string) bool {
	first := [3]int{2, 1, 98}
	parts := strings.SplitN(version, ".", 3)
	var numbers [3]int
	for i, part := range parts {
		number, err := strconv.Atoi(part)
		if err != nil {
			return true
		}
		numbers[i] = number
	}
	return len(parts) < 3 || slices.Compare(numbers[:], first[:]) >= 0
}

// shown notes that a session's transcript shows a text of a hook, and returns the notices that are in it.
func (n *notices) shown(session, text string) (shown []projection.Notice) {
	all := n.projections.Notices.Of(session)
	if len(all) == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listenerOf(session)
	for i := range all {
		if contains(text, &all[i]) {
			l.of(&all[i]).shown = true
			shown = append(shown, all[i])
		}
	}
	return shown
}

// forget drops what is in memory for a session. The notices are in the state.
func (n *notices) forget(session string) {
	n.follow.forget(session)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.sessions, session)
	for receipt, l := range n.leases {
		if l.session == session {
			l.timer.Stop()
			delete(n.leases, receipt)
		}
	}
	for seq, p := range n.unsaved {
		if p.Session == session {
			delete(n.unsaved, seq)
		}
	}
}

// run makes durable how sessions were introduced and which notices were printed, until ctx is done and all is saved.
func (n *notices) run(ctx context.Context) error {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return n.save(context.WithoutCancel(ctx))
		case <-n.bell:
		case <-retry.C:
		}
		if err := n.save(ctx); err != nil {
			retry.Reset(retryAfter)
		}
	}
}

// save makes durable what is not. Until then a crash has notices handed over again.
func (n *notices) save(ctx context.Context) error {
	return errors.Join(n.introductions.save(ctx), n.saveNotices(ctx))
}

func (n *notices) saveNotices(ctx context.Context) (err error) {
	n.mu.Lock()
	var printed, shown []projection.Notice
	for _, p := range n.unsaved {
		if p.Printed == finished {
			shown = append(shown, p)
		} else {
			printed = append(printed, p)
		}
	}
	n.mu.Unlock()
	if len(printed) > 0 {
		err = n.projections.Notices.SetPrinted(ctx, printed)
	}
	if err == nil && len(shown) > 0 {
		_, err = n.projections.Commit(ctx, []projection.Derivation{{Shown: shown}})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		if !n.failing && ctx.Err() == nil {
			n.log.Warn("cannot save which notices were handed over; retrying", "err", err)
		}
		n.failing = true
		return err
	}
	n.failing = false
	for _, p := range slices.Concat(printed, shown) {
		if n.unsaved[p.Seq] == p {
			delete(n.unsaved, p.Seq)
		}
	}
	return nil
}

// noticeWords are the texts of notices in one language. Their arguments are a percentage and a checkpoint's id.
type noticeWords struct {
	at80, at90 string
	compact    string // with the id alone
	document   string // the paths follow
	refused    string // the paths and reasons follow
}

// korean is a value of the option locale.
const korean = "ko"

func noticeWordsIn(locale string) noticeWords {
	refusedEnglish, refusedKorean := session.LinkRefused()
	if locale == korean {
		return noticeWords{
			at80: "💾 [ccship] 자동 체크포인트 생성됨 (토큰 사용량 %d%%)\n   체크포인트: %s\n   Compact 발생 시 이 시점으로 복구 가능",
			at90: "⚠️ [ccship] 토큰 사용량 위험 수준 (%d%%)\n   💡 현재 작업을 마무리하고 새 세션으로 분리하는 것을 권장합니다.\n" +
				"   📋 checkpoint_list 도구로 체크포인트 확인 가능 (%s)",
			compact:  "💾 [ccship] 대화가 Compact됨\n   체크포인트: %s\n   checkpoint_get 도구로 Compact 이전 작업 확인 가능",
			document: "[문서 연결됨]", refused: refusedKorean,
		}
	}
	return noticeWords{
		at80: "💾 [ccship] Automatic checkpoint made (%d%% of the token budget used)\n   Checkpoint: %s\n" +
			"   After a compaction the work can be recovered from here",
		at90: "⚠️ [ccship] Token budget nearly used up (%d%%)\n   💡 Finish the current work and continue in a new " +
			"session.\n" +
			"   📋 The checkpoint_list tool lists the checkpoints (%s)",
		compact: "💾 [ccship] The conversation was compacted\n   Checkpoint: %s\n   The checkpoint_get tool shows the " +
			"work before it",
		document: "[Document linked]", refused: refusedEnglish,
	}
}

// noticeText returns the text of notices for Claude, in order. Consecutive notices of one kind about documents become
// one.
func noticeText(locale string, list []projection.Notice) string {
	words := noticeWordsIn(locale)
	var lines []string
	kind := "" // of the notice before
	for i := range list {
		p := &list[i]
		switch head := words.heading(p.Kind); {
		case head == "":
			if text := words.checkpoint(p); text != "" {
				lines = append(lines, text)
			}
		case p.Kind != kind:
			lines = append(lines, head, documentLine(p))
		default:
			lines = append(lines, documentLine(p))
		}
		kind = p.Kind
	}
	return strings.Join(lines, "\n")
}

// heading returns the line before notices of a kind about documents; "" for other kinds.
func (w *noticeWords) heading(kind string) string {
	switch kind {
	case projection.NoticeDocument:
		return w.document
	case projection.NoticeRefused:
		return w.refused
	}
	return ""
}

// maxDocumentLine bounds the parts of a line about a document, in characters.
const maxDocumentLine = 500

// documentLine returns the line about a document. Its parts come from Claude and from file systems.
func documentLine(p *projection.Notice) string {
	line := "- " + oneLine(p.Path, maxDocumentLine)
	if p.Reason != "" {
		line += ": " + oneLine(p.Reason, maxDocumentLine)
	}
	return line
}

func (w *noticeWords) checkpoint(p *projection.Notice) string {
	switch session.Trigger(p.Kind) {
	case session.Trigger80:
		return fmt.Sprintf(w.at80, percent(p), p.Checkpoint)
	case session.Trigger90:
		return fmt.Sprintf(w.at90, percent(p), p.Checkpoint)
	case session.TriggerCompact:
		return fmt.Sprintf(w.compact, p.Checkpoint)
	}
	return ""
}

// percent returns the used part of the budget, rounded down: 79.99 % is not 80 %.
func percent(p *projection.Notice) int64 {
	if p.Budget <= 0 {
		return 0
	}
	return p.Tokens * 100 / p.Budget
}
