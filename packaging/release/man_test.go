package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// script is a program that answers --help, of itself and of its subcommands.
func script(t *testing.T, body string) string {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
	path := filepath.Join(t.TempDir(), "program")
	kit.Must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755))
	return path
}

// buildProgram builds one of the programs as releases and other tests do, so that nothing is compiled a second time.
func buildProgram(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../../cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	kit.Require(t, err == nil, "build: %v\n%s", err, out)
	return program
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
			page, err := manualPage{Program: script(t, body)}.Markdown(t.Context())
			kit.Check(t, err != nil, "no error, but\n%s", page)
		})
	}
}

// TestPrograms makes the pages of the real programs: every command is there, nothing of this machine is, twice the same,
// and man reads them without a warning.
func TestPrograms(t *testing.T) {
	needTool(t, "go-md2man")
	programs := map[string]string{}
	for _, name := range []string{"ccship", "ccship-server"} {
		programs[name] = buildProgram(t, name)
	}
	t.Chdir(filepath.Join("..", ".."))
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			p := manualPage{Program: program, Version: "1.2.3", Date: time.Unix(1_700_000_000, 0)}
			page := kit.Try(p.Write(t.Context())).Must(t)
			kit.Gives(t, "the second page differs", page)(p.Write(t.Context()))
			for _, want := range []string{".SH NAME\n" + strings.ReplaceAll(name, "-", `\-`) + ` \- `, ".SH SYNOPSIS", strings.ReplaceAll(name, "-", `\-`) + " verify", ".SH EXIT STATUS", ".SH FILES"} {
				kit.Has(t, "the page lacks", page, want)
			}
			home, err := os.UserHomeDir()
			kit.Check(t, err != nil || !strings.Contains(page, home), "the page names this machine's home, %s", home)
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
	cmd := exec.Command("groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-z")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(page), &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, stderr.String())
	}
}
