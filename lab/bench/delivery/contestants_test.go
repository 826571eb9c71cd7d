//go:build linux

package delivery_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/e2e/kit"
)

// contestant is a program that carries lines from files to a server. It is found or built once.
type contestant struct {
	name    string
	short   string                             // as only= has it
	find    func() (program string, err error) // an error says why it is not measured
	follows bool                               // it runs all the time; else deliver is called
	command func(p *place) *exec.Cmd           // of one that follows
	deliver func(p *place) error               // sends what is on disk
	program string
}

// The names, as the page has them.
const (
	ccship    = "ccship"
	theFloor  = "floor (no durability)"
	collector = "OpenTelemetry Collector"
)

// contestants are all that are known.
func contestants() []*contestant {
	return []*contestant{
		{name: ccship, short: "ccship", find: func() (string, error) { return kit.Build("ccship") }, follows: true, command: daemon},
		{name: theFloor, short: "floor", find: os.Executable, deliver: floorOnce},
		{name: collector, short: "collector", find: installed("otelcol-contrib", "otelcol-contrib"), follows: true, command: configured("collector.yaml", func(p *place, file string) []string {
			return []string{"--config", "file:" + file}
		})},
		{name: "syslog-ng", short: "syslog-ng", find: installed("syslog-ng", "syslog-ng-core and syslog-ng-mod-http"), follows: true,
			command: configured("syslog-ng.conf", func(p *place, file string) []string {
				in := func(name string) string { return filepath.Join(p.state, name) }
				return []string{"-F", "--no-caps", "-f", file, "-R", in("persist"), "-c", in("ctl"), "-p", in("pid")}
			})},
	}
}

// installed finds a program in PATH.
func installed(name, source string) func() (string, error) {
	return func() (string, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s is not installed", source)
		}
		return path, nil
	}
}

// daemon is ccship, with its defaults.
func daemon(p *place) *exec.Cmd {
	key := filepath.Join(p.state, "key")
	kit.Must(p.t, os.WriteFile(key, []byte("delivery"), 0o600))
	cmd := exec.CommandContext(context.Background(), p.c.program, "run")
	cmd.Dir = p.dir
	cmd.Env = []string{
		"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "XDG_RUNTIME_DIR=" + p.state,
		"XDG_CONFIG_HOME=" + p.state, "XDG_STATE_HOME=" + p.state, "CCSHIP_CONFIG=" + filepath.Join(p.state, "config.toml"),
		"CCSHIP_ROOTS=" + p.projects, "CCSHIP_STATE_DIR=" + filepath.Join(p.state, "s"),
		"CCSHIP_SOCKET=" + filepath.Join(p.state, "sock"), "CCSHIP_API_KEY_FILE=" + key, "CCSHIP_SERVER_URL=" + p.sink.URL,
	}
	return cmd
}

// configured is a program with a file of setups.
func configured(setup string, args func(p *place, file string) []string) func(p *place) *exec.Cmd {
	return func(p *place) *exec.Cmd {
		text := kit.Try(os.ReadFile(filepath.Join("setups", setup))).Must(p.t)
		at := kit.Try(url.Parse(p.sink.URL)).Must(p.t)
		filled := strings.NewReplacer("{{PROJECTS}}", p.projects, "{{STATE}}", p.state, "{{URL}}", p.sink.URL,
			"{{HOST}}", at.Hostname(), "{{PORT}}", at.Port()).Replace(string(text))
		file := filepath.Join(p.state, setup)
		kit.Must(p.t, os.WriteFile(file, []byte(filled), 0o600))
		return exec.CommandContext(context.Background(), p.c.program, args(p, file)...)
	}
}

// floorEnv turns the test binary into the floor: its value is the server's URL, a space, and the folder.
const floorEnv = "CCSHIP_DELIVERY_FLOOR"

func floorOnce(p *place) error {
	cmd := exec.CommandContext(context.Background(), p.c.program)
	cmd.Env = append(os.Environ(), floorEnv+"="+p.sink.URL+" "+p.projects)
	return p.run(cmd)
}
