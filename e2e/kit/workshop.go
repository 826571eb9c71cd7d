package kit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	workshop string   // set by Main before any test
	programs sync.Map // name → func() (path, error)
)

// Workshop returns the folder of this test process: binaries, and what tests leave behind. It is removed at the end, or
// when the next one is made. Its path is short and has no link in it: a socket's path may have only about a hundred
// bytes, and Claude Code names folders by their real path.
func Workshop() string { return workshop }

// Main runs the tests of a package within a workshop, whose name begins with prefix, and returns the exit code. At the
// end it calls atEnd, last one first.
func Main(m *testing.M, prefix string, atEnd ...func()) int {
	folder, err := MakeScratch("", prefix)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = folder.Remove() }()
	if workshop, err = filepath.EvalSymlinks(folder.Path); err == nil {
		// Others may look in: one case runs the daemon as another user.
		err = errors.Join(os.Chmod(workshop, 0o755), touchSources())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, f := range atEnd {
		defer f()
	}
	return m.Run()
}

// SideBySide lets n tests of this process run at once, unless -parallel says how many: for tests that wait for disks
// and for other processes most of the time, and so would leave the processors idle if there were one for each.
func SideBySide(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // a number is always taken
	}
}

// touchSources looks at every source file. The go command keeps a test's result until a file changes that the test has
// looked at; it does not see what the builds started from here read.
func touchSources() error {
	root, err := Root()
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return fs.SkipDir
		case entry.Type().IsRegular():
			_, err = os.Stat(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// Root returns the folder of the module that has the programs, also for a test in the module lab below it.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/ccship/ccship\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod of ccship above the working directory")
		}
		dir = parent
	}
}

// Build builds a program of ours at its first use in this test process, and returns its path.
func Build(name string) (string, error) { return BuildAs(name, "") }

// BuildAs is Build with a version; "": the one that a build without a version has.
func BuildAs(name, version string) (string, error) {
	once, _ := programs.LoadOrStore(name+version, sync.OnceValues(func() (string, error) { return build(name, version) }))
	return once.(func() (string, error))()
}

func build(name, version string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(workshop, name+version)
	flags := "-s -w" // to link without what debuggers read takes half as long
	if version != "" {
		flags += " -X main.version=" + version
	}
	args := []string{"build", "-trimpath", "-ldflags", flags, "-o", path}
	cmd := exec.CommandContext(context.Background(), "go", append(args, "./cmd/"+name)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, os.Chmod(path, 0o755) // whatever the umask is: another user runs it too
}

// Program is Build for a test, which ends when the program cannot be built.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := Build(name)
	Must(t, err)
	return path
}
