package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/provenance"
)

// TestWhyCommits asks about commits as people make them.
func TestWhyCommits(t *testing.T) {
	w := newTale(t)
	w.by("README.md", "# A shop for everybody\n")
	first := w.commit("by hand")
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.edits("aaaa", "log it", "cart.go", "\treturn sum(c.Prices)", "\tlog.Print(\"total of a cart\")\n\treturn sum(c.Prices)")
	w.by("cart.go", w.text("cart.go")+"\nvar byHand = \"a line that Kim wrote\"\n")
	second := w.commit("the cart")
	w.want(w.top, first, "no_transcript:1")
	w.want(w.top, second, "aaaa:6(0:5)(3:1) by_hand:1")
	w.want(w.top, first+".."+second, "aaaa:6(0:5)(3:1) by_hand:1")

	w.git("commit", "-q", "--amend", "-m", "another word")
	w.want(w.top, "HEAD", "aaaa:6(0:5)(3:1) by_hand:1")

	w.git("checkout", "-q", "-b", "side", first)
	w.by("other.txt", "something else entirely\n")
	w.commit("elsewhere")
	w.git("cherry-pick", "main")
	w.want(w.top, "HEAD", "aaaa:6(0:5)(3:1) by_hand:1")
	w.git("rebase", "-q", "--onto", "side~1", "main~1", "main")
	w.want(w.top, "main", "aaaa:6(0:5)(3:1) by_hand:1")
}

// TestWhySquashAndPullRequest asks about a branch that was merged, and about one that was squashed.
func TestWhySquashAndPullRequest(t *testing.T) {
	w := newTale(t)
	w.by("README.md", "# A shop for everybody\n")
	w.commit("by hand")
	w.git("checkout", "-q", "-b", "feature")
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.commit("the cart")
	w.edits("bbbb", "name it", "cart.go", "return sum(c.Prices)", "return sumOfAll(c.Prices)")
	w.commit("a name")
	w.git("update-ref", "refs/pull/7/head", "feature")
	w.git("checkout", "-q", "main")
	w.want(w.top, "#7", "aaaa:5(0:5); bbbb:1(0:1)")
	w.git("merge", "-q", "--no-ff", "-m", "Merge pull request #7 from kim/feature", "feature")
	w.want(w.top, "https://github.com/kim/shop/pull/7", "aaaa:5(0:5); bbbb:1(0:1)")
	w.want(w.top, "HEAD", "aaaa:5(0:5); bbbb:1(0:1)")

	w.git("checkout", "-q", "-b", "squashed", "main~1")
	w.git("merge", "-q", "--squash", "feature")
	w.git("commit", "-q", "-m", "The cart (#9)")
	w.want(w.top, "HEAD", "aaaa:4(0:4) bbbb:1(0:1)")
	w.want(w.top, "#9", "aaaa:4(0:4) bbbb:1(0:1)")
	kit.Has(t, "a pull request that is", w.why(w.top, "#12"), "git fetch origin refs/pull/12/head:refs/pull/12/head")
}

// TestWhyLines asks about lines that were moved, renamed and formatted after they were written.
func TestWhyLines(t *testing.T) {
	w := newTale(t)
	w.writes("aaaa", "write the cart", "shop/cart.go", cart)
	w.commit("the cart")
	w.want(w.top, "shop/cart.go:5", "aaaa:1(0:1)")
	w.want(filepath.Join(w.top, "shop"), "cart.go:4-6", "aaaa:1(0:1); aaaa:1(0:1); aaaa:1(0:1)")
	w.want(w.top, "shop/cart.go:2", "not_compared:1")

	w.git("mv", "shop/cart.go", "shop/till.go")
	w.commit("rename")
	w.want(w.top, "shop/till.go:5", "aaaa:1(0:1)")

	w.by("shop/till.go", strings.ReplaceAll(w.text("shop/till.go"), "\treturn sum(c.Prices)", "    return sum( c.Prices );"))
	w.commitWant("format", "restored:1")
	w.want(w.top, "shop/till.go:5", "aaaa:1(0:1)")

	w.by("shop/till.go", w.text("shop/till.go")+"var notCommitted = \"by hand\"\n")
	w.want(w.top, "shop/till.go:7", "no_transcript:1")
	w.edits("bbbb", "one more", "shop/till.go", "\"by hand\"", "\"by hand\"\nvar written = \"by a session\"")
	w.want(w.top, "shop/till.go:8", "bbbb:1(0:1)")
}

// TestWhyTwoSessions names the session that wrote a line last before the commit.
func TestWhyTwoSessions(t *testing.T) {
	w := newTale(t)
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.commit("the cart")
	w.edits("aaaa", "round it", "cart.go", "return sum(c.Prices)", "return rounded(sum(c.Prices))")
	w.edits("bbbb", "no, cut it", "cart.go", "return rounded(sum(c.Prices))", "return truncated(sum(c.Prices))")
	w.edits("aaaa", "cut it as I said", "cart.go", "return truncated(sum(c.Prices))", "return rounded(sum(c.Prices))")
	w.edits("bbbb", "cut, finally", "cart.go", "return rounded(sum(c.Prices))", "return truncated(sum(c.Prices))")
	w.commitWant("cut", "bbbb:1(3:1)")
	w.edits("cccc", "later than the commit", "cart.go", "return truncated(sum(c.Prices))", "return truncated(sum(c.Prices)) // cut")
	w.want(w.top, "HEAD", "bbbb:1(3:1)")
}

// TestWhyAfterTheCommit names nobody for an edit after the commit, also when another session had made it before.
func TestWhyAfterTheCommit(t *testing.T) {
	w := newTale(t)
	soon := func(session, file, text string) { // half a minute after the last commit
		w.clock = w.clock.Add(30*time.Second - 20*time.Minute)
		w.writes(session, "write it again", file, text)
	}
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.commit("the cart")
	soon("bbbb", "cart.go", cart)
	w.want(w.top, "HEAD", "aaaa:5(0:5)")

	const till = "package shop\n\nvar tillIsOpen = \"from nine to five\"\n"
	w.by("till.go", till)
	w.commit("by hand")
	soon("cccc", "till.go", till)
	w.want(w.top, "HEAD", "no_transcript:2")

	w.edits("dddd", "on Sundays too", "till.go", "var tillIsOpen = \"from nine to five\"", "var tillIsOpen = \"on Sundays too\"")
	w.git("commit", "-q", "-a", "--amend", "-m", "an edit after the author's date, before the committer's")
	w.want(w.top, "HEAD", "dddd:1(0:1) by_hand:1")
}

// TestWhyShortLines names a session for lines that say little when its edits added just these, all of them.
func TestWhyShortLines(t *testing.T) {
	const file, line = "cart_test.go", "\tt.Parallel()\n"
	const one, two, three = "func TestOne(t *testing.T) {\n", "func TestTwo(t *testing.T) {\n", "func TestThree(t *testing.T) {\n"
	begin := func() *tale {
		w := newTale(t)
		w.by(file, "package shop\n\n"+one+"}\n\n"+two+"}\n\n"+three+"}\n")
		w.commit("by hand")
		w.edits("aaaa", "make them parallel", file, one, one+line)
		w.edits("aaaa", "this one too", file, two, two+line)
		return w
	}
	w := begin()
	w.commitWant("parallel", "aaaa:2(0:1)(3:1)")
	w.want(w.top, file+":4", "aaaa:1(0:1)")

	w = begin()
	w.by(file, strings.Replace(w.text(file), three, three+line, 1))
	w.commitWant("one of three is by hand", "by_hand:3")

	w = begin()
	w.git("checkout", "-q", file)
	w.edits("bbbb", "say why", file, one, one+"\t// no other test changes the cart\n"+line)
	w.git("checkout", "-q", file)
	w.edits("cccc", "and here", file, two, two+line)
	w.by(file, strings.Replace(w.text(file), three, three+line, 1))
	w.commitWant("edits of three sessions, of which two are gone", "by_hand:2")

	w = begin()
	w.commit("parallel")
	w.by(file, strings.ReplaceAll(w.text(file), line, ""))
	w.commit("not parallel")
	w.by(file, strings.NewReplacer(one, one+line, two, two+line).Replace(w.text(file)))
	w.commitWant("by hand, what a session had done before", "restored:2")
}

// TestWhyRevert names nobody for what a person brings back.
func TestWhyRevert(t *testing.T) {
	w := newTale(t)
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.commit("the cart")
	w.edits("bbbb", "round it", "cart.go", "return sum(c.Prices)", "return rounded(sum(c.Prices))")
	w.commit("round")
	w.git("revert", "--no-edit", "HEAD")
	w.want(w.top, "HEAD", "restored:1")
	w.git("revert", "--no-edit", "HEAD")
	w.want(w.top, "HEAD", "restored:1")
}

// TestWhyRewound names the prompt whose edit stayed, not one that was gone back behind.
func TestWhyRewound(t *testing.T) {
	w := newTale(t)
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.commit("the cart")
	before := w.text("cart.go")
	w.edits("aaaa", "round it", "cart.go", "return sum(c.Prices)", "return rounded(sum(c.Prices))")
	w.by("cart.go", before)
	w.edits("aaaa", "cut it instead", "cart.go", "return sum(c.Prices)", "return truncated(sum(c.Prices))")
	w.commitWant("cut", "aaaa:1(6:1)")
}

// TestWhyCommands takes files that a command writes with a text that is in it, in every line ending.
func TestWhyCommands(t *testing.T) {
	w := newTale(t)
	w.by("a/run.sh", "#!/bin/sh\necho the shop is open\n")
	w.asked("aaaa", "a script", w.top, "Bash", map[string]any{"command": "mkdir -p a && cat > a/run.sh <<'EOF'\n#!/bin/sh\necho the shop is open\nEOF"})
	w.by("b.txt", "made by a generator of texts\n")
	w.asked("aaaa", "generate", w.top, "Bash", map[string]any{"command": "generate > b.txt"})
	w.commitWant("by commands", "aaaa:2(0:2) no_transcript:1")

	w.writes("bbbb", "for Windows", "c.cmd", "@echo the shop is open\r\n@echo come in and look around\r\n")
	w.commitWant("with carriage returns", "bbbb:2(0:2)")
	w.by("d.cmd", "x\r\n")
	w.writes("cccc", "without them", "d.cmd", "@echo another line of a script\n")
	w.by("d.cmd", "@echo another line of a script\r\n")
	w.commitWant("carriage returns came later", "cccc:1(0:1)")
}

// TestWhyElsewhere asks in a worktree, in a clone at another path, in a submodule and in a shallow clone.
func TestWhyElsewhere(t *testing.T) {
	w := newTale(t)
	w.by("README.md", "# A shop for everybody\n")
	w.commit("by hand")
	tree := filepath.Join(filepath.Dir(w.top), "trees", "fix")
	w.git("worktree", "add", "-q", "-b", "fix", tree)
	main := w.top
	w.top = tree
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.commit("the cart")
	w.want(tree, "HEAD", "aaaa:5(0:5)")
	w.top = main
	w.git("merge", "-q", "fix")
	w.want(main, "cart.go:5", "aaaa:1(0:1)")

	clone := filepath.Join(filepath.Dir(w.top), "elsewhere", "copy")
	w.git("clone", "-q", w.top, clone)
	w.want(clone, "HEAD", "aaaa:5(0:5)")

	outer := filepath.Join(filepath.Dir(w.top), "outer")
	w.must(os.MkdirAll(outer, 0o700))
	w.gitIn(outer, "init", "-q", "-b", "main")
	w.gitIn(outer, "submodule", "add", "-q", w.top, "vendored/shop")
	w.want(outer, "vendored/shop/cart.go:5", "aaaa:1(0:1)")

	shallow := filepath.Join(filepath.Dir(w.top), "shallow")
	w.git("clone", "-q", "--depth", "1", "file://"+filepath.ToSlash(w.top), shallow)
	w.want(shallow, "cart.go:5", "aaaa:1(0:1)")
	kit.Has(t, "a commit at which a shallow clone ends", w.why(shallow, "HEAD"), "--unshallow")
}

// TestWhyNobody is silent about bots, secrets, generated files, and braces.
func TestWhyNobody(t *testing.T) {
	w := newTale(t)
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "bump", "--author", "dependabot[bot] <bot@example.invalid>")
	w.want(w.top, "HEAD", "bot:5")

	secret := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	w.writes("bbbb", "a key", "key.go", "package shop\n\nvar token = \""+secret+"\"\nvar otherThing = \"no secret at all\"\n")
	w.by("go.sum", "example.invalid/module v1.0.0 h1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=\n")
	w.by("brace.go", "}\n")
	w.commitWant("a key", "bbbb:2(0:2) generated:1 masked:1 no_transcript:1")
	w.want(w.top, "key.go:3", "not_compared:1")
}

// TestWhyLink prints an address that holds what the commit adds, as hashes, and no text of a file.
func TestWhyLink(t *testing.T) {
	w := newTale(t)
	w.writes("aaaa", "write the cart", "cart.go", cart)
	commit := w.commit("the cart")
	t.Chdir(w.top)
	code, out, problem := inProcess(t, append([]string{"why", "HEAD", "--link", "--server-url", "http://127.0.0.1:1/base"}, w.flags...)...)
	text, ok := strings.CutPrefix(strings.TrimSpace(out), "http://127.0.0.1:1/base/why?q=")
	kit.Require(t, code == 0 && ok, "%d %s %s", code, out, problem)
	commits, err := provenance.ParseLink(text)
	kit.Check(t, err == nil && len(commits) == 1 && commits[0].Name == commit && len(commits[0].Files[0].Lines) == 5,
		"%v: %+v", err, commits)
	code, _, _ = inProcess(t, append([]string{"why", "cart.go:1", "--link", "--server-url", "http://127.0.0.1:1"}, w.flags...)...)
	kit.Check(t, code == 2, "a link to a line: exit %d", code)
}
