package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSignature reads key and signature by the description of minisign's format, and has minisign verify them. What
// OpenSSL makes of them, TestInstallScript shows.
func TestSignature(t *testing.T) {
	public, key, err := ed25519.GenerateKey(nil)
	kit.Must(t, err)
	s := &signer{key}
	text := []byte("sum  name\n")
	lines := strings.Split(s.sign(text, "ccship v1"), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "untrusted comment: ") || lines[2] != "trusted comment: ccship v1" || lines[4] != "" {
		t.Fatalf("lines %q", lines)
	}
	signature := kit.Try(base64.StdEncoding.DecodeString(lines[1])).Must(t)
	global := kit.Try(base64.StdEncoding.DecodeString(lines[3])).Must(t)
	named := kit.Try(base64.StdEncoding.DecodeString(s.publicLine())).Must(t)
	if len(signature) != 2+8+64 || len(named) != 2+8+32 || !bytes.Equal(signature[:10], named[:10]) || string(named[:2]) != "Ed" || !bytes.Equal(named[10:], public) {
		t.Errorf("key %x, signature %x", named, signature)
	}
	if !ed25519.Verify(public, text, signature[10:]) || !ed25519.Verify(public, append(signature[10:], "ccship v1"...), global) {
		t.Error("a signature is wrong")
	}
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Log("minisign is missing: it has not verified the signature")
		return
	}
	dir := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(dir, "f"), text, 0o644))
	kit.Must(t, os.WriteFile(filepath.Join(dir, "f.minisig"), []byte(strings.Join(lines, "\n")), 0o644))
	kit.Err(t, "minisign",
		nil)(exec.Command("minisign", "-Vm", filepath.Join(dir, "f"), "-P", s.publicLine()).CombinedOutput())
}

// TestReleaseKey: no key is no error, and what is no key is one that says how to make one.
func TestReleaseKey(t *testing.T) {
	if s, err := readSigner(" \n"); s != nil || err != nil {
		t.Errorf("no key: %v %v", s, err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	kit.Must(t, err)
	der := kit.Try(x509.MarshalPKCS8PrivateKey(key)).Must(t)
	s, err := readSigner(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	kit.Check(t, err == nil && s.key.Equal(key), "%v %v", s, err)
	for _, text := range []string{"key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		_, err := readSigner(text)
		kit.Check(t, err != nil && strings.Contains(err.Error(), keyVariable), "%q: %v", text, err)
	}
	var said strings.Builder
	if err := (&release{said: &said}).signature(t.Context()); err != nil || said.String() != "not signed: CCSHIP_RELEASE_KEY is not set\n" {
		t.Errorf("%q %v", said.String(), err)
	}
}

// schemaFolder is where the module with CycloneDX's schemas lies; it is only read.
func schemaFolder(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/CycloneDX/cyclonedx-go")
	cmd.Dir = filepath.Join("..", "..", ".ci", "tools", "cyclonedx")
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil {
		kit.Require(t, os.Getenv("CCSHIP_CI") == "", "CycloneDX's schemas can't be had: %v", err)
		t.Skipf("CycloneDX's schemas can't be had from here: %v", err)
	}
	return filepath.Join(module.Dir, "schema")
}

// TestBill holds a bill of materials to CycloneDX's own schema, and to what programs say of themselves.
func TestBill(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
		{Path: "github.com/spf13/cobra", Version: "v1.10.2"}, {Path: "example.org/old", Version: "v2.0.0+incompatible"},
		{Path: "example.org/fork", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/own", Version: "v1.0.1"}},
	}}
	r := release{version: "v1.2.3", epoch: time.Unix(1_700_000_000, 0)}
	b := r.bill(map[string][]*debug.BuildInfo{"ccship": {info, info}, "ccship-server": {info}})
	text := kit.Try(json.Marshal(b)).Must(t)
	again, err := json.Marshal(r.bill(map[string][]*debug.BuildInfo{"ccship-server": {info}, "ccship": {info}}))
	kit.Must(t, err)
	kit.Equal(t, "the same programs have two bills", string(text), string(again))
	kit.Equal(t, "components", len(b.Components), 2+1+len(info.Deps))
	for _, purl := range []string{"std@1.26.0", "github.com/spf13/cobra@v1.10.2", "example.org/old@v2.0.0%2Bincompatible", "example.org/own@v1.0.1"} {
		kit.Has(t, purl+" is", string(text), `"pkg:golang/`+purl+`"`)
	}
	schema := compileSchema(t, schemaFolder(t))
	kit.Should(t, schema.Validate(decoded(t, text)))
	broken := strings.Replace(string(text), `"type":"library"`, `"type":"thing"`, 1)
	kit.Check(t, !reflect.DeepEqual(broken, string(text)) && schema.Validate(decoded(t, []byte(broken))) != nil,
		"the schema takes everything")
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	return kit.Try(jsonschema.UnmarshalJSON(strings.NewReader(string(text)))).Must(t)
}

func compileSchema(t *testing.T, dir string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	for name, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text := kit.Try(os.ReadFile(filepath.Join(dir, file))).Must(t)
		kit.Must(t, c.AddResource("http://cyclonedx.org/schema/"+name, decoded(t, text)))
	}
	return kit.Try(c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")).Must(t)
}

var update = flag.Bool("update", false, "write the pages of the documentation anew")

// TestCommandPages: the pages of all commands in the documentation say what the programs say.
func TestCommandPages(t *testing.T) {
	for name, file := range map[string]string{"ccship": "commands.md", "ccship-server": "server-commands.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := kit.Try(manualPage{Program: buildProgram(t, name)}.Markdown(t.Context())).Must(t)
			path := filepath.Join("..", "..", "docs", file)
			if *update {
				kit.Must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want := kit.Try(os.ReadFile(path)).Must(t)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("docs/%s is not what %s --help says; `make docs` writes it anew (-page +help):\n%s", file, name, diff)
			}
		})
	}
}

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
