package library

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"time"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// UsageDisk reads transcripts on disk.
type UsageDisk struct {
	Roots   []string // projects folders
	Machine string   // the server's name for this user on this machine
	Host    string
	Prices  *transcript.Prices
	// Project returns the hash of the project of a working directory ("" if a transcript names none), and the repository
	// if the directory lies in a worktree of one.
	Project  func(cwd, folder string) (hash, repository string)
	Progress func(done, total int64) // bytes; nil: nobody looks
}

// Sum reads every transcript below the roots, and needs memory for the answers only. What cannot be read is left out
// and named in the report. The error is that of ctx.
func (d UsageDisk) Sum(ctx context.Context, q Query) (Report, error) {
	r := Report{Source: FromDisk, By: q.By, Prices: d.Prices.AsOf, Zone: q.Zone.String(), Rows: []Row{}, Faults: []Fault{}}
	c := counter{
		disk: d, query: q, report: &r, answers: answers{seed: maphash.MakeSeed(), last: map[uint64]int32{}},
		groups: map[group]int32{}, projects: map[[2]string][2]string{},
	}
	files := find(d.Roots, c.fault)
	for i := range files {
		c.total += files[i].Stat.Size
	}
	for i := range files {
		if err := c.file(ctx, &files[i]); err != nil {
			return r, err
		}
	}
	c.sum()
	return r, nil
}

// group is what answers are summed by: the columns of the query, and what prices depend on.
type group struct {
	names Row
	model string
	long  bool
}

// sums are the tokens of a group.
type sums struct {
	group
	answers int64
	usage   transcript.Usage
}

// counter is one count.
type counter struct {
	disk     UsageDisk
	query    Query
	report   *Report
	answers  answers
	groups   map[group]int32 // index in sums
	sums     []sums
	projects map[[2]string][2]string // hash and name, by working directory and folder

	done, total int64 // bytes
	in          *file
	project     [2]string // hash and name of the file's project; empty until they are needed
	clock       time.Time // the latest time seen in the file
}

// fault tells what could not be read, in one entry for each file.
func (c *counter) fault(f Fault) {
	if n := len(c.report.Faults); n > 0 && c.report.Faults[n-1].Path == f.Path {
		c.report.Faults[n-1].Lines++
	} else if n < maxFaults {
		f.Lines = min(f.Line, 1)
		c.report.Faults = append(c.report.Faults, f)
	}
}

// file counts the answers of a file.
func (c *counter) file(ctx context.Context, f *file) error {
	in, err := sys.OpenRegular(f.Path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) { // else it was removed meanwhile
			c.fault(Fault{Path: f.Path, Why: reason(err)})
		}
		return nil
	}
	defer in.Close()
	c.report.Files++
	c.in, c.project, c.clock = f, [2]string{}, time.Time{}
	if info, err := in.Stat(); err == nil {
		c.clock = info.ModTime()
	}
	lines := tail.NewLineReader(in, maxLine, f.Stat.Size)
	for n := int64(1); ; n++ {
		line, err := lines.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.fault(Fault{Path: f.Path, Line: n, Why: reason(err)})
			}
			break
		}
		if n%1024 == 1 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("sum usage: %w", err)
			}
			c.show(line.Offset)
		}
		if why := c.line(&line); why != "" {
			c.report.Skipped++
			c.fault(Fault{Path: f.Path, Line: n, Why: why})
		}
	}
	c.done += f.Stat.Size
	return nil
}

// show reports the progress. at is how far the file is read.
func (c *counter) show(at int64) {
	if c.disk.Progress != nil {
		c.disk.Progress(c.done+at, c.total)
	}
}

// line counts the answers of a line. why says why some of it was skipped.
func (c *counter) line(line *tail.Line) (why string) {
	if line.Oversize {
		return fmt.Sprintf("longer than %d MiB", maxLine>>20)
	}
	l := transcript.Scan(line.Raw)
	switch {
	case l.IsObject():
		c.object(line.Raw, l)
	case l.Shape == transcript.Malformed && !line.Newline:
		// It is being written.
	case l.Shape == transcript.Malformed:
		for _, object := range transcript.Recover(line.Raw) {
			c.object(object, transcript.Scan(object))
		}
		return "not one JSON object; what could be recovered of it is counted"
	}
	return ""
}

// object counts the answer that a record reports, if it does.
func (c *counter) object(line []byte, l transcript.Line) {
	if c.project[0] == "" && len(l.Cwd) > 0 {
		c.setProject(transcript.Unquote(l.Cwd))
	}
	if !bytes.Contains(line, []byte("usage")) {
		return
	}
	r := transcript.ParseScanned(line, l)
	for sample := range r.Answers() {
		if sample.Key() != "" {
			c.answer(&sample, &r)
		}
	}
}

// answer counts what a record reports of an answer.
func (c *counter) answer(sample *transcript.UsageSample, r *transcript.Record) {
	if sample.Time.IsZero() {
		sample.Time = cmp.Or(r.Time, c.clock)
	}
	c.clock = sample.Time
	a := c.answers.newAnswer(sample, cmp.Or(r.SessionID, c.in.session()))
	a.group, a.copied = c.groupOf(sample, r), r.Lineage != nil && r.Lineage.ForkedFrom != ""
	counts, before := c.answers.add(a)
	if before != nil {
		c.add(before, -1)
	}
	if counts {
		c.add(&a, 1)
	}
}

// add adds an answer to its group, or takes it away.
func (c *counter) add(a *answer, sign int64) {
	if a.group < 0 {
		return
	}
	s := &c.sums[a.group]
	s.answers += sign
	if sign > 0 {
		s.usage = s.usage.Plus(a.usage())
	} else {
		s.usage = s.usage.Minus(a.usage())
	}
}

// groupOf is the group that an answer belongs to, -1 if it is not summed.
func (c *counter) groupOf(s *transcript.UsageSample, r *transcript.Record) int32 {
	if !c.query.takes(s.Time) {
		return -1
	}
	g := group{model: s.Model, long: s.Usage.Context() > transcript.LongContext}
	for _, by := range c.query.By {
		switch by {
		case Day:
			g.names.Day = s.Time.In(c.query.Zone).Format(time.DateOnly)
		case Project:
			if c.project[0] == "" {
				c.setProject(r.Cwd)
			}
			g.names.ProjectHash, g.names.Project = c.project[0], c.project[1]
		case Model:
			g.names.Model = s.Model
		case Machine:
			g.names.Machine, g.names.Host = c.disk.Machine, c.disk.Host
		case Session:
			g.names.Session = cmp.Or(c.in.session(), r.SessionID)
		}
	}
	at, ok := c.groups[g]
	if !ok {
		at = int32(len(c.sums))
		c.groups[g] = at
		c.sums = append(c.sums, sums{group: g})
	}
	return at
}

// setProject finds out which project the file belongs to.
func (c *counter) setProject(cwd string) {
	if !c.query.by(Project) {
		return
	}
	key := [2]string{cwd, c.in.folder}
	if _, ok := c.projects[key]; !ok {
		top := transcript.RepositoryOf(cwd)
		hash, main := c.disk.Project(top, c.in.folder)
		c.projects[key] = [2]string{hash, cmp.Or(transcript.FolderName(cmp.Or(main, top)), c.in.folder)}
	}
	c.project = c.projects[key]
}

// sum makes the report's rows out of the groups.
func (c *counter) sum() {
	at := map[Row]int{}
	for i := range c.sums {
		s := &c.sums[i]
		if s.answers == 0 {
			continue
		}
		cost := c.disk.Prices.Cost(s.model, s.usage, s.long)
		c.report.row(at, s.names).add(s.answers, s.usage, cost)
		c.report.Total.add(s.answers, s.usage, cost)
	}
	c.report.finish()
}
