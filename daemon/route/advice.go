package route

import (
	"maps"
	"slices"
	"sync"

	"github.com/ccship/ccship/daemon/control"
)

// maxAdvice is the largest number of working directories with advice.
const maxAdvice = 100

// adviceByProject is what a person should know of projects, and what to do about it. It is safe for concurrent use.
type adviceByProject struct {
	mu    sync.Mutex
	byCwd map[string]control.Advice // by a working directory in the project; guarded by mu
}

// set replaces the advice about a working directory's project; an empty text removes it.
func (a *adviceByProject) set(cwd, text, hint string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if text == "" {
		delete(a.byCwd, cwd)
		return
	}
	if _, known := a.byCwd[cwd]; !known && len(a.byCwd) >= maxAdvice {
		return
	}
	if a.byCwd == nil {
		a.byCwd = map[string]control.Advice{}
	}
	a.byCwd[cwd] = control.Advice{Kind: "project", Text: text, Hint: hint}
}

// list returns each advice once, in the order of the texts.
func (a *adviceByProject) list() []control.Advice {
	a.mu.Lock()
	defer a.mu.Unlock()
	byText := map[string]control.Advice{}
	for _, n := range a.byCwd {
		byText[n.Text] = n
	}
	var out []control.Advice
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		out = append(out, byText[text])
	}
	return out
}
