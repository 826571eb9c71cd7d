package config

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A log of the caller's is used as it is; one of text keeps to the level in force.
func TestLogger(t *testing.T) {
	var b bytes.Buffer
	own := slog.New(slog.DiscardHandler)
	if got := (Config{Log: own}).Logger(); got != own {
		t.Error("the caller's log is not used")
	}
	if got := (Config{}).Logger(); got == nil {
		t.Error("no log without one")
	}
	log := Config{LogLevel: slog.LevelWarn}.TextLog(&b)
	log.Info("quiet")
	log.Warn("loud", "file", "a b")
	if text := b.String(); strings.Contains(text, "quiet") || !strings.Contains(text, `level=WARN msg=loud file="a b"`) {
		t.Errorf("log is %q", text)
	}
}
