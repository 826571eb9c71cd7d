package server

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestOpenAPIDocuments: openapi.json says what openapi.yaml says. CCSHIP_UPDATE_GOLDEN=1 makes it anew.
func TestOpenAPIDocuments(t *testing.T) {
	var doc any
	if err := yaml.Unmarshal(openapiYAML, &doc); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("CCSHIP_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(openapiJSON, want.Bytes()) {
		t.Error("openapi.json is not made of openapi.yaml; CCSHIP_UPDATE_GOLDEN=1 go test ./server -run OpenAPI")
	}
}

// TestOpenAPIRoutes: what is described is there, and what is there is described.
func TestOpenAPIRoutes(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(openapiJSON, &doc); err != nil {
		t.Fatal(err)
	}
	var described, there []string
	for path, item := range doc.Paths {
		for method := range item {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	there = []string{"GET /healthz", "GET /metrics"}
	for _, r := range (&Server{}).routes() {
		if r.pattern != "/api/" { // which answers that there is nothing
			there = append(there, r.pattern)
		}
	}
	slices.Sort(described)
	slices.Sort(there)
	if !slices.Equal(described, there) {
		t.Errorf("described %q\nthere     %q", described, there)
	}
}
