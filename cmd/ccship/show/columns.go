package show

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// unknown stands for a number that is not known: it is not 0.
const unknown = "–"

// leastLast is how many columns the last cell of a row is worth: for fewer, others give way.
const leastLast = 28

// squeezed leaves out columns, in the order that says which is needed least, until the last one has space for some
// words. columns 0 leaves all.
func squeezed(signs string, rows [][]string, columns int, order []int) (string, [][]string) {
	widths := widest(signs, rows)
	out := map[int]bool{}
	for _, next := range order {
		need := min(widths[len(widths)-1], leastLast)
		for i, width := range widths[:len(widths)-1] {
			if !out[i] {
				need += width + 2
			}
		}
		if columns == 0 || need <= columns {
			break
		}
		out[next] = true
	}
	left := make([][]string, len(rows))
	for i, row := range rows {
		left[i] = without(row, out)
	}
	return string(without([]byte(signs), out)), left
}

// widest returns the widths of columns.
func widest(signs string, rows [][]string) []int {
	widths := make([]int, len(signs))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], term.Width(cell))
		}
	}
	return widths
}

// rows writes what is known under a name, a line each.
func rows(b *strings.Builder) func(name, text string) {
	return func(name, text string) {
		if text = term.Printable(text); text != "" {
			b.WriteString(term.Pad(name, 12) + text + "\n")
		}
	}
}

// without returns the items whose place is not in out.
func without[T any](items []T, out map[int]bool) []T {
	var left []T
	for i, item := range items {
		if !out[i] {
			left = append(left, item)
		}
	}
	return left
}

// table writes rows, a line each, which end where the terminal does; see aligned.
func (v View) table(signs string, rows [][]string) string {
	var b strings.Builder
	for _, line := range aligned(signs, rows) {
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}

// aligned are rows of as many cells as signs has characters, each column as wide as its widest cell. '<' aligns a
// column left, '>' right.
func aligned(signs string, rows [][]string) []string {
	widths := widest(signs, rows)
	lines := make([]string, len(rows))
	for n, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = term.Pad(cell, widths[i]); signs[i] == '>' {
				cells[i] = strings.Repeat(" ", widths[i]-term.Width(cell)) + cell
			}
		}
		lines[n] = strings.TrimRight(strings.Join(cells, "  "), " ")
	}
	return lines
}

// LineWidth is the most columns of `status --line`.
const LineWidth = 80

// lineWatching returns what the line says when nothing waits.
func lineWatching(s control.Status) (symbol, words string) {
	switch {
	case advised(s, "state_gone"):
		return "!", "the state folder is gone"
	case unlisted(s):
		return "!", "some folders can't be listed"
	case advised(s, "unreadable"):
		return "!", "some files can't be read"
	}
	return "●", "up to date"
}

// StatusLine returns a status in a few words, behind its symbol where there are symbols.
func (v View) StatusLine(s control.Status) string {
	s = plain(s)
	symbol, words := lineWatching(s)
	switch s.State {
	case "importing":
		symbol, words = "◐", "importing"
		if f := s.Files; f != nil && f.Bytes > 0 {
			words += fmt.Sprintf(" %d %%", 100*f.ReadBytes/f.Bytes)
		}
	case "reading", "sending":
		symbol, words = "↑", "sending"
	case "retrying":
		symbol, words = "!", "retrying"
	case "refused":
		symbol, words = "✗", "server refuses"
		for _, srv := range s.Servers {
			if srv.State == "refused" {
				words = "server " + trouble(srv, "refuses")
				break
			}
		}
	case "paused":
		symbol, words = "‖", "paused"
		if s.Pause != nil && s.Pause.Until != nil {
			words += " " + PauseEnd(v.Now, s.Pause)
		}
	case "full":
		symbol, words = "✗", "outbox full"
	case "no_server":
		symbol, words = "○", "no server set"
	}
	parts := []string{words}
	if contact, trouble := v.lineContact(s); contact != "" {
		parts = append(parts, contact)
		if trouble {
			symbol = "!"
		}
	}
	if s.Outbox != nil && s.Outbox.Entries > 0 {
		parts = append(parts, amount.Count(s.Outbox.Entries)+" waiting")
	}
	if s.Outbox != nil && s.Outbox.Dead > 0 {
		parts = append(parts, amount.Count(s.Outbox.Dead)+" refused")
	}
	line := "ccship: " + strings.Join(parts, ", ")
	if v.Symbols {
		return symbol + " " + line
	}
	return line
}

// StatusSummary returns a status in one line.
func StatusSummary(s control.Status) string {
	s = plain(s)
	parts := []string{s.State}
	if s.Files != nil {
		parts = append(parts, amount.Counted(int64(s.Files.Tracked), "transcript", "transcripts"))
		if s.State == "importing" {
			parts = append(parts, amount.Size(s.Files.ReadBytes)+" of "+amount.Size(s.Files.Bytes)+" read")
		}
	}
	if s.Outbox != nil {
		parts = append(parts, amount.Count(s.Outbox.Entries)+" waiting")
	}
	if s.Sent != nil {
		parts = append(parts, amount.Count(s.Sent.Entries)+" sent")
	}
	for _, n := range s.Advice {
		parts = append(parts, term.OneLine(n.Text))
	}
	return strings.Join(parts, ", ")
}

// PauseEnd says how long a pause goes on.
func PauseEnd(now time.Time, p *control.Pause) string {
	if p == nil || p.Until == nil {
		return "until `ccship unpause`"
	}
	return "for " + amount.Duration(p.Until.Sub(now).Round(time.Second))
}

// plain returns a copy of an answer whose texts can neither steer a terminal nor begin a line: others wrote them.
func plain[T any](answer T) T {
	v := reflect.New(reflect.TypeFor[T]()).Elem()
	v.Set(reflect.ValueOf(answer))
	clean(v)
	return v.Interface().(T) //nolint:forcetypeassert // it has that type
}

// clean replaces the texts in v. What v points to is copied first.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(term.Harmless(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			clean(own.Elem())
			v.Set(own)
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 { // bytes are no text yet
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			clean(own.Index(i))
		}
		v.Set(own)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		own := reflect.MakeMap(v.Type())
		for entries := v.MapRange(); entries.Next(); {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(entries.Key())
			value.Set(entries.Value())
			clean(key)
			clean(value)
			own.SetMapIndex(key, value)
		}
		v.Set(own)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() { // fields of others' types, such as a time's, hold no text
				clean(v.Field(i))
			}
		}
	default:
	}
}

// shortID is how much of an id lists show.
const shortID = 8

// shortened are ids of items as long as it takes to tell them apart. One that has another's in front stays whole: an
// agent's, and that of a session's further file.
func shortened[T any](items []T, idOf func(*T) string) []string {
	ids, out := make([]string, len(items)), make([]string, len(items))
	for i := range items {
		ids[i] = idOf(&items[i])
	}
	for i, id := range ids {
		n := min(shortID, len(id))
		if strings.Contains(id, "/") {
			n = len(id)
		}
		for j, other := range ids {
			if other != id && strings.HasPrefix(id, other) {
				n = len(id)
			}
			for i != j && other != id && n < len(id) && strings.HasPrefix(other, id[:n]) && !strings.HasPrefix(other, id+"/") {
				n++
			}
		}
		out[i] = term.Printable(id[:n])
	}
	return out
}

// Since reads a day, a time, or how long ago; "" is the beginning of time.
func Since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	var days float64
	n, err := fmt.Sscanf(text, "%fd", &days)
	if err == nil && n == 1 && strings.HasSuffix(text, "d") && days >= 0 && days < 36525 {
		return now.Add(-time.Duration(days * 24 * float64(time.Hour))), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, control.Usage(fmt.Sprintf("invalid time %q", text), "a time looks like 2026-11-01, 36h or 7d")
}

// Until reads what Since reads, as an end that is not included: a day ends at its midnight. "" is no end.
func Until(text string, now time.Time) (time.Time, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	return Since(text, now)
}
