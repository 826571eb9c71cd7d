package provenance

import (
	"path"
	"regexp"
	"strings"
)

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
