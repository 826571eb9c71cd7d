package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
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
