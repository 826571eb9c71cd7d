package session_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

// objects are a file's records as text, those of glued lines one by one. They are found without the project's own
// code, which is held to them.
func objects(t testing.TB, file string) (lines [][]byte) {
	t.Helper()
	data := kit.Try(os.ReadFile(file)).Must(t)
	for _, line := range bytes.Split(data, []byte("\n")) {
		text := bytes.TrimSpace(line)
		if json.Valid(text) {
			if bytes.HasPrefix(text, []byte("{")) {
				lines = append(lines, text)
			}
			continue
		}
		found := pieces(text)
		if own := transcript.Recover(line); transcript.Scan(line).Shape == transcript.Malformed && len(own) != len(found) {
			t.Errorf("%s: of a damaged line %d records are recovered, want %d", file, len(own), len(found))
		}
		lines = append(lines, found...)
	}
	return lines
}

// pieces are the whole records of a damaged line: those before the damage, and those behind it from the first position
// on from which the rest of the line is whole.
func pieces(line []byte) (found [][]byte) {
	line = bytes.ReplaceAll(line, []byte{0}, nil)
	found, rest := wholeObjects(line)
	for at := range len(rest) {
		if !bytes.HasPrefix(rest[at:], []byte(`{"type":`)) && !bytes.HasPrefix(rest[at:], []byte(`{"parentUuid":`)) {
			continue
		}
		if behind, end := wholeObjects(rest[at:]); len(end) == 0 {
			return append(found, behind...)
		}
	}
	return found
}

// wholeObjects are the objects that a text begins with, and what follows them.
func wholeObjects(text []byte) (found [][]byte, rest []byte) {
	for {
		text = bytes.TrimSpace(text)
		var one json.RawMessage
		d := json.NewDecoder(bytes.NewReader(text))
		if !bytes.HasPrefix(text, []byte("{")) || d.Decode(&one) != nil {
			return found, text
		}
		found = append(found, one)
		text = text[d.InputOffset():]
	}
}
