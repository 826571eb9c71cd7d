package history

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
)

// Note attaches a text to a commit, in place of the one that it attached before. Nothing else here writes to a
// repository. `git log --notes=ccship` shows it.
func (r *Repo) Note(ctx context.Context, commit, text string) error {
	if _, err := r.git(ctx, "notes", "--ref=ccship", "add", "-f", "-m", text, commit); err != nil {
		return control.Usage(err.Error(), "see whether `git notes --ref=ccship add` works here")
	}
	return nil
}
