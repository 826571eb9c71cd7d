package library

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/ccship/ccship/transcript"
)

// endBytes are how much of a transcript's end is read for its newest record, the second only if the first has no time.
var endBytes = [...]int64{16 << 10, 1 << 20}

// active returns when the newest record of a transcript was written, by the time in the record, as servers tell it. It
// is never later than the file's change, which it is if no record at the end has a time: copying or restoring a file is
// no activity of its session.
func (f *File) active() time.Time {
	for _, most := range endBytes {
		text, more, err := endOf(f.Path, most)
		if at := newestTime(text); !at.IsZero() {
			if at.After(f.Changed) {
				break
			}
			return at.UTC()
		}
		if err != nil || !more {
			break
		}
	}
	return f.Changed.UTC()
}

// newestTime returns the latest time of the records in the end of a transcript, whose first line may be cut.
func newestTime(text []byte) (newest time.Time) {
	for line := range bytes.Lines(text) {
		if r := transcript.Parse(bytes.TrimSuffix(line, []byte("\n"))); r.Time.After(newest) {
			newest = r.Time
		}
	}
	return newest
}

// activeFile is a transcript on disk, and when its session was active last.
type activeFile struct {
	File
	at time.Time
}

// byActivity returns the transcripts that skip does not take and that were active at since or later, the last active
// first.
func byActivity(disk []File, since time.Time, skip func(*File) bool) (files []activeFile) {
	for i := range disk {
		if disk[i].Changed.Before(since) {
			break // those that follow changed earlier
		}
		if skip(&disk[i]) {
			continue
		}
		if at := disk[i].active(); !at.Before(since) {
			files = append(files, activeFile{disk[i], at})
		}
	}
	slices.SortStableFunc(files, func(a, b activeFile) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.Path, b.Path))
	})
	return files
}
