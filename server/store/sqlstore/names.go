package sqlstore

import (
	"crypto/sha256"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Key stands for a name of any length in an index.
func Key(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// Clean makes a head's names fit for a text column, which holds neither NUL nor what is not UTF-8. Their keys are of
// the names as they came.
func Clean(h server.Head) server.Head {
	for _, s := range []*string{
		&h.SessionID, &h.ProjectHash, &h.Machine, &h.Host, &h.Epoch, &h.Path, &h.Cwd, &h.Project, &h.Parent,
	} {
		*s = CleanText(*s)
	}
	return h
}

// CleanText puts U+FFFD in place of what a text column can't hold.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// TombstoneKeys are the keys of what keeps a batch from being stored when it was forgotten.
func TombstoneKeys(h *server.Head) (keys [][]byte) {
	names := transcript.ForgetNames(h.SessionID)
	if h.Parent != "" {
		names = append(names, transcript.ForgetNames(h.Parent)...)
	}
	for _, name := range names {
		keys = append(keys, Key(name))
	}
	return keys
}
