package main

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ccship/ccship/e2e/kit"
)

// TestCompose: what the compose files and the image start is a command line that this program takes.
func TestCompose(t *testing.T) {
	var main struct {
		Services map[string]struct {
			Command []string
			Ports   []string
		}
	}
	readYAML(t, "../../packaging/compose/compose.yaml", &main)
	server := main.Services["server"]
	c, flags, err := newRoot().Find(server.Command)
	if err != nil || c.Name() != "serve" {
		t.Fatalf("%q is %v, %v", server.Command, c.Name(), err)
	}
	if err := c.ParseFlags(flags); err != nil {
		t.Error(err)
	}
	for _, p := range server.Ports {
		if !strings.HasPrefix(p, "127.0.0.1:") {
			t.Errorf("port %s is open to others", p)
		}
	}
	var postgres struct {
		Services map[string]struct {
			Environment map[string]string
		}
	}
	readYAML(t, "../../packaging/compose/compose.postgres.yaml", &postgres)
	if url := postgres.Services["server"].Environment["CCSHIP_SERVER_STORE"]; !strings.HasPrefix(url, "postgres://") {
		t.Errorf("the store is %q", url)
	}
	image, err := os.ReadFile("../../packaging/compose/Dockerfile")
	kit.Must(t, err)
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/ccship-server"]`, "CCSHIP_SERVER_STORE=sqlite:/data/"} {
		if !strings.Contains(string(image), want) {
			t.Errorf("the image has no %s", want)
		}
	}
}

func readYAML(t *testing.T, name string, to any) {
	t.Helper()
	b, err := os.ReadFile(name)
	kit.Must(t, err)
	if err := yaml.Unmarshal(b, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
