package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/protocol"
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

// result counts where the lines are.
func (s *Syncer) result(ctx context.Context, err error) control.SyncResult {
	stats, usage := s.Files.Stats(), s.State.Outbox.Usage()
	r := control.SyncResult{
		SchemaVersion: control.SchemaVersion, Done: err == nil, Lines: stats.Lines,
		Dead: usage.Dead, Withheld: usage.Withheld, Waiting: usage.Entries,
	}
	r.Retired = s.Servers.RetiredServers(usage)
	for _, f := range r.Retired {
		r.Waiting -= f.Entries
	}
	r.Excluded = s.excludedLines(ctx)
	r.Acknowledged = max(0, r.Lines-r.Waiting-s.deadLines(ctx, r.Dead)-r.Withheld-r.Excluded)
	if unlisted := s.Unlisted(); err == nil && len(unlisted) > 0 {
		// Its content is unknown, so nobody may call it delivered.
		r.Done, r.Reason, r.Detail = false, ReasonUnreadable, "cannot list "+unlisted[0]
		return r
	}
	if err == nil {
		return r
	}
	if unread, ok := errors.AsType[unreadError](err); ok {
		r.Reason, r.Detail = ReasonUnreadable, unread.Error()
		return r
	}
	r.Reason, r.Detail, r.Hint = s.Servers.Obstacle()
	switch {
	case errors.Is(err, errPaused):
		r.Reason, r.Detail, r.Hint = ReasonPaused, errPaused.Error(), ""
	case r.Reason != "":
	case !s.Router.AnyServer():
		r.Reason, r.Detail = reasonNoServer, "no server is set"
	case usage.Full != "":
		r.Reason, r.Detail = reasonFull, "reading has stopped: "+map[string]string{"cap": "the outbox is full",
			"disk": "the disk has less free than head_room"}[usage.Full]
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		r.Reason, r.Detail = ReasonTimeout, "the time limit has passed"
	default:
		r.Reason, r.Detail = ReasonTimeout, err.Error()
	}
	return r
}

// deadLines counts how many of all dead letters are lines on disk.
func (s *Syncer) deadLines(ctx context.Context, all int64) int64 {
	if all == 0 {
		return 0
	}
	letters, err := s.State.DeadLetters.List(context.WithoutCancel(ctx))
	if err != nil {
		s.Log.Warn("cannot list the dead letters", "err", err)
	}
	for i := range letters {
		if letters[i].Batch.Items > 0 || letters[i].Reason == state.ReasonReplaced {
			all--
		}
	}
	return all
}

// excludedLines counts the lines excluded by their type, in a history by their project, or in forgotten sessions.
func (s *Syncer) excludedLines(ctx context.Context) (n int64) {
	excluded := s.Router.ExcludedOnDisk(s.Files)
	maps.DeleteFunc(excluded, func(_ tail.FileID, why string) bool { return why != route.Forgotten })
	if len(excluded) == 0 && len(s.Router.Rules().ExcludeTypes) == 0 && !s.Router.History.Any() {
		return 0
	}
	facts, err := s.State.Files.Routings(context.WithoutCancel(ctx))
	if err != nil {
		s.Log.Warn("cannot count the lines left out", "err", err)
		return 0
	}
	for id, f := range facts {
		if excluded[id] == "" {
			n += f.Excluded
		}
	}
	for id := range excluded {
		if t, ok := s.Files.File(id); ok {
			n += t.Cursor.Line
		}
	}
	return n
}

// Unlisted returns the folders that cannot be listed, with the reasons. A root that never existed is left out: Claude
// Code makes it with its first session.
func (s *Syncer) Unlisted() []string {
	var out []string
	for path, err := range s.Files.Unlisted() {
		known := func(t tail.Tracked) bool { return t.Gone == 0 && t.File.Root == path }
		if errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(s.Files.Files(), known) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %v", path, reasonOf(err)))
	}
	slices.Sort(out)
	return out
}

// reasonOf is the system's error without the path.
func reasonOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Kinds of findings.
const (
	kindUndelivered = "not_delivered"
	kindDifferences = "differences"
	kindPast        = "past"
	kindDead        = "dead_letters"
	kindWithheld    = "withheld"
	kindHeldBack    = "held_back"
)

// heldBack begins the reason of a transcript that waits because it is not known whether its project has opted out.
const heldBack = "held back"

// verdict lists the reasons why a report is not equal, each with its fix. What the user excluded is no reason.
func (r *recorder) verdict(o *Options) (found []control.VerifyFinding) {
	add := func(kind string, n int64, text, fix string) {
		if n > 0 {
			found = append(found, control.VerifyFinding{Kind: kind, Count: n, Text: text, Fix: fix})
		}
	}
	if o.Incomplete != "" {
		text := "not everything is delivered: " + o.Incomplete
		add(kindUndelivered, max(1, r.Waiting), text, cmp.Or(o.Hint, fixOf(o.Reason)))
	}
	undelivered, differ, past := r.countDifferences()
	add(kindUndelivered, undelivered, amount.Counted(undelivered, "transcript is", "transcripts are")+" not delivered yet",
		"`ccship sync --wait` delivers what can be delivered, `ccship doctor` shows what is in the way")
	add(kindDifferences, differ, amount.Counted(differ, "difference", "differences")+" between disk and server",
		"`ccship verify --repair` sends what the server lacks")
	add(kindPast, past, amount.Counted(past, "difference", "differences")+" in what the server keeps of the past",
		"`ccship-server restore` from a backup that has it; what is on disk now is not affected")
	add(kindDead, r.Dead, amount.Counted(r.Dead, "entry", "entries")+" refused by the server (dead letters)",
		"`ccship outbox retry --all` sends them again, `ccship outbox list --dead` shows why they were refused")
	add(kindWithheld, r.Withheld, amount.Counted(r.Withheld, "line", "lines")+" withheld from a plain server",
		"`ccship config server_url URL` with the address of a ccship-server, which takes every line")
	held := int64(0)
	for _, t := range r.Transcripts {
		if strings.HasPrefix(t.Note, heldBack) {
			held++
		}
	}
	add(kindHeldBack, held, amount.Counted(held, "transcript is", "transcripts are")+" held back",
		"make the files readable that `ccship exclude` names")
	return found
}

// countDifferences counts the transcripts that are not delivered, the differences that lines on disk can repair, and
// the other differences.
func (r *recorder) countDifferences() (undelivered, differ, past int64) {
	for i := range r.Differences {
		switch d := &r.Differences[i]; {
		case d.Past:
			past++
		case d.Detail == detailUndelivered:
			undelivered++
		default:
			differ++
		}
	}
	return undelivered, differ, past
}

// fixOf returns the fix for a sync that did not finish.
func fixOf(reason string) string {
	switch reason {
	case "timeout":
		return "`ccship sync --wait --timeout 10m` waits longer"
	case "paused":
		return "`ccship unpause` ends the pause"
	case "full":
		return "free disk space, or make the server reachable: reading goes on by itself"
	case "no_server":
		return "`ccship setup` connects to one, or starts one on this machine; `ccship up` only tries it out"
	case "refused", control.CodeRefusedKey, control.CodeUnreachable:
		return "`ccship doctor` shows what is wrong with the server"
	}
	return "`ccship doctor` shows what is wrong"
}

// Why something cannot be proven.
const (
	whyEpoch    = "of an earlier state file"
	whyNotKept  = "its hashes are not kept any more"
	whyLeftOut  = "some of its lines were left out or refused"
	whyUnknown  = "not remembered here any more"
	whyMasked   = "the server holds some of its secrets masked"
	whyOversize = "a line longer than the cap is stored as a digest"
	whyFormer   = "sent under a former name of this machine"
	whyReplaced = "lines in it differ from the disk; a later generation replaced them"
)

// findings is what a deep comparison found beyond the files on disk.
type findings struct {
	past, vanished, equal, stored control.DeepCount
	retired                       control.DeepCount // the server has only hashes of some of their lines
	why                           map[string]int    // generations in stored, by the reason
	diffs                         []control.FileDifference
}

// unproven counts a generation that is stored but cannot be proven.
func (f *findings) unproven(g protocol.ViewDigest, why string) {
	add(&f.stored, g)
	f.why[why]++
}

func add(c *control.DeepCount, g protocol.ViewDigest) {
	c.Generations++
	c.Lines += g.Lines
	c.Bytes += g.Bytes
}

// addDeep adds findings to the report.
func (r *recorder) addDeep(f *findings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []struct {
		to   *control.DeepCount
		from control.DeepCount
	}{{&r.Deep.Past, f.past}, {&r.Deep.Gone, f.vanished}, {&r.Deep.Earlier, f.equal}, {&r.Deep.Retired, f.retired},
		{&r.Deep.Stored, f.stored}} {
		c.to.Generations += c.from.Generations
		c.to.Lines += c.from.Lines
		c.to.Bytes += c.from.Bytes
	}
	for _, why := range slices.Sorted(maps.Keys(f.why)) {
		r.Deep.Why = addReason(r.Deep.Why, why, f.why[why])
	}
	r.Differences = append(r.Differences, f.diffs...)
}

func addReason(list []control.StoredReason, why string, n int) []control.StoredReason {
	for i := range list {
		if list[i].Why == why {
			list[i].Generations += n
			return list
		}
	}
	return append(list, control.StoredReason{Why: why, Generations: n})
}
