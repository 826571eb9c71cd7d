package session

import (
	"cmp"
	"slices"

	"github.com/ccship/ccship/transcript"
)

// metadata handles records without a uuid: titles, labels, the prompt queue. Claude Code repeats them often.
func (s *Fold) metadata(line int64, r *transcript.Record) {
	if s.sum.SessionID == "" && r.Type != "file-history-snapshot" {
		s.sum.SessionID = clone(r.SessionID)
	}
	s.lineage(r.Lineage)
	switch {
	case r.Type == "queue-operation":
		s.queueOperation(line, r)
	case r.TitleKind == transcript.SummaryTitle:
		s.summaryTitle(line, r)
	case r.TitleKind != transcript.NoTitle:
		s.title(line, r, r.TitleKind, r.Title)
	case r.Labels != nil:
		s.labels(r.Labels)
	case r.Type == "permission-mode" && r.PermissionMode != "":
		s.sum.PermissionMode = clone(r.PermissionMode)
	}
}

func (s *Fold) labels(l *transcript.Labels) {
	to := &s.sum.Labels
	to.Tag = clone(cmp.Or(l.Tag, to.Tag))
	to.AgentName = clone(cmp.Or(l.AgentName, to.AgentName))
	to.PRURL = clone(cmp.Or(l.PRURL, to.PRURL))
	if l.PRNumber != 0 {
		to.PRNumber = l.PRNumber
	}
}

// title stores a title and emits an event if the session's title changes.
func (s *Fold) title(line int64, r *transcript.Record, kind transcript.TitleKind, title string) {
	before, _ := s.titled()
	s.titles[kind] = transcript.OneLine(title, maxPrompt)
	if now, _ := s.titled(); now != before {
		s.event(TitleEvent, line, r).Text = now
	}
}

func (s *Fold) titled() (string, transcript.TitleKind) {
	for kind := transcript.CustomTitle; kind > transcript.NoTitle; kind-- {
		if s.titles[kind] != "" {
			return s.titles[kind], kind
		}
	}
	return "", transcript.NoTitle
}

// summaryTitle stores the title of the session that contains a leaf, which may be another session than this one.
func (s *Fold) summaryTitle(line int64, r *transcript.Record) {
	id := hash(r.LeafUUID)
	if s.branches.find(id) != nil {
		s.title(line, r, transcript.SummaryTitle, r.Title)
		return
	}
	if len(s.summaries) == maxSummaries {
		s.summaries = slices.Delete(s.summaries, 0, 1)
	}
	s.summaries = append(s.summaries, looseSummary{id, transcript.OneLine(r.Title, maxPrompt)})
}

// looseSummaries checks whether the record is a leaf that an earlier summary named.
func (s *Fold) looseSummaries(g *treeRecord, r *transcript.Record) {
	for i, l := range s.summaries {
		if l.leaf == g.id {
			s.summaries = slices.Delete(s.summaries, i, i+1)
			s.title(g.line, r, transcript.SummaryTitle, l.title)
			return
		}
	}
}

// versionBelow reports whether a version is lower than another; false if it cannot be parsed.
func versionBelow(version string, than ...int64) bool {
	var n [3]int64
	if !versionNumbers(version, &n) {
		return false
	}
	return slices.Compare(n[:], than) < 0
}

func versionNumbers(version string, n *[3]int64) bool {
	part := 0
	for i := 0; i < len(version); i++ {
		switch c := version[i]; {
		case c-'0' <= 9 && n[part] < 1<<40:
			n[part] = n[part]*10 + int64(c-'0')
		case c == '.' && part < 2:
			part++
		default:
			return part == 2
		}
	}
	return part == 2
}
