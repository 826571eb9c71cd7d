package show

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// Checkpoints and budgets as people see them; nothing in them moves a terminal's cursor.
func TestCheckpointView(t *testing.T) {
	v := View{Now: *showtest.After(0), Zone: time.UTC}
	c := showtest.Checkpoint()
	bare := control.Checkpoint{ID: "cp-ba9876543210", SessionID: "77", TriggerType: "compact", CreatedAt: *showtest.Before(100 * 24 * time.Hour), Summary: "first\nsecond"}
	narrow := v
	narrow.Columns = 60
	list := control.Checkpoints{Checkpoints: []control.Checkpoint{c, bare}, Next: 2}
	text := strings.Join([]string{
		v.Checkpoints(list), narrow.Checkpoints(list), v.Checkpoints(control.Checkpoints{}), v.Checkpoint(control.CheckpointAnswer{Checkpoint: c}),
		v.Checkpoint(control.CheckpointAnswer{Checkpoint: bare}),
		v.Budgets(showtest.Budgets()), v.Budgets(control.Budgets{}),
	}, "---\n")
	kit.Check(t, !strings.ContainsAny(text, "\x1b\u009b"), "an escape sequence is printed")
	showtest.Golden(t, "checkpoints.txt", text)
}

func TestDoctorView(t *testing.T) {
	for name, r := range showtest.DoctorReports() {
		t.Run(name, func(t *testing.T) {
			showtest.Golden(t, "doctor_"+name+".txt", View{Columns: 80, Symbols: true}.Doctor(r, name == "fixed"))
		})
	}
	ascii := View{}.Doctor(showtest.DoctorReports()["broken"], false)
	showtest.Golden(t, "doctor_ascii.txt", ascii)
	kit.Check(t, !strings.ContainsFunc(ascii, func(r rune) bool { return r > '~' }), "not ASCII: %q", ascii)
	nothing := (View{Symbols: true}).Doctor(showtest.DoctorReports()["well"], true)
	kit.Check(t, strings.Contains(nothing, "\nnothing that is safe to fix\n"), "%s", nothing)
}

// On a narrow screen no line is longer than it, but for words that have to be copied; colours change no text.
func TestDoctorNarrow(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		plain := View{Columns: width, Symbols: true}.Doctor(showtest.DoctorReports()["broken"], false)
		for line := range strings.Lines(plain) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > width && len(strings.Fields(line)) > 2 && !strings.Contains(line, "`") && !strings.Contains(line, "ccship doctor:") {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		coloured := View{Columns: width, Symbols: true, Colours: true}.Doctor(showtest.DoctorReports()["broken"], false)
		kit.Check(t, strings.Count(coloured, "\x1b[") != 0 && showtest.Uncoloured(coloured) == plain,
			"%d columns: %q", width, coloured)
	}
}

// TestLinkList shows documents to people.
func TestLinkList(t *testing.T) {
	v := View{Now: time.Now(), Zone: time.UTC}
	list := control.Documents{Documents: []control.Document{
		{Path: "docs/spec.md", Version: 3, Size: 4321, ChangedAt: v.Now.Add(-time.Minute)},
		{Path: "docs/설계.md", Version: 1, Deleted: true, ChangedAt: v.Now.Add(-2 * time.Hour)},
		{Path: "big.bin", Version: 2, Size: 20_000_000, TooLarge: true, ChangedAt: v.Now.Add(-time.Hour), Problem: "red \x1b[31m"},
	}}
	want := "docs/spec.md  3 versions, changed 1 min ago, 4.3 kB\n" +
		"docs/설계.md  1 version, changed 2 h 0 min ago, deleted\n" +
		"big.bin       2 versions, changed 1 h 0 min ago, 20 MB, too large to send, red \n"
	got := v.Documents(list)
	kit.Check(t, !strings.ContainsRune(got, 0x1b) && strings.HasPrefix(got, want[:len(want)-2]),
		"got:\n%s\nwant:\n%s", got, want)
	v.Columns = 30
	for line := range strings.Lines(v.Documents(list)) {
		kit.Check(t, term.Width(strings.TrimSuffix(line, "\n")) <= 30, "too wide: %q", line)
	}
	kit.Equal(t, "none", v.Documents(control.Documents{}), "nothing is linked\n")
}

// TestSayHowFar: an import that is stopped says how much is on the server; without figures it says nothing.
func TestSayHowFar(t *testing.T) {
	for want, s := range map[string]control.Status{
		"25 MB of 100 MB (25 %) are on the server; it continues\n": {
			Files: &control.Files{Bytes: 100_000_000, ReadBytes: 30_000_000}, Outbox: &control.Outbox{Bytes: 5_000_000}},
		"0 B of 100 MB (0 %) are on the server; it continues\n": {
			Files: &control.Files{Bytes: 100_000_000}, Outbox: &control.Outbox{Bytes: 5_000_000}},
		"": {Files: &control.Files{}, Outbox: &control.Outbox{}},
	} {
		var said strings.Builder
		(&App{Stderr: &said}).SayHowFar(s, "it continues")
		kit.Check(t, said.String() == want, "it says %q, want %q", said.String(), want)
	}
}

func TestMessagesView(t *testing.T) {
	v := View{Zone: time.UTC}
	text := v.Messages(showtest.Messages())
	want := `장바구니 반올림

09:05  user    장바구니의 반올림을 고쳐 주세요
09:05  claude  I will look.
09:05  tool    Bash look: ls → cart.go
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
	kit.Check(t, text == want, "got:\n%s", text)
	asked := toolCall(&control.Message{ToolName: "AskUserQuestion",
		ToolInput: json.RawMessage(`{"questions":[{"question":"Round up?","options":[{"label":"Yes"}]},{"question":"Where?"}]}`)})
	kit.Equal(t, "questions", asked, "AskUserQuestion Round up? Where?")
	v.Columns, v.Colours = 24, true
	for line := range strings.Lines(v.Messages(showtest.Messages())) {
		n := term.Width(showtest.Uncoloured(strings.TrimSuffix(line, "\n")))
		kit.Check(t, n <= 24 || strings.HasPrefix(line, "there are"), "%d columns: %q", n, line)
		kit.Check(t, strings.Count(line, "\x1b[") != 1, "a colour that does not end: %q", line)
	}
}

// What a person reads of a verify: what was not compared is counted, what is held back is named.
func TestReportText(t *testing.T) {
	held := showtest.EqualReport()
	held.ExcludedFiles = 1
	held.Transcripts = append(held.Transcripts, showtest.VerifyReport().Transcripts[3])
	for name, r := range map[string]control.VerifyReport{"unequal": showtest.VerifyReport(), "equal": showtest.EqualReport(), "held": held} {
		showtest.Golden(t, "verify_"+name+".txt", Verify(r))
	}
}

// Neither a status nor a report says that all is well next to files that nobody reads.
func TestNotRead(t *testing.T) {
	n := showtest.NotRead()
	text := Verify(control.VerifyReport{Equal: true, Proven: true, Files: 2, Unfinished: 2, NotReadFiles: n})
	for _, want := range []string{
		"equal, all but the unfinished last line of 2 files: 2 transcripts", "not read: " + n.Stray[0],
		"not read: " + n.NotFollowed[0], "not read: 3 sessions in " + n.Elsewhere[0].Path,
	} {
		kit.Check(t, strings.Contains(text, want), "%q is not in\n%s", want, text)
	}
	for _, n := range []control.NotReadFiles{{Stray: n.Stray}, {NotFollowed: n.NotFollowed}, {Elsewhere: n.Elsewhere}} {
		s := control.Status{State: "watching", Files: &control.Files{Tracked: 1}, Watch: &control.Watch{NotReadFiles: n}}
		_, _, words := watching(s)
		kit.Check(t, !strings.Contains(words, "everything is"), "%+v: %s", n, words)
	}
	s := control.Status{State: "watching", Files: &control.Files{Tracked: 3, Unfinished: 2}}
	text = View{}.Status(s)
	kit.Check(t, strings.Contains(text, "every finished line is on the server") &&
		strings.Contains(text, "2 with an unfinished last line"), "%s", text)
}

// TestSessionsText is what people see of them.
func TestSessionsText(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	v := View{Now: now, Zone: time.UTC}
	at, cost := now.Add(-time.Hour), 12.3456
	items := []library.Item{
		{Session: "3f2a9c01-1", State: "both", Title: "Fix \x1b[31mit\nnow", Project: "shop", ChangedAt: at, Messages: 34, Tokens: 1_234_567, Cost: &cost},
		{Session: "3f2a9c01-2", State: "local", Project: "a project with a name that is far too long", ChangedAt: at.AddDate(0, -1, 0), Messages: 1, Tokens: 999},
		{Session: "5a5a5a5a-1", State: "server", Title: "장바구니 반올림 고치기", Project: "장바구니", ChangedAt: at, Counts: library.Unknown},
		{Session: "6b6b6b6b-1", State: "both", Title: "Big", ChangedAt: at, Messages: 3, Counts: library.Reading},
	}
	shown := library.Shown{
		Item: items[0], Lines: 40, Model: "m", Branch: "main", StartedAt: &at,
		Generations: []library.Generation{{Generation: 0, Lines: 50, ReceivedAt: at}, {Generation: 1, RewoundTo: 12, Lines: 40, ReceivedAt: now}},
		Last:        []library.Message{{Kind: "user", At: &at, Text: "hi\nthere"}, {Kind: "assistant", Text: "\x1b]0;title\x07ok"}, {Kind: "tool_start", Text: "Bash ls"}},
	}
	retired := library.Shown{Item: items[0], Lines: 40, Retention: &remote.Retention{RetiredAt: &at, Rule: "drop sessions", Lines: 40, Kept: "hold"}}
	left := library.Shown{Item: items[0], Lines: 40, Retention: &remote.Retention{Lines: 1, DueAt: &now, DueRule: "drop all"}}
	lost := library.Lost{
		Gone:       []library.Gone{{Session: "dead", Project: "/w", First: at, Last: now, Count: 3, Prompts: []library.Prompt{{At: at, Text: "one\ntwo"}}}},
		Restorable: items[:1],
	}
	restored := library.Restored{Session: "dead", Cwd: "/it's", Files: []library.RestoredFile{
		{Path: "/p/dead.jsonl", Bytes: 1234, Aside: "/p/dead.jsonl.before-restore-1", Missing: 2, Masked: 3}, {Path: "/p/dead/subagents/agent-a.jsonl", Bytes: 5, Same: true},
	}}
	forgotten := control.ForgetResult{
		Session: "dead", Transcripts: 2, Lines: 1234, Waiting: 3, Dead: 1, Pending: []string{"http://a"}, Detail: "connection refused", Kept: []string{"http://b"}, OnDisk: []string{"/p/dead.jsonl"},
	}
	narrow := v
	narrow.Columns = 40
	showtest.Golden(t, "sessions.txt", strings.Join([]string{
		v.Sessions(items, true), narrow.Sessions(items, false), v.Sessions(nil, false),
		v.Session(shown), v.Session(retired), v.Session(left), v.Lost(lost), v.Lost(library.Lost{}),
		Restored(restored, false), Restored(restored, true), Forgotten(forgotten),
	}, "---\n"))
}

// TestSince reads times as people write them.
func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"": {}, "2026-11-01": time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local), "36h": now.Add(-36 * time.Hour), "7d": now.Add(-7 * 24 * time.Hour),
		"2026-11-01T12:00:00Z": time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), "1.5d": now.Add(-36 * time.Hour),
	} {
		got, err := Since(text, now)
		kit.Check(t, err == nil && got.Equal(want), "%q: %v, %v", text, got, err)
	}
	for _, text := range []string{"yesterday", "-3h", "-2d", "2026-13-01", "7days", "NaNd", "1e9d"} {
		got, err := Since(text, now)
		kit.Check(t, err != nil, "%q: %v", text, got)
	}
}

// TestUntil: a day is included whole, whatever its length; a time is the end.
func TestUntil(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"": {}, "2026-11-01": time.Date(2026, 11, 2, 0, 0, 0, 0, time.Local), "36h": now.Add(-36 * time.Hour),
		"2026-11-01T12:00:00Z": time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
	} {
		got, err := Until(text, now)
		kit.Check(t, err == nil && got.Equal(want), "%q: %v, %v", text, got, err)
	}
	got, err := Until("tomorrow", now)
	kit.Check(t, err != nil, "taken: %v", got)
}

func TestLineText(t *testing.T) {
	paused := showtest.Healthy()
	paused.State, paused.Pause = "paused", &control.Pause{Since: *showtest.Before(time.Hour), Until: showtest.After(59 * time.Minute)}
	paused.Outbox.Entries = 1200
	forever := paused
	forever.Pause = &control.Pause{Since: *showtest.Before(time.Hour)}
	retrying := showtest.Healthy()
	retrying.State, retrying.Outbox = "retrying", &control.Outbox{Entries: 3, Dead: 2}
	full := showtest.Healthy()
	full.State = "full"
	quiet := showtest.Healthy()
	quiet.Servers[0].LastContactAt = showtest.Before(3 * time.Minute)
	fresh := showtest.Healthy()
	fresh.Servers[0] = control.Server{URL: "http://h", State: "unknown"}
	for want, s := range map[string]control.Status{
		"! ccship: up to date, server has not answered since 11:35, asked 8 s ago": showtest.Statuses()["silent"],
		"● ccship: up to date, server answered 3 min ago":                          quiet,
		"● ccship: up to date, server not asked yet":                               fresh,
		"● ccship: up to date":                                                     showtest.Healthy(),
		"◐ ccship: importing 49 %, 1 waiting":                                      showtest.Statuses()["importing"],
		"↑ ccship: sending":                                                        showtest.Statuses()["reading"],
		"✗ ccship: server rejects the API key, 1 200 waiting, 1 refused":           showtest.Statuses()["trouble"],
		"○ ccship: no server set":                                                  showtest.Statuses()["no_server"],
		"‖ ccship: paused for 59 min, 1 200 waiting":                               paused,
		"‖ ccship: paused, 1 200 waiting":                                          forever,
		"! ccship: retrying, 3 waiting, 2 refused":                                 retrying,
		"✗ ccship: outbox full":                                                    full,
		"● ccship: up to date ":                                                    {},
	} {
		want = strings.TrimSpace(want)
		got := (View{Now: showtest.Moment(), Symbols: true}).StatusLine(s)
		kit.Check(t, got == want && utf8.RuneCountInString(got) <= LineWidth, "%q, want %q", got, want)
		_, words, _ := strings.Cut(want, " ")
		kit.Equal(t, "without symbols", (View{Now: showtest.Moment()}).StatusLine(s), words)
	}
}

// TestUsageError: it names the command, counts arguments in words, and leads to the help of that command.
func TestUsageError(t *testing.T) {
	for _, x := range []struct{ command, says, message, hint string }{
		{"ccship show", "accepts 1 arg(s), received 2", "ccship show accepts 1 argument, received 2", "`ccship show --help` lists what it takes"},
		{"ccship link add", "requires at least 2 arg(s), only received 11", "ccship link add requires at least 2 arguments, only received 11",
			"`ccship link add --help` lists what it takes"},
		{"ccship search", "unknown flag: --kind", "unknown flag: --kind", "`ccship search --help` lists what it takes"},
		{"ccship", "unknown command \"serch\"\n\nDid you mean this?\n\tsearch\n", `unknown command "serch"`, "did you mean search?"},
		{"ccship", "unknown flag: --x", "unknown flag: --x", "`ccship help all` lists all commands and flags"},
	} {
		e := Describe(UsageError(x.command, errors.New(x.says)))
		kit.Check(t, e.Message == x.message && e.Hint == x.hint, "%s: %q, %q", x.says, e.Message, e.Hint)
	}
}
