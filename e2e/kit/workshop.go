package kit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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

// owner is the file in a folder that its process holds locked for as long as it lives.
const owner = ".owner"

// Scratch is a folder of this process.
type Scratch struct {
	Path string
	lock *os.File
}

// MakeScratch makes a folder in another one, or in the system's for such for "". Its name begins with prefix. It first
// removes the folders of that prefix whose processes are gone.
func MakeScratch(in, prefix string) (*Scratch, error) {
	if in == "" {
		in = os.TempDir()
	}
	sweep(in, prefix)
	dir, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return nil, fmt.Errorf("make a folder for tests: %w", err)
	}
	lock, err := own(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a folder for tests: %w", err), os.RemoveAll(dir))
	}
	return &Scratch{dir, lock}, nil
}

// Remove removes the folder.
func (f *Scratch) Remove() error {
	err := os.RemoveAll(f.Path)
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// sweep removes what it can. What it cannot is in nobody's way.
func sweep(in, prefix string) {
	list, _ := os.ReadDir(in)
	for _, e := range list {
		if dir := filepath.Join(in, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), prefix) && abandoned(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

// SettingVariable says what a run of tests is asked for, in words as long or rounds=3; make and the program lab set it.
// Without it a test that takes long runs its short form, or is skipped.
const SettingVariable = "CCSHIP_TEST"

// QuickForm and FullForm are the forms that lab asks for.
const (
	QuickForm = "quick"
	FullForm  = "full"
)

func settings() []string { return strings.Fields(os.Getenv(SettingVariable)) }

// HasSetting reports whether a word is there.
func HasSetting(word string) bool { return slices.Contains(settings(), word) }

// OnlyInLab skips what only lab runs.
func OnlyInLab(t testing.TB) {
	t.Helper()
	if !HasSetting(QuickForm) && !HasSetting(FullForm) {
		t.Skip("lab runs it: go run . in the folder lab lists what there is")
	}
}

// IsQuick reports whether the short form is wanted: nobody asked for the long one.
func IsQuick() bool { return !HasSetting(FullForm) }

// Setting is the value of a name, the last one that is given; otherwise when there is none.
func Setting(name, otherwise string) string {
	value := otherwise
	for _, word := range settings() {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			value = v
		}
	}
	return value
}

// SettingNumber is a value as a number. One that is none panics: a test with another number would prove something else.
func SettingNumber(name string, otherwise int) int { return SettingNumbers(name, otherwise)[0] }

// SettingNumbers are the parts of a value, which commas separate, as numbers.
func SettingNumbers(name string, otherwise ...int) (all []int) {
	for _, word := range SettingWords(name) {
		n, err := strconv.Atoi(word)
		if err != nil {
			panic(SettingVariable + ": " + name + ": " + err.Error())
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return otherwise
	}
	return all
}

// SettingWords are the parts of a value, which commas separate; known says which there can be and are without it, none:
// any.
func SettingWords(name string, known ...string) (all []string) {
	for word := range strings.SplitSeq(Setting(name, strings.Join(known, ",")), ",") {
		if len(known) > 0 && !slices.Contains(known, word) {
			panic(SettingVariable + ": " + name + " takes " + strings.Join(known, ",") + ", not " + word)
		}
		if word != "" {
			all = append(all, word)
		}
	}
	return all
}

// ManagerMessages are the sd_notify(3) messages that a service manager got.
type ManagerMessages chan string

// ListenManager is a service manager that listens on a socket until the test ends.
func ListenManager(t *testing.T, socket string) ManagerMessages {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no datagrams on Unix sockets here")
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	Must(t, err)
	messages := make(ManagerMessages, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			messages <- string(buf[:n])
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close() // ends the reader
		<-ended
	})
	return messages
}

// Next is the next message with a word in it.
func (messages ManagerMessages) Next(t *testing.T, word string) string {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case m := <-messages:
			if strings.Contains(m, word) {
				return m
			}
		case <-limit:
			t.Fatalf("never told %s", word)
		}
	}
}
