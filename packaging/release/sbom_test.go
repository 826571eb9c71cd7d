package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

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
