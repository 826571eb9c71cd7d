package show

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/e2e/kit"
)

func TestMessagesView(t *testing.T) {
	v := View{Zone: time.UTC}
	text := v.Messages(showtest.Messages())
	want := `장바구니 반올림

09:05  user    장바구니의 반올림을 고쳐 주세요
09:05  claude  I will look.
09:05  tool    Bash look ls → cart.go
09:05  tool    Edit /cart.go ✗ permission denied [2J second line
09:05  tool    Read /b.go …
       tool    ? (stopped)
09:05  error   overloaded
09:05  turn    12.5 s, 1k tokens in (30 new, 270 cache write, 700 cache read), 500 out, interrupted
09:05  —       interrupted by the user
09:05  user    /model opus
09:05  —       conversation auto-compacted at 167k tokens, 9k tokens left
09:05  —       context cleared; the conversation goes on
09:05  other   session checkout: stop editing
09:05  user    (via telegram) deploy
there are 1 older one: --limit, or --offset 14
`
	kit.Check(t, text == strings.Replace(want, "are 1 older one", "are 1 older one", 1), "got:\n%s", text)
	v.Columns, v.Colours = 24, true
	for line := range strings.Lines(v.Messages(showtest.Messages())) {
		n := term.Width(showtest.Uncoloured(strings.TrimSuffix(line, "\n")))
		kit.Check(t, n <= 24 || strings.HasPrefix(line, "there are"), "%d columns: %q", n, line)
		kit.Check(t, strings.Count(line, "\x1b[") != 1, "a colour that does not end: %q", line)
	}
}
