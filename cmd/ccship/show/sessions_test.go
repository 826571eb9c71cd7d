package show

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
)

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
