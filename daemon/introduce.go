package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

const (
	maxSessionName = 200  // bytes of a session's name, as others may give it
	maxTitle       = 120  // characters of the name that Claude is told
	maxInitText    = 9000 // bytes; Claude Code cuts what a hook says at 10 000 characters
)

// Init answers what a session's Claude is told at its start. The name and the folder are what they were at the first
// start, so that the text stays the same while the documents do.
func (d *Daemon) Init(ctx context.Context, q control.InitQuery) (control.Init, error) {
	a := control.Init{SchemaVersion: control.SchemaVersion}
	if !sessionName(q.Session) {
		return a, control.Usage("no session is named", "name one with ?session=")
	}
	session := mainSession(q.Session, "")
	i, found, err := d.documents.introduction(ctx, session)
	if err != nil {
		return a, err
	}
	if !found {
		if i, err = d.acquaint(ctx, session, q.Cwd); err != nil {
			return a, err
		}
		if !d.desk.graves.has(session) { // of what was forgotten nothing is kept
			i = d.documents.introduce(i)
		}
	}
	var names []string
	for _, p := range d.documents.papers(session, true) {
		names = append(names, p.Path)
	}
	a.Text = initText(d.conf.Load().Locale, i, names)
	return a, nil
}

// sessionName says whether a session can be named so: a hook names it, or an agent's transcript its parent, and it is
// part of a key.
func sessionName(s string) bool {
	return s != "" && len(s) <= maxSessionName && !strings.ContainsFunc(s, unicode.IsControl)
}

// acquaint finds out the name and the folder of a session.
func (d *Daemon) acquaint(ctx context.Context, session, cwd string) (state.Introduction, error) {
	i := state.Introduction{Session: session, At: time.Now().UnixMilli()}
	if id, ok := d.desk.streamID(session); ok {
		facts, _, err := d.db.Facts(ctx, id)
		if err != nil {
			return i, err
		}
		cwd = cmp.Or(facts.Stream.Cwd, cwd)
		if facts.Watched {
			i.Name = d.userTitle(ctx, id)
		}
	}
	if !filepath.IsAbs(cwd) {
		return i, control.Usage("the working directory of the session is not known", "name it with &cwd=")
	}
	i.Cwd = filepath.Clean(cwd)
	i.Name = cmp.Or(i.Name, oneLine(filepath.Base(i.Cwd), maxTitle))
	return i, nil
}

// titleTime is how long an introduction waits for a title: the hook that asks is to be back within 20 ms.
const titleTime = 8 * time.Millisecond

// userTitle is the title that a session's user gave it, if it is known in time; else "".
func (d *Daemon) userTitle(ctx context.Context, id tail.FileID) (title string) {
	ctx, cancel := context.WithTimeout(ctx, titleTime)
	defer cancel()
	err := d.derive.Query(ctx, id, func(p *derive.FoldStep) error {
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

// introduction answers how a session was introduced.
func (x *documents) introduction(ctx context.Context, session string) (state.Introduction, bool, error) {
	x.mu.Lock()
	i, unsaved := x.unsaved[session]
	x.mu.Unlock()
	if unsaved {
		return i, true, nil
	}
	i, found, err := x.db.Introduction(ctx, session)
	if err != nil {
		return i, false, fmt.Errorf("read introduction: %w", err)
	}
	return i, found, nil
}

// introduce keeps how a session is introduced, unless it was meanwhile, and answers what holds. It does not wait for
// the disk.
func (x *documents) introduce(i state.Introduction) state.Introduction {
	x.mu.Lock()
	defer x.mu.Unlock()
	if first, ok := x.unsaved[i.Session]; ok {
		return first
	}
	x.unsaved[i.Session] = i
	x.ring()
	return i
}

// saveIntroductions makes durable how sessions were introduced. What fails is tried again at the next bell.
func (x *documents) saveIntroductions(ctx context.Context) {
	for {
		x.work.Lock() // nobody forgets the session meanwhile
		i, any := x.nextUnsaved()
		if !any {
			x.work.Unlock()
			return
		}
		_, err := x.db.Introduce(ctx, i)
		if err == nil {
			x.mu.Lock()
			delete(x.unsaved, i.Session)
			x.mu.Unlock()
		} else {
			x.complain("cannot keep how a session was introduced yet", "session", i.Session, "err", err)
		}
		x.work.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *documents) nextUnsaved() (state.Introduction, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, i := range x.unsaved {
		return i, true
	}
	return state.Introduction{}, false
}

// initWords are the words of an introduction in one language.
type initWords struct{ started, name, cwd, documents, more string }

func initWordsIn(locale string) initWords {
	if locale == korean {
		return initWords{"[세션 시작]", "세션 이름", "작업 디렉토리", "연결된 문서 (Read 도구로 읽을 것)", "외 %d개"}
	}
	return initWords{"[Session started]", "Session", "Working directory", "Linked documents (read them with the Read tool)", "and %d more"}
}

// initText is an introduction for Claude.
func initText(locale string, i state.Introduction, documents []string) string {
	w := initWordsIn(locale)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n- %s: %s\n- %s: %s", w.started, w.name, i.Name, w.cwd, oneLine(i.Cwd, maxInitText/2))
	if len(documents) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "\n- %s:", w.documents)
	for n, path := range documents {
		if b.Len()+len(path) > maxInitText {
			fmt.Fprintf(&b, "\n  - "+w.more, len(documents)-n)
			break
		}
		b.WriteString("\n  - " + path)
	}
	return b.String()
}

// oneLine is a text as one line of at most so many characters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	}), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
