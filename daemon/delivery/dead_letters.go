package delivery

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// DeadLetters lists the entries that servers refuse because of their content.
func DeadLetters(ctx context.Context, db *state.DB) (control.DeadLetters, error) {
	all, err := db.DeadLetters.List(ctx)
	if err != nil {
		return control.DeadLetters{}, err
	}
	a := control.DeadLetters{SchemaVersion: control.SchemaVersion, Letters: []control.DeadLetter{}}
	for _, l := range all {
		a.Letters = append(a.Letters, control.DeadLetter{
			ID: deadID(l.Key), Server: project.ServerURL(l.Dest), Session: l.Stream.SessionID, Path: l.Stream.Path,
			Kind: l.Batch.Kind.String(), Name: l.Batch.Blob.Name,
			Generation: l.Batch.Generation, Line: l.Line, Entries: l.Batch.Entries, Bytes: l.Batch.Raw,
			Reason: l.Reason, Status: l.Status, Answer: l.Answer, At: time.Unix(l.At, 0).UTC(),
		})
	}
	return a, nil
}

// deadID returns the name of a dead letter for people: its row and its line.
func deadID(k state.DeadKey) string { return fmt.Sprintf("%d-%d", k.Seq, k.Line) }

func parseDeadID(id string) (state.DeadKey, bool) {
	seq, line, ok := strings.Cut(id, "-")
	s, errSeq := strconv.ParseUint(seq, 10, 64)
	l, errLine := strconv.ParseInt(line, 10, 64)
	return state.DeadKey{Seq: s, Line: l}, ok && errSeq == nil && errLine == nil && l >= 0
}

// Retrier queues dead letters of files that have rejoined since; *proof.Reconciler is one.
type Retrier interface {
	// RetryLetters returns how many of the letters are no longer dead letters, also with an error.
	RetryLetters(ctx context.Context, letters []state.DeadLetter) (int, error)
}

// RetryDead puts dead letters back into the outbox.
func RetryDead(ctx context.Context, db *state.DB, displaced Retrier,
	req control.DeadRequest) (control.DeadResult, error) {
	a := control.DeadResult{SchemaVersion: control.SchemaVersion}
	letters, err := deadLetters(ctx, db, req)
	if err != nil {
		return a, err
	}
	facts, err := db.Files.Routings(ctx)
	if err != nil {
		return a, err
	}
	var keys []state.DeadKey
	var others []state.DeadLetter
	for i := range letters {
		if l := &letters[i]; isDisplaced(l, facts) {
			others = append(others, *l)
		} else {
			keys = append(keys, l.Key)
		}
	}
	if a.Letters, err = db.DeadLetters.Retry(ctx, keys); err != nil {
		return a, err
	}
	n, err := displaced.RetryLetters(ctx, others)
	a.Letters += n
	return a, err
}

// isDisplaced reports whether the server may store other lines instead of a dead letter's, because its file has
// rejoined since.
func isDisplaced(l *state.DeadLetter, facts map[tail.FileID]state.Routing) bool {
	f, known := facts[tail.FileID(l.Stream.ID)]
	return l.Batch.Items == 0 && (l.Reason == state.ReasonReplaced || known && l.Stream.Epoch != f.Stream.Epoch)
}

// DropDead removes dead letters permanently. Their lines count as missing from then on.
func DropDead(ctx context.Context, db *state.DB, req control.DeadRequest) (control.DeadResult, error) {
	letters, err := deadLetters(ctx, db, req)
	if err != nil {
		return control.DeadResult{}, err
	}
	var keys []state.DeadKey
	for i := range letters {
		keys = append(keys, letters[i].Key)
	}
	n, err := db.DeadLetters.Drop(ctx, keys)
	return control.DeadResult{SchemaVersion: control.SchemaVersion, Letters: n}, err
}

// deadLetters returns the requested dead letters. If one of them does not exist, the error is a *control.Error.
func deadLetters(ctx context.Context, db *state.DB, req control.DeadRequest) ([]state.DeadLetter, error) {
	if req.All == (len(req.IDs) > 0) {
		return nil, control.Usage("name dead letters, or all of them", "`ccship outbox list --dead` lists them")
	}
	all, err := db.DeadLetters.List(ctx)
	if err != nil || req.All {
		return all, err
	}
	var named []state.DeadLetter
	for _, id := range req.IDs {
		key, ok := parseDeadID(id)
		i := slices.IndexFunc(all, func(l state.DeadLetter) bool { return ok && l.Key == key })
		if i < 0 {
			return nil, control.NewError(control.CodeNoDeadLetter, "there is no dead letter "+id,
				"`ccship outbox list --dead` lists them")
		}
		named = append(named, all[i])
	}
	return named, nil
}
