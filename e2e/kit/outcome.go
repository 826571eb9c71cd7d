package kit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// OutcomesEnv names the folder that Record writes into; without it nothing is recorded.
const OutcomesEnv = "CCSHIP_CHAOS_OUTCOMES"

// resumeEnv has Record go on from what an earlier campaign wrote into that folder.
const resumeEnv = "CCSHIP_CHAOS_RESUME"

// Outcome is what one kind of fault came to in all its runs: a row of docs/reliability.md.
type Outcome struct {
	Group    string         `json:"group"`
	Fault    string         `json:"fault"`
	Runs     int            `json:"runs"`
	Lost     int            `json:"lost"`               // lines on disk that the server lacks
	Wrong    int            `json:"wrong"`              // lines that it has with other bytes, and failures of verify
	Hung     int            `json:"hung"`               // programs that neither answered nor ended
	Recovery []float64      `json:"recovery,omitempty"` // seconds from the end of the trouble to everything being there
	Told     map[string]int `json:"told,omitempty"`     // what people could read meanwhile, and in how many runs
	Failed   bool           `json:"failed,omitempty"`   // a check failed that has no number

	path string // where it is kept; "": nowhere
}

// Record keeps an outcome at the end of t, if outcomes are wanted. A campaign that is resumed goes on counting from
// what was kept before, unless that failed.
func Record(t testing.TB, o *Outcome) {
	t.Helper()
	dir := os.Getenv(OutcomesEnv)
	if dir == "" {
		return
	}
	o.path = filepath.Join(dir, slug(o.Group+" "+o.Fault)+".json")
	if os.Getenv(resumeEnv) != "" {
		Must(t, o.resume())
	}
	t.Cleanup(func() {
		o.Failed = o.Failed || t.Failed()
		if err := o.Keep(); err != nil {
			t.Error(err)
		}
	})
}

// Keep writes what the runs came to so far, so that a campaign that is interrupted has not been for nothing.
func (o *Outcome) Keep() error {
	if o.path == "" {
		return nil
	}
	text, err := json.MarshalIndent(o, "", "\t")
	if err != nil {
		return fmt.Errorf("keep outcome: %w", err)
	}
	if err := os.WriteFile(o.path+".new", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep outcome: %w", err)
	}
	return os.Rename(o.path+".new", o.path)
}

// resume takes in what was kept of an outcome that did not fail.
func (o *Outcome) resume() error {
	text, err := os.ReadFile(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var was Outcome
	if err = errors.Join(err, json.Unmarshal(text, &was)); err != nil {
		return fmt.Errorf("resume from %s: %w", o.path, err)
	}
	if !was.Failed && was.Lost+was.Wrong+was.Hung == 0 {
		was.path = o.path
		*o = was
	}
	return nil
}

// Hear counts something that a person could read.
func (o *Outcome) Hear(text string) {
	if text == "" {
		return
	}
	if o.Told == nil {
		o.Told = map[string]int{}
	}
	o.Told[text]++
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// slug is a name as a file's.
func slug(name string) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(name), "-"), "-")
}
