package config

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// A log of the caller's is used as it is; one of text keeps to the level in force.
func TestLogger(t *testing.T) {
	var b bytes.Buffer
	own := slog.New(slog.DiscardHandler)
	kit.Check(t, (Config{Log: own}).Logger() == own, "the caller's log is not used")
	kit.Check(t, (Config{}).Logger() != nil, "no log without one")
	log := Config{LogLevel: slog.LevelWarn}.TextLog(&b)
	log.Info("quiet")
	log.Warn("loud", "file", "a b")
	text := b.String()
	kit.Check(t, !strings.Contains(text, "quiet") && strings.Contains(text, `level=WARN msg=loud file="a b"`), "log is %q", text)
}
