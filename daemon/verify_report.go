package daemon

import (
	"cmp"
	"slices"
	"sort"

	"github.com/ccship/ccship/daemon/control"
)

// add puts one compared transcript into the report. p is nil when nothing was read, diff when nothing differs.
func (v *verifier) add(row control.FileReport, p *proof, diff *control.FileDifference) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Files++
	if p != nil {
		v.report.Lines += p.lines
		v.report.Bytes += p.bytes
		v.report.Excluded += p.excluded
		v.report.Oversize += p.oversize
	}
	if diff == nil && !row.Equal {
		diff = difference(row, row.Note)
	}
	row.Equal = diff == nil
	v.report.Transcripts = append(v.report.Transcripts, row)
	if diff != nil {
		v.report.Differences = append(v.report.Differences, *diff)
	}
}

// addExcludedFile lists a transcript that is not sent because its project has opted out.
func (v *verifier) addExcludedFile(row control.FileReport) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Transcripts = append(v.report.Transcripts, row)
	v.report.ExcludedFiles++
}

func (v *verifier) vanished() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Vanished++
}

// advance counts bytes read and reports them, seldom enough to cost nothing.
func (v *verifier) advance(n int64) {
	const every = 4 << 20
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.at.Bytes
	v.at.Bytes += n
	if v.progress != nil && before/every != v.at.Bytes/every {
		v.progress(v.at)
	}
}

func (v *verifier) fileDone() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at.Files++
}

// finish orders the report: two at a time come back in any order.
func (v *verifier) finish() {
	r := &v.report
	sort.Slice(r.Transcripts, func(i, j int) bool { return r.Transcripts[i].Path < r.Transcripts[j].Path })
	slices.SortFunc(r.Differences, func(a, b control.FileDifference) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Generation, b.Generation))
	})
	r.Equal = len(r.Differences) == 0 && r.Incomplete == ""
	if v.progress != nil {
		v.at.Files, v.at.Bytes = v.at.FilesTotal, v.at.BytesTotal
		v.progress(v.at)
	}
}
