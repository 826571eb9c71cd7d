package service

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/packaging"
)

// plist reads a property list: dictionaries, arrays, strings, integers and booleans.
func plist(t *testing.T, text string) map[string]any {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		kit.Require(t, err == nil, "read property list: %v", err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "dict" {
			value, err := plistValue(d, start)
			kit.Require(t, err == nil, "read property list: %v", err)
			return value.(map[string]any)
		}
	}
}

func plistValue(d *xml.Decoder, start xml.StartElement) (any, error) {
	switch kind := start.Name.Local; kind {
	case "true", "false":
		return kind == "true", d.Skip()
	case "string", "integer":
		var text string
		if err := d.DecodeElement(&text, &start); err != nil || kind == "string" {
			return text, err
		}
		return strconv.Atoi(text)
	case "array", "dict":
		dict, list, key := map[string]any{}, []any{}, ""
		for {
			token, err := d.Token()
			if err != nil {
				return nil, err
			}
			switch e := token.(type) {
			case xml.EndElement:
				if kind == "dict" {
					return dict, nil
				}
				return list, nil
			case xml.StartElement:
				if kind == "dict" && e.Name.Local == "key" {
					if err := d.DecodeElement(&key, &e); err != nil {
						return nil, err
					}
					continue
				}
				value, err := plistValue(d, e)
				if err != nil {
					return nil, err
				}
				if kind == "dict" && key == "" {
					return nil, errors.New("a value without a key")
				}
				list, dict[key], key = append(list, value), value, ""
			}
		}
	}
	return nil, fmt.Errorf("unknown element %s", start.Name.Local)
}

// What launchd must get, read the way it reads it.
func TestAgentSays(t *testing.T) {
	o := Options{Program: Daemon, Binary: "/Users/k & <m>/bin/ccship", LogFile: "/Users/k/Library/Logs/ccship/ccship.log", Args: []string{"run", "--config", "/Users/k/{{c}}.toml"}}
	text := kit.Try(renderAgent(o)).Must(t)
	got := plist(t, text)
	for key, want := range map[string]any{
		"Label":              Daemon.label,
		"ProgramArguments":   []any{o.Binary, "run", "--config", "/Users/k/{{c}}.toml"},
		"RunAtLoad":          true,
		"KeepAlive":          map[string]any{"SuccessfulExit": false},
		"ProcessType":        "Standard",
		"LowPriorityIO":      true,
		"SoftResourceLimits": map[string]any{"NumberOfFiles": 8192},
		"StandardOutPath":    "/dev/null",
		"StandardErrorPath":  "/dev/null",
		"Umask":              0o077,
	} {
		kit.Check(t, reflect.DeepEqual(got[key], want), "%s is %v, want %v", key, got[key], want)
	}
	kit.Check(t, !strings.Contains(text, "{{"), "the library that writes the file would take braces for its own")
	kit.Equal(t, "program is", programOfAgent(text), o.Binary)
	if got := plist(t, packaging.Agent)["ProgramArguments"].([]any); got[1] != "run" || got[2] != "--log-file" {
		t.Errorf("the packages' own has the arguments %v", got)
	}
	kit.Equal(t, "a program where there is none", programOfAgent("<plist><dict/></plist>"), "")
}

// fakeLaunchctl is launchd as far as one agent goes: what it was asked is in the file calls, that the agent is loaded
// in the file loaded. The first bootstrap fails when there is a file refuse.
const fakeLaunchctl = `#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >>calls
case $1 in
print) [ -e loaded ] || { echo 'Could not find service' >&2; exit 113; }; printf '\tstate = running\n\tpid = 4711\n' ;;
print-disabled) cat disabled 2>/dev/null ;;
bootstrap) [ ! -e refuse ] || { echo 'Bootstrap failed: 5: Input/output error' >&2; exit 5; }; touch loaded ;;
bootout) rm loaded ;;
esac
`

func newFakeLaunchd(t *testing.T) (*launchd, string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell scripts here")
	}
	dir := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(dir, "launchctl"), []byte(fakeLaunchctl), 0o700))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	l, err := newLaunchd(Options{Program: Daemon, Binary: "/usr/local/bin/ccship", LogFile: filepath.Join(dir, "logs", "ccship.log")})
	kit.Must(t, err)
	l.domain, l.path = "gui/501", filepath.Join(dir, "LaunchAgents", Daemon.label+".plist")
	l.write = func(text string) error {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(l.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) // as the library: never over a file
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, text)
		return errors.Join(err, f.Close())
	}
	return l, dir
}

// calls are what launchctl was asked to do since the last look, questions left out.
func calls(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "calls")
	text := kit.Try(os.ReadFile(path)).Must(t)
	kit.Must(t, os.Remove(path))
	var done []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "print") {
			done = append(done, strings.TrimSpace(strings.ReplaceAll(line, dir, "")))
		}
	}
	return strings.Join(done, "; ")
}

func TestLaunchd(t *testing.T) {
	l, dir := newFakeLaunchd(t)
	ctx := t.Context()
	step := func(what string, err error, want string) {
		t.Helper()
		kit.Require(t, err == nil, "%s: %v", what, err)
		kit.Equal(t, what+": asked launchctl", calls(t, dir), want)
	}
	const load = "enable gui/501/com.github.ccship; bootstrap gui/501 /LaunchAgents/com.github.ccship.plist"
	if st, err := l.Status(ctx); err != nil || st.Installed || st.Running || l.Start(ctx) == nil || l.Restart(ctx) == nil || l.Stop(ctx) == nil {
		t.Fatalf("%+v %v", st, err)
	}
	out, err := l.Install(ctx, true)
	step("install", err, load)
	if info, err := os.Stat(l.path); err != nil || info.Mode().Perm() != 0o600 || !out.Written || !out.Started {
		t.Errorf("%v %v %+v", info, err, out)
	}
	st, err := l.Status(ctx)
	kit.Check(t, err == nil && st.Installed && st.Enabled && st.Running && st.PID == 4711 && st.Binary == "/usr/local/bin/ccship" && st.UnitPath == l.path,
		"%+v %v", st, err)
	_, err = l.Install(ctx, true)
	step("install again", err, "kickstart -k gui/501/com.github.ccship")
	l.o.Args = append(l.o.Args, "--config", "/other.toml")
	_, err = l.Install(ctx, true)
	step("install another", err, "bootout gui/501/com.github.ccship; "+load)
	step("start", l.Start(ctx), "kickstart gui/501/com.github.ccship")
	step("restart", l.Restart(ctx), "kickstart -k gui/501/com.github.ccship")
	step("stop", l.Stop(ctx), "bootout gui/501/com.github.ccship")
	if st, err := l.Status(ctx); err != nil || !st.Installed || st.Running || st.Note == "" {
		t.Errorf("%+v %v", st, err)
	}
	step("start again", l.Start(ctx), load)
	r, err := l.Uninstall(ctx)
	step("uninstall", err, "bootout gui/501/com.github.ccship")
	kit.Check(t, r.Was && len(r.Removed) == 1 && !fileExists(l.path), "%+v", r)
	r, err = l.Uninstall(ctx)
	kit.Check(t, err == nil && !r.Was, "%+v %v", r, err)
}

// An agent that its user has disabled is installed, but does not start by itself.
func TestLaunchdDisabled(t *testing.T) {
	l, dir := newFakeLaunchd(t)
	kit.Try(l.Install(t.Context(), true)).Must(t)
	for text, enabled := range map[string]bool{"\t\t\"" + Daemon.label + "\" => disabled\n": false, "\t\t\"" + Daemon.label + "\" => enabled\n": true, "": true} {
		kit.Must(t, os.WriteFile(filepath.Join(dir, "disabled"), []byte(text), 0o600))
		st, err := l.Status(t.Context())
		kit.Check(t, err == nil && st.Installed && st.Enabled == enabled, "%q: %+v %v", text, st, err)
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// What launchd says when it refuses reaches the user; an agent that cannot be written comes back as it was.
func TestLaunchdFails(t *testing.T) {
	l, dir := newFakeLaunchd(t)
	kit.Must(t, os.WriteFile(filepath.Join(dir, "refuse"), nil, 0o600))
	var e *control.Error
	_, err := l.Install(t.Context(), true)
	kit.Check(t, errors.As(err, &e) && strings.Contains(e.Message, "Input/output error") && e.Hint != "", "%v", err)
	before := kit.Try(os.ReadFile(l.path)).Must(t)
	l.o.Args = append(l.o.Args, "--config", "/other.toml")
	l.write = func(string) error { return errors.New("no space") }
	_, err = l.Install(t.Context(), true)
	kit.Check(t, errors.As(err, &e) && strings.Contains(e.Message, "no space"), "%v", err)
	after, err := os.ReadFile(l.path)
	kit.Check(t, err == nil && string(after) == string(before), "the old agent is gone: %v", err)
}

func TestLogCommands(t *testing.T) {
	for system, want := range map[string]string{
		"linux":   "journalctl --user --unit=ccship.service --lines=7 --follow",
		"darwin":  "tail -n 7 -F /l",
		"windows": "",
		"plan9":   "",
	} {
		s := kit.Try(newOn(system, Options{Program: Daemon, Binary: "/b", LogFile: "/l"})).Must(t)
		argv, err := s.LogCommand(7, true)
		if got := strings.Join(argv, " "); got != want && runtime.GOOS != "windows" || (err == nil) != (len(argv) > 0) {
			t.Errorf("%s: %q %v", system, got, err)
		}
	}
	_, err := newOn("darwin", Options{Program: Daemon, System: true})
	kit.Check(t, err != nil, "--system on a Mac")
}

// PowerShell reads what follows -Command as one script, whose words end at spaces; and a file that it follows never
// ends, so that the next one needs a job of its own.
func TestGetContent(t *testing.T) {
	one, two := `C:\Users\Kim O'Neil\daemon.log`, `C:\server.log`
	quoted := `'C:\Users\Kim O''Neil\daemon.log'`
	for script, argv := range map[string][]string{
		"Get-Content -LiteralPath " + quoted + " -Tail 7":                  getContent(7, false, one),
		"Get-Content -LiteralPath " + quoted + ",'C:\\server.log' -Tail 7": getContent(7, false, one, two),
		"Get-Content -LiteralPath " + quoted + " -Tail 7 -Wait":            getContent(7, true, one),
		quoted + ",'C:\\server.log' | ForEach-Object { Start-Job { Get-Content -LiteralPath $args[0] -Tail 7 -Wait } -ArgumentList $_ } | Receive-Job -Wait": getContent(7, true, one, two),
	} {
		kit.Equal(t, "argv", argv, []string{"powershell", "-NoProfile", "-Command", script})
	}
}

// The server's agent runs the given command, and writes its output into the given file.
func TestServerAgent(t *testing.T) {
	o := Options{Program: Server, Binary: "/opt/b & c/ccship-server", LogFile: "/Users/k/{{l}}.log", Args: []string{"serve", "--listen", "127.0.0.1:5001"}}
	text := kit.Try(renderAgent(o)).Must(t)
	got := plist(t, text)
	for key, want := range map[string]any{
		"Label": "com.github.ccship.server", "StandardErrorPath": o.LogFile,
		"ProgramArguments": []any{o.Binary, "serve", "--listen", "127.0.0.1:5001"},
	} {
		kit.Check(t, reflect.DeepEqual(got[key], want), "%s is %v, want %v", key, got[key], want)
	}
	l := &launchd{o: o}
	kit.Check(t, l.fits(text) && !l.fits(strings.Replace(text, "RunAtLoad", "RunAtLoads", 1)),
		"only what this version installs is current")
}
