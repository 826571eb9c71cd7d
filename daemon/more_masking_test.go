package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript/redact"
)

type protocols map[string]string

func (s protocols) Protocol(dest string) string { return s[dest] }

// local are the servers that prove to run on this machine.
type local map[string]int // how often each was asked

func (l local) Prove(_ context.Context, server string) error {
	if _, is := l[server]; !is {
		return protocol.ErrOtherHost
	}
	l[server]++
	return nil
}

// load is a configuration below a home of its own.
func configWith(t *testing.T, dir string, flags map[string]string) *config.Config {
	t.Helper()
	flags["server_url"] = "http://127.0.0.1:1"
	flags["config"] = filepath.Join(dir, "config.toml")
	kit.Must(t, os.WriteFile(flags["config"], nil, 0o600))
	c := kit.Try(config.Load(flags, kit.Only(config.HomeVariable, dir))).Must(t)
	return &c
}

// TestFor tells the servers that lines are masked for.
func TestFor(t *testing.T) {
	const plain, extended, unknown, away = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://localhost:3", "http://away.example"
	const own = "http://[::1]:4"
	known := protocols{plain: "plain", extended: "ccship", unknown: "unknown", away: "plain", own: "ccship"}
	for mode, masked := range map[string]map[string]bool{
		"auto": {plain: false, plain + "#/home/kim/shop": true, extended: true, unknown: true, away: true, "": true,
			own: false, own + "#/home/kim/shop": false},
		"on":  {plain: true, own: true, extended: true, away: true},
		"off": {plain: false, extended: false, away: false},
	} {
		m := kit.Try(newMasking(configWith(t, t.TempDir(), map[string]string{"redact": mode}), known, local{own: 0, away: 0}.Prove)).Must(t)
		for dest, want := range masked {
			got := m.For(dest, "") != nil
			kit.Check(t, got == want, "%s, %q: masked %v, want %v", mode, dest, got, want)
		}
	}
}

// TestProofHolds asks a server for its proof once a minute, and one without a proof more often.
func TestProofHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own, other = "http://127.0.0.1:1", "http://127.0.0.1:2"
		l := local{own: 0}
		m := kit.Try(newMasking(configWith(t, t.TempDir(), map[string]string{}), protocols{}, l.Prove)).Must(t)
		for range 59 {
			kit.Require(t, m.For(own, "") == nil && m.For(other, "") != nil, "masked for the wrong one")
			<-time.After(time.Second)
		}
		kit.Check(t, l[own] == 1, "asked %d times within a minute", l[own])
		l[other] = 0 // starts only now
		<-time.After(time.Minute)
		delete(l, own) // another process listens there
		kit.Check(t, m.For(own, "") != nil && m.For(other, "") == nil, "an old answer counts")
	})
}

// TestConfigure keeps what was in force when rules cannot be read, and the key for good.
func TestConfigure(t *testing.T) {
	dir := t.TempDir()
	m := kit.Try(newMasking(configWith(t, dir, map[string]string{}), protocols{}, local{}.Prove)).Must(t)
	line := []byte(`{"a":"AKIAQ3EGSDFKJ4KKAX2Z ours_k3j5h7g9k3j5h7g9"}`)
	first, ranges := m.For("x", "").Line(line)
	kit.Require(t, len(ranges) == 1, "%s", first)
	if err := m.Configure(configWith(t, dir, map[string]string{"redact_rules": filepath.Join(dir, "none.toml")})); err == nil {
		t.Error("rules that do not exist are taken")
	}
	again, _ := m.For("x", "").Line(line)
	kit.Check(t, string(again) == string(first), "%s became %s", first, again)
	rules := filepath.Join(dir, "rules.toml")
	text := "[[rules]]\nid = \"ours\"\nregex = '''ours_[a-z0-9]{8,}'''\nkeywords = [\"ours_\"]\n"
	kit.Must(t, os.WriteFile(rules, []byte(text), 0o600))
	kit.Must(t, m.Configure(configWith(t, dir, map[string]string{"redact_rules": rules})))
	both, ranges := m.For("x", "").Line(line)
	kit.Check(t, len(ranges) == 2 && string(both[:26]) == string(first[:26]), "%s, then %s", first, both)
	info, err := os.Stat(filepath.Join(dir, "redact_key"))
	kit.Check(t, err == nil && info.Mode().Perm() == 0o600, "the key: %v, %v", info, err)
	m.Count([]redact.Range{{Rule: "a"}, {Rule: "b"}, {Rule: "a"}})
	byRule, all := m.Counts()
	kit.Check(t, all == 3 && byRule["a"] == 2, "counts are %v", byRule)
}
