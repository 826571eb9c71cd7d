package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// house is the plan. A new arrow or door needs a reason in its commit.
func house() plan {
	return plan{
		Arrows: table(arrows),
		Doors:  table(doors),
		Apart: map[string][]string{
			"cmd/ccship": {"modernc.org/sqlite", "github.com/jackc/pgx/v5", "github.com/pressly/goose/v3", "database/sql", "github.com/modelcontextprotocol/go-sdk"},
			// A turn of Claude Code pays for the start of every hook.
			"cmd/ccship-hook": {"net/http", "crypto/tls", "regexp", "log/slog", "github.com/spf13/cobra", "go.etcd.io/bbolt"},
		},
	}
}

// arrows says which of our packages each package may import.
const arrows = `
cmd/ccship: internal/sys cmd/ccship/term cmd/ccship/show cmd/ccship/setup daemon internal/amount daemon/config daemon/control daemon/doctor internal/service transcript/redact daemon/library daemon/project daemon/remote outbox transcript cmd/ccship/screen transcript/provenance cmd/ccship/history protocol transcript/session
cmd/ccship-hook: internal/sys
cmd/ccship-mcp: daemon/control
cmd/ccship-server: cmd/ccship/term internal/amount internal/sys daemon/config server server/api server/audit server/auth server/derive server/limit server/store server/store/postgres server/store/sqlite server/web server/web/page transcript transcript/redact daemon/control internal/service protocol
cmd/ccship/history: daemon/control transcript/provenance
cmd/ccship/screen: cmd/ccship/show cmd/ccship/term internal/amount daemon/control daemon/library daemon/remote protocol
cmd/ccship/setup: cmd/ccship/show cmd/ccship/term internal/amount daemon/config daemon/control daemon/delivery daemon/remote internal/service internal/sys outbox packaging daemon protocol
cmd/ccship/show: cmd/ccship/term internal/amount daemon/control daemon/doctor daemon/library daemon/remote daemon daemon/config internal/sys transcript transcript/provenance protocol
cmd/ccship/showtest: daemon/control daemon/doctor
cmd/ccship/term: internal/amount
daemon: daemon/proof daemon/derive daemon/config daemon/control daemon/delivery daemon/document internal/sys daemon/project daemon/remote daemon/route state state/projection tail outbox protocol transcript transcript/session daemon/library internal/service transcript/redact
daemon/config: internal/amount internal/sys daemon/project outbox transcript/redact
daemon/control: internal/sys
daemon/delivery: protocol daemon/config daemon/control daemon/project daemon/remote outbox state tail
daemon/derive: daemon/control daemon/route outbox state state/projection tail transcript transcript/session transcript/redact internal/sys
daemon/doctor: internal/amount daemon/config daemon/control daemon/delivery internal/service state daemon/project protocol transcript internal/sys
daemon/document: daemon/config daemon/control daemon/derive daemon/project daemon/remote outbox state state/projection tail transcript transcript/session transcript/redact daemon/route protocol
daemon/library: internal/amount internal/sys daemon/control daemon/remote tail transcript transcript/session transcript/redact transcript/provenance protocol
daemon/project: outbox internal/sys
daemon/proof: daemon/control daemon/delivery daemon/project daemon/remote daemon/route internal/amount outbox protocol state state/projection tail transcript transcript/redact internal/sys
daemon/remote: daemon/control protocol outbox transcript/provenance transcript/session
daemon/route: daemon/control daemon/project outbox protocol state tail transcript transcript/redact internal/sys
e2e: e2e/kit
e2e/kit:
e2e/viewer: e2e/kit
internal/amount:
internal/service: daemon/control packaging
internal/sys:
outbox: protocol
packaging:
packaging/release:
protocol: internal/sys transcript/redact
server: internal/amount transcript/provenance protocol
server/api: server server/audit server/auth server/derive server/limit server/wire transcript transcript/session protocol transcript/provenance
server/audit: server transcript transcript/redact protocol
server/auth: server protocol
server/derive: server transcript transcript/session transcript/provenance protocol
server/limit: server/wire server
server/store: server server/store/lines server/store/postgres server/store/sqlite server/store/sqlstore
server/store/lines: internal/sys server server/store/sqlstore transcript transcript/redact protocol
server/store/pgtest: e2e/kit
server/store/postgres: server server/store/lines server/store/sqlstore server/store/search transcript protocol
server/store/search: server server/derive server/store/lines server/store/sqlstore transcript protocol
server/store/sqlite: internal/sys server server/store/lines server/store/sqlstore server/store/search transcript protocol
server/store/sqlstore: server transcript transcript/provenance protocol
server/web: server server/auth server/derive server/web/chart server/web/page server/web/markup server/web/thread transcript transcript/session server/limit transcript/redact transcript/provenance protocol
server/web/chart:
server/web/markup:
server/web/page: server server/auth transcript
server/web/thread: server server/derive server/web/page server/web/markup transcript transcript/redact transcript/session
server/wire: server transcript protocol
state: state/kv tail outbox protocol
state/kv: internal/sys
state/projection: outbox state state/kv tail
tail:
transcript:
transcript/planted:
transcript/provenance: transcript transcript/session
transcript/redact: transcript
transcript/session: transcript
`

// doors says which packages may import each outside module. One without a package is for tests only.
const doors = `
charm.land/bubbletea/v2: cmd/ccship/screen
database/sql: server/store/postgres server/store/sqlite
github.com/BurntSushi/toml: daemon/config internal/sys
github.com/alecthomas/chroma/v2: server/web/markup
github.com/bmatcuk/doublestar/v4: daemon/project
github.com/cenkalti/backoff/v4: outbox
github.com/cespare/xxhash/v2: tail
github.com/chromedp/cdproto:
github.com/chromedp/chromedp:
github.com/clipperhouse/displaywidth: cmd/ccship/term
github.com/dustin/go-humanize: internal/amount server/web/page
github.com/fsnotify/fsnotify: tail
github.com/google/go-cmp: cmd/ccship/showtest
github.com/jackc/pgx/v5: server/store/postgres
github.com/kardianos/service: internal/service
github.com/klauspost/compress: outbox server/api server/store/search server/limit server/store/lines
github.com/microcosm-cc/bluemonday: server/web/markup
github.com/minio/minio-go/v7: server/store/lines
github.com/modelcontextprotocol/go-sdk: cmd/ccship-mcp
github.com/pressly/goose/v3: server/store/postgres server/store/sqlite
github.com/rogpeppe/go-internal:
github.com/santhosh-tekuri/jsonschema/v6:
github.com/spf13/cobra: cmd/ccship cmd/ccship/show cmd/ccship/setup cmd/ccship-server cmd/ccship/term cmd/ccship/showtest
github.com/spf13/pflag: cmd/ccship cmd/ccship/show cmd/ccship-server cmd/ccship/term cmd/ccship/showtest
github.com/yuin/goldmark: server/web/markup
go.etcd.io/bbolt: state/kv
go.yaml.in/yaml/v3:
golang.org/x/net:
golang.org/x/sync: server/store/lines
golang.org/x/sys: tail state/kv daemon daemon/control internal/sys internal/service cmd/ccship
golang.org/x/term: cmd/ccship/term
golang.org/x/text: transcript
modernc.org/sqlite: server/store/sqlite
pgregory.net/rapid:
`

// table reads rows of a name, a colon and what belongs to it. One row a line merges well.
func table(text string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		name, list, _ := strings.Cut(line, ":")
		rows[name] = strings.Fields(list)
	}
	return rows
}

// TestHouse holds the packages to the plan, on every system ccship is built for.
func TestHouse(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			for _, breach := range house().breaches(importGraph(t, system)) {
				t.Error(breach)
			}
		})
	}
}

// TestHouseSeesBreaches proves that the check can fail: each graph has one forbidden edge.
func TestHouseSeesBreaches(t *testing.T) {
	owned := func(path, mod string, imports ...string) node {
		return node{ImportPath: path, Imports: imports, Module: &struct{ Path string }{mod}}
	}
	bolt := owned("go.etcd.io/bbolt", "go.etcd.io/bbolt")
	sqlite := owned("modernc.org/sqlite/lib", "modernc.org/sqlite")
	stray := owned("example.org/new/thing", "example.org/new")
	tests := []struct {
		name  string
		graph []node
		want  []string
	}{
		{"as planned", []node{owned(module+"/state", module, module+"/tail", module+"/state/kv", "os"),
			owned(module+"/state/kv", module, "go.etcd.io/bbolt"), bolt}, nil},
		{"arrow backwards", []node{owned(module+"/tail", module, module+"/state")}, []string{"tail must not import state"}},
		{"across the wire", []node{owned(module+"/server", module, module+"/outbox")}, []string{"server must not import outbox"}},
		{"command line past the daemon", []node{owned(module+"/cmd/ccship", module, module+"/tail")}, []string{"cmd/ccship must not import tail"}},
		{"wrong door", []node{owned(module+"/daemon", module, "go.etcd.io/bbolt"), bolt}, []string{"daemon must not use go.etcd.io/bbolt"}},
		{"module without a room", []node{owned(module+"/tail", module, "example.org/new/thing"), stray}, []string{"tail must not use example.org/new"}},
		{"standard library behind a door", []node{owned(module+"/daemon", module, "database/sql")}, []string{"daemon must not use database/sql"}},
		{"drawer package", []node{owned(module+"/util", module)}, []string{"util has no place in the plan"}},
		{"database driver in the daemon's binary", []node{
			owned(module+"/cmd/ccship", module, module+"/daemon"),
			owned(module+"/daemon", module, module+"/state"),
			owned(module+"/state", module, module+"/state/kv"),
			owned(module+"/state/kv", module, "go.etcd.io/bbolt"),
			owned("go.etcd.io/bbolt", "go.etcd.io/bbolt", "modernc.org/sqlite/lib"), sqlite,
		}, []string{"cmd/ccship links modernc.org/sqlite"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { kit.Equal(t, "breaches are", house().breaches(test.graph), test.want) })
	}
}

// importGraph is every package that ours need on a system, without tests.
func importGraph(t *testing.T, system string) []node {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Standard,Module", "./...")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	kit.Require(t, err == nil, "go list: %v\n%s", err, stderr.String())
	var graph []node
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var n node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return graph
		case err != nil:
			t.Fatal(err)
		}
		graph = append(graph, n)
	}
}

// module is the path every package of ours starts with.
const module = "github.com/ccship/ccship"

// node is one package of the import graph, as `go list -deps -json` tells it.
type node struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

// plan says who may import whom. A package of ours that is no key of Arrows has no place in the house; an outside
// module that is no key of Doors has no space.
type plan struct {
	Arrows map[string][]string // package → packages it may import
	Doors  map[string][]string // outside module (or standard package) → packages that may import it
	Apart  map[string][]string // binary → modules or packages that must not be linked into it
}

// breaches lists what in the graph goes against the plan, sorted.
func (p plan) breaches(graph []node) []string {
	owner := map[string]string{}
	for _, n := range graph {
		if n.Module != nil {
			owner[n.ImportPath] = n.Module.Path
		}
	}
	var found []string
	for _, n := range graph {
		room, ours := roomOf(n.ImportPath)
		if !ours {
			continue
		}
		if _, known := p.Arrows[room]; !known {
			found = append(found, fmt.Sprintf("%s has no place in the plan", room))
			continue
		}
		for _, path := range n.Imports {
			if breach := p.judge(room, path, owner[path]); breach != "" {
				found = append(found, breach)
			}
		}
	}
	for binary, modules := range p.Apart {
		found = append(found, linked(graph, owner, binary, modules)...)
	}
	sort.Strings(found)
	return slices.Compact(found)
}

// judge says what is wrong with one import, or nothing. mod is the module of path, "" for the standard library.
func (p plan) judge(room, path, mod string) string {
	if other, ours := roomOf(path); ours {
		if !slices.Contains(p.Arrows[room], other) {
			return fmt.Sprintf("%s must not import %s", room, other)
		}
		return ""
	}
	door := mod
	if mod == "" {
		door = path
	}
	rooms, listed := p.Doors[door]
	if !listed && mod == "" {
		return "" // the standard library is open where it is not listed
	}
	if !slices.Contains(rooms, room) {
		return fmt.Sprintf("%s must not use %s", room, door)
	}
	return ""
}

// linked lists the unwanted modules and packages in the closure of a binary.
func linked(graph []node, owner map[string]string, binary string, unwanted []string) []string {
	byPath := map[string]node{}
	for _, n := range graph {
		byPath[n.ImportPath] = n
	}
	var found []string
	seen := map[string]bool{}
	queue := []string{module + "/" + binary}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		for _, name := range unwanted {
			if path == name || owner[path] == name {
				found = append(found, fmt.Sprintf("%s links %s", binary, name))
			}
		}
		queue = append(queue, byPath[path].Imports...)
	}
	return found
}

// roomOf is a package's path inside the house; ours is false for everything from outside.
func roomOf(path string) (room string, ours bool) {
	room, ours = strings.CutPrefix(path, module+"/")
	return room, ours
}
