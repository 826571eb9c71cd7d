package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// bin returns where the programs of a system are built.
func (r *release) bin(s system) string { return filepath.Join(r.work, s.os+"_"+s.arch) }

// sharePath returns where man pages and completions are made.
func (r *release) sharePath() string { return filepath.Join(r.work, "share") }

// executable returns a program's file name on a system.
func executable(program string, s system) string {
	if s.os == "windows" {
		return program + ".exe"
	}
	return program
}

// build compiles the programs for a system. Nothing of this machine gets into them.
func (r *release) build(ctx context.Context, s system) error {
	for _, program := range binaries {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -buildid= -X main.version="+r.version,
			"-o", filepath.Join(r.bin(s), executable(program, s)), "./cmd/"+program)
		cmd.Env = append(os.Environ(), "GOOS="+s.os, "GOARCH="+s.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly",
			"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s for %s: %w\n%s", program, s, err, out)
		}
	}
	return nil
}

// share lets this machine's programs write their completions and be asked for their manual pages.
func (r *release) share(ctx context.Context) error {
	host := system{runtime.GOOS, runtime.GOARCH}
	if _, err := os.Stat(r.bin(host)); err != nil {
		if err := r.build(ctx, host); err != nil {
			return err
		}
	}
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(r.sharePath(), dir), 0o755); err != nil {
			return err
		}
	}
	for _, program := range programs {
		path := filepath.Join(r.bin(host), executable(program, host))
		page, err := manualPage{Program: path, Version: r.version, Date: r.epoch}.Write(ctx)
		if err != nil {
			return fmt.Errorf("write manual page: %w", err)
		}
		if err := compress(filepath.Join(r.sharePath(), "man", program+".1.gz"), page); err != nil {
			return err
		}
		for _, shell := range []string{"bash", "fish", "zsh"} {
			cmd := exec.CommandContext(ctx, path, "completion", shell)
			cmd.Env = []string{"HOME=~"}
			script, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s completion %s: %w", program, shell, err)
			}
			if err := os.WriteFile(filepath.Join(r.sharePath(), "completions", program+"."+shell), script, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// compress writes a gzip file without name and time.
func compress(path, text string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write([]byte(text)); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}
