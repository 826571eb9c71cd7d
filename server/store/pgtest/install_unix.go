//go:build unix

package pgtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// installation is where PostgreSQL's programs are and who runs them.
type installation struct {
	bin string
	who *syscall.Credential // nil: the one who runs the tests
}

// packaged is where Debian's packages put each release.
const packaged = "/usr/lib/postgresql"

// find looks for an installation: $CCSHIP_PG_BIN, then the newest packaged one, then PATH.
func find() (installation, error) {
	var in installation
	var dirs []string
	if dir := os.Getenv("CCSHIP_PG_BIN"); dir != "" {
		dirs = append(dirs, dir)
	}
	releases, err := os.ReadDir(packaged)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return in, err
	}
	slices.SortFunc(releases, func(a, b os.DirEntry) int { return cmp.Compare(major(b.Name()), major(a.Name())) })
	for _, release := range releases {
		dirs = append(dirs, filepath.Join(packaged, release.Name(), "bin"))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			in.bin = dir
			break
		}
	}
	if in.bin == "" {
		return in, fmt.Errorf("no initdb in %s or PATH: install PostgreSQL (Debian: postgresql) or set CCSHIP_PG_BIN",
			packaged+"/*/bin")
	}
	if os.Getuid() != 0 {
		return in, nil
	}
	in.who, err = unprivileged()
	return in, err
}

// major returns the first number of a release, such as 15 or 9.6.
func major(release string) int {
	v, _, _ := strings.Cut(release, ".")
	n, _ := strconv.Atoi(v) // 0 sorts last
	return n
}

// unprivileged is whom root runs PostgreSQL as, which refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if errU == nil && errG == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}, nil
		}
	}
	return nil, fmt.Errorf("neither a user postgres nor nobody: PostgreSQL does not run as root")
}

// need answers the installation. Without one the test is skipped; in CI, which installs one, it fails.
func need(t testing.TB) installation {
	t.Helper()
	in, err := find()
	switch {
	case err == nil:
		return in
	case os.Getenv("CCSHIP_CI") != "":
		t.Fatalf("PostgreSQL is missing, and CCSHIP_CI says that it must not: %v", err)
	default:
		t.Skipf("without PostgreSQL: %v", err)
	}
	return in
}

// Programs returns the folder of PostgreSQL's programs, and who runs them; nil: the one who runs the tests. Without
// them the test is skipped; in CI it fails.
func Programs(t testing.TB) (bin string, who *syscall.Credential) {
	t.Helper()
	in := need(t)
	return in.bin, in.who
}

// own gives a file to the user that runs the programs.
func (in installation) own(path string) error {
	if in.who == nil {
		return nil
	}
	return os.Chown(path, int(in.who.Uid), int(in.who.Gid))
}

// command returns one of PostgreSQL's programs, to be run as a user who may.
func (in installation) command(program string, args ...string) *exec.Cmd {
	//nolint:noctx // a cluster outlives what starts it; what stops it waits for its end
	cmd := exec.Command(filepath.Join(in.bin, program), args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGTZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: in.who, Setpgid: true} // a Ctrl-C is for the tests
	return cmd
}

// run runs a program to its end.
func (in installation) run(program string, args ...string) error {
	out, err := in.command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}
