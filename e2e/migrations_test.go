package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"testing"
)

// outOfStep says where the numbers of migrations, in the order of their names, are not 1, 2, 3 and so on. goose refuses a
// database in which a number is made that comes after one that is not, and a number that stands twice.
func outOfStep(names []string) (wrong []string) {
	for i, name := range names {
		if want := fmt.Sprintf("%05d_", i+1); len(name) < len(want) || name[:len(want)] != want {
			wrong = append(wrong, fmt.Sprintf("%s stands where %s is due: renumber the migration that came last", name, want))
		}
	}
	return wrong
}

// TestHouseMigrations: two branches that each add a migration do not both keep its number, and none leaves a gap.
func TestHouseMigrations(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"../server/store/sqlite/migrations", "../server/store/postgres/migrations"} {
		names, err := fs.Glob(os.DirFS(dir), "*.sql")
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %q, %v", dir, names, err)
		}
		for _, breach := range outOfStep(names) {
			t.Errorf("%s: %s", dir, breach)
		}
	}
}

// TestHouseSeesMigrations proves that the rule can fail.
func TestHouseSeesMigrations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		names []string
		wrong int
	}{
		"in step":   {[]string{"00001_a.sql", "00002_b.sql"}, 0},
		"twice":     {[]string{"00001_a.sql", "00002_b.sql", "00002_c.sql"}, 1},
		"gap":       {[]string{"00001_a.sql", "00003_b.sql"}, 1},
		"not first": {[]string{"00002_a.sql"}, 1},
		"no number": {[]string{"a.sql"}, 1},
	}
	for name, test := range tests {
		if got := outOfStep(test.names); len(got) != test.wrong {
			t.Errorf("%s: %q", name, got)
		}
	}
}
