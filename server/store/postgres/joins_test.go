package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// reference are the tables that every machine would have a copy of. All others are spread by owner.
var reference = strings.Fields(`users keys grants shares logins tickets store_identity goose_db_version cold leases retention_rules retention_holds usage_totals`)

// spread are the tables that Go code names in SQL, and that are spread by owner.
const spread = `streams|epochs|generations|lines|superseded|blocks|folds|facts|drops|moments|edits|commits|answers|usage_sums|project_sums|` +
	`gram_segments|gram_pages|gram_purges|masked_lines|maskings|artifact_epochs|checkpoints|documents|document_versions|` +
	`blobs|blob_chunks|blob_refs|link_requests|marks|share_links|saved_views|cold_objects|retired|retention_log|forgotten|ledgers|replaced_writers|repositories`

// unknown stands for what a program puts into a statement when it runs.
const unknown = " … "

// everybody are statements about rows of all owners, and about marks, which are a reader's.
var everybody = []string{
	"SELECT EXISTS (SELECT FROM streams WHERE version > derived",
	"SELECT (SELECT count(*) FROM streams WHERE version > derived",
	"SELECT DISTINCT owner FROM ",
	"DELETE FROM marks WHERE reader = ? AND stream = ?",
	"SELECT tags FROM marks WHERE reader = ?",
	"SELECT stream, star, name, note, tags, updated FROM marks\nWHERE reader = ?",
	"SELECT id, owner FROM blobs WHERE stored = 0",
	"DELETE FROM share_links WHERE until < ?",
	"SELECT 1 FROM cold_objects LIMIT 1",
	"SELECT (SELECT count(*) FROM (SELECT 1 FROM retired LIMIT 1)",
	"DELETE FROM cold_objects AS o WHERE NOT ",
	"SELECT count(*), CAST(coalesce(sum(size), 0) AS bigint),",
	"SELECT count(*), coalesce(min(received), 0) FROM lines",
	"SELECT EXISTS (SELECT 1 FROM usage_sums s WHERE s.total = 0)",
	"SELECT s.owner FROM usage_sums s WHERE s.total = 0",
	"SELECT EXISTS (SELECT 1 FROM streams s WHERE s.summed < 0)",
}

var (
	mention = regexp.MustCompile(`\b(FROM|JOIN|UPDATE|INTO|,)\s+(` + spread + `)\b(?:\s+(?:AS\s+)?([a-z_]+)\b)?`)
	told    = regexp.MustCompile(`^\s*(WHERE\s*)?` + unknown)
	keyword = regexp.MustCompile(`^(?i:where|join|on|set|order|left|cross|group|select|values|limit|using|in)$`)
)

// wrongJoins says which tables a statement names without saying whose rows it wants. A statement of one table may find
// streams by their number. What follows WHERE at once and is not known here is a condition that begins with the owner.
func wrongJoins(statement string) (wrong []string) {
	for _, begin := range everybody {
		if strings.HasPrefix(strings.TrimSpace(statement), begin) {
			return nil
		}
	}
	all := mention.FindAllStringSubmatchIndex(statement, -1)
	for _, m := range all {
		how, table, alias := statement[m[2]:m[3]], statement[m[4]:m[5]], ""
		if m[6] >= 0 && !keyword.MatchString(statement[m[6]:m[7]]) {
			alias = statement[m[6]:m[7]] + `\.`
		}
		rest := statement[m[1]:]
		switch {
		case how == "INTO":
			columns, _, _ := strings.Cut(statement[m[5]:], ")")
			if !regexp.MustCompile(`\bowner\b`).MatchString(columns) {
				wrong = append(wrong, table)
			}
		case how == "," && alias == "", strings.HasPrefix(rest, unknown), told.MatchString(rest),
			len(all) == 1 && (table == "streams" || strings.Contains(rest, "WHERE "+unknown)):
		case !regexp.MustCompile(`\b` + alias + `owner\s*(=|,|\)|>|IN\b)|=\s*` + alias + `owner\b`).MatchString(statement):
			wrong = append(wrong, table)
		}
	}
	return wrong
}

// TestWrongJoins: the check sees what it is there to see.
func TestWrongJoins(t *testing.T) {
	for text, want := range map[string]string{
		`SELECT 1 FROM streams s JOIN facts f ON f.stream = s.id`:                                 "streams facts",
		`SELECT 1 FROM streams s JOIN facts f ON f.owner = s.owner AND f.stream = s.id`:           "",
		`EXISTS (SELECT 1 FROM epochs WHERE stream = s.id)`:                                       "epochs",
		`SELECT id FROM streams WHERE id = ?`:                                                     "",
		`INSERT INTO folds (stream, line) VALUES (?, ?)`:                                          "folds",
		`INSERT INTO folds (owner, stream, line) VALUES (?, ?, ?)`:                                "",
		`DELETE FROM folds WHERE stream IN (SELECT id FROM streams WHERE owner = ?)`:              "",
		`DELETE FROM folds x WHERE x.stream IN (SELECT s.id FROM streams s WHERE s.owner = ?)`:    "folds",
		`UPDATE streams x SET redo = true FROM chosen c, streams before WHERE before.id = x.id`:   "streams streams",
		`SELECT data FROM blob_chunks WHERE blob = ?`:                                             "blob_chunks",
		`SELECT line FROM lines WHERE` + unknown:                                                  "",
		`SELECT 1 FROM lines l JOIN streams s ON s.id = l.stream WHERE` + unknown:                 "lines streams",
		`SELECT 1 FROM documents d JOIN streams s ON s.owner = d.owner AND s.id = d.stream`:       "",
		`SELECT 1 FROM moments m CROSS JOIN answers a WHERE (m.owner, m.line) = (a.owner, a.key)`: "",
	} {
		kit.Equal(t, text, strings.Join(wrongJoins(text), " "), want)
	}
}

// TestJoinsByOwner: no statement joins tables that are spread by owner without saying so.
func TestJoinsByOwner(t *testing.T) {
	all := source{fset: token.NewFileSet(), consts: map[string]ast.Expr{}}
	for _, dir := range strings.Fields(`postgres sqlstore search lines`) {
		all.read(t, filepath.Join("..", dir))
	}
	n := 0
	for _, f := range all.files {
		for _, x := range all.texts(f) {
			text := all.fold(x, 0)
			if !mention.MatchString(text) {
				continue
			}
			n++
			if wrong := wrongJoins(text); len(wrong) > 0 {
				t.Errorf("%s: without owner: %v in\n%s", all.fset.Position(x.Pos()), wrong, text)
			}
		}
	}
	kit.Check(t, n >= 100, "only %d statements were found", n)
}

// source is Go code with statements.
type source struct {
	fset   *token.FileSet
	files  []*ast.File
	consts map[string]ast.Expr
}

func (s *source) read(t *testing.T, dir string) {
	t.Helper()
	list := kit.Try(os.ReadDir(dir)).Must(t)
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f := kit.Try(parser.ParseFile(s.fset, filepath.Join(dir, e.Name()), nil, 0)).Must(t)
		s.files = append(s.files, f)
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						s.consts[name.Name] = v.Values[i]
					}
				}
			}
		}
	}
}

// texts are the expressions of a file that make texts, the largest ones.
func (s *source) texts(f *ast.File) (out []ast.Expr) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			out = append(out, x)
		case *ast.BinaryExpr:
			if strings.Contains(s.fold(x, 0), unknown) || mention.MatchString(s.fold(x, 0)) {
				out = append(out, x)
				return !mention.MatchString(s.fold(x, 0))
			}
		}
		return true
	})
	return slices.DeleteFunc(out, func(x ast.Expr) bool { return !mention.MatchString(s.fold(x, 0)) })
}

// fold is the text that an expression makes.
func (s *source) fold(x ast.Expr, depth int) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, _ := strconv.Unquote(x.Value)
			return text
		}
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return s.fold(x.X, depth) + s.fold(x.Y, depth)
		}
	case *ast.ParenExpr:
		return s.fold(x.X, depth)
	case *ast.Ident:
		if c := s.consts[x.Name]; c != nil && depth < 10 {
			return s.fold(c, depth+1)
		}
	case *ast.SelectorExpr:
		return s.fold(x.Sel, depth)
	}
	return unknown
}
