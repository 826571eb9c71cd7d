package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

const (
	session1 = "10000000-0000-4000-8000-000000000001"
	env      = `"userType":"external","entrypoint":"cli","cwd":"/home/kim/shop","sessionId":"%s","version":"%s","gitBranch":"main"`
)

var (
	uuidMark = regexp.MustCompile(`«(\d\d)»`)
	timeMark = regexp.MustCompile(`«(\d\d):(\d\d)»`)
)

// fixture is a conversation of testdata/derive with its marks put in: «01» is a uuid, «00:05» a time, «ENV» what
// records of one session have in common.
func fixture(t testing.TB, file string) [][]byte {
	t.Helper()
	data := kit.Try(os.ReadFile(file)).Must(t)
	text := string(data)
	text = timeMark.ReplaceAllString(text, "2026-08-20T09:$1:$2.000Z")
	text = uuidMark.ReplaceAllString(text, "00000000-0000-4000-8000-0000000000$1")
	other, third := strings.Replace(session1, "1", "2", 1), strings.Replace(session1, "1", "3", 1)
	text = strings.NewReplacer(
		"«S»", session1, "«S2»", other, "«S3»", third,
		"«ENV»", fmt.Sprintf(env, session1, "2.1.235"), "«ENV2»", fmt.Sprintf(env, other, "2.1.235"),
		"«ENV3»", fmt.Sprintf(env, third, "2.1.235"), "«OLDENV»", fmt.Sprintf(env, session1, "2.1.30"),
	).Replace(text)
	return bytes.Split(bytes.TrimSuffix([]byte(text), []byte("\n")), []byte("\n"))
}

// records are those on a line: one, those that can be recovered, or none.
func records(line []byte) []transcript.Record {
	switch l := transcript.Scan(line); l.Shape {
	case transcript.Object:
		return []transcript.Record{transcript.ParseScanned(line, l)}
	case transcript.Malformed:
		var out []transcript.Record
		for _, object := range transcript.Recover(line) {
			out = append(out, transcript.Parse(object))
		}
		return out
	}
	return nil
}

func fixtures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/derive/*.jsonl")
	kit.Require(t, err == nil && len(files) != 0, "no fixtures: %v", err)
	return files
}

// TestDerive compares what is derived from conversations of every shape with golden files: events, messages, summary.
func TestDerive(t *testing.T) {
	for _, file := range fixtures(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			var s Fold
			var log Log
			var out strings.Builder
			for i, line := range fixture(t, file) {
				for _, r := range records(line) {
					for _, e := range s.Add(int64(i), r) {
						log.Add(e)
						out.WriteString(eventLine(e))
					}
				}
			}
			out.WriteString("\nmessages\n")
			for _, m := range log.Messages(0, 0) {
				out.WriteString(messageLine(m))
			}
			out.WriteString("\nsummary\n" + compact(s.Summary()))
			golden(t, strings.TrimSuffix(file, ".jsonl")+".golden", out.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("CCSHIP_UPDATE_GOLDEN") == "1" {
		kit.Must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := kit.Try(os.ReadFile(file)).Must(t)
	diff := cmp.Diff(string(want), got)
	kit.Check(t, diff == "", "%s (-want +got):\n%s", file, diff)
}

var eventNames = []string{
	"", "prompt", "task", "command", "answer", "tool-start", "tool-complete", "interrupt", "error", "turn", "compaction",
	"title", "usage", "rewind", "rewind-undone", "context", "agent", "file", "link", "unlink", "clear", "message", "reply", "refused-link",
}

// eventLine is an event without what is its kind's zero.
func eventLine(e Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%3d %-13s", e.Line, eventNames[e.Kind])
	if len(e.UUID) > 2 {
		fmt.Fprintf(&b, " «%s»", e.UUID[len(e.UUID)-2:])
	}
	for _, f := range []struct{ name, value string }{
		{"", shorten(e.Text)}, {"message", e.MessageID}, {"tool", e.ToolID}, {"", e.ToolName}, {"", shorten(e.Input)}, {"path", e.Path}, {"from", e.From},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s", strings.TrimPrefix(f.name+"="+fmt.Sprintf("%q", f.value), "="))
		}
	}
	if e.Kind == ToolCompleteEvent {
		fmt.Fprintf(&b, " success=%v", e.Success)
	}
	if e.Queued {
		b.WriteString(" queued")
	}
	if e.Synthetic {
		b.WriteString(" synthetic")
	}
	for _, v := range []any{e.Turn, e.Compact, e.Usage, e.Rewind, e.Context, e.Agent} {
		if !reflect.ValueOf(v).IsNil() {
			b.WriteString(" " + strings.ReplaceAll(strings.TrimSpace(compact(reflect.ValueOf(v).Elem().Interface())), "\n", " "))
		}
	}
	return b.String() + "\n"
}

func shorten(s string) string {
	if len(s) > 120 {
		return s[:60] + "……" + s[len(s)-40:]
	}
	return s
}

func messageLine(m Message) string {
	if len(m.UUID) > 2 {
		m.UUID = "«" + m.UUID[len(m.UUID)-2:] + "»"
	}
	return strings.ReplaceAll(strings.TrimSpace(compact(m)), "\n", " ") + "\n"
}

// tersely is a struct as lines of name=value, without what is zero.
func compact(v any) string {
	var b strings.Builder
	value := reflect.ValueOf(v)
	for i := range value.NumField() {
		f := value.Field(i)
		if f.IsZero() {
			continue
		}
		name := value.Type().Field(i).Name
		switch x := f.Interface().(type) {
		case json.RawMessage:
			fmt.Fprintf(&b, "%s=%s\n", name, shorten(string(x)))
		case transcript.Usage, Context, Budget, transcript.Labels:
			fmt.Fprintf(&b, "%s={%s}\n", name, strings.ReplaceAll(strings.TrimSpace(compact(x)), "\n", " "))
		case fmt.Stringer:
			fmt.Fprintf(&b, "%s=%s\n", name, x)
		default:
			fmt.Fprintf(&b, "%s=%s\n", name, shorten(fmt.Sprintf("%+v", x)))
		}
	}
	return b.String()
}

// TestDeriveInPieces interrupts the fold after every line: a state that was encoded and decoded must continue as if
// nothing had happened.
func TestDeriveInPieces(t *testing.T) {
	for _, file := range fixtures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var whole, pieces Fold
			var wholeLog, piecesLog Log
			for i, line := range fixture(t, file) {
				for _, r := range records(line) {
					want := append([]Event(nil), whole.Add(int64(i), r)...)
					got := pieces.Add(int64(i), r)
					diff := cmp.Diff(want, append([]Event(nil), got...))
					kit.Require(t, diff == "", "line %d (-whole +in pieces):\n%s", i, diff)
					for _, e := range want {
						wholeLog.Add(e)
						piecesLog.Add(e)
					}
				}
				pieces = *restore(t, &pieces)
				state, _ := piecesLog.MarshalBinary()
				var log Log
				kit.Must(t, log.UnmarshalBinary(state))
				piecesLog = log
			}
			diff := cmp.Diff(whole.Summary(), pieces.Summary())
			kit.Check(t, diff == "", "summary (-whole +in pieces):\n%s", diff)
			diff = cmp.Diff(wholeLog.Messages(0, 0), piecesLog.Messages(0, 0))
			kit.Check(t, diff == "", "messages (-whole +in pieces):\n%s", diff)
		})
	}
}

func restore(t testing.TB, s *Fold) *Fold {
	t.Helper()
	state := kit.Try(s.MarshalBinary()).Must(t)
	var out Fold
	kit.Must(t, out.UnmarshalBinary(state))
	again, _ := out.MarshalBinary()
	kit.Require(t, bytes.Equal(state, again), "a decoded state encodes to other bytes")
	return &out
}

// TestTreeAgrees compares the rewinds of the whole tree with those of the bounded fold.
func TestTreeAgrees(t *testing.T) {
	for _, file := range fixtures(t) {
		var s Fold
		var tree Tree
		undone := map[int64]bool{}
		var fromSession []Rewind
		for i, line := range fixture(t, file) {
			for _, r := range records(line) {
				for _, e := range s.Add(int64(i), r) {
					switch e.Kind {
					case RewindEvent:
						fromSession = append(fromSession, *e.Rewind)
					case RewindUndoneEvent:
						undone[e.Rewind.Number] = true
					}
				}
				tree.Add(int64(i), &r)
			}
		}
		fromSession = slices.DeleteFunc(fromSession, func(r Rewind) bool { return undone[r.Number] })
		diff := cmp.Diff(fromSession, tree.Rewinds())
		kit.Check(t, diff == "", "%s (-session +tree):\n%s", file, diff)
	}
}
