package main

import (
	"os"
	"path/filepath"
)

// row is something that lab can do.
type row struct {
	name, what  string
	time, needs string
	words       string // that it takes
	do          func(r row, c call) error
}

const nothing = "nothing more"

var rows = []row{
	{"promises", "what README promises of the service: lines, imports, rewinds, an idle minute; also make bench",
		"ten minutes", nothing, "runs mb corpus files idle", promises},
	{"shares", "of planted secrets, those that are masked", "a minute", nothing, "",
		above("../transcript/redact", "TestShares", "", "")},
	{"floor", "imports beside a program that posts lines and keeps nothing",
		"a minute; quick: seconds", nothing, "imports rounds", floor},
	{"delivery", "ccship beside programs that ship logs: imports, lines, and what rewinds, kills and outages take",
		"hours; quick: ten minutes", "syslog-ng, otelcol-contrib, where there are any",
		"parts only rounds imports", tests("./bench/delivery", "TestDelivery")},
	{"chain", "ccship, ccship-server and its database: from the disk until a search finds a line; verify; capture",
		"minutes", "PostgreSQL", "sizes stores rounds folder", tests("./bench/server", "TestChain")},
	{"server", "ccship-server on both databases: storage, CPU, reads, daemons", "hours; quick: minutes", "PostgreSQL",
		"sizes stores parts daemons before folder", tests("./bench/server", "TestServer")},
	{"field", "ccship beside deja, claude-run and ccusage: CPU, disk, recall, first page",
		"minutes", "transcripts in folder=; npm, the network or a clone deja=", "folder deja",
		tests("./bench/server", "TestField")},
	{"recall", "search on both databases: sessions by words of titles that are not stored, and phrases",
		"minutes", "PostgreSQL, transcripts in folder=", "folder stores", tests("./bench/server", "TestRecall")},
	{"why", "`ccship why` on a repository that keeps the transcripts of its commits, and what programs of others say",
		"minutes", "git, a clone with the branch entire/checkpoints/v1", "repository deja entire", tests("./why", "TestWhy")},
	{"turns", "a turn of Claude Code with and without ccship and its plugin, in pairs",
		"minutes", "npm, node", "pairs programs", tests("./claude", "TestTurns")},
	{"chaos", "every kind of fault for the real programs, in turn",
		"hours; quick: minutes", "Linux, root and /dev/fuse for a part", "test runs tears", chaos},
	{"soak", "sixty busy sessions: the daemon's memory, descriptors, goroutines and state stay flat",
		"an hour; quick: a minute", "Linux", "for", tests("./chaos", "TestSoak")},
	{"kill", "server, database, S3 server killed while lines are derived, packed, moved, retired, forgotten",
		"hours; quick: minutes", "PostgreSQL", "test rounds", kill},
	{"cold", "cold storage on an S3 server: its contract, then server and storage killed",
		"minutes", nothing, "rounds", cold},
	{"failover", "two servers on PostgreSQL: a server, the database, the primary killed mid-import",
		"minutes", "PostgreSQL", "rounds",
		above("../e2e", "TestPostgres", "rounds=20", "rounds=2")},
	{"patroni", "three nodes: the primary killed and switched over",
		"half an hour", "patroni, python3-etcd, etcd-server, haproxy", "rounds",
		above("../e2e", "TestPatroni$", "rounds=5", "rounds=1")},
	{"claude", "the real Claude Code against a stub: lines, hooks, plugin, tools",
		"an hour", "npm, node, tmux, git", "test programs", claude},
	{"systemd", "both .deb packages in a Debian whose process 1 is systemd",
		"ten minutes", "root, debootstrap, systemd-container", "test", systemd},
	{"first-minutes", "a newcomer's way on a clean Debian; svg= is the file of the picture",
		"minutes", "as systemd; npm for svg=", "svg", tests("./systemd", "TestFirstMinutes|TestSecondMachine")},
	{"wine", "what reads, keeps and sends, as Windows programs",
		"minutes", "wine64, gcc-mingw-w64-x86-64", "", script("lab/wine/run")},
	{"breaks", "deliberate breaks of the core, each caught by a test; only= names one",
		"an hour", "python3", "only", breaks},
	{"screenshots", "the pictures in docs/screenshots, of invented conversations",
		"a minute", "Chromium", "", pictures("TestScreenshots", "screenshots", "docs/screenshots")},
	{"gallery", "every page at three widths, light and dark, in the folder out=",
		"minutes", "Chromium", "out", pictures("TestGalleryPictures", "gallery", "gallery")},
	{"axe", "axe-core on every page: nothing serious", "a minute", "npm, Chromium", "", axe},
	{"ccusage", "`ccship usage` beside ccusage, on transcripts in corpus=", "minutes", "npm, node", "corpus",
		above("../daemon/library", "TestCCUsage", "ccusage=ccusage@20.0.24", "ccusage=ccusage@20.0.24")},
	{"gitleaks", "what is masked beside what gitleaks finds", "minutes", "the network", "",
		above("../transcript/redact", "TestGitleaks", "gitleaks", "gitleaks")},
	{"devcontainer", "the guide's devcontainer.json against its published schema, of which schema= is a copy",
		"seconds", "curl", "schema", devcontainer},
	{"release-twice", "the release built twice from nothing: the same bytes", "half an hour", nothing, "",
		above("../packaging/release", "TestReproducible", "twice", "twice")},
}

// tests runs tests of this module.
func tests(dir, pattern string) func(row, call) error {
	return func(_ row, c call) error { return c.test(c.told(), "-run="+pattern, dir) }
}

// above runs tests of the module above, which have no forms: words are what each form tells them.
func above(dir, pattern, full, quick string) func(row, call) error {
	return func(_ row, c call) error {
		if c.quick {
			full = quick
		}
		return c.test(c.told(full), "-run="+pattern, dir)
	}
}

// script runs a program of ours.
func script(path string, args ...string) func(row, call) error {
	return func(_ row, c call) error { return c.command(".", nil, filepath.Join(c.root, path), args...).Run() }
}

func promises(_ row, c call) error {
	return c.test(c.told(), "-run=^$", "-bench=Promises", "-benchtime=1x", "../e2e")
}

func floor(_ row, c call) error {
	more := []string{"parts=import", "only=ccship,floor"}
	if c.quick {
		more = append(more, "imports=2", "rounds=1")
	}
	return c.test(c.told(more...), "-run=TestDelivery", "./bench/delivery")
}

func chaos(_ row, c call) error {
	return c.test(c.told(), "-run="+c.value("test", "."), "-skip=TestSoak$", "./chaos")
}

func claude(_ row, c call) error {
	return c.test(c.told(), "-run="+c.value("test", "."), "-skip=TestTurns", "./claude")
}

func systemd(_ row, c call) error {
	return c.test(c.told(), "-run="+c.value("test", "."), "-skip=TestFirstMinutes|TestSecondMachine", "./systemd")
}

func breaks(_ row, c call) error {
	var only []string
	if name := c.value("only", ""); name != "" {
		only = []string{name}
	}
	return script("lab/breaks", only...)(row{}, c)
}

func kill(_ row, c call) error {
	program, err := c.s3()
	if err != nil {
		return err
	}
	pattern, rounds := "TestKill$|TestKilledAtSteps", "rounds=20"
	if c.quick {
		rounds = "rounds=1"
	}
	if test := c.value("test", ""); test != "" {
		pattern = "TestKill$/" + test
	}
	return c.test(c.told(program, rounds), "-run="+pattern, "../cmd/ccship-server", "../e2e")
}

func cold(_ row, c call) error {
	program, err := c.s3()
	if err != nil {
		return err
	}
	if err := c.test(c.told(program), "-run=TestBucket", "../server/store/lines"); err != nil {
		return err
	}
	return above("../cmd/ccship-server", "TestColdKilled", program+" rounds=14", program+" rounds=2")(row{}, c)
}

// pictures has the viewer's tests take pictures into a folder.
func pictures(pattern, name, folder string) func(row, call) error {
	return func(_ row, c call) error {
		at := c.value("out", folder)
		if !filepath.IsAbs(at) {
			at = filepath.Join(c.root, at)
		}
		return c.test(c.told(name+"="+at), "-run="+pattern, "../e2e/viewer")
	}
}

func devcontainer(_ row, c call) error {
	file := c.value("schema", "")
	if file == "" {
		const at = "https://raw.githubusercontent.com/devcontainers/spec/c95ffeed1d059abfe9ffbe79762dc2fa4e7c2421/schemas/"
		dir, err := os.MkdirTemp("", "schema-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file = filepath.Join(dir, "schema.json")
		if err := c.command(".", nil, "curl", "-fsSLo", file, at+"devContainer.base.schema.json").Run(); err != nil {
			return err
		}
	}
	return c.test(c.told("schema="+file), "-run=TestDevcontainerSchema", "../e2e")
}

func axe(_ row, c call) error {
	dir, err := os.MkdirTemp("", "axe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(c.root, "e2e/viewer/axe"))); err != nil {
		return err
	}
	if err := c.command(".", nil, "npm", "ci", "--silent", "--ignore-scripts", "--prefix", dir).Run(); err != nil {
		return err
	}
	script := filepath.Join(dir, "node_modules/axe-core/axe.min.js")
	return c.test(c.told("axe="+script), "-run=TestAxe", "../e2e/viewer")
}
