package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestKnowsMarketplace(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, `a "b"`)
	if KnowsMarketplace(dir, plugin) {
		t.Error("known without a file")
	}
	known := filepath.Join(dir, "plugins", "known_marketplaces.json")
	put(t, known, `{"ccship":{"source":{"source":"directory","path":"`+filepath.ToSlash(dir)+`/a \"b\""}}}`, 0, time.Now())
	if os.PathSeparator == '/' && !KnowsMarketplace(dir, plugin) {
		t.Error("not known")
	}
	if KnowsMarketplace(dir, filepath.Join(dir, "a")) {
		t.Error("part of the path of another is known")
	}
}
