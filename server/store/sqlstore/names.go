package sqlstore

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Key stands for a name of any length in an index. It is of the name as it is stored and shown, so that one can ask for
// what one has read.
func Key(name string) []byte {
	sum := sha256.Sum256([]byte(CleanText(name)))
	return sum[:]
}

// Clean makes a head's names fit for a text column, which holds neither NUL nor what is not UTF-8.
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

// CleanValues makes the texts among a statement's values fit as CleanText does: what a caller asks for is compared with
// what is stored. It leaves args as they are.
func CleanValues(args []any) []any {
	fit := slices.Clone(args)
	for i, arg := range fit {
		switch x := arg.(type) {
		case string:
			fit[i] = CleanText(x)
		case []string:
			list := slices.Clone(x)
			for k := range list {
				list[k] = CleanText(list[k])
			}
			fit[i] = list
		}
	}
	return fit
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
