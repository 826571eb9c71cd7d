package doctor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
)

// checkRetention finds the transcripts that Claude Code is about to delete and the server does not have.
func checkRetention(ctx context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil && x.daemon().client == nil {
		return nil
	}
	d, r := x.retention(), x.daemon()
	within := amount.Counted(int64(x.o.Days), "day", "days")
	if d.Expiring == 0 {
		if d.Sessions == 0 {
			return nil
		}
		return fine("Claude Code deletes none of " + amount.Counted(int64(d.Sessions), "session", "sessions") + " within " +
			within)
	}
	goes := amount.Counted(int64(d.Expiring), "session", "sessions")
	if r.client == nil {
		why, fix := "the daemon does not answer", "restart the daemon"
		if errors.Is(r.err, control.ErrNotRunning) {
			why, fix = "the daemon is not running", "start the daemon"
		}
		return []Finding{{
			Level: Warn, Text: goes + " will be deleted by Claude Code within " + within +
				"; " + why + ", so it is unknown whether the server has a copy",
			Detail: "first " + when(x.now, d.FirstExpiry) + ": " + d.FirstPath + periodOf(d.FirstPath, x.roots()), Fix: fix,
		}}
	}
	risks, err := x.risks(ctx)
	if err != nil {
		return []Finding{{Level: Warn, Text: goes + " will be deleted by Claude Code within " + within +
			"; whether the server has a copy could not be checked in time", Detail: err.Error(), Fix: syncCommand}}
	}
	if len(risks) == 0 {
		return fine(goes + " will be deleted by Claude Code within " + within + ": the server has them, or they are excluded")
	}
	return []Finding{x.atRisk(risks, within)}
}

// atRisk returns the finding of transcripts that will be lost.
func (x *exam) atRisk(risks []risk, within string) Finding {
	first := risks[0]
	for _, r := range risks {
		if r.end.Before(first.end) {
			first = r
		}
	}
	f := Finding{
		Level: Warn, Text: amount.Counted(int64(len(risks)), "session", "sessions") +
			" will be deleted by Claude Code within " + within + " and not yet on the server",
		Detail: "first " + when(x.now, first.end) + ": " + first.path + periodOf(first.path, x.roots()), Fix: syncCommand,
	}
	if len(risks) == 1 {
		f.Text = "1 session will be deleted by Claude Code within " + within + " and is not yet on the server"
	} else {
		f.Text = strings.Replace(f.Text, "and not", "and are not", 1)
	}
	if first.end.Before(x.now.AddDate(0, 0, 1)) {
		f.Level = Fail
	}
	status := x.daemon().status
	switch {
	case status.Pause != nil:
		f.Fix = "`ccship unpause`"
	case status.State == "no_server":
		f.Fix = "`ccship setup`"
	default:
		f = f.safely(phaseDelivery, x.sync)
	}
	return f
}

// periodOf names the setting that decides when a transcript is deleted.
func periodOf(path string, roots []string) string {
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil && strings.HasPrefix(path,
			real+string(filepath.Separator)) || strings.HasPrefix(path, root+string(filepath.Separator)) {
			days, source := config.CleanupDays(filepath.Dir(root))
			if source == "" {
				source = "by default"
			}
			return fmt.Sprintf(" (cleanupPeriodDays is %d, %s)", days, source)
		}
	}
	return ""
}

// when returns a moment in words.
func when(now, t time.Time) string {
	if t.Before(now) {
		return "any time now"
	}
	return "in " + amount.Duration(t.Sub(now))
}

// risk is a transcript that is deleted at end.
type risk struct {
	path string
	end  time.Time
}

// risks asks the daemon which of the transcripts on disk are not on a server.
func (x *exam) risks(ctx context.Context) ([]risk, error) {
	r := x.daemon()
	if f, o := r.status.Files, r.status.Outbox; f != nil && o != nil && f.ReadBytes == f.Bytes && o.Entries == 0 {
		return nil, nil // everything is delivered
	}
	waiting, err := agentsWaiting(ctx, r.client)
	if err != nil {
		return nil, err
	}
	days := map[string]int{}
	for _, root := range x.roots() {
		days[root], _ = config.CleanupDays(filepath.Dir(root))
	}
	if len(days) == 0 {
		return nil, nil
	}
	var risks []risk
	for page := (control.Page{Limit: 1000}); ; {
		list, err := r.client.Sessions(ctx, control.SessionsQuery{Page: page})
		if err != nil {
			return nil, err
		}
		for _, s := range list.Sessions {
			end := s.ChangedAt.AddDate(0, 0, periodIn(days, s.Path))
			if s.Excluded == "" && end.Before(x.now.AddDate(0, 0, x.o.Days)) && (s.Waiting > 0 || waiting[s.Session] ||
				unreadLines(s)) {
				risks = append(risks, risk{s.Path, end})
			}
		}
		if list.Next == 0 {
			return risks, nil
		}
		page.Offset = list.Next
	}
}

// periodIn returns the number of days for a transcript's root, or the smallest of all roots if path is below none.
func periodIn(days map[string]int, path string) int {
	for root, n := range days {
		if strings.HasPrefix(path, root+string(filepath.Separator)) {
			return n
		}
	}
	return slices.Min(slices.Collect(maps.Values(days)))
}

// agentsWaiting returns the sessions whose agents have lines in the outbox: they are deleted with their session.
func agentsWaiting(ctx context.Context, client *control.Client) (map[string]bool, error) {
	waiting := map[string]bool{}
	for page := (control.Page{Limit: 1000}); ; {
		list, err := client.Outbox(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, row := range list.Rows {
			if parent, _, agent := strings.Cut(row.Session, "/"); agent {
				waiting[parent] = true
			}
		}
		if list.Next == 0 {
			return waiting, nil
		}
		page.Offset = list.Next
	}
}

// unreadLines reports whether a transcript has whole lines past the daemon's cursor. A last line without its newline
// stays past the cursor although it is delivered.
func unreadLines(s control.Session) bool {
	if s.ReadBytes >= s.Bytes {
		return false
	}
	f, err := sys.OpenRegular(s.Path)
	if err != nil {
		return true
	}
	defer f.Close()
	const most = 64 << 10
	rest := make([]byte, min(s.Bytes-s.ReadBytes, most))
	n, err := f.ReadAt(rest, s.ReadBytes)
	return err != nil && !errors.Is(err, io.EOF) || int64(n) == most || bytes.IndexByte(rest[:n], '\n') >= 0
}

// How much of the newest transcripts is looked at for what this version does not know, in bytes; lines that are longer
// are passed over.
const (
	knownBytes = 64 << 20
	knownLine  = 1 << 20
)

// checkRecords counts what transcripts have beyond what this version knows, and names those with lines that it cannot
// read. They are delivered all the same.
func checkRecords(ctx context.Context, x *exam) (found []Finding) {
	unknown := map[string]int{}
	var notRead []string
	left := int64(knownBytes)
	for _, path := range newestTranscripts(x.roots()) {
		if left <= 0 || ctx.Err() != nil {
			break
		}
		read, unread := countUnknown(path, left, unknown)
		if left -= read; len(unread) > 0 {
			notRead = append(notRead, path+" ("+strings.Join(unread, ", ")+")")
		}
	}
	read := amount.Size(knownBytes - max(left, 0))
	if len(notRead) > 0 {
		f := Finding{Level: Note, Text: amount.Counted(int64(len(notRead)), "transcript has", "transcripts have") +
			" lines that are delivered as they are, and not read: " + some(notRead, mostNamed)}
		if slices.ContainsFunc(notRead, func(lines string) bool {
			return strings.Contains(lines, ": "+transcript.UnreadUTF16) || strings.Contains(lines, ": "+transcript.UnreadPiece)
		}) { // from damage nothing whole can be made
			f.Fix = "write a copy in UTF-8 with a record a line, for example by `iconv` and `jq -c .`"
		}
		found = append(found, f)
	}
	switch {
	case left == knownBytes, len(unknown) == 0 && len(found) > 0:
		return found
	case len(unknown) == 0:
		return fine("every kind of record in the newest " + read + " of transcripts is known")
	}
	order := slices.SortedFunc(maps.Keys(unknown), func(a, b string) int {
		return cmp.Or(cmp.Compare(unknown[b], unknown[a]), strings.Compare(a, b))
	})
	for i, name := range order {
		order[i] = fmt.Sprintf("%s (%d)", name, unknown[name])
	}
	return append(found, Finding{Level: Note,
		Text:   "the newest " + read + " of transcripts have what this version does not know: " + some(order, 2*mostNamed),
		Detail: "it is delivered and stored as it is; titles, turns and search may not understand it",
		Fix:    "a newer ccship may know it"})
}

// some names the first of a list.
func some(list []string, most int) string {
	if more := len(list) - most; more > 0 {
		list = append(list[:most:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
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

// countUnknown counts in up to most bytes of a transcript, and returns how many it has read, and what its lines without
// a record are.
func countUnknown(path string, most int64, unknown map[string]int) (read int64, unread []string) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return 0, nil
	}
	defer f.Close()
	without := map[string]int64{} // lines, by what they are
	lines := bufio.NewReaderSize(f, knownLine)
	long := false // the line was longer than the buffer, and goes on
	for read < most {
		line, err := lines.ReadSlice('\n')
		read += int64(len(line))
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true
			continue
		}
		text := bytes.TrimSuffix(line, []byte{'\n'})
		shape := transcript.Scan(text).Shape
		switch {
		case long:
		case shape == transcript.Object:
			for _, name := range transcript.Unknown(line) {
				unknown[name]++
			}
		case shape == transcript.Malformed && err == nil && len(transcript.Records(text)) == 0:
			without[transcript.Unread(text)]++
		}
		if long = false; err != nil {
			break
		}
	}
	for _, what := range slices.Sorted(maps.Keys(without)) {
		unread = append(unread, amount.Counted(without[what], "line", "lines")+": "+what)
	}
	return read, unread
}
