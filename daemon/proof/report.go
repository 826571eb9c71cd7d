package proof

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// recorder collects the report. Its methods are safe for concurrent use; its fields may be used directly while only
// one goroutine works.
type recorder struct {
	mu                   sync.Mutex
	control.VerifyReport                              // guarded by mu
	at                   control.VerifyProgress       // guarded by mu
	progress             func(control.VerifyProgress) // called with mu held; may be nil
}

func newRecorder(o *Options) *recorder {
	r := &recorder{progress: o.Progress}
	r.SchemaVersion, r.Proven, r.Incomplete, r.Waiting = control.SchemaVersion, true, o.Incomplete, o.Waiting
	return r
}

// reportOf begins the report of one transcript.
func reportOf(t *tail.Tracked, f *state.Routing) control.FileReport {
	r := control.FileReport{
		SessionID: f.Stream.SessionID, Path: t.File.Path, Generation: t.Cursor.Generation, Equal: true,
	}
	r.Server = project.ServerURL(f.Dest)
	return r
}

func difference(file control.FileReport, detail string) *control.FileDifference {
	return &control.FileDifference{
		SessionID: file.SessionID, Path: file.Path, Generation: file.Generation, Detail: detail,
	}
}

// add records a compared transcript. s is nil when nothing was read, diff when nothing differs.
func (r *recorder) add(file control.FileReport, s *summary, diff *control.FileDifference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Files++
	if s != nil {
		r.Lines += s.lines
		r.Bytes += s.bytes
		r.Excluded += s.excluded
		r.excludedLines(whySentBefore, s.sentBefore)
		r.excludedLines(whyOfLines(&file), s.excluded-s.sentBefore)
		r.Oversize += s.oversize
		r.Masked += s.masked
		r.Unproven += s.unproven
		r.ByServer += s.byServer
		r.ByPolicy += s.retired
		r.ByPolicyOnly += s.retiredUnproven
		r.Clear += s.clear
		file.Clear = s.clear
	}
	file.Equal = diff == nil
	r.Transcripts = append(r.Transcripts, file)
	if diff != nil {
		r.Differences = append(r.Differences, *diff)
	}
}

// addExcluded lists a transcript that is not delivered; its Note is the reason.
func (r *recorder) addExcluded(file control.FileReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Transcripts = append(r.Transcripts, file)
	r.ExcludedFiles++
	r.excluded(file.Note).Transcripts++
}

// update changes the report.
func (r *recorder) update(change func(r *recorder)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// fileDone counts a transcript that is compared.
func (r *recorder) fileDone() { r.update(func(r *recorder) { r.at.Files++ }) }

// read counts bytes read, and reports the progress every few MiB.
func (r *recorder) read(n int64) {
	const every = 4 << 20
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.at.Bytes
	r.at.Bytes += n
	if r.progress != nil && before/every != r.at.Bytes/every {
		r.progress(r.at)
	}
}

// finish orders the report, which is filled in any order, and returns it.
func (r *recorder) finish(o *Options) control.VerifyReport {
	sort.Slice(r.Transcripts, func(i, j int) bool { return r.Transcripts[i].Path < r.Transcripts[j].Path })
	slices.SortFunc(r.Differences, func(a, b control.FileDifference) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Generation, b.Generation))
	})
	slices.SortFunc(r.ExcludedWhy, func(a, b control.ExclusionCount) int { return cmp.Compare(a.Why, b.Why) })
	r.Findings = r.verdict(o)
	r.Equal = len(r.Findings) == 0
	if r.progress != nil {
		r.at.Files, r.at.Bytes = r.at.FilesTotal, r.at.BytesTotal
		r.progress(r.at)
	}
	return r.VerifyReport
}
