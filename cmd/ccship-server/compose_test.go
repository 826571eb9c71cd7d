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
	kit.Require(t, err == nil && c.Name() == "serve", "%q is %v, %v", server.Command, c.Name(), err)
	kit.Must(t, c.ParseFlags(flags))
	for _, p := range server.Ports {
		kit.Check(t, strings.HasPrefix(p, "127.0.0.1:"), "port %s is open to others", p)
	}
	var postgres struct {
		Services map[string]struct {
			Environment map[string]string
		}
	}
	readYAML(t, "../../packaging/compose/compose.postgres.yaml", &postgres)
	url := postgres.Services["server"].Environment["CCSHIP_SERVER_STORE"]
	kit.Check(t, strings.HasPrefix(url, "postgres://"), "the store is %q", url)
	image := kit.Try(os.ReadFile("../../packaging/compose/Dockerfile")).Must(t)
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/ccship-server"]`, "CCSHIP_SERVER_STORE=sqlite:/data/"} {
		kit.Check(t, strings.Contains(string(image), want), "the image has no %s", want)
	}
}

func readYAML(t *testing.T, name string, to any) {
	t.Helper()
	b := kit.Try(os.ReadFile(name)).Must(t)
	err := yaml.Unmarshal(b, to)
	kit.Require(t, err == nil, "%s: %v", name, err)
}
