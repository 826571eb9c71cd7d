package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestKnowsMarketplace(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, `a "b"`)
	kit.Check(t, !KnowsMarketplace(dir, plugin), "known without a file")
	known := filepath.Join(dir, "plugins", "known_marketplaces.json")
	put(t, known, `{"ccship":{"source":{"source":"directory","path":"`+filepath.ToSlash(dir)+`/a \"b\""}}}`, 0, time.Now())
	kit.Check(t, os.PathSeparator != '/' || KnowsMarketplace(dir, plugin), "not known")
	kit.Check(t, !KnowsMarketplace(dir, filepath.Join(dir, "a")), "part of the path of another is known")
}
