package sqlstore

import (
	"crypto/sha256"
	"slices"
	"strings"
	"unicode/utf8"

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
// what is stored. It leaves args as they are, and copies them only if some do not fit.
func CleanValues(args []any) []any {
	fit := args
	set := func(i int, value any) {
		if &fit[0] == &args[0] {
			fit = slices.Clone(args)
		}
		fit[i] = value
	}
	for i, arg := range args {
		switch x := arg.(type) {
		case string:
			if !isClean(x) {
				set(i, CleanText(x))
			}
		case []string:
			if n := slices.IndexFunc(x, func(s string) bool { return !isClean(s) }); n >= 0 {
				list := slices.Clone(x)
				for k := n; k < len(list); k++ {
					list[k] = CleanText(list[k])
				}
				set(i, list)
			}
		}
	}
	return fit
}

// isClean reports whether a text column holds a text as it is.
func isClean(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// TombstoneKeys returns the keys of what keeps a batch from being stored when it was forgotten.
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
