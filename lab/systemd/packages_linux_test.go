package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// The two versions that boxes get.
const (
	older = "0.1.0"
	newer = "0.2.0"
)

// must ends the test on an error that is the test's own.
var must = kit.Must

func TestMain(m *testing.M) {
	if link := os.Getenv(browseLink); link != "" {
		os.Exit(browse(link))
	}
	os.Exit(kit.Main(m, "ccsd"))
}

// built is the folders of both versions' packages, built once per test process as a release builds them.
var built = sync.OnceValues(func() (map[string]string, error) {
	folders := map[string]string{}
	for _, version := range []string{older, newer} {
		folders[version] = filepath.Join(kit.Workshop(), version)
		cmd := exec.Command("go", "run", "./packaging/release", "-version", "v"+version, "-systems", "linux/"+runtime.GOARCH, "-only", "deb", "-out", folders[version])
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000") // the tree need not be a checkout
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the packages of %s: %w\n%s", version, err, out)
		}
	}
	return folders, nil
})

// install lets dpkg install both programs, or upgrade them.
func (b *box) install(version string) string {
	b.t.Helper()
	folders, err := built()
	must(b.t, err)
	args := []string{"dpkg", "--install"}
	for _, program := range []string{"ccship", "ccship-server"} {
		name := fmt.Sprintf("%s_%s_%s.deb", program, version, runtime.GOARCH)
		b.copyIn(filepath.Join(folders[version], name), "/root/"+name)
		args = append(args, "/root/"+name)
	}
	r := b.rootDo(args...)
	return b.ok(r) + r.stderr
}
