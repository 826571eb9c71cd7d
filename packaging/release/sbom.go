package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// bom is a software bill of materials, CycloneDX 1.6 in JSON: each program, and the modules linked into it on any
// system, as the programs themselves name them (go version -m).
type bom struct {
	Format       string          `json:"bomFormat"`
	Spec         string          `json:"specVersion"`
	Version      int             `json:"version"`
	Metadata     bomMetadata     `json:"metadata"`
	Components   []bomComponent  `json:"components"`
	Dependencies []bomDependency `json:"dependencies"`
}

type bomMetadata struct {
	Timestamp string       `json:"timestamp"`
	Component bomComponent `json:"component"`
}

type bomComponent struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
}

type bomDependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func (r *release) sbomName() string {
	return "ccship_" + strings.TrimPrefix(r.version, "v") + "_sbom.cdx.json"
}

// sbom writes what the programs are made from.
func (r *release) sbom(context.Context) error {
	linked := map[string][]*debug.BuildInfo{}
	for _, program := range binaries {
		for _, s := range r.systems {
			info, err := buildinfo.ReadFile(filepath.Join(r.bin(s), executable(program, s)))
			if err != nil {
				return fmt.Errorf("read modules of %s for %s: %w", program, s, err)
			}
			linked[program] = append(linked[program], info)
		}
	}
	text, err := json.MarshalIndent(r.bill(linked), "", "  ")
	if err != nil {
		return fmt.Errorf("write bill of materials: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.out, r.sbomName()), append(text, '\n'), 0o644); err != nil {
		return err
	}
	r.made(r.sbomName())
	return nil
}

// bill returns the bill of materials of programs, each with what is in it on each system.
func (r *release) bill(linked map[string][]*debug.BuildInfo) bom {
	whole := bomComponent{Type: "application", Ref: "ccship", Name: "ccship", Version: r.version}
	b := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: bomMetadata{Timestamp: r.epoch.UTC().Format(time.RFC3339), Component: whole},
	}
	modules, top := map[string]bomComponent{}, bomDependency{Ref: whole.Ref}
	for _, program := range slices.Sorted(maps.Keys(linked)) {
		c := bomComponent{Type: "application", Ref: "program/" + program, Name: program, Version: r.version}
		needs := map[string]bool{}
		for _, info := range linked[program] {
			for _, m := range modulesOf(info) {
				modules[m.Ref] = m
				needs[m.Ref] = true
			}
		}
		b.Components = append(b.Components, c)
		b.Dependencies = append(b.Dependencies, bomDependency{c.Ref, slices.Sorted(maps.Keys(needs))})
		top.DependsOn = append(top.DependsOn, c.Ref)
	}
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		b.Components = append(b.Components, modules[ref])
	}
	b.Dependencies = append(b.Dependencies, top)
	return b
}

// modulesOf returns the modules linked into a program, and Go's standard library.
func modulesOf(info *debug.BuildInfo) []bomComponent {
	all := []bomComponent{moduleOf("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, moduleOf(m.Path, m.Version))
	}
	return all
}

func moduleOf(path, version string) bomComponent {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return bomComponent{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}

// keyVariable holds the key that signs a release: Ed25519, PKCS #8 in PEM. `openssl genpkey -algorithm ed25519` makes
// one.
const keyVariable = "CCSHIP_RELEASE_KEY"

// signer signs files so that minisign and OpenSSL can verify them.
type signer struct {
	key ed25519.PrivateKey
}

// readSigner reads the key from the text of a variable; nil if there is none.
func readSigner(text string) (*signer, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil //nolint:nilnil // a release without a key is not signed
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New(keyVariable + " is no PEM: make a key with openssl genpkey -algorithm ed25519")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keyVariable, err)
	}
	own, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New(keyVariable + " is no Ed25519 key: make one with openssl genpkey -algorithm ed25519")
	}
	return &signer{own}, nil
}

func (s *signer) public() ed25519.PublicKey {
	return ed25519.PublicKey(s.key[ed25519.SeedSize:])
}

// named returns what minisign puts before a key or a signature: the algorithm and the key's id.
func (s *signer) named(b []byte) string {
	id := sha256.Sum256(s.public())
	return base64.StdEncoding.EncodeToString(append(append([]byte("Ed"), id[:8]...), b...))
}

// publicLine returns the public key as minisign -P takes it.
func (s *signer) publicLine() string { return s.named(s.public()) }

// publicPEM returns the public key as OpenSSL takes it, on one line without the armour.
func (s *signer) publicPEM() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(s.public())
	if err != nil {
		return "", fmt.Errorf("write public key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(der), nil
}

// sign returns the signature of a text, in minisign's format. The signature itself is plain Ed25519 of the text.
func (s *signer) sign(text []byte, comment string) string {
	signature := ed25519.Sign(s.key, text)
	global := ed25519.Sign(s.key, append(signature[:len(signature):len(signature)], comment...))
	return "untrusted comment: signature of ccship's release key\n" + s.named(signature) +
		"\ntrusted comment: " + comment + "\n" + base64.StdEncoding.EncodeToString(global) + "\n"
}

// signature signs the checksums, if there is a key.
func (r *release) signature(context.Context) error {
	if r.signer == nil {
		fmt.Fprintln(r.said, "not signed: "+keyVariable+" is not set")
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "checksums.txt"))
	if err != nil {
		return err
	}
	key := "untrusted comment: ccship's release key\n" + r.signer.publicLine() + "\n"
	for name, text := range map[string]string{
		"checksums.txt.minisig": r.signer.sign(sums, "ccship "+r.version),
		"ccship.pub":            key,
	} {
		if err := os.WriteFile(filepath.Join(r.out, name), []byte(text), 0o644); err != nil {
			return err
		}
		r.made(name)
	}
	return nil
}

// packages lets nfpm make both programs' packages of one kind, for every Linux.
func (r *release) packages(ctx context.Context, kind string) error {
	nfpm, err := toolPath(ctx, "nfpm")
	if err != nil {
		return err
	}
	for _, s := range r.systems {
		if s.os != "linux" {
			continue
		}
		for _, program := range programs {
			if err := r.pack(ctx, nfpm, kind, program, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// toolPath builds a tool, which is pinned in tools.mod with all that it needs.
func toolPath(ctx context.Context, name string) (string, error) {
	path, err := exec.CommandContext(ctx, "go", "tool", "-modfile=packaging/tools.mod", "-n", name).Output()
	if err != nil {
		return "", fmt.Errorf("build %s: %w%s", name, err, reason(err))
	}
	return strings.TrimSpace(string(path)), nil
}

// pack makes one package.
func (r *release) pack(ctx context.Context, nfpm, kind, program string, s system) error {
	version := packageVersion(r.version)
	name := packageName(kind, program, version, s.arch)
	cmd := exec.CommandContext(ctx, nfpm, "package", "--packager", kind, "--target", filepath.Join(r.out, name),
		"--config", filepath.Join("packaging", "nfpm", program+".yaml"))
	cmd.Env = append(os.Environ(), "ARCH="+s.arch, "PACKAGE_VERSION="+version, "BIN="+r.bin(s), "SHARE="+r.sharePath(),
		fmt.Sprint("SOURCE_DATE_EPOCH=", r.epoch.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm %s: %w\n%s", name, err, out)
	}
	r.made(name)
	return nil
}

// packageName returns a package's file name by the custom of its kind.
func packageName(kind, program, version, arch string) string {
	if kind == debs {
		return fmt.Sprintf("%s_%s_%s.deb", program, version, arch)
	}
	return fmt.Sprintf("%s-%s-1.%s.rpm", program, version, map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch])
}

// reason returns what a command that failed wrote to stderr.
func reason(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "\n" + string(exit.Stderr)
	}
	return ""
}
