package web

import (
	"testing"

	"github.com/ccship/ccship/server"
)

func TestNames(t *testing.T) {
	groups := []server.Group{
		{ProjectHash: "1", Project: "shop", Cwd: "/home/kim/work/shop"}, {ProjectHash: "1", Project: "shop", Cwd: "/elsewhere/shop"},
		{ProjectHash: "2", Project: "shop", Cwd: "/home/kim/play/shop"}, {ProjectHash: "3", Project: "shop", Cwd: `C:\src\work\shop`},
		{ProjectHash: "4", Project: "api", Cwd: "/srv/api"}, {ProjectHash: "5", Project: "bare"}, {ProjectHash: "6", Project: "bare"},
		{ProjectHash: "7", Project: "deep", Cwd: "/a/x/y/deep"}, {ProjectHash: "8", Project: "deep", Cwd: "/b/x/y/deep"},
		{ProjectHash: "9", Project: "main (2)", Cwd: "/one/main (2)"}, {ProjectHash: "10", Project: "main (2)", Cwd: "/two/main (2)"},
	}
	want := map[string]string{
		"1": "kim/work/shop", "2": "play/shop", "3": "src/work/shop", "4": "api", "5": "bare (5)", "6": "bare (6)",
		"9": "one/main (2)", "10": "two/main (2)",
	}
	got := chipNames(groups)
	for hash, name := range want {
		if got[hash] != name {
			t.Errorf("%s: %q, want %q", hash, got[hash], name)
		}
	}
	if got["7"] == got["8"] {
		t.Errorf("both are %q", got["7"])
	}
}
