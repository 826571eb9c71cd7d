package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// formula writes the Homebrew formula, with the archives' checksums.
func (r *release) formula(context.Context) error {
	values, err := r.values()
	if err != nil {
		return err
	}
	return r.fill("packaging/ccship.rb.in", "ccship.rb", 0o644, values)
}

// installer writes the install script. The checksums of the archives and the public key are in it, so a user who trusts
// the script need not trust where the archive comes from.
func (r *release) installer(context.Context) error {
	values, err := r.values()
	if err != nil {
		return err
	}
	return r.fill("packaging/install.sh.in", "install.sh", 0o755, values)
}

// values returns what stands for the @NAMES@ in formula and install script.
func (r *release) values() ([]string, error) {
	values := []string{"@VERSION@", strings.TrimPrefix(r.version, "v")}
	line, der := "", ""
	if r.signer != nil {
		var err error
		if der, err = r.signer.publicPEM(); err != nil {
			return nil, err
		}
		line = r.signer.publicLine()
	}
	values = append(values, "@MINISIGN_KEY@", line, "@PUBLIC_KEY@", der)
	for _, s := range r.systems {
		sum, err := sumOf(filepath.Join(r.out, r.archiveName(s)))
		if err != nil {
			return nil, err
		}
		values = append(values, fmt.Sprintf("@SHA256_%s_%s@", strings.ToUpper(s.os), strings.ToUpper(s.arch)), sum)
	}
	return values, nil
}

// fill writes a file from a template. A name that stays is an error.
func (r *release) fill(template, name string, mode os.FileMode, values []string) error {
	text, err := os.ReadFile(template)
	if err != nil {
		return err
	}
	filled := strings.NewReplacer(values...).Replace(string(text))
	if _, after, found := strings.Cut(filled, "@SHA256_"); found {
		return fmt.Errorf("%s: nothing for @SHA256_%.20s", template, after)
	}
	if err := os.WriteFile(filepath.Join(r.out, name), []byte(filled), mode); err != nil {
		return err
	}
	r.made(name)
	return nil
}

// checksums writes the sums of all files made, as sha256sum -c reads them.
func (r *release) checksums(context.Context) error {
	var b strings.Builder
	slices.Sort(r.files)
	for _, name := range r.files {
		sum, err := sumOf(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	if err := os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	r.made("checksums.txt")
	return nil
}

func sumOf(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(content)), nil
}
