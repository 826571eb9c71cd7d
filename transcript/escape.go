package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxStreamName is the longest escaped name of a file, in bytes. A stream may have two, of a session and its agent, and
// a number. Servers accept 1 KiB.
const maxStreamName = 480

// EscapeName returns a name that every server accepts: control characters, bytes that are not UTF-8, and "%" itself are
// percent-encoded, so that url.PathUnescape gives the name back. A longer name is cut, and ends in "%~" and the hash of
// the whole; that cannot be undone, but no two names become one.
func EscapeName(name string) string {
	if !strings.ContainsFunc(name, escaped) && len(name) <= maxStreamName {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		_, size := utf8.DecodeRuneInString(name[i:])
		char := name[i : i+size]
		if !escaped(r) || r == utf8.RuneError && size > 1 {
			b.WriteString(char)
			continue
		}
		for _, c := range []byte(char) {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	if b.Len() <= maxStreamName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	end := "%~" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(b.String()[:maxStreamName-len(end)], "") + end
}

// escaped reports whether a character may have to be escaped. U+FFFD stands for bytes that are not UTF-8, too.
func escaped(r rune) bool { return unicode.IsControl(r) || r == '%' || r == utf8.RuneError }
