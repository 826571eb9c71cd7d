package derive

import (
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

func TestOrigin(t *testing.T) {
	record := func(session, id string) *transcript.Record { return &transcript.Record{SessionID: session, UUID: id} }
	title := &transcript.Record{SessionID: "other"} // no record of the conversation
	for name, c := range map[string]struct {
		stream  string
		records []*transcript.Record
		want    origin
	}{
		"a session":      {"x", []*transcript.Record{title, record("x", "1"), record("x", "2")}, origin{"x/1", false}},
		"its copy":       {"x~2", []*transcript.Record{record("x", "1"), record("x", "2")}, origin{"x/1", true}},
		"a fork":         {"y", []*transcript.Record{record("y", "1")}, origin{"y/1", false}},
		"a continuation": {"y", []*transcript.Record{record("x", "1"), record("y", "2"), record("x", "3")}, origin{"y/1", false}},
		"nothing known":  {"y", []*transcript.Record{title}, origin{}},
	} {
		var o origin
		for _, r := range c.records {
			o.add(c.stream, r)
		}
		kit.Equal(t, name, o, c.want)
	}
}

// TestPause: the first line after some quiet is derived at once; without a pause between lines there are at most five
// rounds a second, and cheap ones take a small share of the time.
func TestPause(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct{ took, since, want time.Duration }{
		{0, time.Hour, gatherLeast},
		{100 * ms, time.Hour, gatherLeast},
		{time.Second, 0, gather},
		{time.Second, 150 * ms, gather - 150*ms},
		{4 * ms, 0, 60 * ms},
		{4 * ms, 55 * ms, gatherLeast},
	} {
		kit.Equal(t, fmt.Sprintf("a round of %v that ended %v ago", tt.took, tt.since), pause(tt.took, tt.since), tt.want)
	}
}

func TestNames(t *testing.T) {
	groups := []server.Group{
		{ProjectHash: "1", Project: "shop", Cwd: "/home/kim/work/shop"}, {ProjectHash: "1", Project: "shop", Cwd: "/elsewhere/shop"},
		{ProjectHash: "2", Project: "shop", Cwd: "/home/kim/play/shop"}, {ProjectHash: "3", Project: "shop", Cwd: `C:\src\work\shop`},
		{ProjectHash: "4", Project: "api", Cwd: "/srv/api"}, {ProjectHash: "5", Project: "bare"}, {ProjectHash: "6", Project: "bare"},
		{ProjectHash: "7", Project: "deep", Cwd: "/a/x/y/deep"}, {ProjectHash: "8", Project: "deep", Cwd: "/b/x/y/deep"},
		{ProjectHash: "12", Project: "web", Cwd: "/srv/a/web/pages/cart"}, {ProjectHash: "13", Project: "web", Cwd: "/srv/b/web/"},
		{ProjectHash: "14", Project: "web", Cwd: `D:\web`},
		{ProjectHash: "11", Project: "7", Cwd: "/home/kim/src/site/.worktrees/7"},
		{ProjectHash: "9", Project: "main (2)", Cwd: "/one/main (2)"}, {ProjectHash: "10", Project: "main (2)", Cwd: "/two/main (2)"},
	}
	want := map[string]string{
		"1": "kim/work/shop", "2": "play/shop", "3": "src/work/shop", "4": "api", "5": "bare (5)", "6": "bare (6)",
		"12": "a/web", "13": "b/web", "14": "D:/web", "11": "site", "9": "one/main (2)", "10": "two/main (2)",
	}
	got, _ := projectNames(groups)
	for hash, name := range want {
		kit.Equal(t, hash, got[hash], name)
	}
	kit.Check(t, got["7"] != got["8"], "both are %q", got["7"])
	list := ProjectsOf(groups[len(groups)-3 : len(groups)-2]).List
	kit.Check(t, len(list) == 1 && list[0].Name == "site" && list[0].Key == "11",
		"a worktree of a repository that was not found is %+v", list)
}

// TestRepositories: what is known to be of one repository is one project, whatever it is called; of two repositories
// that have one name, on whatever machines, each is its own.
func TestRepositories(t *testing.T) {
	groups := []server.Group{
		{ProjectHash: "1", Repository: "r", Project: "sub", Cwd: "/home/kim/shop/sub", Machine: "a", Sessions: 1},
		{ProjectHash: "2", Repository: "r", Project: "shop", Cwd: "/home/kim/shop", Machine: "a", Sessions: 2},
		{ProjectHash: "3", Repository: "r", Project: "shop", Cwd: "/srv/shop", Machine: "b", Sessions: 4},
		{ProjectHash: "4", Repository: "s", Project: "api", Cwd: "/home/kim/api", Machine: "a", Sessions: 8},
		{ProjectHash: "5", Repository: "5", Project: "api", Cwd: "/srv/api", Machine: "b", Sessions: 16},
		{ProjectHash: "6", Project: "notes", Cwd: "/home/kim/notes", Machine: "a", Sessions: 32},
		{ProjectHash: "7", Project: "notes", Cwd: "/srv/notes", Machine: "b", Sessions: 64},
		{ProjectHash: "8", Repository: "w", Project: "web", Cwd: "/home/kim/web", Machine: "a", Sessions: 128},
		{ProjectHash: "9", Repository: "w", Project: "web", Cwd: "/srv/web", Machine: "b", Sessions: 256},
	}
	want := []Project{{Key: "r", Name: "shop", Sessions: 7}, {Key: "s", Name: "kim/api", Sessions: 8},
		{Key: "5", Name: "srv/api", Sessions: 16}, {Key: "notes", Name: "notes", Sessions: 96}, {Key: "w", Name: "web", Sessions: 384}}
	got := ProjectsOf(groups).List
	kit.Require(t, len(got) == len(want), "%d projects, want %d: %+v", len(got), len(want), got)
	for i, p := range got {
		w := want[i]
		kit.Check(t, p.Key == w.Key && p.Name == w.Name && p.Sessions == w.Sessions, "project %d is %+v, want %+v", i, p, w)
	}
}
