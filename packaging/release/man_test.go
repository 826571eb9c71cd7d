package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script is a program that answers --help, of itself and of its subcommands.
func script(t *testing.T, body string) string {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildProgram builds one of the programs as releases and other tests do, so that nothing is compiled a second time.
func buildProgram(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../../cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

func write(t *testing.T, program string) string {
	t.Helper()
	page, err := manualPage{Program: program, Version: "1.2.3", Date: time.Unix(1_700_000_000, 0), Extra: ".SH FILES\nnone\n"}.Write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return page
}

const twoCommands = `
case "$*" in
"help all") cat <<'END'
Do a thing

Usage:
  thing [flags]
  thing [command]

Available Commands:
  a-rather-long-one Takes a while
  help        Help about any command

Flags:
      --file path   where .dots and \slashes are (path)
  -h, --help        help for thing

Use "thing [command] --help" for more information about a command.
END
;;
"a-rather-long-one --help") cat <<'END'
Takes a while.
.Really, with a line that looks like a request.

  key   value
        more of it

Usage:
  thing a-rather-long-one WHAT [flags]

Examples:
  thing a-rather-long-one x

Flags:
  -h, --help   help for a-rather-long-one
      --json   print "one" document … 

Global Flags:
      --file path   where .dots and \slashes are (path)
END
;;
*) exit 2 ;;
esac
`

func TestPage(t *testing.T) {
	want := strings.TrimPrefix(`
.TH THING 1 "2023\-11\-14" "thing 1.2.3" "User Commands"
.SH NAME
thing \- do a thing
.SH SYNOPSIS
.B thing [flags]
.br
.B thing [command]
.SH COMMANDS
.SS "thing a\-rather\-long\-one WHAT"
Takes a while.
\&.Really, with a line that looks like a request.
.PP
.PP
.nf
  key   value
        more of it
.fi
.TP
.B \-\-json
print "one" document \[u2026]
Examples:
.PP
.PP
.nf
  thing a\-rather\-long\-one x
.fi
.SH OPTIONS
.TP
.B \-\-file path
where .dots and \eslashes are (path)
.TP
.B \-h, \-\-help
help for thing
.SH FILES
none
`, "\n")
	if got := write(t, script(t, twoCommands)); got != want {
		t.Errorf("page is\n%s\nwant\n%s", got, want)
	}
}

// TestHelpNotUnderstood: what the page would silently lack is an error.
func TestHelpNotUnderstood(t *testing.T) {
	for name, body := range map[string]string{
		"no usage":        "echo nothing",
		"unknown section": `printf 'x\n\nUsage:\n  x\n\nSecrets:\n  hidden\n'`,
		"no meaning":      `printf 'x\n\nUsage:\n  x\n\nFlags:\n  --bare\n'`,
		"fails":           "exit 1",
		"subcommand fails": `
test "$1" = help || exit 1
printf 'x\n\nUsage:\n  x [command]\n\nAvailable Commands:\n  sub         does it\n'`,
	} {
		t.Run(name, func(t *testing.T) {
			page, err := manualPage{Program: script(t, body)}.Write(t.Context())
			if err == nil {
				t.Errorf("no error, but\n%s", page)
			}
		})
	}
}

// TestPrograms makes the pages of the real programs: every command is there, nothing of this machine is, twice the same,
// and man reads them without a warning.
func TestPrograms(t *testing.T) {
	for name, extra := range map[string]string{"ccship": sectionsOfCCShip, "ccship-server": sectionsOfServer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := buildProgram(t, name)
			p := manualPage{Program: program, Version: "1.2.3", Date: time.Unix(1_700_000_000, 0), Extra: extra}
			page, err := p.Write(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if again, err := p.Write(t.Context()); err != nil || again != page {
				t.Errorf("the second page differs (%v)", err)
			}
			for _, want := range []string{name + " verify", ".SH EXIT STATUS", ".SH FILES"} {
				if !strings.Contains(page, strings.ReplaceAll(want, "-", `\-`)) {
					t.Errorf("the page lacks %q", want)
				}
			}
			if home, err := os.UserHomeDir(); err == nil && strings.Contains(page, home) {
				t.Errorf("the page names this machine's home, %s", home)
			}
			readable(t, page)
		})
	}
}

// readable lets man format a page, where there is one that can warn.
func readable(t *testing.T, page string) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Log("groff is missing: the page's requests are not checked")
		return
	}
	cmd := exec.Command("groff", "-man", "-ww", "-Tutf8", "-z")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(page), &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, stderr.String())
	}
}
