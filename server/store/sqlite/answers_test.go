package sqlite

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// explained keeps how statements are run.
type explained struct {
	dialect
	plan []string
}

func (e *explained) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	err := e.dialect.Query(ctx, "EXPLAIN QUERY PLAN "+query, args, func(row sqlstore.Scanner) error {
		var n any
		var step string
		err := row.Scan(&n, &n, &n, &step)
		e.plan = append(e.plan, step)
		return err
	})
	if err != nil {
		return 0, err
	}
	return e.dialect.Exec(ctx, query, args...)
}

// TestAnswersByKey: saving and removing answers reads those with the same keys, never all of their owner.
func TestAnswersByKey(t *testing.T) {
	s := openTexts(t)
	putText(t, s, 1, "s", 0, "a")
	err := of(s).Write(t.Context(), 0, func(d sqlstore.Dialect) error {
		e := &explained{dialect: d.(dialect)} //nolint:forcetypeassert // database has no other
		x := &server.Derivation{Task: server.Task{Owner: 1, Stream: 1}}
		for i := range 20 {
			x.Answers = append(x.Answers, server.Answer{Key: fmt.Sprint(i), Time: time.Unix(1, 0)})
		}
		if err := sqlstore.SaveAnswers(t.Context(), e, 1, []*server.Derivation{x}); err != nil {
			return err
		}
		if err := sqlstore.RemoveAnswers(t.Context(), e, sqlstore.OwnedStream{Stream: 1, Owner: 1}); err != nil {
			return err
		}
		for _, step := range e.plan {
			kit.Check(t, !strings.HasSuffix(step, "(owner=?)") && step != "SCAN n" && step != "SCAN a" && step != "SCAN o",
				"a step is: %s", step)
		}
		kit.Check(t, len(e.plan) >= 5, "steps are %q", e.plan)
		return nil
	})
	kit.Must(t, err)
}
