package e2e

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

// sizes is what each rule allows.
func sizes() map[string]int {
	return map[string]int{
		fileLines: 400, funcLines: 50, parameters: 5, typeMethods: 40,
	}
}

// exception lets one subject be larger than its rule allows, up to a size of its own.
type exception struct {
	subject
	UpTo   int
	Reason string
}

// exceptions can only get fewer: one that nothing needs fails the test, and so does a subject that grows past its own.
func exceptions() []exception {
	const older = "older than the rule"
	return []exception{
		{subject{parameters, "daemon/control.Client.call"}, 6, older},
		{subject{parameters, "daemon/control.ask"}, 6, older},
		{subject{parameters, "daemon/remote.Client.document"}, 6, older},
		{subject{parameters, "server.BlobIngester"}, 6, older},
		{subject{parameters, "server/api.Server.answerStored"}, 6, older},
		{subject{parameters, "server/store/sqlstore.Artifacts.PutBlob"}, 6, older},
		{subject{parameters, "server/web/chart.svg.open"}, 6, older},
		{subject{parameters, "server/web/chart.svg.rect"}, 6, older},
		{subject{parameters, "transcript/session.Fold.fileEvent"}, 6, older},
		{subject{parameters, "transcript/session.Fold.fileStart"}, 6, older},
	}
}

// oversized lists what is larger than its rule or its exception allows, and the exceptions that nothing needs.
func oversized(m measures, limits map[string]int, allowed []exception) []string {
	var found []string
	upTo := map[subject]int{}
	for _, e := range allowed {
		upTo[e.subject] = e.UpTo
		if m[e.subject] <= limits[e.Rule] {
			found = append(found, fmt.Sprintf("%s needs no exception for %s any more: remove it", e.Where, e.Rule))
		}
		if e.Reason == "" {
			found = append(found, fmt.Sprintf("the exception of %s for %s has no reason", e.Where, e.Rule))
		}
	}
	for _, s := range m.sorted() {
		if limit := max(limits[s.Rule], upTo[s]); m[s] > limit {
			found = append(found, fmt.Sprintf("%s has %d %s, at most %d", s.Where, m[s], s.Rule, limit))
		}
	}
	return found
}

// TestHouseSizes holds files, functions and types to the rules of size. A package is a concern: it has no size.
func TestHouseSizes(t *testing.T) {
	t.Parallel()
	m := kit.Try(measureFiles(tree(t))).Must(t)
	for _, breach := range oversized(m, sizes(), exceptions()) {
		t.Error(breach)
	}
}

// TestHouseLines: no line above 120 characters, but in tests and tables of expressions. The linter takes minutes.
func TestHouseLines(t *testing.T) {
	t.Parallel()
	tables := regexp.MustCompile(`^transcript/(redact/(rules|placeholder|search)|planted/)`) // as in .golangci.yml
	for name, text := range tree(t) {
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			long := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 && !strings.Contains(line, "//nolint:lll ")
			kit.Check(t, !long || strings.HasSuffix(name, "_test.go") || tables.MatchString(name),
				"%s:%d is longer than 120 characters", name, n)
		}
	}
}

// TestHouseSeesSizes proves that each rule can fail: the example has one of everything that is forbidden.
func TestHouseSeesSizes(t *testing.T) {
	t.Parallel()
	text := func(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	tests := []struct {
		name   string
		files  map[string][]byte
		except []exception
		want   []string
	}{
		{name: "all within", files: map[string][]byte{
			"tail/a.go":      text("package tail", "type T struct{}", "func (T) M(a, b int) {", "}"),
			"tail/a_test.go": text("package tail", "func f(a, b, c, d int) {", "", "", "}"),
		}},
		{name: "long file", files: map[string][]byte{
			"tail/a_test.go": text("package tail", "", "", "", "", ""),
		}, want: []string{"tail/a_test.go has 6 lines a file, at most 5"}},
		{name: "long function", files: map[string][]byte{
			"tail/a.go": text("package tail", "func F() {", "", "", "}"),
		}, want: []string{"tail.F has 2 lines a function, at most 1"}},
		{name: "long method", files: map[string][]byte{
			"tail/a.go": text("package tail", "func (t *T[K]) F() {", "", "", "}"),
		}, want: []string{"tail.T.F has 2 lines a function, at most 1"}},
		{name: "many parameters", files: map[string][]byte{
			"tail/a.go": text("package tail", "func F(a, b int, c string) {}"),
			"tail/b.go": text("package tail", "type I interface { M(int, int, int) }"),
		}, want: []string{"tail.F has 3 parameters, at most 2", "tail.I has 3 parameters, at most 2"}},
		{name: "many exported methods", files: map[string][]byte{
			"tail/a.go": text("package tail", "func (T) A() {}", "func (T) B() {}", "func (T) c() {}"),
			"tail/b.go": text("package tail", "func (t *T) D() {}", "type I interface { A(); B(); C(); d() }"),
		}, want: []string{"tail.I has 3 exported methods a type, at most 2", "tail.T has 3 exported methods a type, at most 2"}},
		{name: "exceptions", files: map[string][]byte{
			"tail/a.go": text("package tail", "func F(a, b, c int) {}", "func G(a, b, c, d int) {}"),
		}, except: []exception{
			{subject{parameters, "tail.F"}, 3, "a reason"},
			{subject{parameters, "tail.G"}, 3, "another"},
			{subject{parameters, "tail.H"}, 3, "gone"},
			{subject{fileLines, "tail/a.go"}, 3, ""},
		}, want: []string{
			"tail.H needs no exception for parameters any more: remove it",
			"tail/a.go needs no exception for lines a file any more: remove it",
			"the exception of tail/a.go for lines a file has no reason",
			"tail.G has 4 parameters, at most 3",
		}},
	}
	limits := map[string]int{fileLines: 5, funcLines: 1, parameters: 2, typeMethods: 2}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := kit.Try(measureFiles(test.files)).Must(t)
			kit.Equal(t, "oversized are", oversized(m, limits, test.except), test.want)
		})
	}
}

// tree is every Go file of the module, for all systems, by its name below the module. The folder lab is another one.
func tree(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || name == "lab"):
			return fs.SkipDir
		case filepath.Ext(name) == ".go":
			files[name], err = fs.ReadFile(root, name)
		}
		return err
	})
	kit.Must(t, err)
	return files
}

// The rules of size. Lines of functions are those of non-test files; files of tests have a length too.
const (
	fileLines   = "lines a file"
	funcLines   = "lines a function"
	parameters  = "parameters"
	typeMethods = "exported methods a type"
)

// subject is one thing that a rule measures: a file ("tail/scan.go"), or a declaration ("tail.Run").
type subject struct{ Rule, Where string }

// measures is how large everything is.
type measures map[subject]int

func (m measures) add(rule, where string, n int) { m[subject{rule, where}] += n }

func (m measures) max(rule, where string, n int) {
	s := subject{rule, where}
	m[s] = max(m[s], n)
}

// source is one parsed file.
type source struct {
	name string // slash-separated, below the module
	room string // the package: the folder of name
	text []byte
	tree *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// measureFiles measures Go files, given by their names below the module.
func measureFiles(files map[string][]byte) (measures, error) {
	var sources []source
	for name, text := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{name, path.Dir(name), text, tree})
	}
	m := measures{}
	for _, s := range sources {
		lines := bytes.Count(s.text, []byte("\n"))
		m.add(fileLines, s.name, lines)
		if s.test() {
			continue
		}
		for _, decl := range s.tree.Decls {
			m.declaration(s, decl)
		}
	}
	return m, nil
}

// declaration measures one top-level declaration and what is inside it.
func (m measures) declaration(s source, decl ast.Decl) {
	where := s.room
	if f, ok := decl.(*ast.FuncDecl); ok {
		where += "." + f.Name.Name
		if f.Recv != nil {
			receiver := s.room + "." + receiverOf(f)
			where = receiver + "." + f.Name.Name
			if f.Name.IsExported() {
				m.add(typeMethods, receiver, 1)
			}
		}
		if f.Body != nil {
			m.max(funcLines, where, s.line(f.Body.Rbrace)-s.line(f.Body.Lbrace)-1)
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			where = s.room + "." + n.Name.Name
			if i, ok := n.Type.(*ast.InterfaceType); ok {
				m.add(typeMethods, where, exportedMethods(i))
			}
		case *ast.FuncType:
			m.max(parameters, where, n.Params.NumFields())
		}
		return true
	})
}

// line is the line of a position: each file was parsed into a file set of its own, whose base is 1.
func (s source) line(pos token.Pos) int { return bytes.Count(s.text[:int(pos)-1], []byte("\n")) + 1 }

func receiverOf(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.Name
		default:
			return "?"
		}
	}
}

func exportedMethods(i *ast.InterfaceType) int {
	n := 0
	for _, method := range i.Methods.List {
		for _, name := range method.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

// sorted is the subjects in the order in which they are reported.
func (m measures) sorted() []subject {
	var all []subject
	for s := range m {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b subject) int {
		return strings.Compare(a.Rule+"\x00"+a.Where, b.Rule+"\x00"+b.Where)
	})
	return all
}
