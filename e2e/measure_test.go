package e2e

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The rules of size. Lines of functions are those of non-test files; files of tests have a length too.
const (
	fileLines   = "lines a file"
	funcLines   = "lines a function"
	parameters  = "parameters"
	typeMethods = "exported methods a type"
	funcFields  = "function-typed fields a struct"
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
	m, named := measures{}, funcTypes(sources)
	for _, s := range sources {
		lines := bytes.Count(s.text, []byte("\n"))
		m.add(fileLines, s.name, lines)
		if s.test() {
			continue
		}
		for _, decl := range s.tree.Decls {
			m.declaration(s, decl, named)
		}
	}
	return m, nil
}

// declaration measures one top-level declaration and what is inside it.
func (m measures) declaration(s source, decl ast.Decl, named map[string]bool) {
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
		case *ast.StructType:
			m.max(funcFields, where, s.callbacks(where, n, named))
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

// callbacks counts the fields that hold a function, or several. Left out are the places where tests make a step fail:
// fields called fault, and every field of a struct called faults.
func (s source) callbacks(where string, t *ast.StructType, named map[string]bool) int {
	if strings.HasSuffix(where, ".faults") {
		return 0
	}
	n := 0
	for _, field := range t.Fields.List {
		if !s.isFunc(field.Type, named) {
			continue
		}
		for _, name := range field.Names {
			if !strings.EqualFold(name.Name, "fault") {
				n++
			}
		}
		if len(field.Names) == 0 {
			n++
		}
	}
	return n
}

// isFunc reports whether a type is a function, a named function, or a list or map of them.
func (s source) isFunc(t ast.Expr, named map[string]bool) bool {
	switch t := t.(type) {
	case *ast.FuncType:
		return true
	case *ast.ParenExpr:
		return s.isFunc(t.X, named)
	case *ast.ArrayType:
		return s.isFunc(t.Elt, named)
	case *ast.MapType:
		return s.isFunc(t.Value, named)
	case *ast.IndexExpr: // a generic one
		return s.isFunc(t.X, named)
	case *ast.Ident:
		return named[s.room+"."+t.Name]
	case *ast.SelectorExpr:
		if pkg, ok := t.X.(*ast.Ident); ok {
			return named[s.imported(pkg.Name)+"."+t.Sel.Name]
		}
	}
	return false
}

// imported is the package that a file calls name: below the module when it is ours.
func (s source) imported(name string) string {
	for _, spec := range s.tree.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		called := path.Base(full)
		if spec.Name != nil {
			called = spec.Name.Name
		}
		if called == name {
			room, _ := roomOf(full)
			return room
		}
	}
	return name
}

// funcTypes is every named function type: ours, and those of the standard library that are usual in fields.
func funcTypes(sources []source) map[string]bool {
	named := map[string]bool{}
	for _, outside := range []string{"context.CancelFunc", "context.CancelCauseFunc", "net/http.HandlerFunc",
		"path/filepath.WalkFunc", "io/fs.WalkDirFunc", "bufio.SplitFunc"} {
		named[outside] = true
	}
	for grown := true; grown; { // a named function type may be made from another
		grown = false
		for _, s := range sources {
			for _, decl := range s.tree.Decls {
				general, _ := decl.(*ast.GenDecl)
				if general == nil || general.Tok != token.TYPE {
					continue
				}
				for _, spec := range general.Specs {
					spec := spec.(*ast.TypeSpec)
					name := s.room + "." + spec.Name.Name
					if !named[name] && s.isFunc(spec.Type, named) {
						named[name], grown = true, true
					}
				}
			}
		}
	}
	return named
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
