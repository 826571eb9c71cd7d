package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// KnowsMarketplace says whether the folder dir is one of the plugin marketplaces that Claude Code knows, by the files
// in its folder (~/.claude).
func KnowsMarketplace(configDir, dir string) bool {
	quoted, err := json.Marshal(dir)
	if err != nil {
		return false
	}
	known, err := os.ReadFile(filepath.Join(configDir, "plugins", "known_marketplaces.json"))
	return err == nil && bytes.Contains(known, quoted)
}
