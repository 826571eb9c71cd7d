package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
