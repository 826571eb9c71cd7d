package derive

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
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
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
