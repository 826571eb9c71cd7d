package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// clientRooms are the client's packages that make HTTP clients, and why none shows a key to a server at an address.
func clientRooms() map[string]string {
	return map[string]string{
		"protocol":       "makes clients that ask for the proof, and one that shows no key",
		"outbox":         "makes what they share",
		"daemon/control": "asks the socket",
		"daemon":         "passes outbox's to delivery",
		"daemon/remote":  "wraps outbox's in protocol's", "daemon/delivery": "wraps outbox's in protocol's",
	}
}

// keyRooms are the packages that put a key into a request. Their clients come from protocol.
func keyRooms() []string { return []string{"protocol", "outbox", "daemon/remote", "daemon/delivery"} }

// TestKeysNeedProof keeps HTTP clients and keys in a few packages, so that no command forgets to ask for the proof.
func TestKeysNeedProof(t *testing.T) {
	seen := 0
	for _, n := range importGraph(t, "linux") {
		room, ours := strings.CutPrefix(n.ImportPath, module+"/")
		side, _, _ := strings.Cut(room, "/")
		if !ours || side == "server" || side == "e2e" || side == "packaging" || side == "transcript" || strings.HasPrefix(room, "cmd/ccship-server") {
			continue
		}
		files := kit.Try(filepath.Glob(filepath.Join("..", filepath.FromSlash(room), "*.go"))).Must(t)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file := kit.Try(parser.ParseFile(token.NewFileSet(), path, nil, 0)).Must(t)
			seen++
			for _, breach := range keyBreaches(room, file) {
				t.Errorf("%s: %s", path, breach)
			}
		}
	}
	kit.Check(t, seen >= 100, "only %d files were looked at", seen)
}

// keyBreaches says what a file of a package does that only others may.
func keyBreaches(room string, file *ast.File) (found []string) {
	clients := clientRooms()[room] != ""
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident)
			if !ok || clients {
				break
			}
			name := from.Name + "." + n.Sel.Name
			if slices.Contains([]string{"http.Client", "http.Transport", "http.DefaultClient", "http.DefaultTransport", "http.Get", "http.Post",
				"http.PostForm", "http.Head", "outbox.NewClient"}, name) {
				found = append(found, room+" must not use "+name+": take remote.New or a client of protocol")
			}
		case *ast.BasicLit:
			if strings.EqualFold(n.Value, `"X-API-Key"`) && !slices.Contains(keyRooms(), room) {
				found = append(found, room+" must not show a key: take remote.New")
			}
		}
		return true
	})
	return found
}

// TestKeysNeedProofSeesBreaches proves that the check can fail.
func TestKeysNeedProofSeesBreaches(t *testing.T) {
	for _, c := range []struct {
		room, code string
		breaches   int
	}{
		{"cmd/ccship", `var c = http.Client{}`, 1},
		{"cmd/ccship/sessions", `var c = outbox.NewClient(1)`, 1},
		{"daemon/doctor", `var a, err = http.Get("http://x")`, 1},
		{"daemon/library", `func f(r *http.Request) { r.Header.Set("x-api-key", "k") }`, 1},
		{"daemon/remote", `func f(r *http.Request) { outbox.NewClient(1); r.Header.Set("X-API-Key", "k") }`, 0},
		{"cmd/ccship", `func f(r *http.Request) { r.Header.Get("X-Other") }`, 0},
	} {
		file := kit.Try(parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+c.code, 0)).Must(t)
		got := keyBreaches(c.room, file)
		kit.Check(t, len(got) == c.breaches, "%s: %q", c.code, got)
	}
}
