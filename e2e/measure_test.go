package e2e

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

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
func (s source) line(pos token.Pos) int {
	return bytes.Count(s.text[:int(pos)-1], []byte("\n")) + 1
}

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
