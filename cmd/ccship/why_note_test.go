package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/provenance"
)

// TestWhyNote writes a commit's note once, without a word of the prompts, and changes nothing else without the flag.
func TestWhyNote(t *testing.T) {
	w := newTale(t)
	w.by("README.md", "# A shop for everybody\n")
	first := w.commit("by hand")
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.edits("aaaa", "log it", "cart.go", "\treturn sum(c.Prices)", "\tlog.Print(\"total of a cart\")\n\treturn sum(c.Prices)")
	second := w.commit("the cart")
	w.by("later.txt", "a line that is not committed\n")
	state := func() string { return w.git("for-each-ref") + "\n" + w.git("status", "--porcelain") }
	w.t.Setenv("GIT_COMMITTER_NAME", "Kim")
	w.t.Setenv("GIT_COMMITTER_EMAIL", "kim@example.invalid")
	w.t.Setenv("GIT_AUTHOR_NAME", "Kim")
	w.t.Setenv("GIT_AUTHOR_EMAIL", "kim@example.invalid")
	before := state()
	w.want(w.top, first+".."+second, "aaaa:6(0:5)(3:1)")
	w.want(w.top, "cart.go:5", "aaaa:1(3:1)")
	got := state()
	kit.Require(t, got == before, "without --note: %s, before %s", got, before)
	for range 2 {
		code, out, problem := inProcess(t, append([]string{"why", "HEAD~1..", "--offline", "--note"}, w.flags...)...)
		kit.Require(t, code == 0, "exit %d\n%s%s", code, out, problem)
	}
	want := "ccship show aaaa:0 (5 of 6 lines)\nccship show aaaa:3 (1 of 6 lines)"
	kit.Equal(t, "the note", w.git("notes", "--ref=ccship", "show", second), want)
	got = w.git("notes", "--ref=ccship", "list")
	kit.Check(t, strings.Count(got, "\n") == 0 && strings.HasSuffix(got, second), "notes: %s", got)
	w.git("update-ref", "-d", "refs/notes/ccship")
	kit.Equal(t, "besides the note: before", state(), before)
	for _, args := range [][]string{{"why", "cart.go:1", "--note"}, {"why", "HEAD", "--note", "--link"}} {
		code, _, _ := inProcess(t, append(append(args, "--offline"), w.flags...)...)
		kit.Check(t, code == 2, "%v: exit %d", args, code)
	}
}

// TestWhyOfHostileServer: an answer steers no terminal, also as a note, and chooses no commit and nothing git does.
func TestWhyOfHostileServer(t *testing.T) {
	w := newTale(t)
	w.by("README.md", "# A shop for everybody\n")
	w.commit("by hand")
	w.by("cart.go", cart)
	commit := w.commit("the cart")
	key := filepath.Join(t.TempDir(), "key")
	w.must(os.WriteFile(key, []byte("a file of mine\n"), 0o600))
	answer, _ := hostileAnswer(provenance.Answer{}, true).(provenance.Answer)
	answer.Commit = "-F" + key
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Ccship-Protocol", "1")
		_ = json.NewEncoder(rw).Encode(map[string]any{"commits": []any{answer}})
	}))
	t.Cleanup(server.Close)
	t.Setenv("CCSHIP_SERVER_URL", server.URL)
	for name, value := range map[string]string{"GIT_COMMITTER_NAME": "Kim", "GIT_COMMITTER_EMAIL": "kim@example.invalid",
		"GIT_AUTHOR_NAME": "Kim", "GIT_AUTHOR_EMAIL": "kim@example.invalid"} {
		t.Setenv(name, value)
	}
	t.Chdir(w.top)
	for _, command := range [][]string{{"why", "HEAD"}, {"why", "cart.go:1"}, {"why", "HEAD", "--note"}} {
		code, out, words := inProcess(t, append(command, w.flags...)...)
		if checkHarmless(t, command, out+"\n"+words); code != 0 {
			t.Errorf("%v: exit %d, %q", command, code, words)
		}
	}
	note := w.git("notes", "--ref=ccship", "show", commit)
	if checkHarmless(t, []string{"note"}, note); strings.Contains(note, "of mine") || !strings.Contains(note, "INJECTED") {
		t.Errorf("the note is %q", note)
	}
}

// TestWhyIsNoOption: a name that looks like an option of git is no commit, and git does not do what it says.
func TestWhyIsNoOption(t *testing.T) {
	w := newTale(t)
	w.by("cart.go", cart)
	w.commit("the cart")
	t.Chdir(w.top)
	made := filepath.Join(t.TempDir(), "made")
	for _, name := range []string{"--output=" + made + "..HEAD", "--output=" + made, "--all", "-1", "--stdin", "--glob=x..y"} {
		code, _, words := inProcess(t, append(append([]string{"why", "--offline"}, w.flags...), "--", name)...)
		kit.Check(t, code == 2 && strings.Contains(words, "neither a file here nor a commit"),
			"%s: exit %d, %q", name, code, words)
	}
	list, err := filepath.Glob(made + "*")
	kit.Check(t, err == nil && len(list) == 0, "files were made: %q %v", list, err)
}
