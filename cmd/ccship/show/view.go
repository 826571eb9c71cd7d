// Package show writes the answers of the daemon, the doctor and the library as text for people: status, lists, reports,
// and what to do about a problem. It asks nobody and prints nothing; the verbs of ccship do.
package show

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
)

// View writes answers as they look at one moment on one output.
type View struct {
	Now     time.Time
	Zone    *time.Location
	Columns int // 0: no line is cut or broken
	Colours bool
	Symbols bool                           // beyond ASCII, in the doctor's report
	Bar     func(done, total int64) string // draws progress; nil writes it in words
}

// On is the view that suits w, now.
func On(w io.Writer) View {
	columns, _ := term.Columns(w)
	return View{Now: time.Now(), Zone: time.Local, Columns: columns, Colours: term.Colours(w),
		Symbols: term.UTF8(os.LookupEnv)}
}

// The colours, by meaning.
const (
	good   = "32"
	busy   = "36"
	uneasy = "33"
	bad    = "31"
	faint  = "2"
	bold   = "1"
)

func (v View) paint(code, text string) string {
	if !v.Colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// columnsAfter returns how many columns are left behind a name; 0: any number.
func (v View) columnsAfter(name int) int {
	if v.Columns == 0 {
		return 0
	}
	return max(1, v.Columns-name)
}

func (v View) fit(line string) string {
	if v.Columns > 0 {
		return term.Cut(line, v.Columns)
	}
	return line
}

// when is a time near now in words, else a day.
func (v View) when(t time.Time) string {
	if v.Now.Sub(t) < 24*time.Hour {
		return amount.Ago(v.Now, t)
	}
	return t.In(v.Zone).Format(time.DateOnly)
}

func (v View) minute(t time.Time) string { return t.In(v.Zone).Format("2006-01-02 15:04") }

// humanTokens is a number of tokens in three digits.
func humanTokens(n int64) string {
	if n < 1000 {
		return amount.Counted(n, "token", "tokens")
	}
	return shortTokens(n) + " tokens"
}

// shortTokens is humanTokens without the word.
func shortTokens(n int64) string {
	switch {
	case n >= 999_500:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	return amount.Count(n)
}

// money is what tokens cost; nil: no price is known.
func money(cost *float64) string {
	switch {
	case cost == nil:
		return unknown
	case *cost > 0 && *cost < 0.01:
		return "<$0.01"
	case math.Abs(*cost) >= 1e12: // no sum of tokens, but a server may say so
		return fmt.Sprintf("$%.1e", *cost)
	}
	return fmt.Sprintf("$%.2f", *cost)
}
