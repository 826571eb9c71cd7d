package doctor

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
)

// How much of the newest transcripts is looked at for what this version does not know, in bytes; lines that are longer
// are passed over.
const (
	knownBytes = 64 << 20
	knownLine  = 1 << 20
)

// checkRecords counts what transcripts have beyond what this version knows. Such records are delivered all the same.
func checkRecords(ctx context.Context, x *exam) []Finding {
	unknown := map[string]int{}
	left := int64(knownBytes)
	for _, path := range newestTranscripts(x.roots()) {
		if left <= 0 || ctx.Err() != nil {
			break
		}
		left -= countUnknown(path, left, unknown)
	}
	read := amount.Size(knownBytes - max(left, 0))
	switch {
	case left == knownBytes:
		return nil
	case len(unknown) == 0:
		return fine("every kind of record in the newest " + read + " of transcripts is known")
	}
	order := slices.SortedFunc(maps.Keys(unknown), func(a, b string) int {
		return cmp.Or(cmp.Compare(unknown[b], unknown[a]), strings.Compare(a, b))
	})
	var named []string
	for _, name := range order[:min(len(order), 2*mostNamed)] {
		named = append(named, fmt.Sprintf("%s (%d)", name, unknown[name]))
	}
	if more := len(order) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return []Finding{{Level: Note,
		Text:   "the newest " + read + " of transcripts have what this version does not know: " + strings.Join(named, ", "),
		Detail: "it is delivered and stored as it is; titles, turns and search may not understand it",
		Fix:    "a newer ccship may know it"}}
}

// newestTranscripts returns the transcripts below folders, the newest first.
func newestTranscripts(roots []string) []string {
	type file struct {
		path string
		at   time.Time
	}
	var files []file
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".jsonl" {
				if info, err := d.Info(); err == nil {
					files = append(files, file{path, info.ModTime()})
				}
			}
			return nil
		})
	}
	slices.SortFunc(files, func(a, b file) int { return b.at.Compare(a.at) })
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	return paths
}

// countUnknown counts in up to most bytes of a transcript, and returns how many it has read.
func countUnknown(path string, most int64, unknown map[string]int) (read int64) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, knownLine)
	long := false // the line was longer than the buffer, and goes on
	for read < most {
		line, err := lines.ReadSlice('\n')
		read += int64(len(line))
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true
			continue
		}
		if !long && transcript.Scan(line).Shape == transcript.Object {
			for _, name := range transcript.Unknown(line) {
				unknown[name]++
			}
		}
		if long = false; err != nil {
			break
		}
	}
	return read
}
