package document

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// place is a working directory with something next to it.
type place struct {
	t            *testing.T
	dir, outside string
}

func newPlace(t *testing.T) place {
	t.Helper()
	top := kit.Try(filepath.EvalSymlinks(t.TempDir())).Must(t)
	p := place{t, filepath.Join(top, "shop"), filepath.Join(top, "secret")}
	p.write("docs/spec.md", "# Spec\n")
	kit.Must(t, os.WriteFile(p.outside, []byte("secret"), 0o600))
	return p
}

func (p place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	kit.WriteFile(p.t, path, text)
	return path
}

func (p place) link(to, name string) {
	p.t.Helper()
	if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
		p.t.Skipf("no symbolic links here: %v", err)
	}
}

func (p place) open() *folder {
	p.t.Helper()
	f := kit.Try(openFolder(p.dir)).Must(p.t)
	p.t.Cleanup(func() { f.Close() })
	return f
}

// refused checks that an error is one line for people, with what to do.
func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	var r *refusedError
	if !errors.As(err, &r) {
		t.Errorf("%s: %v, want a refusal", what, err)
		return
	}
	kit.Check(t, strings.Contains(r.Message, says) && r.Hint != "" && !strings.ContainsAny(r.Message+r.Hint, "\n\x00"),
		"%s: %q, %q; want %q", what, r.Message, r.Hint, says)
}

func TestFindRefuses(t *testing.T) {
	p := newPlace(t)
	p.link("../secret", "out.md")
	p.link(filepath.Dir(p.dir), "up")
	p.link("gone.md", "dangling.md")
	p.link("loop.md", "loop.md")
	p.write("docs/evil\nname", "x")
	p.write("docs/\x1b[31mred", "x")
	p.write("docs/line\u2028sep", "x")
	hidden := map[string]string{}
	for _, r := range "\u202a\u202e\u2066\u2069\u200b\u200e\u200f\ufeff" {
		name := "docs/gpj" + string(r) + ".md"
		p.write(name, "x")
		hidden[name] = "control"
	}
	p.write("docs/bad\xffutf", "x")
	p.link("docs/evil\nname", "nice.md")
	f := p.open()
	for name, says := range hidden {
		_, err := f.Find("", name)
		refused(t, name, err, says)
	}
	for path, says := range map[string]string{
		"":                           "empty",
		".":                          "directory",
		"docs":                       "directory",
		"docs/":                      "directory",
		"docs/spec.md/x":             "no file",
		"../secret":                  "outside",
		"docs/../../secret":          "outside",
		p.outside:                    "outside",
		"/":                          "outside",
		"/etc/passwd":                "outside",
		"out.md":                     "outside",
		"up/secret":                  "outside",
		"up":                         "outside",
		"missing.md":                 "no file",
		"dangling.md":                "no file",
		"loop.md":                    "too many links",
		"docs/spec.md\x00.png":       "zero byte",
		"docs/evil\nname":            "control",
		"docs/\x1b[31mred":           "control",
		"docs/line\u2028sep":         "control",
		"nice.md":                    "control",
		"docs/bad\xffutf":            "UTF-8",
		strings.Repeat("a/", 3000):   "long",
		strings.Repeat("a", 300):     "", // too long for a name: whatever the system says
		`C:\Users\kim\spec.md`:       "no file",
		"~/spec.md":                  "no file",
		"docs/spec.md/../../../shop": "",
	} {
		name, err := f.Find("", path)
		if err == nil {
			t.Errorf("%q is taken as %q", path, name)
			continue
		}
		refused(t, path, err, says)
	}
	_, err := openFolder(filepath.Join(p.dir, "nowhere"))
	refused(t, "no folder", err, "does not exist")
	_, err = openFolder("shop")
	refused(t, "relative folder", err, "not known")
	_, err = openFolder(filepath.Join(p.dir, "docs", "spec.md"))
	refused(t, "a file for a folder", err, "cannot open")
}

func TestFind(t *testing.T) {
	p := newPlace(t)
	p.link("docs/spec.md", "current.md")
	p.link("docs", "papers")
	p.link(p.dir, "self")
	p.write("docs/공유 문서 (1).md", "x")
	p.write("..hidden/...", "x")
	p.write("docs/👩\u200d💻 می\u200cخواهم.md", "x") // joiners are part of the word
	f := p.open()
	for _, test := range []struct{ base, path, want string }{
		{"", "docs/spec.md", "docs/spec.md"},
		{"", "./docs//spec.md", "docs/spec.md"},
		{"", "docs/../docs/spec.md", "docs/spec.md"},
		{"", filepath.Join(p.dir, "docs/spec.md"), "docs/spec.md"},
		{filepath.Join(p.dir, "docs"), "spec.md", "docs/spec.md"},
		{filepath.Join(p.dir, "docs"), "../docs/spec.md", "docs/spec.md"},
		{filepath.Dir(p.dir), "shop/docs/spec.md", "docs/spec.md"},
		{"", "current.md", "docs/spec.md"},
		{"", "papers/spec.md", "docs/spec.md"},
		{"", "self/self/docs/spec.md", "docs/spec.md"},
		{"", "docs/공유 문서 (1).md", "docs/공유 문서 (1).md"},
		{"", "..hidden/...", "..hidden/..."},
		{"", "docs/👩\u200d💻 می\u200cخواهم.md", "docs/👩\u200d💻 می\u200cخواهم.md"},
	} {
		got, err := f.Find(test.base, test.path)
		kit.Check(t, err == nil && got == test.want, "%q from %q: %q %v, want %q", test.path, test.base, got, err, test.want)
	}
	linked := p.dir + "-link"
	kit.Must(t, os.Symlink(p.dir, linked))
	through := kit.Try(openFolder(linked)).Must(t)
	defer through.Close()
	for _, path := range []string{"docs/spec.md", filepath.Join(linked, "docs/spec.md"), filepath.Join(p.dir, "docs/spec.md")} {
		got, err := through.Find("", path)
		kit.Check(t, err == nil && got == "docs/spec.md", "%q through a link: %q %v", path, got, err)
	}
	names := through.Names("", filepath.Join(p.dir, "docs/gone.md"))
	kit.Check(t, len(names) == 1 && names[0] == "docs/gone.md", "names of a file that is gone: %q", names)
	names = through.Names("", "../gone.md")
	kit.Check(t, len(names) == 0, "names of a file outside: %q", names)
}

func TestRead(t *testing.T) {
	p := newPlace(t)
	f := p.open()
	const limit, keep = 1000, 100
	for _, test := range []struct {
		size           int
		kept, tooLarge bool
	}{{0, true, false}, {keep, true, false}, {keep + 1, false, false}, {limit, false, false}, {limit + 1, false, true}} {
		text := strings.Repeat("x", test.size)
		p.write("docs/spec.md", text)
		c := kit.Try(f.Read("docs/spec.md", limit, keep)).Must(t)
		sum := sha256.Sum256([]byte(text))
		if want := hex.EncodeToString(sum[:]); (c.SHA256 == want) == test.tooLarge || c.Size != int64(test.size) ||
			c.TooLarge != test.tooLarge || (c.Bytes != nil) != test.kept || c.Bytes != nil && string(c.Bytes) != text || c.Torn {
			t.Errorf("%d bytes: %+v", test.size, c)
		}
		stamp, err := f.Stamp("docs/spec.md")
		kit.Check(t, err == nil && stamp == c.Stamp, "%d bytes: stamp %+v %v, read %+v", test.size, stamp, err, c.Stamp)
	}
	c, _ := f.Read("docs/spec.md", limit, keep)
	written := time.Unix(0, max(c.Stamp.ModTime, c.Stamp.ChangeTime)) // by the disk's clock
	kit.Check(t, !settled(c.Stamp, written) && settled(c.Stamp, written.Add(time.Minute)),
		"a stamp of just now is settled, or one of a minute ago is not")
}

// TestReadNoLonger reads a document in whose place something else has come.
func TestReadNoLonger(t *testing.T) {
	p := newPlace(t)
	f := p.open()
	doc := filepath.Join(p.dir, "docs", "spec.md")
	replace := func(what string, with func() error) {
		t.Helper()
		kit.Must(t, os.RemoveAll(doc))
		if err := with(); err != nil {
			t.Skipf("%s: %v", what, err)
		}
	}
	both := func(what string, check func(error)) {
		t.Helper()
		c, err := f.Read("docs/spec.md", 1000, 100)
		check(err)
		kit.Check(t, len(c.Bytes) == 0, "%s: read %q", what, c.Bytes)
		_, err = f.Stamp("docs/spec.md")
		check(err)
	}
	gone := func(err error) {
		t.Helper()
		kit.Check(t, errors.Is(err, errGone), "%v, want ErrGone", err)
	}
	replace("nothing", func() error { return nil })
	both("nothing", gone)
	replace("directory", func() error { return os.Mkdir(doc, 0o700) })
	both("directory", func(err error) { refused(t, "directory", err, "directory") })
	replace("link out", func() error { return os.Symlink("../../secret", doc) })
	both("link out", func(err error) { refused(t, "link out", err, "outside") })
	replace("absolute link", func() error { return os.Symlink(p.outside, doc) })
	both("absolute link", func(err error) { refused(t, "absolute link", err, "outside") })
	replace("dangling link", func() error { return os.Symlink("nowhere", doc) })
	both("dangling link", gone)
	kit.Must(t, os.RemoveAll(filepath.Dir(doc)))
	both("no folder", gone)
	p.write("docs", "now a file")
	both("a file for a folder", gone)
	kit.Must(t, os.Remove(filepath.Join(p.dir, "docs")))
	kit.Must(t, os.Symlink(filepath.Dir(p.dir), filepath.Join(p.dir, "docs")))
	kit.Must(t, os.WriteFile(filepath.Join(filepath.Dir(p.dir), "spec.md"), []byte("outside"), 0o600))
	both("folder leads out", func(err error) { refused(t, "folder leads out", err, "cannot read") })
}
