package derive

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

const (
	maxTitle    = 120  // characters of a session's name in the text
	maxInitText = 9000 // bytes; Claude Code cuts the output of a hook at 10 000 characters
)

// Init returns the introduction of a session's Claude. It uses the folder of the session's first start and the name
// that the user gave it, so the text changes only when that or the documents do. It stands for the notices of the
// documents that it names. With q.Confirm it counts as passed on when the receipt comes back: see Pending.
func (b *Inbox) Init(ctx context.Context, q control.InitQuery) (control.Init, error) {
	a := control.Init{SchemaVersion: control.SchemaVersion}
	if !transcript.ValidSession(q.Session) {
		return a, control.Usage("no session is named", "name one with ?session=")
	}
	session := transcript.MainSession(q.Session, "")
	text, linked, err := b.introduction(ctx, session, q)
	if err != nil {
		return a, err
	}
	a.Text = text
	b.deps.Introductions.started(session)
	_, receipt := b.notices.lend(session, true, func(p *projection.Notice) bool { return named(p, linked) })
	if !q.Confirm {
		b.notices.confirm(ctx, receipt)
		return a, nil
	}
	a.Receipt = receipt
	return a, nil
}

// introduction returns the text of a session's introduction, and the documents that it names. The name that the user
// gave the session goes before its first name, and a session whose Claude may believe in documents that are not linked
// is shown when there are none.
func (b *Inbox) introduction(ctx context.Context, session string,
	q control.InitQuery) (text string, linked []string, err error) {
	i, found, err := b.deps.Introductions.Get(ctx, session)
	if err != nil {
		return "", nil, err
	}
	if !found {
		if i, err = b.introduce(ctx, session, q); err != nil {
			return "", nil, err
		}
		if !b.deps.Sessions.Forgotten(session) { // nothing of a forgotten session is stored
			i = b.deps.Introductions.add(i)
		}
	}
	title := oneLine(q.Title, maxTitle)
	if id, ok := b.deps.Sessions.StreamID(session); ok && title == "" && found {
		title = b.userTitle(ctx, id)
	}
	i.Name = cmp.Or(title, i.Name)
	i.Copied = i.Copied || b.deps.Introductions.wentBack(session)
	linked = b.deps.Documents.Linked(session)
	text, named := initText(b.deps.Settings.Locale(), i, linked)
	return text, linked[:named], nil
}

// introduce makes the introduction of a session. The folder that q names counts if no transcript has one.
func (b *Inbox) introduce(ctx context.Context, session string, q control.InitQuery) (projection.Introduction, error) {
	i := projection.Introduction{Session: session, At: time.Now().UnixMilli(), NotShown: true,
		Name: oneLine(q.Title, maxTitle), Copied: q.Source == "fork" || q.Source == "resume"}
	cwd := q.Cwd
	if id, ok := b.deps.Sessions.StreamID(session); ok {
		facts, _, err := b.deps.Projections.State.Files.Routing(ctx, id)
		if err != nil {
			return i, err
		}
		cwd = cmp.Or(facts.Stream.Cwd, cwd)
		if facts.Watched {
			i.Name = cmp.Or(i.Name, b.userTitle(ctx, id))
		}
	}
	if !filepath.IsAbs(cwd) {
		return i, control.Usage("the working directory of the session is not known", "name it with &cwd=")
	}
	i.Cwd = filepath.Clean(cwd)
	i.Name = cmp.Or(i.Name, oneLine(filepath.Base(i.Cwd), maxTitle))
	return i, nil
}

// titleTime is how long an introduction waits for a title: the hook must return within 20 ms.
const titleTime = 8 * time.Millisecond

// userTitle returns the title that the user gave a session; "" if there is none or it is not known in time.
func (b *Inbox) userTitle(ctx context.Context, id tail.FileID) (title string) {
	ctx, cancel := context.WithTimeout(ctx, titleTime)
	defer cancel()
	err := b.deps.Deriver.Query(ctx, id, func(p *FoldStep) error {
		if sum := p.Session.Summary(); sum.TitleKind == transcript.CustomTitle {
			title = oneLine(sum.Title, maxTitle)
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return title
}

// initWords are the words of an introduction in one language.
type initWords struct{ started, name, cwd, documents, more, none string }

func initWordsIn(locale string) initWords {
	if locale == korean {
		return initWords{"[세션 시작]", "세션 이름", "작업 디렉토리", "연결된 문서 (Read 도구로 읽을 것)", "외 %d개", "연결된 문서: 없음"}
	}
	return initWords{
		"[Session started]", "Session", "Working directory", "Linked documents (read them with the Read tool)", "and %d more",
		"Linked documents: none",
	}
}

// initText returns the text of an introduction for Claude, and how many of the documents it names.
func initText(locale string, i projection.Introduction, documents []string) (text string, named int) {
	w := initWordsIn(locale)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n- %s: %s\n- %s: %s", w.started, w.name, i.Name, w.cwd, oneLine(i.Cwd, maxInitText/2))
	if len(documents) == 0 {
		if i.Copied {
			b.WriteString("\n- " + w.none)
		}
		return b.String(), 0
	}
	fmt.Fprintf(&b, "\n- %s:", w.documents)
	for n, path := range documents {
		if b.Len()+len(path) > maxInitText {
			fmt.Fprintf(&b, "\n  - "+w.more, len(documents)-n)
			return b.String(), n
		}
		b.WriteString("\n  - " + path)
	}
	return b.String(), len(documents)
}

// oneLine returns a text as one line of at most that many characters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	}), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// introductionsKept is how long the introduction of a session without documents is stored: much longer than Claude Code
// keeps a transcript.
const introductionsKept = 400 * 24 * time.Hour

// retryAfter is how long after a failure a save is tried again.
const retryAfter = 2 * time.Second

// Introductions stores how sessions were introduced at their first start. Callers do not wait for the disk. Its methods
// are safe for concurrent use.
type Introductions struct {
	projections *projection.DB
	log         *slog.Logger
	bell        outbox.Bell // rings when there is something to save

	saving  sync.Mutex // held while one is saved, so that its session is not forgotten meanwhile; taken before mu
	failing bool       // the last save failed; guarded by saving

	mu      sync.Mutex
	unsaved map[string]projection.Introduction // by session, not durable yet; guarded by mu
	knows   map[string]bool                    // by session: whether its Claude was introduced; some; guarded by mu
	shownAt map[string]int64                   // by session: line on which it was shown documents last; guarded by mu
	back    map[string]bool                    // sessions of which a rewind took what was shown; guarded by mu
}

// maxKnown is how many sessions are remembered as introduced or not.
const maxKnown = 4096

// LoadIntroductions returns the introductions in the state, and removes those that are too old. An inbox's Run saves
// new ones.
func LoadIntroductions(ctx context.Context, projections *projection.DB, log *slog.Logger) (*Introductions, error) {
	if err := projections.Introductions.Forget(ctx, time.Now().Add(-introductionsKept).UnixMilli()); err != nil {
		return nil, err
	}
	return &Introductions{projections: projections, log: log, bell: outbox.NewBell(),
		unsaved: map[string]projection.Introduction{}, knows: map[string]bool{},
		shownAt: map[string]int64{}, back: map[string]bool{}}, nil
}

// Get returns how a session was introduced; false if it was not.
func (s *Introductions) Get(ctx context.Context, session string) (projection.Introduction, bool, error) {
	s.mu.Lock()
	i, unsaved := s.unsaved[session]
	s.mu.Unlock()
	if unsaved {
		return i, true, nil
	}
	i, found, err := s.projections.Introductions.Get(ctx, session)
	if err != nil {
		return i, false, fmt.Errorf("read introduction: %w", err)
	}
	return i, found, nil
}

// add stores how a session is introduced, unless another request came first. It returns the stored introduction.
func (s *Introductions) add(i projection.Introduction) projection.Introduction {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.unsaved[i.Session]; ok {
		return first
	}
	s.unsaved[i.Session] = i
	s.bell.Ring()
	return i
}

// started notes that a session starts: its Claude was not introduced this time.
func (s *Introductions) started(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.know(session, false)
}

// markShown notes that a session's Claude was shown its introduction.
func (s *Introductions) markShown(ctx context.Context, session string) {
	s.mu.Lock()
	known := s.knows[session]
	s.know(session, true)
	s.mu.Unlock()
	if known {
		return
	}
	i, found, err := s.Get(ctx, session)
	if err != nil || !found || !i.NotShown {
		return // after an error it is shown once more
	}
	i.NotShown = false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved[session] = i
	s.bell.Ring()
}

// shownOn notes the line on which a transcript shows that its Claude was shown documents, or asked for a link.
func (s *Introductions) shownOn(session string, line int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shownAt) >= maxKnown {
		clear(s.shownAt)
	}
	s.shownAt[session] = line
}

// rewound notes a rewind: when it took what a session's Claude was shown documents, or may have, that is shown again.
func (s *Introductions) rewound(name string, r *session.Rewind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.shownAt[name]; known && !r.Leaves(at) {
		return
	}
	if len(s.back) >= maxKnown {
		clear(s.back)
	}
	s.back[name] = true
	s.know(name, false)
}

// wentBack reports whether a rewind took what a session's Claude was shown.
func (s *Introductions) wentBack(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back[session]
}

// know remembers whether a session's Claude was introduced. The caller holds mu.
func (s *Introductions) know(session string, shown bool) {
	if len(s.knows) >= maxKnown {
		clear(s.knows) // the state has most of it
	}
	s.knows[session] = shown
}

// missing reports whether a session's Claude was not shown its introduction.
func (s *Introductions) missing(ctx context.Context, session string) bool {
	s.mu.Lock()
	shown, known := s.knows[session]
	s.mu.Unlock()
	if known {
		return !shown
	}
	i, found, err := s.Get(ctx, session)
	if err != nil {
		return false
	}
	shown = found && !i.NotShown
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, known := s.knows[session]; known {
		return !now
	}
	s.know(session, shown)
	return !shown
}

// forget drops what is not durable yet of a session and its further files.
func (s *Introductions) forget(session string) {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(name string) bool { return slices.Contains(transcript.ForgetNames(name), session) }
	maps.DeleteFunc(s.unsaved, func(name string, _ projection.Introduction) bool { return of(name) })
	maps.DeleteFunc(s.knows, func(name string, _ bool) bool { return of(name) })
}

// save makes all introductions durable. It stops at the first failure.
func (s *Introductions) save(ctx context.Context) error {
	for {
		if more, err := s.saveOne(ctx); err != nil || !more {
			return err
		}
	}
}

func (s *Introductions) saveOne(ctx context.Context) (more bool, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	var i projection.Introduction
	s.mu.Lock()
	for _, i = range s.unsaved {
		break
	}
	s.mu.Unlock()
	if i.Session == "" {
		return false, nil
	}
	_, err = s.projections.Introductions.Introduce(ctx, i)
	if err != nil && !s.failing {
		s.log.Warn("cannot save how a session was introduced; retrying", "session", i.Session, "err", err)
	}
	if s.failing = err != nil; s.failing {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved[i.Session] == i {
		delete(s.unsaved, i.Session)
	}
	return true, nil
}
