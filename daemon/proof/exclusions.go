package proof

import (
	"path/filepath"

	"github.com/ccship/ccship/daemon/control"
)

// Why lines are left out.
const (
	whySentBefore = "sent before ccship was installed"
	whyTypes      = "of a type in exclude_types"
	whyPrompts    = "prompts of projects that are excluded"
)

// whyOfLines returns why the rules leave lines of a transcript out.
func whyOfLines(file *control.FileReport) string {
	if filepath.Base(file.Path) == "history.jsonl" {
		return whyPrompts
	}
	return whyTypes
}

// excludedLines counts lines that a rule leaves out. The caller holds mu.
func (r *recorder) excludedLines(why string, n int64) {
	if n > 0 {
		r.excluded(why).Lines += n
	}
}

// excluded returns the count of a rule. The caller holds mu.
func (r *recorder) excluded(why string) *control.ExclusionCount {
	for i := range r.ExcludedWhy {
		if r.ExcludedWhy[i].Why == why {
			return &r.ExcludedWhy[i]
		}
	}
	r.ExcludedWhy = append(r.ExcludedWhy, control.ExclusionCount{Why: why})
	return &r.ExcludedWhy[len(r.ExcludedWhy)-1]
}
