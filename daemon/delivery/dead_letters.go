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
)

// DeadLetters lists the entries that servers refuse for their content.
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

// deadID names a dead letter for people: the row it was in, and its line.
func deadID(k state.DeadKey) string { return fmt.Sprintf("%d-%d", k.Seq, k.Line) }

func parseDeadID(id string) (state.DeadKey, bool) {
	seq, line, ok := strings.Cut(id, "-")
	s, errSeq := strconv.ParseUint(seq, 10, 64)
	l, errLine := strconv.ParseInt(line, 10, 64)
	return state.DeadKey{Seq: s, Line: l}, ok && errSeq == nil && errLine == nil && l >= 0
}

// RetryDead puts dead letters back into the outbox.
func RetryDead(ctx context.Context, db *state.DB, req control.DeadRequest) (control.DeadResult, error) {
	keys, err := deadKeys(ctx, db, req)
	if err != nil {
		return control.DeadResult{}, err
	}
	n, err := db.DeadLetters.Retry(ctx, keys)
	return control.DeadResult{SchemaVersion: control.SchemaVersion, Letters: n}, err
}

// DropDead removes dead letters for good. Their lines count as missing from then on.
func DropDead(ctx context.Context, db *state.DB, req control.DeadRequest) (control.DeadResult, error) {
	keys, err := deadKeys(ctx, db, req)
	if err != nil {
		return control.DeadResult{}, err
	}
	n, err := db.DeadLetters.Drop(ctx, keys)
	return control.DeadResult{SchemaVersion: control.SchemaVersion, Letters: n}, err
}

// deadKeys returns the dead letters that are asked for. An error is a *control.Error if one of them does not exist.
func deadKeys(ctx context.Context, db *state.DB, req control.DeadRequest) ([]state.DeadKey, error) {
	if req.All == (len(req.IDs) > 0) {
		return nil, control.Usage("name dead letters, or all of them", "`ccship outbox dead` lists them")
	}
	letters, err := db.DeadLetters.List(ctx)
	if err != nil {
		return nil, err
	}
	var all, keys []state.DeadKey
	for _, l := range letters {
		all = append(all, l.Key)
	}
	if req.All {
		return all, nil
	}
	for _, id := range req.IDs {
		key, ok := parseDeadID(id)
		if !ok || !slices.Contains(all, key) {
			return nil, control.NewError(control.CodeNoDeadLetter, "there is no dead letter "+id,
				"`ccship outbox dead` lists them")
		}
		keys = append(keys, key)
	}
	return keys, nil
}
