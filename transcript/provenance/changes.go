package provenance

import (
	"crypto/sha256"
	"path"
	"regexp"
	"strings"

	"github.com/ccship/ccship/transcript"
)

// change is a text that a call puts into a file instead of another.
type change struct{ path, before, after string }

// changesOf returns the changes that a call asks for.
func changesOf(tool string, input []byte) (out []change) {
	c := change{path: slashes(transcript.ToolPath(tool, input))}
	switch tool {
	case "Edit":
		c.before, c.after = transcript.StringField(input, "old_string"), transcript.StringField(input, "new_string")
	case "MultiEdit":
		for e := range transcript.Elements(transcript.Member(input, "edits")) {
			c.before += "\n" + transcript.StringField(e, "old_string")
			c.after += "\n" + transcript.StringField(e, "new_string")
		}
	case "Write":
		c.after = transcript.StringField(input, "content")
	case "NotebookEdit":
		c.after = transcript.StringField(input, "new_source")
	case "Bash":
		for _, h := range heredocs(transcript.StringField(input, "command")) {
			out = append(out, change{path: h.path, after: h.text})
		}
		return out
	default:
		return nil
	}
	return []change{c}
}

// addedBy returns the lines of a text that another one does not have.
func addedBy(before, after string) []Sum {
	if before == "" {
		return added(nil, strings.Split(after, "\n"))
	}
	return added(strings.Split(before, "\n"), strings.Split(after, "\n"))
}

func added(before, after []string) (out []Sum) {
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	had := make(map[string]int, len(before))
	var text []byte
	for _, line := range before {
		text, _ = normalised(text[:0], line)
		had[string(text)]++
	}
	for _, line := range after {
		line = strings.TrimRight(line, "\r")
		if text, _ = normalised(text[:0], line); len(text) == 0 {
			continue
		}
		if n := had[string(text)]; n > 0 {
			had[string(text)] = n - 1
			continue
		}
		if out = append(out, sumOf(line, text)); len(out) == maxLines {
			break
		}
	}
	return out
}

// patched returns the lines that the result of a call says it added to its file.
func patched(result []byte) (out []Sum, ok bool) {
	var before, after []string
	for hunk := range transcript.Elements(transcript.Member(result, "structuredPatch")) {
		ok = true
		for raw := range transcript.Elements(transcript.Member(hunk, "lines")) {
			switch line := transcript.StringOf(raw); {
			case strings.HasPrefix(line, "-"):
				before = append(before, line[1:])
			case strings.HasPrefix(line, "+"):
				after = append(after, line[1:])
			}
		}
	}
	return added(before, after), ok
}

// heredoc is a file that a shell command writes with a text that is in the command.
type heredoc struct {
	path string // as the command names it, below the folder that it changed to
	text string
}

var (
	heredocStart  = regexp.MustCompile(`<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_][A-Za-z0-9_]*))`)
	heredocTarget = regexp.MustCompile(`>>?[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|([^\s'"&|;<>()]+))`)
	teeTarget     = regexp.MustCompile(`\btee[ \t]+(?:-a[ \t]+)?(?:'([^'\n]+)'|"([^"\n]+)"|([^\s'"&|;<>()]+))`)
	changeFolder  = regexp.MustCompile(`(?:^|[;&(]|&&)[ \t]*cd[ \t]+(?:'([^'\n]+)'|"([^"\n]+)"|([^\s'"&|;<>()]+))`)
)

// heredocs returns the files that a command writes: cat > FILE <<END, cat <<END >> FILE, tee FILE <<END.
func heredocs(command string) (out []heredoc) {
	if !strings.Contains(command, "<<") {
		return nil
	}
	lines := strings.Split(command, "\n")
	folder := ""
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		start := heredocStart.FindStringSubmatchIndex(line)
		for _, m := range changeFolder.FindAllStringSubmatch(line, -1) {
			folder = below(folder, m[1]+m[2]+m[3])
		}
		if start == nil {
			continue
		}
		m := heredocStart.FindStringSubmatch(line)
		end, tabs := m[2]+m[3]+m[4], m[1] == "-"
		from := i + 1
		for i++; i < len(lines) && !ends(lines[i], end, tabs); i++ {
		}
		if i == len(lines) {
			return out // the text does not end
		}
		if file := targetOf(line[:start[0]], line[start[1]:]); file != "" {
			out = append(out, heredoc{path: below(folder, file), text: strings.Join(lines[from:i], "\n")})
		}
	}
	return out
}

func ends(line, end string, tabs bool) bool {
	if tabs {
		line = strings.TrimLeft(line, "\t")
	}
	return strings.TrimRight(line, "\r") == end
}

// targetOf returns the file that the command around "<<END" writes; "" for none, and for what only the shell knows.
func targetOf(before, after string) string {
	if i := strings.LastIndexAny(before, ";&|("); i >= 0 && !strings.HasSuffix(before, "&1") {
		before = before[i+1:]
	}
	program := strings.TrimSpace(before)
	for _, m := range [][]string{teeTarget.FindStringSubmatch(before), teeTarget.FindStringSubmatch(after)} {
		if m != nil {
			return plainPath(m[1] + m[2] + m[3])
		}
	}
	if !strings.HasPrefix(program, "cat") && !strings.HasPrefix(program, ">") {
		return ""
	}
	for _, part := range []string{before, after} {
		if m := heredocTarget.FindStringSubmatch(part); m != nil {
			return plainPath(m[1] + m[2] + m[3])
		}
	}
	return ""
}

func plainPath(file string) string {
	if strings.ContainsAny(file, "$*?`") || strings.HasPrefix(file, "/dev/") {
		return ""
	}
	return file
}

// below returns a path seen from a folder.
func below(folder, file string) string {
	file = slashes(file)
	if folder == "" || absolute(file) || strings.HasPrefix(file, "~") {
		return file
	}
	return path.Join(folder, file)
}

func slashes(file string) string { return strings.ReplaceAll(file, `\`, "/") }

func absolute(file string) bool {
	return strings.HasPrefix(file, "/") || len(file) > 2 && file[1] == ':' && file[2] == '/'
}

// Secret is the key of a store. Sums that a store keeps are hashed with it: a thief of the table alone cannot try
// texts against it.
type Secret [32]byte

// StoredSize is the length of a stored sum: seven bytes of the keyed hash of its Key, and one for its last byte.
const StoredSize = 8

// Seal returns a sum as it is stored.
func (s *Secret) Seal(sum Sum) (out [StoredSize]byte) {
	var in [len(s) + SumSize - 1]byte
	copy(in[:], s[:])
	copy(in[len(s):], sum[:SumSize-1])
	full := sha256.Sum256(in[:])
	copy(out[:], full[:])
	out[StoredSize-1] ^= sum[SumSize-1]
	return out
}

// Asked finds the sums that a caller asks for among stored ones. Of others it says nothing.
type Asked map[[StoredSize - 1]byte]asked

type asked struct {
	key  Key
	mask byte
}

// Ask prepares to look for sums.
func (s *Secret) Ask(sums []Sum) Asked {
	out := make(Asked, len(sums))
	for _, sum := range sums {
		plain := sum
		plain[SumSize-1] = 0
		sealed := s.Seal(plain)
		out[[StoredSize - 1]byte(sealed[:StoredSize-1])] = asked{sum.Key(), sealed[StoredSize-1]}
	}
	return out
}

// Open returns a stored sum, if it is one of those that are asked for but for its last byte.
func (a Asked) Open(stored [StoredSize]byte) (sum Sum, ok bool) {
	x, ok := a[[StoredSize - 1]byte(stored[:StoredSize-1])]
	copy(sum[:], x.key[:])
	sum[SumSize-1] = stored[StoredSize-1] ^ x.mask
	return sum, ok
}

// Name returns the number by which a store finds the edits of a file.
func (s *Secret) Name(file string) int64 {
	full := sha256.Sum256(append(s[:], Name(file)...))
	var n int64
	for _, b := range full[:8] {
		n = n<<8 | int64(b)
	}
	return n
}
