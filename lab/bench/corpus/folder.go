package corpus

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// given is a transcript of a folder, as one of its copies has it.
type given struct {
	text []byte
	copy uint64 // 0: as it is
}

// Folder makes the plan's sessions of a folder's transcripts (*.jsonl, at any depth), again and again with other ids
// until the plan's size is reached; a plan of no size takes each once.
func (p Plan) Folder(dir string) ([]Session, error) {
	var texts [][]byte
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".jsonl" {
			return err
		}
		text, err := os.ReadFile(name)
		if len(bytes.TrimSpace(text)) > 0 {
			texts = append(texts, text)
		}
		return err
	})
	if err != nil || len(texts) == 0 {
		return nil, fmt.Errorf("transcripts in %s: %d, %w", dir, len(texts), err)
	}
	plan := p
	if plan.Bytes == 0 {
		for _, text := range texts {
			plan.Bytes += int64(len(text))
		}
	}
	owners := max(plan.OwnerCount(), 1)
	many := plan.Many(1)[0]
	var all []Session
	for left, copied := plan.Bytes, 0; left > 0; copied++ {
		for i, text := range texts {
			s := many
			s.given = &given{text, uint64(copied)}
			s.Owner = (copied*31 + i) % owners
			s.ID = fmt.Sprintf("%08x-%04x-4000-8000-%012x", copied, i, p.Seed)
			s.Cwd = fmt.Sprintf("/home/user%d/work/project-%d", s.Owner, i%5)
			s.Project, s.Machine = fmt.Sprintf("%08x", s.Owner*7+i%5), fmt.Sprintf("m%06x", s.Owner)
			s.Path, s.Host = "folder/"+s.ID+".jsonl", "host-"+s.Machine
			s.Bytes = int64(len(text))
			if left -= s.Bytes; left < 0 {
				return all, nil
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// lines are the transcript's, with the ids of this copy.
func (g *given) lines() []string {
	text := g.text
	if g.copy > 0 {
		text = renamed(bytes.Clone(text), g.copy)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// renamed gives each UUID, and each id of an answer, a request or a call, another name of the same length, in place.
func renamed(text []byte, n uint64) []byte {
	for i := 0; i+36 <= len(text); i++ {
		switch {
		case text[i] == '-' && i >= 8 && text[i+5] == '-' && text[i+10] == '-' && hexes(text[i-8:i]):
			swap(text[i-8:i], n, "0123456789abcdef")
			i += 27
		case text[i] == '_' && i >= 3 && text[i+1] == '0' && text[i+2] == '1' && !bytes.ContainsAny(text[i:i+20], `" \`):
			swap(text[i+12:i+20], n, letters)
			i += 20
		}
	}
	return text
}

func hexes(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// swap turns each character of an alphabet by an amount that follows from its place and n.
func swap(b []byte, n uint64, alphabet string) {
	for i, c := range b {
		if at := strings.IndexByte(alphabet, c); at >= 0 && c < utf8.RuneSelf {
			b[i] = alphabet[(at+int(n>>(4*(i%8)))%len(alphabet))%len(alphabet)]
		}
	}
}
