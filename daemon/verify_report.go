package daemon

import (
	"cmp"
	"slices"
	"sort"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/tail"
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

// judge turns what was found into a difference; nil when all of it is accounted for.
func (v *verifier) judge(row control.FileReport, g remote.Generation, lines *lineDiff, t *tail.Tracked, p *proof) *control.FileDifference {
	diff := difference(row, "")
	diff.Missing, diff.Differ = lines.missing, lines.differ
	end, grown := p.end, false
	if fresh, ok := v.d.tailer.File(t.File.ID); ok && fresh.Cursor.Offset > t.Cursor.Offset {
		end, grown = fresh.Cursor.Line, true
	}
	if g.EndLine > end {
		diff.Extra = []control.Range{{First: end, Last: g.EndLine - 1}}
	}
	if len(diff.Missing)+len(diff.Differ)+len(diff.Extra) > 0 {
		return diff
	}
	if newline := t.Provisional.Length == 0; g.EOFNewline != newline && p.lines > 0 && !grown {
		diff.Detail = "only the newline at the end differs"
		return diff
	}
	return nil
}

func difference(row control.FileReport, detail string) *control.FileDifference {
	return &control.FileDifference{SessionID: row.SessionID, Path: row.Path, Generation: row.Generation, Detail: detail}
}
