//go:build unix

package viewer_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"
	"time"
)

// The invented conversation that most tests read: a timetable service for ferries, and an hour that comes twice.
const (
	taleID      = "6f0d2c54-8a1e-4b7f-9a3d-2f51c0e7b914"
	taleAgent   = "c41f7b2e90d65a83"
	taleTitle   = "Departures off by an hour on the night the clocks change"
	harbourCwd  = "/home/kim/src/harbour"
	talePrompt  = "On the night the clocks change the board shows the 02:30 sailing twice"
	taleCommand = "go test ./timetable/ -run 'Clock|Board' -count 1"
	taleWord    = "fallback" // said in the answer that explains it
)

const boardGo = `// Departures lists what leaves between two moments, in the order in which it leaves.
func (b *Board) Departures(from, to time.Time) []Departure {
	var out []Departure
	for day := from.Truncate(24 * time.Hour); day.Before(to); day = day.Add(24 * time.Hour) {
		for _, s := range b.sailings {
			at := day.Add(s.Minute * time.Minute)
			if at.Before(from) || !at.Before(to) {
				continue
			}
			out = append(out, Departure{Sailing: s, At: at.In(b.zone)})
		}
	}
	slices.SortFunc(out, byTime)
	return out
}
`

const failingTest = "\x1b[1m=== RUN   TestClockGoesBack\x1b[0m\n" +
	"    board_test.go:58: \x1b[31m02:30 Skerry leaves twice\x1b[0m: 00:30Z and 01:30Z\n" +
	"    board_test.go:61: \x1b[31m06:10 Ronas is missing\x1b[0m\n" +
	"\x1b[31m--- FAIL: TestClockGoesBack (0.01s)\x1b[0m\n" +
	"\x1b[1m=== RUN   TestBoardInOrder\x1b[0m\n" +
	"\x1b[32m--- PASS: TestBoardInOrder (0.00s)\x1b[0m\n" +
	"\x1b[31mFAIL\x1b[0m\tharbour/timetable\t0.214s"

const passingTest = "\x1b[32m--- PASS: TestClockGoesBack (0.00s)\x1b[0m\n\x1b[32m--- PASS: TestClockGoesForward (0.00s)\x1b[0m\n" +
	"\x1b[32m--- PASS: TestBoardInOrder (0.00s)\x1b[0m\n\x1b[32mok\x1b[0m  \tharbour/timetable\t0.187s\t\x1b[2mcoverage: 91.4% of statements\x1b[0m"

const explanation = `A day is not 24 hours long twice a year, and the board counts in steps of 24 hours. Two things go wrong in the night of 25 October:

1. ` + "`day.Add(24 * time.Hour)`" + ` lands on 23:00 of the same day, so every sailing of that day is offered **twice**.
2. A sailing's minute is counted from midnight, so after 03:00 all are an hour early.

| sailing | timetable | shown before | shown now |
|---|---|---|---|
| Skerry | 02:30 | 02:30, 02:30 | 02:30 (summer time) |
| Ronas | 06:10 | 05:10 | 06:10 |
| Foula | 07:45 | 06:45 | 07:45 |

The fix builds each departure from its calendar date:

` + "```go" + `
at := time.Date(y, m, d, s.Hour, s.Minute, 0, 0, b.zone)
` + "```" + `

For the hour that comes twice Go takes the first, which is what the timetable means; I wrote that down as the *fallback* rule in ` + "`docs/clock.md`" + `.`

// tale is the conversation, and that of its agent. It ended a moment before now.
func tale(now time.Time) (main, agent *script) {
	s := &script{id: taleID, cwd: harbourCwd, branch: "fix/clock-change", model: "claude-opus-5-5", at: now.Add(-104 * time.Minute), context: 18_400, fresh: 6_200}
	agent = &script{id: taleID, agent: taleAgent, cwd: harbourCwd, branch: s.branch, model: "claude-haiku-5-5", context: 9_100, fresh: 3_000}
	s.plain(object{"type": "file-history-snapshot", "messageId": "m1", "snapshot": object{"messageId": "m1", "trackedFileBackups": object{}}, "isSnapshotUpdate": false})
	taleBegins(s)
	taleLooksAround(s, agent)
	taleIsCompacted(s)
	taleGoesBack(s)
	taleEnds(s)
	return s, agent
}

func taleBegins(s *script) {
	s.prompt(talePrompt+", and everything after it an hour early. Find out why and fix it. A picture of the board on 25 October is attached.", picture("image/png", boardPicture()))
	s.record(object{"type": "attachment", "attachment": object{"type": "total_tokens_reminder", "text": "175,000 tokens are left"}})
	s.titled(taleTitle)
	s.answer(410, thought("The night of 25 October is when summer time ends. A sailing at 02:30 shown twice smells of day arithmetic in hours. "+
		"I should find where departures are made from the timetable, and see whether there is a test with a zone that changes its clock."),
		words("That is the night summer time ends. I'll look at how the board makes departures from the timetable."))
	s.tool("Grep", object{"pattern": "24 \\* time.Hour", "path": harbourCwd, "output_mode": "content", "-n": true},
		"timetable/board.go:41:\tfor day := from.Truncate(24 * time.Hour); day.Before(to); day = day.Add(24 * time.Hour) {\nfeed/refresh.go:19:\tconst keep = 14 * 24 * time.Hour",
		object{"mode": "content", "numFiles": 2, "numLines": 2}, 60*time.Millisecond)
	s.read(harbourCwd+"/timetable/board.go", boardGo, 38)
	s.tool("TodoWrite", object{"todos": todos(1)}, "Todos have been modified successfully.", object{"newTodos": todos(1)}, 10*time.Millisecond)
	s.say("Found it: the loop walks in steps of 24 hours. First a test that shows it.")
	s.tool("Write", object{"file_path": harbourCwd + "/timetable/clock_test.go", "content": clockTest}, "File created successfully at: "+harbourCwd+"/timetable/clock_test.go",
		object{"type": "create", "filePath": harbourCwd + "/timetable/clock_test.go", "content": clockTest, "structuredPatch": []object{}}, 90*time.Millisecond)
	id := s.call()
	s.answer(180, use(id, "Bash", object{"command": taleCommand, "description": "Run the tests of the board"}))
	s.result(id, "Exit code 1\n"+failingTest, "Error: Exit code 1", 4*time.Second, true)
}

const clockTest = `package timetable

func TestClockGoesBack(t *testing.T) {
	board := newBoard(t, "Europe/London", "02:30 Skerry", "06:10 Ronas", "07:45 Foula")
	day := time.Date(2026, 10, 25, 0, 0, 0, 0, board.zone)
	got := board.Departures(day, day.AddDate(0, 0, 1))
	want(t, got, "02:30 Skerry", "06:10 Ronas", "07:45 Foula")
}
`

// todos is the list of things to do, with the first n done.
func todos(n int) []object {
	list := []object{}
	for i, what := range []string{"Find where departures are made", "Show the fault in a test", "Build departures from calendar dates", "Check other uses of 24 hours", "Write down the rule for the hour that comes twice"} {
		state := "pending"
		if i < n {
			state = "completed"
		} else if i == n {
			state = "in_progress"
		}
		list = append(list, object{"content": what, "status": state, "activeForm": what})
	}
	return list
}

func taleLooksAround(s, agent *script) {
	task := "Look through the module harbour for other places that count days in hours. Report file, line, and whether a clock change matters there. Change nothing."
	id := s.call()
	s.answer(300, words("It fails as you saw. While I fix it, an agent looks for the same mistake elsewhere."),
		use(id, "Task", object{"description": "Find other day arithmetic", "prompt": task, "subagent_type": "Explore"}))
	agent.at = s.at
	agent.prompt(task)
	agent.tool("Grep", object{"pattern": "time.Hour", "path": harbourCwd, "output_mode": "files_with_matches"}, "Found 5 files\nfeed/refresh.go\ntimetable/board.go\ntides/predict.go\nnotify/quiet.go\nnotify/quiet_test.go",
		object{"mode": "files_with_matches", "numFiles": 5}, 50*time.Millisecond)
	agent.read(harbourCwd+"/notify/quiet.go", "func (q Quiet) Until(now time.Time) time.Time {\n\treturn now.Truncate(24 * time.Hour).Add(q.End)\n}\n", 12)
	report := "- `notify/quiet.go:13` – quiet hours end an hour early or late on two days a year. **Matters.**\n- `tides/predict.go:88` – works in UTC throughout. Does not matter.\n- `feed/refresh.go:19` – an age, not a date. Does not matter."
	agent.say(report)
	s.result(id, []object{{"type": "text", "text": report}}, object{"status": "completed", "agentId": taleAgent, "content": []object{{"type": "text", "text": report}},
		"totalTokens": 14_210, "totalDurationMs": 48_300, "totalToolUseCount": 2}, 48*time.Second, false)
	s.edit(harbourCwd+"/timetable/board.go", "day.Add", "AddDate", 39,
		" func (b *Board) Departures(from, to time.Time) []Departure {", " \tvar out []Departure",
		"-\tfor day := from.Truncate(24 * time.Hour); day.Before(to); day = day.Add(24 * time.Hour) {",
		"+\tfor day := b.midnight(from); day.Before(to); day = day.AddDate(0, 0, 1) {",
		" \t\tfor _, s := range b.sailings {",
		"-\t\t\tat := day.Add(s.Minute * time.Minute)", "+\t\t\tat := b.on(day, s)",
		" \t\t\tif at.Before(from) || !at.Before(to) {", " \t\t\t\tcontinue", " \t\t\t}")
	s.bash(taleCommand+" -cover", "Run the tests again", passingTest, 5*time.Second)
	s.say(explanation)
}

func taleIsCompacted(s *script) {
	s.record(object{"type": "system", "subtype": "turn_duration", "durationMs": 412_000, "messageCount": 31})
	s.context = 171_800
	s.compact("auto", "This session is being continued from a previous conversation that ran out of context.\n\n**Done.** `Departures` walks by calendar dates; `TestClockGoesBack` passes.\n\n"+
		"**Next.** The quiet hours in `notify/quiet.go` have the same fault.", 9_400)
}

func taleGoesBack(s *script) {
	s.prompt("Good. Now the quiet hours, the same way.")
	branch := s.parent
	s.say("I'll give `Quiet` a helper of its own that rounds to midnight in the zone, and leave `timetable` alone.")
	s.tool("Bash", object{"command": "cp timetable/zone.go notify/zone.go", "description": "Copy the helper"}, "", object{"stdout": "", "stderr": "", "interrupted": true, "isImage": false}, time.Second)
	s.user([]object{{"type": "text", "text": "[Request interrupted by user]"}}, nil)
	s.parent = branch
	s.prompt("No copy, please. Move the helper to a package both can use, and let `timetable` use it too.")
	s.edit(harbourCwd+"/notify/quiet.go", "now.Truncate(24 * time.Hour)", "civil.Midnight", 12, " func (q Quiet) Until(now time.Time) time.Time {",
		"-\treturn now.Truncate(24 * time.Hour).Add(q.End)", "+\treturn civil.On(civil.Midnight(now, q.Zone), q.End)", " }")
	s.record(object{"type": "attachment", "attachment": object{"type": "queued_command", "commandMode": "prompt", "prompt": "also add it to the changelog", "origin": object{"kind": "human"}}})
	s.tool("mcp__tracker__comment", object{"ticket": "HARBOUR-214", "text": "Fixed on fix/clock-change; tests for both nights."}, `{"ok":true,"comment":8812,"watchers":["kim","robin"]}`,
		`{"ok":true,"comment":8812,"watchers":["kim","robin"]}`, 700*time.Millisecond)
}

func taleEnds(s *script) {
	s.user("<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>fix/clock-change</command-args>", nil)
	s.bash("go vet ./... && go test ./... 2>&1 | tail -4", "Everything once more",
		"\x1b[32mok\x1b[0m  \tharbour/civil\t0.051s\n\x1b[32mok\x1b[0m  \tharbour/notify\t0.133s\n\x1b[32mok\x1b[0m  \tharbour/tides\t1.920s\n\x1b[32mok\x1b[0m  \tharbour/timetable\t0.190s", 21*time.Second)
	s.tool("TodoWrite", object{"todos": todos(5)}, "Todos have been modified successfully.", object{"newTodos": todos(5)}, 10*time.Millisecond)
	s.say("Both use `civil` now, all tests pass, and the changelog has two lines about it. What is left open: the operators' time sheets still print UTC.\n\n> Nothing else in the module counts days in hours.")
	s.plain(object{"type": "pr-link", "prNumber": 214, "prUrl": "https://git.example.org/harbour/pull/214", "sessionId": s.id})
}

// boardPicture draws a board of departures: rows of lamps, one of them twice.
func boardPicture() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 640, 300))
	fill := func(x, y, w, h int, c color.RGBA) {
		draw.Draw(m, image.Rect(x, y, x+w, y+h), image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(0, 0, 640, 300, color.RGBA{18, 22, 30, 255})
	fill(0, 0, 640, 44, color.RGBA{30, 58, 95, 255})
	amber, dim := color.RGBA{245, 178, 66, 255}, color.RGBA{120, 98, 60, 255}
	for row, text := range []string{"23:55 ....... . ......", "02:30 ...... .. ....", "02:30 ...... .. ....", "05:10 ..... . ........", "06:45 ..... ... ...."} {
		c := dim
		if row == 1 || row == 2 {
			c = amber
			fill(16, 60+row*46, 608, 38, color.RGBA{44, 36, 24, 255})
		}
		for i, r := range text {
			if !strings.ContainsRune(" ", r) {
				fill(32+i*22, 68+row*46, 15, 22, c)
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // memory takes everything
	}
	return b.Bytes()
}
