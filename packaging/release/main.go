// Command release builds everything that a release consists of, below one folder: archives of the programs for six
// systems, deb and rpm packages, a Homebrew formula, an install script, a bill of materials, and the checksums of all,
// signed if there is a key. It needs Go and no network, once the modules are there. The same commit, version, key and
// Go give the same bytes, in whatever folder.
//
// It is run in the module's root:
//
//	go run ./packaging/release -version v1.2.3
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// programs are what a release delivers, the daemon first.
var programs = []string{"ccship", "ccship-server"}

// binaries are the programs and what runs behind them, which has no manual page of its own.
var binaries = []string{"ccship", "ccship-hook", "ccship-mcp", "ccship-server"}

// system is what a program is built for.
type system struct{ os, arch string }

func (s system) String() string { return s.os + "/" + s.arch }

// systems returns all that ccship is built for.
func systems() []system {
	var all []system
	for _, os := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			all = append(all, system{os, arch})
		}
	}
	return all
}

// kinds of files in a release. Formula and installer need the archives of all systems.
const (
	archives  = "archives"
	debs      = "deb"
	rpms      = "rpm"
	formula   = "formula"
	installer = "installer"
	sbom      = "sbom"
	checksums = "checksums"
	signature = "signature"
)

// release is one build.
type release struct {
	out     string    // folder that gets the files; what was in it is removed
	work    string    // folder for what they are made from
	version string    // as the programs print it
	epoch   time.Time // the time of everything in packages and archives
	systems []system
	only    []string  // kinds that are wanted
	files   []string  // names of those made so far
	signer  *signer   // nil: the release is not signed
	said    io.Writer // gets a line for each
}

func (r *release) wants(kind string) bool { return slices.Contains(r.only, kind) }

// needed returns the systems that the programs must be built for: packages have programs for Linux alone, and checksums
// and signature are of what else is made.
func (r *release) needed() []system {
	var some []system
	for _, s := range r.systems {
		if slices.ContainsFunc(r.only, func(kind string) bool {
			switch kind {
			case debs, rpms:
				return s.os == "linux"
			case checksums, signature:
				return false
			}
			return true
		}) {
			some = append(some, s)
		}
	}
	return some
}

// command is main with arguments and an error.
func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "dev", "version of the programs, as git describe says it")
	out := flags.String("out", "dist", "`folder` that is replaced by the release")
	only := flags.String("only", "",
		"comma-separated `kinds`: archives, deb, rpm, formula, installer, sbom, checksums, signature (default all)")
	wanted := flags.String("systems", "", "comma-separated `systems`, as linux/amd64 (default all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &release{out: *out, version: *version, systems: systems(), said: os.Stdout}
	r.only = []string{archives, debs, rpms, formula, installer, sbom, checksums, signature}
	var err error
	if *wanted != "" {
		if r.systems, err = chosen(strings.Split(*wanted, ","), r.systems, system.String); err != nil {
			return err
		}
	}
	if *only != "" {
		if r.only, err = chosen(strings.Split(*only, ","), r.only, strings.Clone); err != nil {
			return err
		}
	}
	if r.signer, err = readSigner(os.Getenv(keyVariable)); err != nil {
		return err
	}
	if r.epoch, err = epoch(ctx); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "ccship-release-"); err != nil {
		return err
	}
	return errors.Join(r.run(ctx), os.RemoveAll(r.work))
}

// chosen returns those of all that are named. A name that none has is an error.
func chosen[T any](names []string, all []T, nameOf func(T) string) ([]T, error) {
	var some []T
	for _, name := range names {
		at := slices.IndexFunc(all, func(t T) bool { return nameOf(t) == name })
		if at < 0 {
			return nil, fmt.Errorf("%q is none of %v", name, all)
		}
		some = append(some, all[at])
	}
	return some, nil
}

// run builds the release.
func (r *release) run(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, s := range r.needed() {
		if err := r.build(ctx, s); err != nil {
			return err
		}
	}
	if err := r.share(ctx); err != nil {
		return err
	}
	steps := []struct {
		kind string
		make func(context.Context) error
	}{
		{archives, r.archives},
		{debs, func(ctx context.Context) error { return r.packages(ctx, debs) }},
		{rpms, func(ctx context.Context) error { return r.packages(ctx, rpms) }},
		{formula, r.formula},
		{installer, r.installer},
		{sbom, r.sbom},
		{checksums, r.checksums},
		{signature, r.signature},
	}
	for _, step := range steps {
		if !r.wants(step.kind) {
			continue
		}
		if err := step.make(ctx); err != nil {
			return fmt.Errorf("make %s: %w", step.kind, err)
		}
	}
	return nil
}
