package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestLaggingByOwner: of what is to derive whole, the newest stream is handed out first, and others of its owner with it.
func TestLaggingByOwner(t *testing.T) {
	s := openTexts(t)
	for i := range 12 { // the newest is the last one, of owner 3
		b := &server.Batch{Owner: int64(1 + i%3), Received: said.Add(time.Duration(i) * time.Second),
			Lines: []server.Line{{Raw: []byte(`{}`)}}, Head: server.Head{SessionID: fmt.Sprint(i), Machine: "m", EndLine: 1}}
		kit.Must(t, s.Put(t.Context(), b))
	}
	for _, want := range [][]string{{"11", "8", "5", "2", "10", "7"}, {"9", "6", "3", "0", "4", "1"}} {
		tasks := kit.Try(s.Lagging(t.Context(), 6)).Must(t)
		var got []string
		for _, task := range tasks {
			got = append(got, task.SessionID)
		}
		kit.Equal(t, "sessions", got, want)
	}
}
