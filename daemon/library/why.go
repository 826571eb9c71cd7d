package library

import "github.com/ccship/ccship/transcript/provenance"

// Why is the document of `ccship why --json` about commits.
type Why struct {
	SchemaVersion int                 `json:"schema_version"`
	Commits       []provenance.Answer `json:"commits"`
}

// WhyLines is the document of `ccship why --json` about lines.
type WhyLines struct {
	SchemaVersion int       `json:"schema_version"`
	Lines         []WhyLine `json:"lines"`
}

// WhyLine is what is known of a line: the same as of a commit.
type WhyLine struct {
	Line      int                 `json:"line"` // of the file now, from 1
	Commit    string              `json:"commit"`
	Steps     int                 `json:"later_commits"` // that only moved or formatted it
	Formatted bool                `json:"formatted,omitempty"`
	Sessions  []provenance.Author `json:"sessions"`
	NotProven map[string]int      `json:"not_proven"`

	Text string `json:"-"`
}

// WhyLineOf returns what an answer about a commit says of one line of a file. One that was not compared is blank, or
// holds a secret.
func WhyLineOf(a *provenance.Answer, path string, line int) WhyLine {
	out := WhyLine{Sessions: []provenance.Author{}, NotProven: map[string]int{}}
	for _, l := range a.Lines {
		if l.Path != path || l.Line != line {
			continue
		}
		if l.SessionID == "" {
			out.NotProven[l.Reason] = 1
			return out
		}
		for _, s := range a.Sessions {
			if s.SessionID == l.SessionID && s.Machine == l.Machine {
				s.Lines, s.Prompts = 1, []provenance.Prompt{*l.Prompt}
				out.Sessions, out.Formatted = []provenance.Author{s}, l.Formatted
				return out
			}
		}
	}
	out.NotProven[provenance.NotCompared] = 1
	return out
}
