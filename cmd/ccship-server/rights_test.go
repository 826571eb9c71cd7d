//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// elsewhere are the commands that have nothing to do with the rights of a role in PostgreSQL.
var elsewhere = strings.Fields(`install uninstall start stop status version help backup restore migrate`)

// TestWithoutDDL: all commands but migrate need only a role that reads and writes rows. An unknown command fails it.
func TestWithoutDDL(t *testing.T) {
	c := pgtest.New(t, pgtest.Fast)
	tool(t, 0, "user", "list", "--store", c.URL("postgres"))
	c.Exec(t, "postgres", `CREATE ROLE clerk LOGIN;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk;
REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	at := strings.Replace(c.URL("postgres"), "user=postgres", "user=clerk", 1)
	var ran []string
	do := func(args string) string {
		t.Helper()
		want := 0
		if strings.Contains(args, "--secrets") {
			want = 1 // it finds one
		}
		out, _ := tool(t, want, append(strings.Fields(args), "--store", at)...)
		ran = append(ran, args+" ")
		return strings.TrimSpace(out)
	}
	key := do("key create --name first")
	p := launch(t, "", "--store", at)
	ran = append(ran, "serve ")
	for i := range 3 {
		kit.Must(t, p.send(key, "kept", i))
	}
	p.must(t, key, "POST", "/api/conversations",
		[]byte(`{"project_hash":"ph","session_id":"shared","ccship":{"v":1,"machine":"m","host":"h","epoch":"e","project":"shop"},"entries":[{"line_index":0,"n":1}]}`))
	p.say(t, key, "secret", 0, "it is AKIAQYLPMN5HHHFPZAM2")
	kit.Must(t, p.send(key, "gone", 0))
	for _, args := range []string{
		"user list", "user add ann", "key create --name anns --user ann", "key list", "key create --replace --name anns",
		"key revoke --name anns", "user set ann --role viewer", "user set ann --bytes 1GiB", "user set ann --disable", "user set ann --enable",
		"share add --owner owner --with ann --project ph", "share list", "share rm --owner owner --with ann --project ph",
		"link --user owner", "verify --secrets --json", "verify", "rebuild", "forget gone --yes", "forget --lines --yes", "thaw", "verify",
		"retention add sessions --older-than 30d", "retention hold --project shop --why case",
		"retention rm hold 1", "retention --yes", "retention --log 9", "retention rm rule 1", "retention", "vacuum",
	} {
		do(args)
	}
	p.kill(t)
	var walk func(x *cobra.Command, path string)
	walk = func(x *cobra.Command, path string) {
		for _, sub := range x.Commands() {
			walk(sub, path+sub.Name()+" ")
		}
		known := slices.ContainsFunc(ran, func(args string) bool { return strings.HasPrefix(args, path) })
		kit.Check(t, x.HasSubCommands() || x.Hidden || known || slices.Contains(elsewhere, strings.TrimSpace(path)),
			"no test runs %q as a role without rights to the schema", path)
	}
	walk(newRoot(), "")
}
