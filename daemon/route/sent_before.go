package route

import (
	"bytes"
	"io"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
)

// sentBefore returns the number of first lines that the earlier hook has sent to the project's own server. If the file
// has fewer lines than the hook recorded, it was rewound since, and none of its lines count as sent.
func sentBefore(p project.Policy, session, path string) int64 {
	last, ok := project.LastSent(p.Dir, session)
	if !ok {
		return 0
	}
	if lines, err := countLines(path); err != nil || last >= lines {
		return 0
	}
	return last + 1
}

// countLines counts the lines of a file, including a last one without newline.
func countLines(path string) (int64, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n int64
	buf, last := make([]byte, 256<<10), byte('\n')
	for {
		k, err := f.Read(buf)
		if k > 0 {
			n += int64(bytes.Count(buf[:k], []byte{'\n'}))
			last = buf[k-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, nil
}
